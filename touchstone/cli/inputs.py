"""`touchstone inspect-files`: what the files are, how many problems and attempts they hold, and what is left out."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.options import JSON_OPTION, QUIET_OPTION, SCORE_OPTION, input_argument
from touchstone.errors import TouchstoneError

if TYPE_CHECKING:
    from touchstone.ingest.discovery import Discovery
    from touchstone.ingest.recognized import RecognizedSource

commands = typer.Typer()


@commands.command("inspect-files")
def inspect_files(
    paths: Annotated[list[Path] | None, input_argument("Files and folders.")] = None,
    score: Annotated[str | None, SCORE_OPTION] = None,
    formats: Annotated[bool, typer.Option("--formats", help="List the formats that can be read.")] = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Say what files hold: format, models, problems, attempts, and the figures of the tool that wrote them."""
    from touchstone.cli.json_output import files_document, print_json
    from touchstone.ingest.adapters import adapters
    from touchstone.ingest.discovery import discover
    from touchstone.ingest.implied_config import implied_config
    from touchstone.ingest.recognized import NATIVE_TITLE, recognized_sources

    if formats:
        titles = [
            title.removeprefix("a ").removeprefix("an ")
            for title in (NATIVE_TITLE, *(adapter.title for adapter in adapters()))
        ]
        if as_json:
            print_json(titles)
        else:
            print("\n".join(titles))
        return
    if not paths:
        raise TouchstoneError("name the files and folders to look at, or use --formats")
    with show_progress("reading files", quiet=quiet):
        config = implied_config(paths, score)
        discovery = discover(config)
        with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
            found = recognized_sources(discovery, config, Path(scratch))
    if as_json:
        print_json(files_document(found, discovery))
    elif not quiet:
        _show(found, discovery)
    if all(source.unreadable is not None for source in found):
        raise typer.Exit(2)


def _show(found: "list[RecognizedSource]", discovery: "Discovery") -> None:
    from touchstone.cli.input_tables import figures_table, show_recognized
    from touchstone.cli.terminal_tables import terminal

    screen = terminal()
    show_recognized(screen, found, discovery)
    figures = figures_table(discovery)
    if figures.rows:
        figures.print(screen)
