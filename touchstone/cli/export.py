"""`touchstone export`: one table of a run as text or a file, or all results in the format of another tool."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from touchstone.cli.console import print_messages, show_progress
from touchstone.cli.options import DATA_OPTION, DRAFT_OPTION, MultiValueCommand, require_file_for_parquet, tables_folder
from touchstone.cli.safe_output import print_data
from touchstone.errors import TouchstoneError

_OF_TABLES = ("csv", "json", "latex", "markdown", "parquet")

commands = typer.Typer()


@commands.command(cls=MultiValueCommand)
def export(
    table: Annotated[
        str | None, typer.Argument(help="Name of a table; `touchstone tables` lists them. [default: all results]")
    ] = None,
    data: Annotated[Path | None, DATA_OPTION] = None,
    format: Annotated[
        Literal[
            "csv",
            "json",
            "latex",
            "markdown",
            "parquet",
            "inspect",
            "swe-bench",
            "junit",
            "ctrf",
            "lm-eval",
            "evalplus",
            "every-eval-ever",
            "files",
        ]
        | None,
        typer.Option(
            "--format",
            "--to",
            metavar="FORMAT",
            help="Of a table: csv, json, latex, markdown, parquet. Of all results: csv, inspect, swe-bench, junit, "
            "ctrf, lm-eval, evalplus, every-eval-ever, or files: a copy of what is published. "
            "[default: the one --save-to implies, else csv]",
        ),
    ] = None,
    save_to: Annotated[
        Path | None, typer.Option(help="Write to this file instead of printing; for all results, to this new folder.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN…", help="Only these columns of the table, in this order.")
    ] = None,
    draft: Annotated[bool, DRAFT_OPTION] = False,
) -> None:
    """Export a table as CSV, JSON, LaTeX, Markdown or Parquet, or all results for another tool."""
    from touchstone.storage.output_folders import is_of_run, is_output

    if table is None:
        wanted = is_output if format == "files" else is_of_run
        _export_results(tables_folder(data, draft, wanted), format or "csv", save_to, columns)
        return
    if format is not None and format not in _OF_TABLES:
        raise TouchstoneError(f"--to {format} is for all results: leave the table out")
    _export_table(tables_folder(data, draft), table, format, save_to, columns or [])


def _export_table(tables: Path, table: str, format: str | None, save_to: Path | None, columns: list[str]) -> None:
    from touchstone.publish.export import export_text, save_export
    from touchstone.publish.formats import RESULT_SUFFIXES, file_format

    require_file_for_parquet(format, save_to)
    if save_to is None:
        with show_progress("exporting"):
            text = export_text(tables, table, format or "csv", columns)
        print_data(text)
        return
    saved_as = file_format(save_to, format, RESULT_SUFFIXES) or "csv"
    with show_progress("exporting"):
        save_export(tables, table, saved_as, columns, save_to)


def _export_results(tables: Path, format: str, save_to: Path | None, columns: list[str] | None) -> None:
    from touchstone.publish.interchange.results import Run, save_folder
    from touchstone.publish.interchange.writers import WRITERS

    if format not in WRITERS:
        raise TouchstoneError(f"--format {format} needs a table; `touchstone tables` lists them")
    if save_to is None:
        raise TouchstoneError(f"--to {format} writes a folder: add --save-to FOLDER")
    if columns:
        raise TouchstoneError("--columns goes with a table")
    with show_progress("exporting"):
        notes = save_folder(Run(tables), save_to, WRITERS[format])
    print_messages("note", notes)
