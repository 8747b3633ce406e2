"""The output of `touchstone run`: the tables of figures, the checks that did not pass, and where the results are.

Also what it and `inspect-files` say about input files. The tables of figures are declared in
`touchstone.publish.result_tables`.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl
from rich.console import Console
from rich.markup import escape

from touchstone.cli.console import relative_path
from touchstone.cli.options import output_folder_here
from touchstone.cli.terminal_tables import show_table, terminal
from touchstone.locations import address_of
from touchstone.publish import result_tables as tables
from touchstone.publish.report.summary import best, rulings
from touchstone.publish.reported_run import ReportedRun
from touchstone.storage.store import REPORT_PAGE, Store
from touchstone.tables.presentation import Cell, Column, ResultTable, Row, count, figure, name, prose, text
from touchstone.text import counted, counted_of, files_by_note, some_of
from touchstone.vocabulary import STATIC_AGREEMENT, STATIC_FIDELITIES

if TYPE_CHECKING:
    from touchstone.evaluation import RunOutcome
    from touchstone.ingest.discovery import Discovery
    from touchstone.ingest.recognized import RecognizedSource
    from touchstone.publish.up_to_date import PublishedRun
    from touchstone.tables.checks import CheckOutcome

_MAX_ROWS = 30
_MAX_PAIRS = 10


def show_run(store: Store, outcome: "RunOutcome") -> None:
    """Print the figures, the inputs that were refused, the checks that did not pass, and a sentence to end with."""
    screen = terminal()
    run = ReportedRun(store.draft) if not outcome.failures and not outcome.stopped else None
    if run is not None:
        _show_figures(screen, run)
    elif not outcome.failures and outcome.checks[-1].name == "gate_results.gates_hold":
        show_table(screen, tables.gate_results(ReportedRun(store.draft)), _MAX_ROWS)
    _show_checks(screen, outcome.checks)
    for failure in outcome.failures:
        terminal(stderr=True).print(f"[red]error:[/] {escape(failure)}", soft_wrap=True)
    if store.parts("outcomes") and (validators := validators_line(store.scan("outcomes"))):
        screen.print(escape(validators))
    for line in _publication(store, outcome):
        screen.print(escape(line), soft_wrap=True)
    if run is not None:
        _conclude(screen, store, run, outcome.checks, is_published=outcome.published)
    elif outcome.checks:
        screen.print(escape(_passed(outcome.checks)), soft_wrap=True)


def show_published(store: Store, published: "PublishedRun") -> None:
    """Print the same about the published run, which is up to date."""
    screen, run = terminal(), ReportedRun(store.current_link.resolve())
    _show_figures(screen, run)
    _show_checks(screen, published.checks)
    if validators := validators_line(run.scan("outcomes")):
        screen.print(escape(validators))
    for line in _published_paths(store):
        screen.print(escape(line), soft_wrap=True)
    screen.print(f"{escape(published.reason)}; --force runs again", soft_wrap=True)
    _conclude(screen, store, run, published.checks, is_published=True)


def _conclude(
    screen: Console, store: Store, run: ReportedRun, checks: Sequence["CheckOutcome"], *, is_published: bool
) -> None:
    """Print the sentence that a run ends with, and the command that opens its report."""
    if any(check.name == "registered_plan.as_planned" and check.message == "as planned" for check in checks):
        screen.print("as planned")
    screen.print(escape(conclusion(run, checks)), soft_wrap=True)
    if is_published and (store.root / REPORT_PAGE).exists():
        here = output_folder_here()
        found = here is not None and here.resolve() == store.root.resolve()
        data = "" if found else f" --data {shlex.quote(relative_path(store.root))}"
        screen.print(escape(f"to read the report: touchstone report --open{data}"), soft_wrap=True)


def conclusion(run: ReportedRun, checks: Sequence["CheckOutcome"]) -> str:
    """One line: who is best and how sure that is, as the report says it, and what failed."""
    refused = run.scan("quarantine").select(pl.len()).collect().item()
    parts = [next(best(run)).removesuffix(".")]
    parts += [f"{counted(refused, 'row was', 'rows were')} refused"] if refused else []
    parts += [sentence.removesuffix(".") for sentence in rulings(run)]
    return "; ".join([*parts, *([_passed(checks)] if checks else [])])


def _passed(checks: Sequence["CheckOutcome"]) -> str:
    failed = [check.name for check in checks if check.error and not check.passed]
    names = f" (failed: {', '.join(failed)})" if failed else ""
    return f"{counted_of(sum(check.passed for check in checks), len(checks), 'check')} passed{names}"


def _show_figures(screen: Console, run: ReportedRun) -> None:
    """Print the tables that the run has something for."""
    if run.table("pass_at_k").is_empty():
        screen.print("no attempt could be evaluated")
    else:
        for table in _tables(run):
            if len(table.rows):
                show_table(screen, table, _MAX_PAIRS if table.of == "model_comparison" else _MAX_ROWS)
    show_inputs(screen, *map(run.table, ("sources", "quarantine", "model_statistics")))


def _tables(run: ReportedRun) -> Iterator[ResultTable]:
    yield tables.leaderboard(run)
    tiers = run.table("tiers")
    if tiers["composite_median"].count() or tiers["cost_of_pass"].count():
        yield tables.tiers(run)
    yield from (tables.cross_tier(run), tables.statistics(run), tables.problem_statistics(run, _MAX_ROWS))
    if run.table("suite_scores")["suite"].n_unique() > 1 or run.table("run_scores")["run_id"].count():
        yield tables.suites(run)
    yield from (
        tables.factors(run),
        tables.factor_effects(run),
        tables.pairs(run, _MAX_PAIRS),
        tables.gate_results(run),
    )


def _show_checks(screen: Console, checks: Sequence["CheckOutcome"]) -> None:
    """Print the checks that did not pass."""
    for check in checks:
        if not check.passed:
            label = "[red]check failed[/]" if check.error else "[yellow]check warning[/]"
            screen.print(f"{label} {check.name}: {escape(check.message)}")


def validators_line(outcomes: pl.LazyFrame) -> str:
    """The validators that judged fixes here, the static checker as such; empty if all outcomes were recorded."""
    here = outcomes.filter(pl.col("passed").is_not_null(), pl.col("sandbox").is_not_null())
    pairs = here.select("validator", "fidelity").unique().sort("validator", "fidelity").collect().rows()
    words = {"hcl": "hcl, the static checker and not Terraform itself"}
    named = [f"{words.get(validator, validator)} (fidelity {fidelity})" for validator, fidelity in pairs]
    measured = f"; {STATIC_AGREEMENT}" if any(fidelity in STATIC_FIDELITIES for _, fidelity in pairs) else ""
    return f"validated by {'; '.join(named)}{measured}" if named else ""


def _publication(store: Store, outcome: "RunOutcome") -> list[str]:
    """Whether results were published and where they are, or how to query those that a gate blocked."""
    if outcome.published:
        return ["results were published despite a failed check"] * (outcome.exit_code != 0) + _published_paths(store)
    earlier = "the last published results are unchanged" if store.has_published else "there are no earlier results"
    kept = store.unpublished / "tables"
    table = next((name for name in ("pass_at_k", "outcomes", "problems") if (kept / name).is_dir()), None)
    if not outcome.stopped or table is None:
        return [f"nothing was published; {earlier}"]
    data = shlex.quote(relative_path(store.root))
    return [
        f"nothing was published; {earlier}",
        f'to query this run: touchstone sql --draft --data {data} "SELECT * FROM {table}"',
    ]


def _published_paths(store: Store) -> list[str]:
    in_objects = address_of(store.root)
    if in_objects is not None:
        return [f"results in {in_objects}"]
    published = ("summary_pass_at_k.csv", "csv", "tables", "warehouse.duckdb", REPORT_PAGE)
    found = [name for name in published if (store.root / name).exists()]
    return [f"results in {relative_path(store.root)}: {', '.join(found)}"] if found else []


_MAX_GROUPS = 30
_MAX_NAMES = 8
MAX_FIGURES = 40
# The contents of more files are shown by model.
_MAX_FILES = 10
_MAX_MODELS = 3


def show_inputs(
    screen: Console, sources: pl.DataFrame, quarantine: pl.DataFrame, model_statistics: pl.DataFrame
) -> None:
    """Print prices matched by another name, assumptions about files, and files and rows that were refused."""
    for line in price_matches(model_statistics):
        screen.print(line, markup=False)
    # A file of several models has a row for each.
    noted = sources.filter(pl.col("notes").is_not_null()).select("source_file", "notes").unique()
    show_notes(screen, noted.sort("source_file").iter_rows())
    files = files_table(sources)
    if len(files.rows):
        show_table(screen, files, _MAX_GROUPS, compact=False)
    others = other_files(sources)
    if others:
        screen.print(others, markup=False, style="dim")
    if not quarantine.is_empty():
        show_table(screen, quarantine_table(quarantine), _MAX_GROUPS, compact=False)


def files_table(sources: pl.DataFrame) -> ResultTable:
    """Data files that are not evaluated, and why. Unreadable files are in the quarantine instead."""
    shown = sources.filter(pl.col("status").is_in(("unknown", "left_out"))).sort("status", "source_file", "model")
    status = Column("status", lambda row: Cell(row["status"].replace("_", " ")), "name")
    columns = [name("file", "source_file"), status, prose("reason")]
    return ResultTable("files", "files that are not evaluated", columns, shown, "sources")


def other_files(sources: pl.DataFrame) -> str:
    """One line about copies of outputs, by reason: a user may expect them to be read."""
    others = sources.filter(pl.col("status") == "output").sort("source_file")
    reasons = others.group_by("reason", maintain_order=True).agg("source_file")
    named = "; ".join(f"{some_of(files, _MAX_NAMES)} ({reason})" for reason, files in reasons.iter_rows())
    return f"not read: {named}" if named else ""


def quarantine_table(quarantine: pl.DataFrame) -> ResultTable:
    """Refused rows by file and kind: how many, and the first of each."""
    groups = (
        quarantine.sort("source_file", "line", nulls_last=False)
        .group_by("source_file", "kind", maintain_order=True)
        .agg(pl.len().alias("rows"), pl.col("line", "reason").first())
        .sort("source_file", "rows", "kind", descending=[False, True, False])
    )
    rows = Column("rows", lambda row: Cell("all" if row["line"] is None else f"{row['rows']:,}"))
    columns = [name("file", "source_file"), name("kind"), rows, count("first line", "line")]
    hidden = groups.height - _MAX_GROUPS
    more = f", {counted(hidden, 'group')} not shown" if hidden > 0 else ""
    notes = [f"{quarantine.height:,} in total{more}: SELECT * FROM quarantine"]
    title = "quarantine: refused rows by file and kind"
    shown = groups.head(_MAX_GROUPS)
    return ResultTable("quarantine", title, [*columns, prose("first reason", "reason")], shown, notes=notes)


def price_matches(model_statistics: pl.DataFrame) -> list[str]:
    """Models priced by another name: `model-20250101` by the price of `model`, for instance."""
    others = model_statistics.filter(pl.col("priced_as") != pl.col("model")).select("model", "priced_as")
    return [f"{model} is priced as {price}" for model, price in others.unique().sort("model").iter_rows()]


# Recognized files, before anything is evaluated


def show_recognized(
    screen: Console, found: "list[RecognizedSource]", discovery: "Discovery", *, with_notes: bool = True
) -> None:
    """Print a row for each file or folder, the notes on it, and the files that are not evaluated."""
    readable = [source for source in found if source.unreadable is None]
    if len(readable) > _MAX_FILES:
        show_table(screen, contributions_table(readable, discovery), _MAX_FILES)
    elif readable:
        show_table(screen, sources_table(readable), _MAX_FILES)
    if with_notes:
        show_notes(screen, ((source.name, note) for source in found for note in source.notes))
    from touchstone.ingest.recognized import left_out

    expected = list(left_out(discovery))
    others = [(source.name, source.unreadable) for source in found if source.unreadable is not None]
    others += [(each.file, each.reason.rpartition(f"{each.file}: ")[-1]) for each in expected]
    lines = [f"not evaluated: {name} ({reason})" for name, reason in others]
    if len(others) > _MAX_FILES:
        lines = [f"not evaluated: {files} ({reason})" for files, reason in files_by_note(others)]
    for line in _first(lines, "more reasons"):
        screen.print(line, markup=False, highlight=False)


def sources_table(found: "list[RecognizedSource]") -> ResultTable:
    """Each file or folder with its format, models, problems and attempts."""
    columns = [
        name("file", "name"),
        Column("format", lambda row: text(row["title"].removeprefix("a ").removeprefix("an ")), "text", rank=2),
        Column("models", lambda row: text(some_of(row["models"], _MAX_MODELS)), "text", rank=1),
        count("problems"),
        count("attempts"),
    ]
    return ResultTable("recognized", "recognized", columns, [vars(each) for each in found])


def contributions_table(found: "list[RecognizedSource]", discovery: "Discovery") -> ResultTable:
    """The contents of many files together, by model and task."""
    from touchstone.ingest.recognized import contributions

    def first(row: Row) -> Cell:
        return text(row["first"] + (f" and {row['files'] - 1:,} more" if row["files"] > 1 else ""))

    groups = contributions(discovery, found, _MAX_FILES)
    task = Column("task", lambda row: text(row["task"] or ""), "name")
    tasks = Column("tasks", lambda row: Cell(f"{row['tasks'] or 0:,}"))
    by_task = task if "task" in groups.columns else tasks
    columns = [name("model"), by_task, count("problems"), count("attempts"), Column("files", first, "text")]
    hidden = f"{groups.height - _MAX_FILES:,} more models; " if groups.height > _MAX_FILES else ""
    notes = [f"{hidden}each file: `inspect-files --json`, and after a run SELECT * FROM sources"]
    return ResultTable("recognized", f"recognized: {len(found):,} files", columns, groups.head(_MAX_FILES), notes=notes)


def figures_table(discovery: "Discovery") -> ResultTable:
    """The figures that the files state, beside the same from the rows that were read."""
    from touchstone.ingest.sources_table import reported_figures_frame

    def digits(value: float | None) -> str:
        return "-" if value is None else f"{value:.4g}"

    figures = reported_figures_frame(discovery).sort("source_file", "model", "suite", "figure")
    explained = figures.head(MAX_FIGURES)["note"].count() > 0
    columns = [
        name("file", "source_file", rank=2),
        name("model"),
        prose("figure"),
        figure("reported", "reported", digits),
        figure("recomputed", "recomputed", digits),
        *([Column("why ours differs", lambda row: text(row["note"] or ""), "text", rank=1)] if explained else []),
    ]
    rows = figures.with_columns(figure=pl.concat_str("suite", "figure", separator=" ", ignore_nulls=True))
    return ResultTable("figures", "figures of the tools", columns, rows, "reported_figures")


def show_notes(screen: Console, notes: Iterable[tuple[str, str]]) -> None:
    """Print each note once, with the files that it is about."""
    for line in _first(
        [f"{files}: {note}" for files, note in files_by_note(notes)], "more notes: SELECT notes FROM sources"
    ):
        screen.print(line, markup=False, highlight=False)


def _first(lines: list[str], more: str) -> list[str]:
    return [*lines[:_MAX_GROUPS], f"{len(lines) - _MAX_GROUPS} {more}"] if len(lines) > _MAX_GROUPS + 1 else lines
