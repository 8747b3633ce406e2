"""`touchstone explore`: who may use the server, what it leaves behind, and what it says when it cannot start."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command, Folder
from tests.publish.test_query import fingerprint
from touchstone.errors import TouchstoneError
from touchstone.publish.dashboard import server
from touchstone.publish.local_server import listen

# What a browser says of a page that it opens, rather than a part of one.
OPENED = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def asked(host: str, headers: dict[str, str], kind: str = "http", method: str = "GET") -> list[dict[str, Any]]:
    """What the guard sends for a request, in front of an app that says ok."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": kind,
        "method": method,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(server.guarded(app, host)(scope, None, send))  # type: ignore[arg-type]
    return sent


@pytest.mark.parametrize(
    ("host", "headers", "status"),
    [
        ("127.0.0.1", {"host": "127.0.0.1:2718"}, 200),
        ("127.0.0.1", {"host": "localhost:2718", "origin": "http://localhost:2718"}, 200),
        ("::1", {"host": "[::1]:2718"}, 200),
        ("127.0.0.1", {"host": "evil.example:2718"}, 403),
        ("127.0.0.1", {"host": "127.0.0.1:2718", "origin": "http://evil.example"}, 403),
        ("127.0.0.1", {"host": "127.0.0.1:2718", "origin": "http://127.0.0.1:9999"}, 403),
        ("127.0.0.1", {"host": "127.0.0.1:2718", "origin": "null"}, 403),
        ("127.0.0.1", {}, 403),
        ("127.0.0.2", {"host": "127.0.0.2:2718"}, 200),
        ("127.0.0.1", {"host": "127.0.0.1:2718", "sec-fetch-site": "same-origin"}, 200),
        ("127.0.0.1", {"host": "127.0.0.1:2718", "sec-fetch-site": "cross-site"}, 403),
        ("127.0.0.1", {"host": "127.0.0.1:2718", "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}, 403),
        ("127.0.0.1", {"host": "127.0.0.1:2718", "sec-fetch-site": "cross-site"} | OPENED, 200),
        ("10.0.0.5", {"host": "10.0.0.5:2718"}, 200),
        ("10.0.0.5", {"host": "evil.example:2718"}, 403),
        ("0.0.0.0", {"host": "any.name:2718"}, 200),
        ("0.0.0.0", {"host": "any.name:2718", "origin": "http://evil.example"}, 403),
    ],
)
def test_only_the_dashboard_itself_may_ask(host: str, headers: dict[str, str], status: int) -> None:
    assert asked(host, headers)[0]["status"] == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://127.0.0.1:2718"}, 200),
        ({}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "http://127.0.0.1:2718", "sec-fetch-site": "cross-site"} | OPENED, 403),
    ],
)
def test_only_a_page_of_the_dashboard_may_write(headers: dict[str, str], status: int) -> None:
    sent = asked("127.0.0.1", {"host": "127.0.0.1:2718"} | headers, method="POST")
    assert sent[0]["status"] == status


def test_a_foreign_page_gets_no_websocket() -> None:
    [closed] = asked("127.0.0.1", {"host": "127.0.0.1:2718", "origin": "http://127.0.0.1:9999"}, "websocket")
    assert closed["type"] == "websocket.close"


def test_pages_may_load_nothing_from_elsewhere_and_no_site_may_read_them() -> None:
    headers = dict(asked("127.0.0.1", {"host": "127.0.0.1:2718"})[0]["headers"])
    policy = headers[b"content-security-policy"].decode()
    assert policy.startswith("default-src 'none'") and "script" not in policy and "http" not in policy
    assert b"access-control-allow-origin" not in headers


def test_a_taken_port_is_named() -> None:
    with listen("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TouchstoneError, match=f"port {port} on 127.0.0.1 is in use; .*--port"):
            listen("127.0.0.1", port)


def test_results_that_are_not_there_are_told_in_one_line(touchstone: Command, tmp_path: Path) -> None:
    missing = touchstone("explore", "--data", tmp_path / "nothing")
    assert missing.returncode == 2 and "no tables here" in missing.stderr and missing.stderr.count("\n") == 1


@pytest.fixture
def started(filterable: Folder, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The command as a user starts it, with a home folder of its own."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = [Path(sys.executable).with_name("touchstone"), "explore", "--data", filterable.output, "--port", "0"]
    with subprocess.Popen(
        [*command, "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
    ) as process:
        yield process
        process.kill()


@pytest.mark.services
def test_a_token_guards_the_page_and_ctrl_c_ends_it(
    started: subprocess.Popen[str], filterable: Folder, tmp_path: Path
) -> None:
    before = fingerprint(filterable.output)
    assert started.stdout is not None and started.stderr is not None
    address = started.stdout.readline().split()[0]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?access_token=[\w-]{32}", address)
    stranger = urllib.request.build_opener()
    with pytest.raises(urllib.error.HTTPError, match="401") as login:
        stranger.open(address.partition("?")[0] + "?run=x")
    assert 'name="run" value="x"' in login.value.read().decode(), "the token leads to what was asked for"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        stranger.open(urllib.request.Request(address, headers={"Host": "evil.example"}))
    reader = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with reader.open(address) as page:
        assert "Leaderboard" in page.read().decode() and "access_token" not in page.url
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    started.send_signal(signal.SIGINT)
    assert (started.wait(), started.stderr.read()) == (0, "")
    assert fingerprint(filterable.output) == before and not (tmp_path / "config").exists()
