"""What the dashboard lists: the leaderboard, the problems of one of its rows, the attempts at one of those."""

import re

import polars as pl

from touchstone.metrics.aggregates import pass_column
from touchstone.metrics.keys import MODEL_TIER
from touchstone.publish.dashboard.selection import Selection, leaderboard_figures
from touchstone.tables import TABLES
from touchstone.text import counted

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
    return (
        rows.join(costs, on=MODEL_TIER, how="left")
        .with_columns(pl.col("attempts").fill_null(0))
        .select(order)
        .sort(pass_column(first), *MODEL_TIER, descending=[True, False, False], nulls_last=True)
    )


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


def summary_line(selection: Selection, board: pl.DataFrame) -> str:
    """How much the figures rest on, in words."""
    problems = int(selection.frame("problems").select(pl.len()).collect().item())
    attempts = int(board["attempts"].sum())
    undefined = int(board[pass_column(selection.run.config.k_values[0])].null_count())
    words = f"n = {counted(problems, 'problem')}, {counted(attempts, 'attempt')}, {counted(board.height, 'row')}"
    return f"{words}; {undefined:,} undefined" if undefined else words


_TABLES = ("regressions", "problem_statistics", "economics", "model_statistics", "pass_at_k", "outcomes", "attempts")
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
    """What a column means, for those that a table declares."""
    known: dict[str, str] = {}
    for table in _TABLES:
        known |= TABLES[table].descriptions
    for name in columns:
        if (found := _PASS_COLUMN.fullmatch(name)) and found[1] == "at":
            known[name] = f"Chance that at least one of {found[2]} attempts passes."
    return {name: known[name] for name in columns if name in known}
