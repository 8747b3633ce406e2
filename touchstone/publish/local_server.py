"""A web server on this machine: where it listens, and that it answers only its own pages, under its own names.

A page of any site may send requests to loopback. Browsers say which site that is (`Origin`, `Sec-Fetch-Site`), and the
name that was asked for (`Host`), which is foreign if a site has its own name point to this machine (DNS rebinding).
"""

import errno
import re
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from touchstone.errors import TouchstoneError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_PORT = re.compile(r":\d+$")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERY_ADDRESS = ("0.0.0.0", "::")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    return host in _LOOPBACK or host.startswith("127.")


def names_of(host: str) -> set[str]:
    """The names of a server that listens on a host, as they stand in URLs; those of loopback if it is every address.

    >>> sorted(names_of("127.0.0.1")), names_of("10.0.0.5")
    (['127.0.0.1', '[::1]', 'localhost'], {'10.0.0.5'})
    """
    local = {*_LOOPBACK} if is_loopback(host) or host in EVERY_ADDRESS else set()
    return {in_url(name) for name in local | {host} - {*EVERY_ADDRESS}}


def in_url(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int) -> socket.socket:
    """A socket on the port, which must be free; any free one if the port is 0."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        busy = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        reason = "is in use" if busy else f"cannot be used ({getattr(error, 'strerror', None) or error})"
        raise TouchstoneError(f"port {port} on {host} {reason}; choose another with --port") from None
    return bound


def guarded(
    app: "ASGIApp",
    names: Iterable[str] | None,
    hint: str,
    *,
    navigations: bool = False,
    refuses: Callable[["Scope", dict[bytes, str]], bool] = lambda scope, headers: False,
) -> "ASGIApp":
    """The app, for requests under one of its names, or any if None, that no page of another origin makes.

    With `navigations`, a page elsewhere may be left for one of the app. `refuses` refuses more, by scope and headers.
    """
    own = None if names is None else {name.lower() for name in names}

    def is_refused(scope: "Scope") -> bool:
        headers = {name: value.decode("latin-1").lower() for name, value in scope["headers"]}
        asked = headers.get(b"host", "")
        if own is not None and _PORT.sub("", asked) not in own:
            return True
        # A proxy in front may speak TLS, so the scheme does not count.
        if headers.get(b"origin", asked).rpartition("://")[2] != asked:
            return True
        is_own = headers.get(b"sec-fetch-site", "none") in ("same-origin", "none")
        document = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == ("navigate", "document")
        is_navigation = document and scope.get("method") == "GET"
        return not (is_own or (navigations and is_navigation)) or refuses(scope, headers)

    async def guard(scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] in ("http", "websocket") and is_refused(scope):
            await _refuse(scope, send, hint)
        else:
            await app(scope, receive, send)

    return guard


async def _refuse(scope: "Scope", send: "Send", hint: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    start: dict[str, Any] = {"type": "http.response.start", "status": 403, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": f"refused: {hint}\n".encode()})
