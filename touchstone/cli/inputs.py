"""`touchstone inspect-files`: what the files are, how many problems and attempts they hold, and what is left out."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.options import JSON_OPTION, QUIET_OPTION, SCORE_OPTION, input_argument
from touchstone.errors import TouchstoneError

if TYPE_CHECKING:
    from touchstone.config import EvaluationConfig
    from touchstone.ingest.discovery import Discovery
    from touchstone.ingest.recognized import RecognizedSource

commands = typer.Typer()
_FIRST = 5


@commands.command("inspect-files")
def inspect_files(
    paths: Annotated[list[Path] | None, input_argument("Files and folders.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration with formats and adapters of your own.")] = None,
    score: Annotated[str | None, SCORE_OPTION] = None,
    why: Annotated[bool, typer.Option("--why", help="Say for each format why the files are not of it.")] = False,
    formats: Annotated[bool, typer.Option("--formats", help="List the formats that can be read.")] = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Say what files hold: format, models, problems, attempts, and the figures of the tool that wrote them."""
    from touchstone.cli.json_output import files_document, print_json
    from touchstone.config import load_config
    from touchstone.ingest.adapters import adapters
    from touchstone.ingest.discovery import discover, read_options
    from touchstone.ingest.implied_config import implied_config
    from touchstone.ingest.recognized import NATIVE_TITLE, recognized_sources

    given = load_config(config) if config is not None else None
    if formats:
        titles = [
            title.removeprefix("a ").removeprefix("an ")
            for title in (
                NATIVE_TITLE,
                *(adapter.title for adapter in adapters(read_options(given) if given else None)),
            )
        ]
        if as_json:
            print_json(titles)
        else:
            print("\n".join(titles))
        return
    if not paths:
        raise TouchstoneError("name the files and folders to look at, or use --formats")
    with show_progress("reading files", quiet=quiet):
        settings = implied_config(paths, score, given)
        if why:
            _show_why(paths, settings, as_json)
            return
        discovery = discover(settings)
        with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
            found = recognized_sources(discovery, settings, Path(scratch))
    if as_json:
        print_json(files_document(found, discovery))
    elif not quiet:
        _show(found, discovery)
        _show_first_attempts(discovery, settings)
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


def _show_why(paths: list[Path], config: "EvaluationConfig", as_json: bool) -> None:
    """Print what each adapter says about each file."""
    from touchstone.cli.json_output import print_json
    from touchstone.cli.terminal_tables import FittedTable, names, prose, terminal
    from touchstone.ingest.adapters import why_not
    from touchstone.ingest.discovery import read_options

    said = {str(path): [(each.format, why) for each, why in why_not(path, read_options(config))] for path in paths}
    if as_json:
        print_json(said)
        return
    for path, reasons in said.items():
        table = FittedTable([*names("format"), *prose("why not")], title=path)
        for row in reasons:
            table.add_row(*row)
        table.print(terminal())


def _show_first_attempts(discovery: "Discovery", config: "EvaluationConfig") -> None:
    """Print the first attempts of each file in a format of the user's own, to see whether it is read as meant."""
    import polars as pl

    from touchstone.cli.terminal_tables import FittedTable, names, terminal
    from touchstone.ingest.adapters import configured_adapters
    from touchstone.ingest.csv_rows import ROW_ERROR
    from touchstone.ingest.discovery import read_options
    from touchstone.vocabulary import DEFAULT_SUITE

    shown = {"problem": "oid", "model": "llm_name", "attempt": "iteration_id", "passed": "passed", "suite": "suite"}
    own = {each.format for each in configured_adapters(read_options(config))}
    for path, table in discovery.adapter_tables.items():
        if table.format in own:
            first = table.frame.lazy().filter(pl.col(ROW_ERROR).is_null()).head(_FIRST).collect()
            rows = FittedTable(names(*shown), title=f"first attempts of {path.name}")
            for row in first.iter_rows(named=True):
                given = row | {"suite": row.get("suite") or DEFAULT_SUITE, "passed": row["passed"] or "undecided"}
                rows.add_row(*(given.get(column) or "" for column in shown.values()))
            rows.print(terminal())
