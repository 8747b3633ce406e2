"""Tables of `touchstone run` that only some data have: statistics of code per model and problem, and across tiers."""

import polars as pl

from touchstone.cli.compact_layout import Column
from touchstone.cli.fitted_table import FittedTable, names, numbers
from touchstone.publish.figures import CODE_FIGURES, CROSS_TIER_SENTENCES, dollars, number, with_interval
from touchstone.publish.scored_problems import ScoredProblems
from touchstone.text import counted, significant

MAX_ROWS = 30

_LAST = 100


def statistics_table(model_statistics: pl.DataFrame) -> FittedTable:
    """Compile rate, tests, lint, code score, cost and latency per model and tier; only what the data have."""
    has = [name for name in (*CODE_FIGURES, "total_cost_usd", "avg_latency_ms") if model_statistics[name].count()]
    code = [name for name in has if name in CODE_FIGURES]
    headers = [CODE_FIGURES[name] for name in code]
    headers += [{"total_cost_usd": "total cost", "avg_latency_ms": "latency"}[name] for name in has if name not in code]
    table = FittedTable(
        [
            *names("model"),
            *_tier(model_statistics),
            *(c for rank, h in enumerate(headers) for c in numbers(h, rank=rank)),
        ],
        compact=True,
        title="code, cost and latency: mean over attempts [confidence interval]" if code else "cost and latency",
        caption=_and_more(model_statistics.height, "model_statistics").strip(),
    )
    for row in model_statistics.head(MAX_ROWS).iter_rows(named=True) if has else ():
        cells = [with_interval(row, name, f"{name}_", "{:.3f}") for name in code]
        if "total_cost_usd" in has:
            cells.append(dollars(row["total_cost_usd"]))
        if "avg_latency_ms" in has:
            cells.append("-" if row["avg_latency_ms"] is None else f"{row['avg_latency_ms']:,.0f} ms")
        table.add_row(row["model"], row["tier"], *cells)
    return table


def problem_table(problems: ScoredProblems) -> FittedTable:
    """pass@k and code scores per problem and model; empty without code scores."""
    further = ["best score", *problems.passes, "passed"]
    table = FittedTable(
        [
            *names("problem", "model"),
            *_tier(problems.rows),
            *numbers("avg. score"),
            *(column for rank, header in enumerate(further, 1) for column in numbers(header, rank=rank)),
        ],
        compact=True,
        title="code score and pass@k per problem",
        caption=_and_more(problems.total, "problem_statistics").strip(),
    )
    for row in problems.rows.head(MAX_ROWS).iter_rows(named=True):
        figures = [number(row[name]) for name in ("avg_score", "best_score", *problems.passes)]
        table.add_row(row["oid"], row["model"], row["tier"], *figures, f"{row['c']:,} of {row['n']:,}")
    return table


def cross_tier_table(cross_tier: pl.DataFrame) -> FittedTable:
    """How much a model's tiers differ in pass rate, score and cost; empty if no model has two."""
    table = FittedTable(
        [
            *names("model"),
            *numbers("tiers", rank=5),
            *numbers("pass rate variance"),
            *numbers("of means", rank=3),
            *numbers("score variance", rank=4),
            *numbers("cost variance", rank=2),
            *numbers("cost delta", rank=1),
        ],
        compact=True,
        title="across tiers: variance of the tiers' medians",
        caption="\n".join(CROSS_TIER_SENTENCES) + _and_more(cross_tier.height, "cross_tier"),
    )
    for row in cross_tier.filter(pl.col("tiers") > 1).head(MAX_ROWS).iter_rows(named=True):
        variances = ("pass_rate_variance", "pass_rate_variance_of_means", "score_variance", "cost_variance")
        figures = ["-" if row[name] is None else significant(row[name], 3) for name in variances]
        table.add_row(row["model"], f"{row['tiers']:,}", *figures, dollars(row["cost_delta"]))
    return table


def _tier(rows: pl.DataFrame) -> list[Column]:
    return names("tier", rank=0 if rows["tier"].n_unique() > 1 else _LAST)


def _and_more(rows: int, table: str) -> str:
    return f"\n{counted(rows - MAX_ROWS, 'more row')}: SELECT * FROM {table}" if rows > MAX_ROWS else ""
