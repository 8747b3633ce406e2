"""From the leaderboard to one attempt: the lists of attempts, by how they ended and failed."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.metrics.keys import ATTEMPT_KEY
from touchstone.publish.attempt_detail import AttemptDetail, attempt_detail, attempts_of
from touchstone.publish.dashboard.run_tables import RunTables
from touchstone.publish.dashboard.selection import Selection

OUTCOMES = ("passed", "failed", "undecided")
# A list of more attempts would only be searched: SQL finds them sooner.
MOST_LISTED = 10_000

_OF_SCORES = (
    *("iteration_id", "run_id", "suite", "pass_rate", "classification", "cost_usd"),
    *("duration_seconds", "latency_ms", "total_tokens", "composite_score", "code_score"),
)


def attempt_list(
    selection: Selection, model: str, tier: str, oid: str, outcomes: Sequence[str] = (), failures: Sequence[str] = ()
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
    # The heading of the list says whose attempts they are, and most columns of most inputs are empty.
    empty = [name for name in rows.columns if rows.height and rows[name].null_count() == rows.height]
    return rows.drop("model", "tier", "oid", *empty, strict=False)


def all_attempts(
    selection: Selection, outcomes: Sequence[str] = (), failures: Sequence[str] = ()
) -> tuple[pl.DataFrame, int]:
    """The attempts under the filters, of every model and problem, and how many there are; only the first are listed."""
    rows = selection.of_groups(_with_status(selection.run, selection.frame("attempt_scores")))
    found = rows.filter(_ended(rows.collect_schema().names(), outcomes, failures))
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
