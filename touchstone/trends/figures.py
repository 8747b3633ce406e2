"""The headline figures, their common names, and their rows in the table `history`."""

import polars as pl

from touchstone.text import visible

# The figure that `ci_low` and `ci_high` of a table belong to; other figures have columns of their own.
MAIN_FIGURE = {
    "pass_at_k": "pass_at_k",
    "tiers": "composite_median",
    "suite_scores": "score",
    "run_scores": "overall_score",
    "economics": "cost_of_pass",
    "reliability_curve": "pass_hat_k",
}
# The tables whose main figure is a headline: one line per model and tier, or k.
HEADLINES = ("pass_at_k", "tiers", "run_scores", "economics")
# The denominator of a figure: the first of these columns that its table has.
COUNTS = {"eligible": "problem", "problems": "problem", "attempts": "attempt", "cases": "attempt"}


def figure_name(table: str, figure: str, item: str = "") -> str:
    """The common name of a figure.

    >>> figure_name("pass_at_k", "pass_at_k", "5"), figure_name("tiers", "pass_rate")
    ('pass@5', 'pass_rate of tiers')
    """
    named = {"pass_at_k": f"pass@{item}", "run_scores": "overall score", "economics": "cost of pass"}
    if MAIN_FIGURE.get(table) == figure and table in named:
        return visible(named[table] + (f" of {item}" if item and table != "pass_at_k" else ""))
    return visible(f"{figure} of {table}" + (f", {item}" if item else ""))


def figure_rows(history: pl.LazyFrame, table: str, figure: str, item: str | None = None) -> pl.DataFrame:
    """One row per snapshot, model, tier and item: the figure, its interval, and what it is over."""
    own = MAIN_FIGURE.get(table) == figure
    low, high = ("ci_low", "ci_high") if own else (f"{figure}_ci_low", f"{figure}_ci_high")
    kept = history.select("snapshot", "made_at", "table", "model", "tier", "item", "figure", "value").filter(
        pl.col("table") == table,
        pl.col("figure").is_in([figure, low, high, *COUNTS]),
        pl.lit(True) if item is None else pl.col("item") == item,
    )
    wide = kept.collect().pivot("figure", values="value")
    count = next((name for name in COUNTS if name in wide.columns), None)
    none = pl.lit(None, pl.Float64)
    return wide.select(
        *("snapshot", "made_at", "table", "model", "tier", "item"),
        figure=pl.lit(figure),
        value=pl.col(figure) if figure in wide.columns else none,
        ci_low=pl.col(low) if low in wide.columns else none,
        ci_high=pl.col(high) if high in wide.columns else none,
        n=(none if count is None else pl.col(count)).cast(pl.Int64),
        noun=pl.lit(COUNTS.get(count or "", "")),
    )
