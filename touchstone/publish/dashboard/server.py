"""Serve the dashboard behind a guard against other sites and other users of this machine.

Loopback is open to every user of a machine, so the address carries a random token, without which nothing is served. It
becomes a cookie, so that addresses can be sent to others without it. Cookies do not tell ports apart: a page of another
local server could use this one's. The guard therefore refuses requests that another origin makes, and names that only
DNS rebinding would give to this machine. Pages run no script and may load nothing, whatever a name or a fix contains.
"""

import atexit
import hashlib
import hmac
import secrets
import socket
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import uvicorn
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from touchstone.publish import local_server
from touchstone.publish.local_server import EVERY_ADDRESS, in_url, names_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CONTENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_HEADERS = [
    (b"content-security-policy", _CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    # With no-referrer, a browser would not say which origin a form comes from.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_TOKEN = "access_token"


def serve(data: Path, host: str, listening: socket.socket, announce: Callable[[str], None]) -> None:
    """Serve until interrupted. `announce` gets the address, token included, as soon as it answers."""
    from touchstone.publish.dashboard.pages import dashboard

    token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
    address = f"http://{in_url(host)}:{port}/?{_TOKEN}={token}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce(address)

    form_token = hashlib.sha256(f"form {token}".encode()).hexdigest()
    app = with_token(dashboard(data.resolve(), form_token), token, f"touchstone_{port}")
    # An open connection must not hold up Ctrl-C.
    config = uvicorn.Config(guarded(app, host), log_level="error", timeout_graceful_shutdown=1)
    Server(config).run(sockets=[listening])


def with_token(app: "ASGIApp", token: str, cookie: str) -> "ASGIApp":
    """The app, for who has the token: in the address, from which it moves into a cookie, or in that cookie."""

    async def gate(scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        request = Request(scope)
        query = request.query_params.multi_items()
        given = next((value for name, value in query if name == _TOKEN), "")
        rest = [(name, value) for name, value in query if name != _TOKEN]
        if hmac.compare_digest(given.encode(), token.encode()):
            # Not `//host`, which would lead to another site.
            place = "/" + scope["path"].lstrip("/")
            moved = RedirectResponse(f"{place}?{urlencode(rest)}" if rest else place, 303)
            # Strict would not be sent when somebody follows a link in a mail.
            moved.set_cookie(cookie, token, httponly=True, samesite="lax")
            await moved(scope, receive, send)
        elif hmac.compare_digest(request.cookies.get(cookie, "").encode(), token.encode()):
            await app(scope, receive, send)
        else:
            await HTMLResponse(_login(rest), 401)(scope, receive, send)

    return gate


def _login(query: list[tuple[str, str]]) -> str:
    """A page that asks for the token, and then leads to what was asked for."""
    kept = "".join(f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">' for name, value in query)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Token needed</title>'
        "<p>Open the address that <code>touchstone explore</code> printed, or enter its token.</p>"
        f'<form>{kept}<label>Token <input name="{_TOKEN}" type="password" autocomplete="off"></label> '
        "<button>Open</button></form></html>"
    )


def guarded(app: "ASGIApp", host: str) -> "ASGIApp":
    """The app, for requests to its own address that no other origin makes. The token keeps out everyone else."""

    async def with_headers(scope: "Scope", receive: "Receive", send: "Send") -> None:
        async def send_with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        await app(scope, receive, send_with_headers)

    names = None if host in EVERY_ADDRESS else names_of(host)
    hint = "this address is not the dashboard's own; open the address that `touchstone explore` printed"
    # `open_in_browser` is a navigation from a file. A request that writes must come from a page of the dashboard.
    return local_server.guarded(
        with_headers,
        names,
        hint,
        navigations=True,
        refuses=lambda scope, headers: scope.get("method", "GET") not in ("GET", "HEAD") and b"origin" not in headers,
    )


def open_in_browser(address: str) -> None:
    """Open the address without its token on a command line, which every user of the machine can read."""
    with NamedTemporaryFile("w", prefix="touchstone-", suffix=".html", delete=False) as page:
        page.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">dashboard</a>'
        )
    atexit.register(Path(page.name).unlink, missing_ok=True)
    webbrowser.open(Path(page.name).as_uri())
