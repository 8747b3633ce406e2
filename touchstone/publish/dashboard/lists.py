"""The lists of the dashboard: the leaderboard, the problems of one of its rows, the attempts at one of those.

Also two runs or models side by side: the verdict, and the cases that changed. The statistics are in `comparison`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import polars as pl

from touchstone.audit.readings import pass_at_k_of_reading, readings
from touchstone.comparison.compare import (
    changed_cases,
    compare_models,
    renamed,
    selected,
    validation_differences,
    verdict_lines,
)
from touchstone.comparison.inputs import ComparisonInput, open_input
from touchstone.comparison.pairs import comparison_settings, sentence
from touchstone.errors import TouchstoneError
from touchstone.metrics.aggregates import pass_column
from touchstone.metrics.failures import fingerprint, reason
from touchstone.metrics.keys import ATTEMPT_KEY, MODEL_TIER, counting_problems
from touchstone.publish.attempt_detail import AttemptDetail, attempt_detail, attempts_of
from touchstone.publish.dashboard.selection import Filters, RunTables, Selection, leaderboard_figures
from touchstone.publish.result_tables import HALF_A_POINT
from touchstone.tables import TABLES
from touchstone.text import counted

_MOST_MODES = 50
_INTERVAL = ["ci_low", "ci_high", "ci_method", "ci_units"]


def leaderboard(selection: Selection) -> pl.DataFrame:
    """pass@k with the interval of the smallest k, costs and counts per model and tier; best first, undefined last."""
    k_values = selection.run.config.k_values
    first, *others = k_values
    everyone, costs = leaderboard_figures(selection.run, selection.filters.of_attempts)
    figures = selection.of_groups(everyone.lazy()).collect()

    def of(k: int, *columns: str) -> pl.DataFrame:
        return figures.filter(pl.col("k") == k).select(*MODEL_TIER, pl.col("pass_at_k").alias(pass_column(k)), *columns)

    rows = of(first, *_INTERVAL, "eligible", "problems")
    for k in others:
        rows = rows.join(of(k), on=MODEL_TIER, how="left")
    order = [*MODEL_TIER, pass_column(first), *_INTERVAL[:2], *map(pass_column, others), "eligible", "attempts"]
    order += ["cost_of_pass", "total_cost_usd", "avg_latency_ms", "problems", *_INTERVAL[2:]]
    bounds = _bounds(selection, first)
    if bounds is not None:
        rows, order = rows.join(bounds, on=MODEL_TIER, how="left"), [*order[:5], *bounds.columns[2:], *order[5:]]
    return (
        rows.join(costs, on=MODEL_TIER, how="left")
        .with_columns(pl.col("attempts").fill_null(0))
        .select(order)
        .sort(pass_column(first), *MODEL_TIER, descending=[True, False, False], nulls_last=True)
    )


def _bounds(selection: Selection, k: int) -> pl.DataFrame | None:
    """pass@k if undecided attempts failed or passed; None if that moves no model by more than half a point."""
    problems = selection.frame("problems")
    no_rulings, no_flags = (pl.LazyFrame(schema=TABLES[name].dtypes) for name in ("outcomes", "audit_flags"))
    counts = readings(selection.frame("problem_scores"), no_rulings, no_flags)
    if not counts:
        return None
    low, high = (pass_at_k_of_reading(counts[name], problems, selection.run.groups, [k]) for name in ("low", "high"))
    found = low.drop("k").rename({"pass_at_k": "if_undecided_failed"})
    found = found.with_columns(high["pass_at_k"].alias("if_undecided_passed"))
    widths = found["if_undecided_passed"] - found["if_undecided_failed"]
    return found if (widths.fill_null(0) > HALF_A_POINT).any() else None


def problem_list(selection: Selection, model: str, tier: str) -> pl.DataFrame:
    """The problems that a model attempted in a tier, hardest first."""
    own = (pl.col("model") == model) & (pl.col("tier") == tier)
    rows = selection.frame("problem_statistics").filter(own).drop(MODEL_TIER)
    column = selection.filters.column
    described = selection.run.problems.lazy().select("oid", "suite", *([column] if column else []))
    figures = [pass_column(k) for k in selection.run.config.k_values]
    listed = rows.join(described, on="oid", how="left")
    named = [name for name in ("oid", "suite", column) if name]
    kept = ["avg_score", "best_score", "cost_of_pass", "models_solving", "only_solver"]
    return listed.select(*dict.fromkeys(named), "n", "c", *figures, *kept).sort(figures[0], "oid").collect()


def audited_problems(selection: Selection) -> pl.DataFrame:
    """The problems with the verdict of the audit on each, the most suspect first, without columns that are empty."""
    suspect = pl.col("verdict") == "suspect"
    first = ["oid", *(["tier"] if len(selection.run.tiers) > 1 else []), "verdict", "discrimination", "p_adjusted"]
    rows = selection.frame("problem_audit").sort(~suspect, "p_value", "tier", "oid", nulls_last=True).collect()
    left_out = {"tier", "p_value", "solved_by_all", "solved_by_none", *first}
    others = [name for name in rows.columns if name not in left_out and rows[name].count()]
    return rows.select(*first, *others)


def summary_line(selection: Selection, board: pl.DataFrame) -> str:
    """How much the figures rest on, in words."""
    problems = int(counting_problems(selection.frame("problems")).select(pl.len()).collect().item())
    attempts = int(board["attempts"].sum())
    undefined = int(board[pass_column(selection.run.config.k_values[0])].null_count())
    words = f"n = {counted(problems, 'problem')}, {counted(attempts, 'attempt')}, {counted(board.height, 'row')}"
    return f"{words}; {undefined:,} undefined" if undefined else words


_TABLES = (
    "failures",
    "failure_modes",
    "factors",
    "problem_audit",
    "regressions",
    "problem_statistics",
    "economics",
    "model_statistics",
    "pass_at_k",
    "outcomes",
    "attempts",
)
_PASS_COLUMN = re.compile(r"pass_(at|hat)_(\d+)")
_WORDS = {
    "oid": "problem",
    "iteration_id": "attempt",
    "n": "decided attempts",
    "c": "passed attempts",
    "ci_low": "CI from",
    "ci_high": "CI to",
    "ci_method": "CI method",
    "ci_units": "CI units",
    "eligible": "eligible problems",
    "avg_score": "mean score",
    "cost_usd": "cost",
    "total_cost_usd": "total cost",
    "avg_latency_ms": "mean latency (ms)",
    "latency_ms": "latency (ms)",
    "duration_seconds": "time (s)",
    "fingerprint": "reason",
    "mode_change": "change",
    "first_snapshot": "first seen",
    "kind": "change",
    "baseline_score": "before",
    "current_score": "after",
}


def in_words(column: str) -> str:
    """The header of a column.

    >>> in_words("pass_at_5"), in_words("cost_of_pass"), in_words("oid")
    ('pass@5', 'cost of pass', 'problem')
    """
    if found := _PASS_COLUMN.fullmatch(column):
        return f"pass{'@' if found[1] == 'at' else '^'}{found[2]}"
    return _WORDS.get(column, column.replace("_", " "))


def descriptions(columns: list[str]) -> dict[str, str]:
    """Descriptions of the columns that a table declares."""
    known: dict[str, str] = {}
    for table in _TABLES:
        known |= TABLES[table].descriptions
    for name in columns:
        if (found := _PASS_COLUMN.fullmatch(name)) and found[1] == "at":
            known[name] = f"Chance that at least one of {found[2]} attempts passes."
    return {name: known[name] for name in columns if name in known}


def failure_list(selection: Selection) -> pl.DataFrame:
    """The failure modes under the filters, the most common first, with what is known about their history."""
    rows = selection.frame("failures").group_by("fingerprint")
    sizes = {name: pl.col(of).n_unique().cast(pl.Int64) for name, of in (("problems", "oid"), ("models", "model"))}
    modes = rows.agg(pl.col("attempts").sum(), **sizes, example=pl.col("example").min()).collect()
    if selection.run.has("failure_modes"):
        known = selection.run.scan("failure_modes").select("fingerprint", "mode_change", "first_snapshot").collect()
        modes = modes.join(known, on="fingerprint", how="left")
    modes = modes.select(name for name in modes.columns if modes.is_empty() or modes[name].count())
    return modes.sort(-pl.col("attempts"), "fingerprint")


@lru_cache(maxsize=4)
def modes_of(run: RunTables) -> list[str]:
    """The most common failure modes of a run."""
    modes = failure_list(Selection(run)) if run.has("failures") and run.has("outcomes") else None
    return modes["fingerprint"].head(_MOST_MODES).to_list() if modes is not None else []


def _of_modes(run: RunTables, modes: Sequence[str]) -> pl.LazyFrame:
    """The keys of the attempts that failed in one of these ways."""
    if not run.has("outcomes"):
        raise TouchstoneError("a snapshot keeps no diagnostics of attempts; choose the published run")
    failed = run.scan("outcomes").filter(~pl.col("passed"), pl.col("diagnostics").is_not_null())
    return failed.filter(fingerprint(reason(pl.col("diagnostics"))).is_in(list(modes))).select(ATTEMPT_KEY)


OUTCOMES = ("passed", "failed", "undecided")
# A list of more attempts would only be searched: SQL finds them sooner.
MOST_LISTED = 10_000

_OF_SCORES = (
    *("iteration_id", "run_id", "suite", "pass_rate", "classification", "cost_usd"),
    *("duration_seconds", "latency_ms", "total_tokens", "composite_score", "code_score"),
)


def attempt_list(
    selection: Selection,
    model: str,
    tier: str,
    oid: str,
    outcomes: Sequence[str] = (),
    failures: Sequence[str] = (),
    modes: Sequence[str] = (),
) -> pl.DataFrame:
    """The attempts of a model at a problem in a tier. Those of a snapshot have scores only."""
    suites = selection.filters.suites
    if selection.run.has("attempts"):
        rows = attempts_of(selection.run.folder, model, tier, oid)
    else:
        of_problem = (pl.col("model") == model) & (pl.col("tier") == tier) & (pl.col("oid") == oid)
        rows = selection.run.scan("attempt_scores").filter(of_problem).select(_OF_SCORES).collect()
    rows = rows.filter(pl.col("suite").is_in(suites)) if suites else rows
    rows = rows.filter(_ended(rows.columns, outcomes, failures))
    rows = rows.lazy().join(_of_modes(selection.run, modes), on=ATTEMPT_KEY, how="semi").collect() if modes else rows
    # The heading of the list says whose attempts they are, and most columns of most inputs are empty.
    empty = [name for name in rows.columns if rows.height and rows[name].null_count() == rows.height]
    return rows.drop("model", "tier", "oid", *empty, strict=False)


def all_attempts(
    selection: Selection,
    oid: str = "",
    outcomes: Sequence[str] = (),
    failures: Sequence[str] = (),
    modes: Sequence[str] = (),
) -> tuple[pl.DataFrame, int]:
    """The attempts of all models under the filters, at all problems or one, and how many; only the first are listed."""
    scores = selection.frame("attempt_scores").filter(pl.col("oid") == oid if oid else pl.lit(True))
    rows = selection.of_groups(_with_status(selection.run, scores))
    found = rows.filter(_ended(rows.collect_schema().names(), outcomes, failures))
    found = found.join(_of_modes(selection.run, modes), on=ATTEMPT_KEY, how="semi") if modes else found
    shown = found.sort(ATTEMPT_KEY).head(MOST_LISTED).collect(engine="streaming")
    count = int(found.select(pl.len()).collect(engine="streaming").item())
    return shown.select(name for name in shown.columns if shown[name].null_count() < max(shown.height, 1)), count


@lru_cache(maxsize=4)
def failures_of(run: RunTables) -> list[str]:
    """How attempts that did not pass ended: the classes and statuses that there are."""
    rows = _with_status(run, run.scan("attempt_scores"))
    failed = rows.filter(pl.col("pass_rate").is_null() | (pl.col("pass_rate") < 1))
    return failed.select(_failure(rows.collect_schema().names()).unique().sort()).collect().to_series().to_list()


def _with_status(run: RunTables, scores: pl.LazyFrame) -> pl.LazyFrame:
    columns = [*ATTEMPT_KEY, "suite", "pass_rate", "classification", "cost_usd", "duration_seconds"]
    rows = scores.select(columns)
    if not run.has("outcomes"):
        return rows
    return rows.join(run.scan("outcomes").select(*ATTEMPT_KEY, "status"), on=ATTEMPT_KEY, how="left")


def _failure(columns: Sequence[str]) -> pl.Expr:
    """The class of an attempt or, if the input has none, its status."""
    status = [pl.col("status")] if "status" in columns else []
    return pl.coalesce(pl.col("classification"), *status, pl.lit("unknown"))


def _ended(columns: Sequence[str], outcomes: Sequence[str], failures: Sequence[str]) -> pl.Expr:
    """Whether an attempt had one of these outcomes and, if it did not pass, failed in one of these ways."""
    passed = pl.col("passed") if "passed" in columns else pl.col("pass_rate") >= 1
    name = pl.when(passed.is_null()).then(pl.lit("undecided")).when(passed).then(pl.lit("passed"))
    wanted = name.otherwise(pl.lit("failed")).is_in(list(outcomes)) if outcomes else pl.lit(True)
    if not failures:
        return wanted
    return wanted & ~passed.fill_null(False) & _failure(columns).is_in(list(failures))


def opened_attempt(selection: Selection, model: str, tier: str, oid: str, iteration_id: str) -> AttemptDetail:
    """One attempt in full."""
    if not selection.run.has("attempts"):
        raise TouchstoneError("a snapshot keeps scores, not the texts of attempts; choose the published run")
    return attempt_detail(selection.run.folder, model, tier, oid, iteration_id)


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a run, or one model of it."""

    run: RunTables
    model: str | None = None


