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
from typing import TYPE_CHECKING, Any

from touchstone.errors import TouchstoneError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

DATA_VARIABLE = "TOUCHSTONE_EXPLORE_DATA"

_APP = Path(__file__).with_name("app.py")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_EVERY_ADDRESS = ("0.0.0.0", "::")
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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    return host in _LOOPBACK or host.startswith("127.")


def listen(host: str, port: int) -> socket.socket:
    """A socket on the port, which must be free; any free one if the port is 0."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or error
        raise TouchstoneError(f"port {port} on {host} cannot be used ({reason}); choose another with --port") from None
    return bound


def serve(data: Path, host: str, listening: socket.socket, announce: Callable[[str], None]) -> None:
    """Serve until interrupted. `announce` gets the address, token included, as soon as it answers."""
    import uvicorn

    token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
    os.environ[DATA_VARIABLE] = str(data.resolve())
    # Otherwise marimo reads settings from the working folder, and writes some into the home folder.
    os.chdir(_APP.parent)
    address = f"http://{_in_url(host)}:{port}/?access_token={token}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce(address)

    config = uvicorn.Config(
        guarded(_marimo_app(token), host, port),
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


def guarded(app: "ASGIApp", host: str, port: int) -> "ASGIApp":
    """The app, for requests to its own address that no other origin makes."""
    names = (
        None if host in _EVERY_ADDRESS else {_in_url(name) for name in ({*_LOOPBACK} if is_loopback(host) else {host})}
    )

    async def guard(scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] not in ("http", "websocket"):
            await app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1").lower() for name, value in scope["headers"]}
        asked = headers.get(b"host", "")
        ours = asked.removesuffix(f":{port}") in names if names is not None else True
        if not ours or headers.get(b"origin", f"http://{asked}") != f"http://{asked}":
            await _refuse(scope, send)
            return

        async def with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                given = [pair for pair in message["headers"] if pair[0].lower() not in _CORS]
                message = {**message, "headers": [*given, *_HEADERS]}
            await send(message)

        await app(scope, receive, with_headers)

    return guard


# marimo lets every site read what needs no cookie; here no other site reads anything.
_CORS = (b"access-control-allow-origin", b"access-control-allow-credentials", b"access-control-expose-headers")


async def _refuse(scope: "Scope", send: "Send") -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    text = b"this address is not the dashboard's own; open the address that `touchstone explore` printed\n"
    start: dict[str, Any] = {
        "type": "http.response.start",
        "status": 403,
        "headers": [(b"content-type", b"text/plain")],
    }
    await send(start)
    await send({"type": "http.response.body", "body": text})


def open_in_browser(address: str) -> None:
    """Open the address without its token on a command line, which every user of the machine can read."""
    with NamedTemporaryFile("w", prefix="touchstone-", suffix=".html", delete=False) as page:
        page.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">dashboard</a>'
        )
    atexit.register(Path(page.name).unlink, missing_ok=True)
    webbrowser.open(Path(page.name).as_uri())


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
