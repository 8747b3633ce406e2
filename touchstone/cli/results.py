"""Commands that give figures: `pass-at-k` from CSV files; `sql` and `tables` from the output of a run."""

import shutil
import sys
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from touchstone.cli.console import print_messages, show_progress
from touchstone.cli.options import (
    DATA_OPTION,
    DRAFT_OPTION,
    JSON_OPTION,
    QUIET_OPTION,
    SCORE_OPTION,
    MultiValueCommand,
    as_format,
    input_argument,
    input_option,
    require_file_for_parquet,
    tables_folder,
)
from touchstone.cli.safe_output import print_data
from touchstone.errors import TouchstoneError
from touchstone.locations import is_mirror

# Bytes of CSV that take about a second to read. Below that, importing the live display would take longer than the work.
_LARGE = 100_000_000

commands = typer.Typer()


@commands.command("pass-at-k", cls=MultiValueCommand)
def pass_at_k(
    paths: Annotated[list[Path] | None, input_argument("Files and folders with results of any known format.")] = None,
    problems_csv: Annotated[Path | None, input_option("The problems file of fixes CSVs.")] = None,
    fixes_csv: Annotated[
        list[Path] | None, input_option("One or more <model>_fixes.csv files.", metavar="FILE…")
    ] = None,
    score: Annotated[str | None, SCORE_OPTION] = None,
    k_values: Annotated[
        list[str] | None,
        typer.Option(metavar="K…", help="Values of k: 1 5 10, or 1,5,10. [default: 1 5 10; those that fit for PATH…]"),
    ] = None,
    save_to: Annotated[Path | None, typer.Option(help="Also write the summary CSV to this file.")] = None,
    format: Annotated[
        Literal["table", "csv", "json"] | None, typer.Option(help="Output format. [default: table]")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Compute pass@k straight from files, without Dagster."""
    from touchstone.cli.plain_text import explain_nulls, summary_text
    from touchstone.config import IntervalSettings
    from touchstone.ingest.implied_config import implied_config
    from touchstone.ingest.quarantine import explain_refusals
    from touchstone.metrics.pass_at_k_files import calculate, calculate_inputs, parse_k_values
    from touchstone.publish.csv_files import csv_text
    from touchstone.publish.summary import summary, write_summary

    given = parse_k_values(k_values) if k_values else None
    named = [*(fixes_csv or []), *([problems_csv] if problems_csv is not None else [])]
    if any(map(is_mirror, named)):
        from touchstone.storage.input_mirror import fetch

        with show_progress("downloading", quiet=quiet):
            fetch(named)
    large = sum(path.stat().st_size for path in [*(fixes_csv or []), *(paths or [])] if path.is_file()) > _LARGE
    shown_as = as_format(format, as_json)
    with show_progress("reading", quiet=quiet) if large else nullcontext():
        if paths:
            if fixes_csv:
                raise TouchstoneError("give either PATH… or --fixes-csv, not both")
            config = implied_config(paths, score).model_copy(update={"problems_csv": problems_csv})
            result, ks = calculate_inputs(config, given, IntervalSettings())
        elif problems_csv is None or not fixes_csv:
            raise TouchstoneError("name the files: touchstone pass-at-k PATH…, or --problems-csv and --fixes-csv")
        else:
            ks = given or [1, 5, 10]
            result = calculate(problems_csv, fixes_csv, ks, IntervalSettings())
    if shown_as == "json":
        print_data(result.table.write_json() + "\n")
    elif shown_as == "csv":
        print_data(csv_text(summary(result.table).lazy()))
    elif not quiet or shown_as == "table":
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(summary_text(summary(result.table), ks, width))
    if save_to is not None:
        write_summary(result.table, save_to)
    notes = [*result.notes, *explain_nulls(result.table), *explain_refusals(result.quarantine)]
    print_messages("note", notes, quiet)
    print_messages("error", result.unreadable)
    if result.unreadable:
        raise typer.Exit(2)


@commands.command()
def sql(
    query: Annotated[str, typer.Argument(help="One SELECT over the tables.")],
    data: Annotated[Path | None, DATA_OPTION] = None,
    format: Annotated[
        Literal["table", "csv", "json", "latex", "markdown", "parquet"] | None,
        typer.Option(help="Output format. [default: the one --save-to implies, else table]"),
    ] = None,
    save_to: Annotated[Path | None, typer.Option(help="Write the result to this file instead of printing it.")] = None,
    draft: Annotated[bool, DRAFT_OPTION] = False,
) -> None:
    """Query the results in SQL."""
    from touchstone.publish.formats import RESULT_SUFFIXES, file_format
    from touchstone.publish.query import open_query
    from touchstone.publish.result_formats import result_text, save_result

    require_file_for_parquet(format, save_to)
    saved_as = file_format(save_to, format, RESULT_SUFFIXES) if save_to is not None else None
    if save_to is not None and saved_as in (None, "table"):
        raise TouchstoneError(f"--save-to {save_to.name}: add --format csv, json, latex, markdown or parquet")
    with ExitStack() as until_read:
        with show_progress("running the query"):
            result = until_read.enter_context(open_query(tables_folder(data, draft), query))
        if save_to is not None and saved_as is not None:
            save_result(result, saved_as, save_to)
        elif format in (None, "table"):
            from touchstone.cli.tables import show_result

            show_result(result)
        else:
            print_data(result_text(result, str(format)))


@commands.command()
def tables(data: Annotated[Path | None, DATA_OPTION] = None, draft: Annotated[bool, DRAFT_OPTION] = False) -> None:
    """List the tables of a run and their columns."""
    from touchstone.cli.tables import show_tables
    from touchstone.publish.query import list_tables

    show_tables(list_tables(tables_folder(data, draft)))
