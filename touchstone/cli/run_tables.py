"""What `touchstone run` prints: the tables of figures, the checks that did not pass, and where the results are.

The tables are declared in `touchstone.publish.result_tables`; what it says about input files is in `input_tables`.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl
from rich.console import Console
from rich.markup import escape

from touchstone.cli.console import relative_path
from touchstone.cli.input_tables import show_inputs
from touchstone.cli.options import output_folder_here
from touchstone.cli.terminal_tables import show_table, terminal
from touchstone.locations import address_of
from touchstone.publish import result_tables as tables
from touchstone.publish.report.summary import best, rulings
from touchstone.publish.reported_run import ReportedRun
from touchstone.publish.table_columns import ResultTable
from touchstone.storage.store import REPORT_PAGE, Store
from touchstone.text import counted, counted_of
from touchstone.vocabulary import STATIC_AGREEMENT, STATIC_FIDELITIES

if TYPE_CHECKING:
    from touchstone.checks import CheckOutcome
    from touchstone.evaluation import RunOutcome
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