@dataclass(frozen=True)
class SideBySide:
    """Differences: a sentence per verdict, remarks on how the sides were validated, counts by kind, changed cases."""

    verdicts: list[str]
    remarks: list[str]
    counts: dict[str, int]
    cases: pl.DataFrame


def side_by_side(before: Side, after: Side, filters: Filters) -> SideBySide:
    """Compare two sides on the attempts that the filters choose, with the settings of the run on the side `after`."""
    if before == after:
        raise TouchstoneError("both sides are the same; choose another run or another model on one side")
    name = _common_name(before, after)
    old, new = (_input(side, filters, name) for side in (before, after))
    config = after.run.config
    cases = changed_cases(old, new, config.comparison.score, config.comparison.threshold)
    if cases.is_empty():
        raise TouchstoneError("nothing to compare: neither side has an attempt under these filters")
    settings = replace(comparison_settings(config), same_model=name is None)
    results = compare_models(old, new, settings)
    lines = verdict_lines(
        (result.verdict, *key, sentence(result, "baseline", "current")) for key, result in results.items()
    )
    if not results:
        lines = ["The two sides have no model and tier in common, so there is no verdict."]
    counts = {str(kind): int(count) for kind, count in cases.group_by("kind").len().sort("kind").iter_rows()}
    changed = cases.filter(pl.col("kind") != "unchanged").sort("delta", "model", "tier", "oid", nulls_last=True)
    return SideBySide(lines, validation_differences(old.validators, new.validators), counts, changed)


def _common_name(before: Side, after: Side) -> str | None:
    """The name under which two different models are paired, tier by tier."""
    if before.model == after.model:
        return None
    if before.model is None or after.model is None:
        raise TouchstoneError("choose a model on both sides, or all models on both")
    return f"{after.model} against {before.model}"


def _input(side: Side, filters: Filters, name: str | None) -> ComparisonInput:
    """The chosen attempts of a side, of its model if it is one; under another name if there is one."""
    chosen = Selection(side.run, filters.of_attempts)
    opened = replace(
        open_input(str(side.run.folder)),
        attempt_scores=chosen.frame("attempt_scores"),
        problems=chosen.frame("problems"),
    )
    own = selected(opened, filters.models if side.model is None else (side.model,), filters.tiers)
    return own if name is None else renamed(own, name)
