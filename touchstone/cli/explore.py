"""`touchstone explore`: the dashboard of a run in the browser."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from touchstone.cli.options import DATA_OPTION, output_folder
from touchstone.errors import TouchstoneError

_PORT = 2718

commands = typer.Typer()


@commands.command()
def explore(
    data: Annotated[Path | None, DATA_OPTION] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=f"Port. [default: {_PORT}, else any that is free]")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
) -> None:
    """Explore the results in the browser. Stop with Ctrl-C."""
    from touchstone.publish.dashboard.server import open_in_browser, serve
    from touchstone.publish.local_server import is_loopback, listen
    from touchstone.publish.views import require_tables
    from touchstone.storage.output_folders import is_of_any_run, results_folder

    folder = results_folder(output_folder(data), is_of_any_run)
    require_tables(folder / "tables")
    try:
        listening = listen(host, _PORT if port is None else port)
    except TouchstoneError:
        if port is not None:
            raise
        listening = listen(host, 0)
    if not is_loopback(host):
        print(
            f"warning: everyone who can reach {host} and has the address with its token can read these results "
            "and comment and rule on attempts",
            file=sys.stderr,
        )

    def announce(address: str) -> None:
        print(f"{address} (stop with Ctrl-C)", flush=True)
        if not no_open:
            open_in_browser(address)

    with suppress(KeyboardInterrupt):
        serve(folder, host, listening, announce)
