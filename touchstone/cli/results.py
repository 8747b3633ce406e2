"""Commands that give figures: `pass-at-k` from files; `sql`, `tables`, `export` and `audit` from results of a run."""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from touchstone.cli.console import print_data, print_json, print_messages, show_progress
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
    output_folder,
    require_file_for_parquet,
    tables_folder,
)
from touchstone.errors import TouchstoneError
from touchstone.locations import is_mirror
from touchstone.publish.short_names import cell_width, shortened
from touchstone.text import counted, counted_of, visible

if TYPE_CHECKING:
    import polars as pl

# Bytes of CSV that take about a second to read. Below that, importing the live display would take longer than the work.
_LARGE = 100_000_000
_SHORTEST_NAME = 8
# Nobody reads more on a terminal, and all cells are measured before the first is printed.
_MOST_ROWS = 10_000

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
    intervals: Annotated[bool, typer.Option("--intervals", help="Add 95% confidence intervals.")] = False,
    save_to: Annotated[Path | None, typer.Option(help="Also write the summary CSV to this file.")] = None,
    format: Annotated[
        Literal["table", "csv", "json"] | None, typer.Option(help="Output format. [default: table]")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Compute pass@k straight from files, without Dagster."""
    from touchstone.config import IntervalSettings
    from touchstone.ingest.implied_config import implied_config
    from touchstone.ingest.quarantine import explain_refusals
    from touchstone.metrics.pass_at_k_files import calculate, calculate_inputs, parse_k_values
    from touchstone.publish.csv_files import csv_text, summary, write_summary

    given = parse_k_values(k_values) if k_values else None
    named = [*(fixes_csv or []), *([problems_csv] if problems_csv is not None else [])]
    if any(map(is_mirror, named)):
        from touchstone.storage.input_mirror import fetch

        with show_progress("downloading", quiet=quiet):
            fetch(named)
    large = sum(path.stat().st_size for path in [*(fixes_csv or []), *(paths or [])] if path.is_file()) > _LARGE
    shown_as = as_format(format, as_json)
    settings = IntervalSettings() if intervals else None
    with show_progress("reading", quiet=quiet) if large else nullcontext():
        if paths:
            if fixes_csv:
                raise TouchstoneError("give either PATH… or --fixes-csv, not both")
            config = implied_config(paths, score).model_copy(update={"problems_csv": problems_csv})
            result, ks = calculate_inputs(config, given, settings)
        elif problems_csv is None or not fixes_csv:
            raise TouchstoneError("name the files: touchstone pass-at-k PATH…, or --problems-csv and --fixes-csv")
        else:
            ks = given or [1, 5, 10]
            result = calculate(problems_csv, fixes_csv, ks, settings)
    table = result.table if intervals else result.table.drop("ci_low", "ci_high", "ci_method", "ci_units")
    if shown_as == "json":
        print_data(table.write_json() + "\n")
    elif shown_as == "csv":
        print_data(csv_text(summary(table).lazy()))
    elif not quiet or shown_as == "table":
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(summary_text(summary(table), ks, width))
    if save_to is not None:
        write_summary(table, save_to)
    notes = [*result.notes, *explain_nulls(table), *explain_refusals(result.quarantine)]
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
            show_result(result)
        else:
            print_data(result_text(result, str(format)))


@commands.command()
def tables(data: Annotated[Path | None, DATA_OPTION] = None, draft: Annotated[bool, DRAFT_OPTION] = False) -> None:
    """List the tables of a run and their columns."""
    from touchstone.publish.query import list_tables

    show_tables(list_tables(tables_folder(data, draft)))


# Output


def show_result(result: Any) -> None:
    """Print the result of a query, figures rounded to significant digits."""
    from touchstone.cli.terminal_tables import print_table, terminal
    from touchstone.publish.result_formats import terminal_cells
    from touchstone.tables.presentation import name

    columns, rows, count = terminal_cells(result, _MOST_ROWS)
    screen = terminal()
    named = [name(header, kind=kind) for header, kind in columns]
    print_table(named, rows, screen, hint="use --format csv or a wider terminal")
    shown = f"{len(rows):,} of " if len(rows) < count else ""
    screen.print(f"{shown}{counted(count, 'row')}{'; --format csv prints all' if shown else ''}")


def show_tables(listing: Iterable[tuple[str, int, list[tuple[str, str]]]]) -> None:
    """Print tables with their row counts and columns."""
    from rich.text import Text

    from touchstone.cli.terminal_tables import names, numbers, print_table, prose

    def described(columns: list[tuple[str, str]]) -> Text:
        return Text(", ").join(Text.assemble(visible(column), " ", (kind, "dim")) for column, kind in columns)

    rows = ((name, f"{count:,}", described(columns)) for name, count, columns in listing)
    print_table([*names("table"), *numbers("rows"), *prose("columns")], rows, lines_between_rows=True)


# `pass-at-k` as plain text. Without rich, which would take longer to import than the work.


def summary_text(summary: "pl.DataFrame", k_values: Sequence[int], width: int | None = None) -> str:
    """Models and their pass@k in aligned columns, rows numbered from 0; three to six decimals, as a column needs.

    An interval that the summary has stands in brackets after the figure.
    On a terminal of so many columns, long names are shortened, and values of k that do not fit are named below.
    """
    names = [name for name in ("LLM", "tier") if name in summary.columns] + [f"pass@{k}" for k in k_values]
    columns = [["", *(str(row) for row in range(summary.height))]]
    columns += [[name, *_cells(summary, name)] for name in names]
    hidden = []
    if width is not None:
        shown = _fitting(columns, width)
        hidden = names[shown - 1 :]
        columns = columns[:shown]
        room = width - sum(_width(column) + 2 for place, column in enumerate(columns) if place != 1)
        short = shortened(columns[1][1:], max(room, _SHORTEST_NAME))
        columns[1] = [columns[1][0], *(short[name] for name in columns[1][1:])]
    padded = [[" " * (_width(column) - cell_width(cell)) + cell for cell in column] for column in columns]
    lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
    return "\n".join([*lines, *([f"not shown: {', '.join(hidden)}"] if hidden else [])])


def _fitting(columns: Sequence[Sequence[str]], width: int) -> int:
    """How many of the first columns fit beside names that are shortened as far as possible; at least three."""
    least = [_width(column) for column in columns]
    least[1] = min(least[1], _SHORTEST_NAME)
    shown = len(columns)
    while shown > 3 and sum(least[:shown]) + 2 * (shown - 1) > width:
        shown -= 1
    return shown


def explain_nulls(table: "pl.DataFrame") -> list[str]:
    """Why a figure is missing, or which problems it leaves out."""
    import polars as pl

    lines = []
    undecided = table.filter(pl.col("attempted") == 0).unique(["model", "tier"], maintain_order=True)
    for row in undecided.iter_rows(named=True):
        at = counted(row["problems"], "problem")
        lines.append(f"{row['model']} {row['tier']}: not judged: no attempt at {at} is decided, so there is no figure")
    few = (pl.col("attempted") > 0) & (2 * pl.col("attempted") < pl.col("problems"))
    for row in table.filter(few).unique(["model", "tier"], maintain_order=True).iter_rows(named=True):
        decided = counted_of(row["attempted"], row["problems"], "problem")
        lines.append(f"{row['model']} {row['tier']}: the figure is of {decided}; no attempt at the others is decided")
    short = table.filter((pl.col("attempted") > 0) & (pl.col("eligible") < pl.col("attempted")))
    for row in short.iter_rows(named=True):
        missing = row["attempted"] - row["eligible"]
        has, are = ("has", "is") if missing == 1 else ("have", "are")
        lines.append(
            f"{row['model']} {row['tier']} pass@{row['k']}: {counted_of(missing, row['attempted'], 'problem')} "
            f"{has} fewer than {row['k']} decided attempts and {are} left out"
        )
    return lines


def _width(column: Sequence[str]) -> int:
    return max(map(cell_width, column))


def _cells(summary: "pl.DataFrame", name: str) -> list[str]:
    import polars as pl

    column = summary[name]
    if column.dtype != pl.Float64:
        return [visible(str(value)) for value in column]
    texts = [f"{value:.6f}" for value in column if value is not None]
    decimals = max(3, *(len(text.rstrip("0").split(".")[1]) for text in texts), 0)
    figures = ["-" if value is None else f"{value:.{decimals}f}" for value in column]
    if f"{name}_ci_low" not in summary.columns:
        return figures
    ends = summary.select(f"{name}_ci_low", f"{name}_ci_high").iter_rows()
    return [
        figure if low is None else f"{figure} [{low:.3f}, {high:.3f}]"
        for figure, (low, high) in zip(figures, ends, strict=True)
    ]


_OF_TABLES = ("csv", "json", "latex", "markdown", "parquet")


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
    from touchstone.publish.interchange import WRITERS
    from touchstone.publish.interchange.results import Run, save_folder

    if format not in WRITERS:
        raise TouchstoneError(f"--format {format} needs a table; `touchstone tables` lists them")
    if save_to is None:
        raise TouchstoneError(f"--to {format} writes a folder: add --save-to FOLDER")
    if columns:
        raise TouchstoneError("--columns goes with a table")
    with show_progress("exporting"):
        notes = save_folder(Run(tables), save_to, WRITERS[format])
    print_messages("note", notes)


@commands.command()
def audit(
    paths: Annotated[
        list[Path] | None, input_argument("Files and folders with results of any known format; see also --data.")
    ] = None,
    data: Annotated[Path | None, DATA_OPTION] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Say what a hostile reader would attack: problems, passes, rulings, undecided attempts, comparability, tests."""
    from touchstone.storage.output_folders import results_folder

    if not paths:
        _show(results_folder(output_folder(data)), as_json)
        return
    if data is not None:
        raise TouchstoneError("give either PATH… or --data, not both")
    for path in paths:
        if not path.exists():
            raise TouchstoneError(f"{path}: no such file or folder")
    from touchstone.evaluation import evaluate

    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        with show_progress("evaluating"):
            results = evaluate(paths, output_dir=Path(scratch) / "results")
        _show(results.folder, as_json)


def _show(folder: Path, as_json: bool) -> None:
    from touchstone.cli.terminal_tables import show_table, terminal
    from touchstone.publish.audit import audit_table
    from touchstone.publish.reported_run import ReportedRun

    run = ReportedRun(folder)
    table = audit_table(run)
    if as_json:
        print_json({"findings": list(table.rows), "first": table.notes[0]})
    else:
        show_table(terminal(), table, len(table.rows))
    if any(check.error and not check.passed for check in run.checks):
        raise typer.Exit(1)
