"""From a problem of the leaderboard's row to one attempt: the list of attempts, and the page of one of them."""

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.publish.attempt_detail import attempt_detail, attempts_of
from touchstone.publish.dashboard.attempt_page import attempt_page
from touchstone.publish.dashboard.selection import Selection

_OF_SCORES = (
    *("iteration_id", "run_id", "suite", "pass_rate", "classification", "cost_usd"),
    *("duration_seconds", "latency_ms", "total_tokens", "composite_score", "code_score"),
)


def attempt_list(selection: Selection, model: str, tier: str, oid: str) -> pl.DataFrame:
    """The attempts of a model at a problem in a tier. Those of a snapshot have scores only."""
    suites = selection.filters.suites
    if selection.run.has("attempts"):
        rows = attempts_of(selection.run.folder, model, tier, oid)
    else:
        of_problem = (pl.col("model") == model) & (pl.col("tier") == tier) & (pl.col("oid") == oid)
        rows = selection.run.scan("attempt_scores").filter(of_problem).select(_OF_SCORES).collect()
    rows = rows.filter(pl.col("suite").is_in(suites)) if suites else rows
    # The heading of the list says whose attempts they are, and most columns of most inputs are empty.
    empty = [name for name in rows.columns if rows.height and rows[name].null_count() == rows.height]
    return rows.drop("model", "tier", "oid", *empty, strict=False)


def attempt_html(selection: Selection, model: str, tier: str, oid: str, iteration_id: str) -> str:
    """One attempt in full."""
    if not selection.run.has("attempts"):
        raise TouchstoneError("a snapshot keeps scores, not the texts of attempts; choose the published run")
    return attempt_page(attempt_detail(selection.run.folder, model, tier, oid, iteration_id))
