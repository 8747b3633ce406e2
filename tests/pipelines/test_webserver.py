"""The UI's webserver: which requests it answers, for Dagster's own app, and that no web page can run a program."""

import asyncio
import http.client
import json
import os
import signal
import stat
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.conftest import PROJECT, Folder
from tests.deploy.sockets import listening_addresses, socket_paths
from tests.processes import descendants, free_port, wait_until_gone
from tests.ui_server import LAUNCH, PATIENCE_SECONDS, process_group, served

PAGE = {"Accept": "text/html"}
JSON = {"Content-Type": "application/json"}
# What a picture on a page of another site sends.
PICTURE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
OPENED = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
    "Sec-WebSocket-Protocol": "graphql-ws",
}
MUTATION = "/graphql?" + urlencode({"query": 'mutation { deleteRun(runId: "x") { __typename } }'})
QUERY = json.dumps({"query": "{ version }"})


@pytest.fixture(scope="module")
def webserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of Dagster's webserver behind the guard, without a code location."""
    home, port = tmp_path_factory.mktemp("home"), free_port()
    (home / "dagster.yaml").write_text((PROJECT / "dagster.yaml").read_text())
    environment = {**os.environ, "DAGSTER_HOME": str(home), "DAGSTER_WEBSERVER_PORT": str(port)}
    command = [sys.executable, "-m", "pipelines.webserver", "--empty-workspace"]
    with process_group(command, environment, PROJECT, home / "log") as process:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            try:
                assert status(port, "GET", "/server_info") == 200
            except OSError:
                time.sleep(0.2)
            else:
                break
        assert process.poll() is None, (home / "log").read_text()
        assert listening_addresses(descendants(process.pid)) == {("127.0.0.1", port)}
        yield port


