"""Dagster's webserver behind a guard: `python -m pipelines.webserver`, with the options of `dagster-webserver`.

The webserver itself answers everyone, so that a picture on a page of any site (`/graphql?query=mutation…`) could start
runs. Here it answers no page of another origin, no foreign host name, and no query by GET. It listens on
DAGSTER_WEBSERVER_HOST and DAGSTER_WEBSERVER_PORT. TOUCHSTONE_UI_NAMES, separated by commas, are further names under
which a proxy with a login offers it.
"""

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import uvicorn
from dagster_webserver.cli import main as run_dagster_webserver

from touchstone.errors import TouchstoneError
from touchstone.publish.local_server import guarded, listen, names_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Scope

HOST_VARIABLE, PORT_VARIABLE = "DAGSTER_WEBSERVER_HOST", "DAGSTER_WEBSERVER_PORT"
NAMES_VARIABLE = "TOUCHSTONE_UI_NAMES"
_HINT = (
    "this request comes from another site or under a name that is not the UI's; enter the UI's address in the browser, "
    f"send GraphQL by POST, and name a proxy's host in {NAMES_VARIABLE}"
)


def is_query_by_get(scope: "Scope", headers: dict[bytes, str]) -> bool:
    """Whether a request would have Dagster execute GraphQL, mutations too, from a URL; a page to write it is none."""
    is_graphql = scope["path"].rstrip("/").endswith("/graphql")
    return is_graphql and scope.get("method") == "GET" and "text/html" not in headers.get(b"accept", "")


def guarded_webserver(app: "ASGIApp", host: str, proxied: str = "") -> "ASGIApp":
    """Dagster's app, for its own pages, under the names of the host and of the proxies in front of it."""
    further = {name.strip() for name in proxied.split(",")} - {""}
    # A login at a proxy ends with a navigation from the site of the login.
    return guarded(app, names_of(host) | further, _HINT, navigations=bool(further), refuses=is_query_by_get)


def main() -> None:
    """Run Dagster's command, with its app behind the guard."""
    host, port = os.environ.get(HOST_VARIABLE, "127.0.0.1"), int(os.environ.get(PORT_VARIABLE, "3000"))
    # Before Dagster has it: should its command cease to call `uvicorn.run`, it cannot serve without the guard.
    try:
        listening = listen(host, port)
    except TouchstoneError as error:
        sys.exit(f"error: {error}")
    listening.listen()

    def serve(app: "ASGIApp", *, log_level: str, **_: Any) -> None:
        behind_guard = guarded_webserver(app, host, os.environ.get(NAMES_VARIABLE, ""))
        # An open page holds a connection, which must not hold up the end.
        config = uvicorn.Config(behind_guard, log_level=log_level, timeout_graceful_shutdown=1)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])

    uvicorn.run = serve  # type: ignore[assignment]
    sys.argv = ["dagster-webserver", *sys.argv[1:], "--host", host, "--port", str(port)]
    run_dagster_webserver()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
