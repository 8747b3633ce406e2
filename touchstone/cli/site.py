"""`touchstone site`: static pages over several runs."""

from pathlib import Path
from typing import Annotated

import typer

from touchstone.cli.console import print_messages, show_progress
from touchstone.locations import output_location

commands = typer.Typer()


@commands.command()
def site(
    folders: Annotated[
        list[Path],
        typer.Argument(parser=output_location, metavar="DIR", help="Output folders of runs, one per benchmark."),
    ],
    output: Annotated[
        Path, typer.Option(metavar="SITE", help="Folder for the pages: a new one, or an earlier site to replace.")
    ],
) -> None:
    """Write a site over several runs: a leaderboard across benchmarks, a page per model and per benchmark.

    Static pages for any web host, or to open from disk. A folder that cannot be read is named, and the exit code is 2.
    """
    from touchstone.publish.site import INDEX, write_site

    with show_progress("reading the runs"):
        unread = write_site(folders, output)
    print(output / INDEX)
    print_messages("error", unread)
    if unread:
        raise typer.Exit(2)
