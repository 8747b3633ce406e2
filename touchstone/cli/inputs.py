"""`touchstone inspect-files`: what the files are, how many problems and attempts they hold, and what is left out."""

from pathlib import Path
from typing import Annotated

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.options import SCORE_OPTION
from touchstone.errors import TouchstoneError

commands = typer.Typer()


@commands.command("inspect-files")
def inspect_files(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH…", help="Files and folders.")] = None,
    score: Annotated[str | None, SCORE_OPTION] = None,
    formats: Annotated[bool, typer.Option("--formats", help="List the formats that can be read.")] = False,
) -> None:
    """Say what files hold: format, models, problems, attempts, and the figures of the tool that wrote them."""
    from touchstone.cli.fitted_table import terminal
    from touchstone.cli.recognized_tables import figures_table, show_recognized
    from touchstone.ingest.adapters import adapters
    from touchstone.ingest.discovery import discover
    from touchstone.ingest.implied_config import implied_config
    from touchstone.ingest.recognized import NATIVE_TITLE, recognized_sources

    if formats:
        for title in (NATIVE_TITLE, *(adapter.title for adapter in adapters())):
            print(title.removeprefix("a ").removeprefix("an "))
        return
    if not paths:
        raise TouchstoneError("name the files and folders to look at, or use --formats")
    screen = terminal()
    with show_progress("reading files"):
        config = implied_config(paths, score)
        discovery = discover(config)
        found = recognized_sources(discovery, config)
    show_recognized(screen, found, discovery)
    figures = figures_table(discovery)
    if figures.rows:
        figures.print(screen)
    if all(source.unreadable is not None for source in found):
        raise typer.Exit(2)
