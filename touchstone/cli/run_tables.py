"""What `touchstone run` prints: the tables of figures, the checks that did not pass, and where the results are.

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
from touchstone.cli.terminal_tables import FittedTable, names, numbers, prose, show_table, terminal
from touchstone.locations import address_of
from touchstone.publish import result_tables as tables
from touchstone.publish.report.summary import best, rulings
from touchstone.publish.reported_run import ReportedRun
from touchstone.publish.table_columns import ResultTable
from touchstone.storage.store import REPORT_PAGE, Store
from touchstone.text import counted, counted_of, files_by_note
from touchstone.vocabulary import STATIC_AGREEMENT, STATIC_FIDELITIES

if TYPE_CHECKING:
    from touchstone.checks import CheckOutcome
    from touchstone.evaluation import RunOutcome
    from touchstone.ingest.discovery import Discovery
    from touchstone.ingest.recognized import RecognizedSource
    from touchstone.publish.up_to_date import PublishedRun

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
_MAX_FIGURES = 40
# Of more files, what they hold is shown by model.
_MAX_FILES = 10
_MAX_MODELS = 3


def show_inputs(
    screen: Console, sources: pl.DataFrame, quarantine: pl.DataFrame, model_statistics: pl.DataFrame
) -> None:
    """Print prices matched by another name, what was assumed about files, and files and rows that were refused."""
    for line in price_matches(model_statistics):
        screen.print(line, markup=False)
    # A file of several models has a row for each.
    noted = sources.filter(pl.col("notes").is_not_null()).select("source_file", "notes").unique()
    show_notes(screen, noted.sort("source_file").iter_rows())
    files = files_table(sources)
    if files.rows:
        files.print(screen)
    others = other_files(sources)
    if others:
        screen.print(others, markup=False, style="dim")
    if not quarantine.is_empty():
        quarantine_table(quarantine).print(screen)


def files_table(sources: pl.DataFrame) -> FittedTable:
    """Data files that are not evaluated, and why. Unreadable files are in the quarantine instead."""
    shown = sources.filter(pl.col("status").is_in(("unknown", "left_out"))).sort("status", "source_file", "model")
    table = FittedTable([*names("file", "status"), *prose("reason")], title="files that are not evaluated")
    for file, status, reason in shown.select("source_file", "status", "reason").head(_MAX_GROUPS).iter_rows():
        table.add_row(file, status.replace("_", " "), reason)
    hidden = shown.height - _MAX_GROUPS
    table.caption = f"{hidden} more: SELECT * FROM sources" if hidden > 0 else ""
    return table


def other_files(sources: pl.DataFrame) -> str:
    """One line about copies of outputs, by reason: a user may expect them to be read."""
    others = sources.filter(pl.col("status") == "output").sort("source_file")
    reasons = others.group_by("reason", maintain_order=True).agg("source_file")
    named = "; ".join(_named(reason, files) for reason, files in reasons.iter_rows())
    return f"not read: {named}" if named else ""


def _named(reason: str, files: list[str]) -> str:
    more = f" and {len(files) - _MAX_NAMES} more" if len(files) > _MAX_NAMES else ""
    return f"{', '.join(files[:_MAX_NAMES])}{more} ({reason})"


def quarantine_table(quarantine: pl.DataFrame) -> FittedTable:
    """Refused rows by file and kind: how many, and the first of each."""
    groups = (
        quarantine.sort("source_file", "line", nulls_last=False)
        .group_by("source_file", "kind", maintain_order=True)
        .agg(pl.len().alias("rows"), pl.col("line", "reason").first())
        .sort("source_file", "rows", "kind", descending=[False, True, False])
    )
    columns = [*names("file", "kind"), *numbers("rows", "first line"), *prose("first reason")]
    table = FittedTable(columns, title="quarantine: refused rows by file and kind")
    for row in groups.head(_MAX_GROUPS).iter_rows(named=True):
        rows, line = ("all", "-") if row["line"] is None else (f"{row['rows']:,}", f"{row['line']:,}")
        table.add_row(row["source_file"], row["kind"], rows, line, row["reason"])
    hidden = groups.height - _MAX_GROUPS
    more = f", {counted(hidden, 'group')} not shown" if hidden > 0 else ""
    table.caption = f"{quarantine.height:,} in total{more}: SELECT * FROM quarantine"
    return table


def price_matches(model_statistics: pl.DataFrame) -> list[str]:
    """Models priced by another name: `model-20250101` by the price of `model`, for instance."""
    others = model_statistics.filter(pl.col("priced_as") != pl.col("model")).select("model", "priced_as")
    return [f"{model} is priced as {price}" for model, price in others.unique().sort("model").iter_rows()]


# What was recognized, before anything is evaluated


def show_recognized(
    screen: Console, found: "list[RecognizedSource]", discovery: "Discovery", *, with_notes: bool = True
) -> None:
    """Print a row for each file or folder, what to know about it, and what is not evaluated."""
    readable = [source for source in found if source.unreadable is None]
    if len(readable) > _MAX_FILES:
        contributions_table(readable, discovery).print(screen)
    elif readable:
        sources_table(readable).print(screen)
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


def sources_table(found: "list[RecognizedSource]") -> FittedTable:
    """Each file or folder with its format, models, problems and attempts."""
    table = FittedTable(
        [*names("file"), *prose("format", rank=2), *prose("models", rank=1), *numbers("problems", "attempts")],
        compact=True,
        title="recognized",
    )
    for each in found:
        table.add_row(
            each.name,
            each.title.removeprefix("a ").removeprefix("an "),
            _listed(each.models),
            f"{each.problems:,}",
            f"{each.attempts:,}",
        )
    return table


def contributions_table(found: "list[RecognizedSource]", discovery: "Discovery") -> FittedTable:
    """What many files hold together, by model and task."""
    from touchstone.ingest.recognized import contributions

    groups = contributions(discovery, found, _MAX_FILES)
    by_task = "task" in groups.columns
    columns = [*names("model"), *(names("task") if by_task else numbers("tasks")), *numbers("problems", "attempts")]
    table = FittedTable([*columns, *prose("files")], compact=True, title=f"recognized: {len(found):,} files")
    for row in groups.head(_MAX_FILES).iter_rows(named=True):
        more = f" and {row['files'] - 1:,} more" if row["files"] > 1 else ""
        task = row["task"] or "" if by_task else f"{row['tasks'] or 0:,}"
        table.add_row(row["model"], task, f"{row['problems']:,}", f"{row['attempts']:,}", f"{row['first']}{more}")
    hidden = f"{groups.height - _MAX_FILES:,} more models; " if groups.height > _MAX_FILES else ""
    table.caption = f"{hidden}each file: `inspect-files --json`, and after a run SELECT * FROM sources"
    return table


def figures_table(discovery: "Discovery") -> FittedTable:
    """The figures that the files state, beside the same from the rows that were read."""
    from touchstone.ingest.sources_table import reported_figures_frame

    figures = reported_figures_frame(discovery).sort("source_file", "model", "suite", "figure")
    explained = figures.head(_MAX_FIGURES)["note"].null_count() < min(figures.height, _MAX_FIGURES)
    columns = [*names("file", rank=2), *names("model"), *prose("figure"), *numbers("reported", "recomputed")]
    if explained:
        columns += prose("why ours differs", rank=1)
    table = FittedTable(columns, title="figures of the tools", compact=True)
    rows = figures.with_columns(figure=pl.concat_str("suite", "figure", separator=" ", ignore_nulls=True))
    for row in rows.head(_MAX_FIGURES).iter_rows(named=True):
        numbers_shown = ("-" if row[name] is None else f"{row[name]:.4g}" for name in ("reported", "recomputed"))
        notes = [row["note"] or ""] if explained else []
        table.add_row(row["source_file"], row["model"], row["figure"], *numbers_shown, *notes)
    hidden = figures.height - _MAX_FIGURES
    table.caption = f"{hidden:,} more: SELECT * FROM reported_figures" if hidden > 0 else ""
    return table


def show_notes(screen: Console, notes: Iterable[tuple[str, str]]) -> None:
    """Print each note once, with the files that it is about."""
    for line in _first(
        [f"{files}: {note}" for files, note in files_by_note(notes)], "more notes: SELECT notes FROM sources"
    ):
        screen.print(line, markup=False, highlight=False)


def _first(lines: list[str], more: str) -> list[str]:
    return [*lines[:_MAX_GROUPS], f"{len(lines) - _MAX_GROUPS} {more}"] if len(lines) > _MAX_GROUPS + 1 else lines


def _listed(models: tuple[str, ...]) -> str:
    more = f" and {len(models) - _MAX_MODELS} more" if len(models) > _MAX_MODELS else ""
    return ", ".join(models[:_MAX_MODELS]) + more
