"""Serve the dashboard: marimo's read-only app behind a guard against other sites and other users of this machine.

Loopback is open to every user of a machine, so the address carries a random token, without which nothing is served.
Cookies do not tell ports apart: a page of another local server could use this one's. The guard therefore refuses
requests that another origin makes, and names that only DNS rebinding would give to this machine. The page may load
nothing from anywhere else, whatever a name or a fix contains.
"""

import atexit
import os
import secrets
import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from touchstone.publish import local_server
from touchstone.publish.local_server import EVERY_ADDRESS, in_url, names_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

DATA_VARIABLE = "TOUCHSTONE_EXPLORE_DATA"

_APP = Path(__file__).with_name("app.py")
# marimo's page needs inline scripts, and Vega compiles expressions.
_CONTENT_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' data: blob:; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'self'"
)
_HEADERS = [
    (b"content-security-policy", _CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


def serve(data: Path, host: str, listening: socket.socket, announce: Callable[[str], None]) -> None:
    """Serve until interrupted. `announce` gets the address, token included, as soon as it answers."""
    import uvicorn

    token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
    os.environ[DATA_VARIABLE] = str(data.resolve())
    # Otherwise marimo reads settings from the working folder, and writes some into the home folder.
    os.chdir(_APP.parent)
    address = f"http://{in_url(host)}:{port}/?access_token={token}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce(address)

    config = uvicorn.Config(
        guarded(_marimo_app(token), host),
        log_level="error",
        # An open page holds a connection, which must not hold up Ctrl-C.
        timeout_graceful_shutdown=1,
        ws_ping_interval=5,
        ws_ping_timeout=60,
    )
    Server(config).run(sockets=[listening])


def _marimo_app(token: str) -> "ASGIApp":
    import marimo

    builder = marimo.create_asgi_app(quiet=True, include_code=False, token=token)
    return builder.with_app(path="/", root=str(_APP)).build()


def guarded(app: "ASGIApp", host: str) -> "ASGIApp":
    """The app, for requests to its own address that no other origin makes. The token keeps out everyone else."""

    async def with_headers(scope: "Scope", receive: "Receive", send: "Send") -> None:
        async def send_with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                given = [pair for pair in message["headers"] if pair[0].lower() not in _CORS]
                message = {**message, "headers": [*given, *_HEADERS]}
            await send(message)

        await app(scope, receive, send_with_headers)

    names = None if host in EVERY_ADDRESS else names_of(host)
    hint = "this address is not the dashboard's own; open the address that `touchstone explore` printed"
    # `open_in_browser` is a navigation from a file.
    return local_server.guarded(with_headers, names, hint, navigations=True)


# marimo lets every site read what needs no cookie; here no other site reads anything.
_CORS = (b"access-control-allow-origin", b"access-control-allow-credentials", b"access-control-expose-headers")


def open_in_browser(address: str) -> None:
    """Open the address without its token on a command line, which every user of the machine can read."""
    with NamedTemporaryFile("w", prefix="touchstone-", suffix=".html", delete=False) as page:
        page.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">dashboard</a>'
        )
    atexit.register(Path(page.name).unlink, missing_ok=True)
    webbrowser.open(Path(page.name).as_uri())