def status(port: int, method: str, path: str, headers: dict[str, str] | None = None, body: str | None = None) -> int:
    """What the server answers; PORT in a header stands for its port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    sent = {name: value.replace("PORT", str(port)) for name, value in (headers or {}).items()}
    connection.request(method, path, body, sent)
    return connection.getresponse().status


@pytest.mark.services
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "answer"),
    [
        ("GET", "/", {**PAGE, "Sec-Fetch-Site": "none"}, None, 200),
        ("GET", "/graphql", PAGE, None, 200),
        ("POST", "/graphql", JSON, QUERY, 200),
        ("POST", "/graphql", {**JSON, "Origin": "http://NAME:PORT", "Sec-Fetch-Site": "same-origin"}, QUERY, 200),
        ("GET", "/graphql", {**UPGRADE, "Origin": "http://NAME:PORT"}, None, 101),
    ],
)
def test_the_pages_of_the_ui_are_answered(
    webserver: int, name: str, method: str, path: str, headers: dict[str, str], body: str | None, answer: int
) -> None:
    own = {key: value.replace("NAME", name) for key, value in headers.items()}
    assert status(webserver, method, path, {"Host": f"{name}:PORT", **own}, body) == answer


@pytest.mark.services
@pytest.mark.parametrize(
    ("method", "path", "headers", "body"),
    [
        ("GET", "/", {"Host": "evil.example:PORT"}, None),
        ("GET", "/", OPENED, None),
        ("GET", MUTATION, {}, None),
        ("GET", MUTATION.replace("graphql", "%67raphql"), {}, None),
        ("GET", MUTATION, PICTURE, None),
        ("GET", MUTATION, {"Sec-Fetch-Site": "same-site"}, None),
        ("POST", MUTATION, {"Origin": "http://evil.example"}, ""),
        ("POST", "/graphql", {**JSON, "Origin": "http://evil.example"}, QUERY),
        ("POST", "/graphql", {**JSON, "Origin": "http://127.0.0.1:1"}, QUERY),
        ("POST", "/graphql", {**JSON, "Origin": "null"}, QUERY),
        ("POST", "/graphql", {**JSON, "Host": "evil.example:PORT", "Origin": "http://evil.example:PORT"}, QUERY),
        ("POST", "/report_asset_materialization/pass_at_k", {"Origin": "http://evil.example"}, None),
        ("GET", "/graphql", {**UPGRADE, "Origin": "http://evil.example"}, None),
        ("GET", "/graphql", {**UPGRADE, "Origin": "http://127.0.0.1:PORT", "Sec-Fetch-Site": "cross-site"}, None),
        ("GET", "/graphql", {**UPGRADE, "Host": "evil.example:PORT", "Origin": "http://evil.example:PORT"}, None),
    ],
)
def test_everyone_else_is_refused(
    webserver: int, method: str, path: str, headers: dict[str, str], body: str | None
) -> None:
    assert status(webserver, method, path, headers, body) == 403


@pytest.mark.services
@pytest.mark.parametrize(
    ("host", "proxied", "headers", "answered"),
    [
        ("10.0.0.5", "", {"host": "10.0.0.5:3000"}, True),
        ("10.0.0.5", "", {"host": "localhost:3000"}, False),
        # In a container. Whatever name a site gives to this machine is still not ours.
        ("0.0.0.0", "", {"host": "localhost:3000"}, True),
        ("0.0.0.0", "", {"host": "evil.example:3000", "origin": "http://evil.example:3000"}, False),
        ("0.0.0.0", "a.org, b.org", {"host": "b.org", "origin": "https://b.org"}, True),
        ("127.0.0.1", "a.org", {"host": "a.org", **OPENED}, True),
        ("127.0.0.1", "a.org", {"host": "a.org", **PICTURE}, False),
        ("127.0.0.1", "a.org", {"host": "a.org", "origin": "https://b.org"}, False),
    ],
)
def test_names_of_other_hosts_and_of_a_proxy(host: str, proxied: str, headers: dict[str, str], answered: bool) -> None:
    from pipelines.webserver import guarded_webserver  # its libraries take each worker a second to load

    called: list[bool] = []

    async def app(*_: Any) -> None:
        called.append(True)

    async def send(message: Any) -> None:
        assert message.get("status", 403) == 403

    given = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": given}
    asyncio.run(guarded_webserver(app, host, proxied)(scope, None, send))  # type: ignore[arg-type]
    assert bool(called) == answered


def evaluation_that_runs(program: Path, folder: Path) -> Folder:
    """An evaluation, such as one may download, that has a program judge its fixes, outside any sandbox."""
    made = Folder(folder)
    clone = made.root / "clones" / "one"
    clone.mkdir(parents=True)
    (clone / "a.txt").write_text("broken")
    made.problems("oid,filename,working_directory,language\np,a.txt,one,text\n")
    made.fixes("m", "oid,iteration_id,fixed_file\np,1,good\n")
    settings = {"unsandboxed": True, "validators": {"text": "command"}, "command": {"arguments": [str(program)]}}
    made.configure(clones_dir="clones", k_values=[1], validation=settings)
    return made


@pytest.mark.services
def test_no_page_and_no_run_can_have_the_ui_run_a_program_of_another_file(folder: Folder, tmp_path: Path) -> None:
    program, trace = tmp_path / "program.sh", tmp_path / "trace"
    program.write_text(f"#!/bin/sh\ntouch {trace}\n")
    program.chmod(0o755)
    downloaded = evaluation_that_runs(program, tmp_path / "downloaded")
    resource = {"resources": {"evaluation": {"config": {"config_file": str(downloaded.config)}}}}
    selector = {"repositoryName": "__repository__", "repositoryLocationName": "touchstone", "pipelineName": "evaluate"}
    launch = {"mode": "default", "runConfigData": json.dumps(resource), "selector": selector}
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    touchstone = Path(sysconfig.get_path("scripts"), "touchstone")
    with served([touchstone, "ui", "--config", folder.config], environment, tmp_path) as server:
        family = descendants(server.process)
        address = "/graphql?" + urlencode({"query": LAUNCH, "variables": json.dumps({"params": launch})})
        assert status(server.port, "GET", address, PICTURE) == 403
        # Whoever gets past that cannot choose the file either.
        refused = server.ask(LAUNCH, params=launch)["launchRun"]
        assert refused["__typename"] == "RunConfigValidationInvalid"
        server.ask(LAUNCH, params={**launch, "runConfigData": "{}"})
        assert list(server.finished().values()) == ["SUCCESS"]
        assert not trace.exists()
        assert listening_addresses(family) == {("127.0.0.1", server.port)}
        # A code location executes what it is sent.
        paths = socket_paths(family)
        assert paths and all(stat.S_IMODE(path.parent.stat().st_mode) == 0o700 for path in paths), paths
        os.kill(server.process, signal.SIGKILL)
        wait_until_gone(family)
