"""pass@k and the verdicts if some outcomes were read otherwise: one home for every "what if".

A reading is another n and c per problem; the figures and tests are those of `metrics.pass_at_k` and of
`comparison.pairs`. A reading that changes no outcome costs nothing: its figure is the published one, and it has no
verdicts.

- `low`, `high`: every undecided attempt failed, or passed. Whatever they turn out to be, pass@k is between the two.
- `measured`: as measured, without the rulings of people.
- `unflagged`: every pass that the audit flags with severity high failed, unless a person has ruled on it.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from touchstone.audit.passes import counts_against
from touchstone.comparison.families import ComparisonSettings
from touchstone.comparison.pairs import compare_counts
from touchstone.metrics.keys import PROBLEM_KEY, ModelTier
from touchstone.metrics.pass_at_k import outcome_histogram, problems_by_tier, summarise
from touchstone.tables import TABLES

# Each comparison of two models: the reading of the counts of a, and of b.
_COMPARED = {
    "undecided_favour_b": ("low", "high"),
    "undecided_favour_a": ("high", "low"),
    "measured": ("measured", "measured"),
    "unflagged": ("unflagged", "unflagged"),
}


def readings(
    problem_scores: pl.LazyFrame, outcomes: pl.LazyFrame, audit_flags: pl.LazyFrame
) -> dict[str, pl.LazyFrame]:
    """n and c per model, tier and problem in each reading that changes any."""
    counts = (
        problem_scores.group_by(PROBLEM_KEY)
        .agg(
            pl.col("decided").sum().alias("n"),
            pl.col("passes").sum().cast(pl.Int64).alias("c"),
            (pl.col("attempts") - pl.col("decided")).sum().alias("undecided"),
        )
        .collect()
        .lazy()
    )
    found: dict[str, pl.LazyFrame] = {}
    if counts.select(pl.col("undecided").sum()).collect().item():
        n, c, undecided = pl.col("n"), pl.col("c"), pl.col("undecided")
        found["low"] = counts.with_columns(n=n + undecided)
        found["high"] = counts.with_columns(n=n + undecided, c=c + undecided)
    ruled = _without_rulings(outcomes)
    if ruled.height:
        both = pl.concat([counts.select(*PROBLEM_KEY, "n", "c"), ruled.lazy()])
        found["measured"] = both.group_by(PROBLEM_KEY).agg(pl.col("n", "c").sum())
    flagged = audit_flags.filter(counts_against())
    fewer = flagged.unique([*PROBLEM_KEY, "iteration_id"]).group_by(PROBLEM_KEY).agg(fewer=pl.len().cast(pl.Int64))
    if (without := fewer.collect()).height:
        passes = pl.col("c") - pl.col("fewer").fill_null(0)
        found["unflagged"] = counts.join(without.lazy(), on=PROBLEM_KEY, how="left").with_columns(c=passes)
    return {name: frame.select(*PROBLEM_KEY, "n", "c") for name, frame in found.items()}


def _without_rulings(outcomes: pl.LazyFrame) -> pl.DataFrame:
    """Changes of n and c of a problem if measured outcomes counted in place of rulings."""
    ruled = outcomes.filter(pl.col("ruling").is_not_null())
    decided, measured = (pl.col(name).is_not_null().cast(pl.Int64) for name in ("passed", "measured"))
    more_passes = pl.col("measured").fill_null(False).cast(pl.Int64) - pl.col("passed").fill_null(False).cast(pl.Int64)
    return ruled.group_by(PROBLEM_KEY).agg(n=(measured - decided).sum(), c=more_passes.sum()).collect()


def pass_at_k_readings(
    pass_at_k: pl.LazyFrame,
    problem_scores: pl.LazyFrame,
    outcomes: pl.LazyFrame,
    problems: pl.LazyFrame,
    audit_flags: pl.LazyFrame,
    k_values: Sequence[int],
) -> pl.LazyFrame:
    """The table `pass_at_k_readings`: pass@k per model, tier and k in every reading."""
    key = ["model", "tier", "k"]
    table = pass_at_k.select(*key, "pass_at_k").collect()
    found = readings(problem_scores, outcomes, audit_flags)
    names = [name for name in TABLES["pass_at_k_readings"].dtypes if name.startswith("pass_at_k_")]
    groups = sorted(set(table.select("model", "tier").iter_rows())) if found else []
    for name in names:
        counts = found.get(name.removeprefix("pass_at_k_"))
        if counts is None:
            table = table.with_columns(pl.col("pass_at_k").alias(name))
            continue
        other = pass_at_k_of_reading(counts, problems, groups, k_values).rename({"pass_at_k": name})
        table = table.join(other, on=key, how="left", maintain_order="left")
    return table.lazy()


def pass_at_k_of_reading(
    counts: pl.LazyFrame, problems: pl.LazyFrame, groups: Sequence[ModelTier], k_values: Sequence[int]
) -> pl.DataFrame:
    """pass@k per model, tier and k from the counts of a reading."""
    totals = problems_by_tier(problems, {tier for _, tier in groups})
    rows = summarise(outcome_histogram(counts, problems).collect(), groups, totals, k_values, None)
    return rows.select("model", "tier", "k", "pass_at_k")


def verdict_readings(
    model_comparison: pl.LazyFrame,
    problem_scores: pl.LazyFrame,
    outcomes: pl.LazyFrame,
    problems: pl.LazyFrame,
    audit_flags: pl.LazyFrame,
    *settings: Any,
) -> pl.LazyFrame:
    """The table `verdict_readings`: the verdict on every pair of models in each reading that changes any outcome."""
    pair = list(TABLES["model_comparison"].key)
    published = model_comparison.select(*pair, "verdict").collect()
    found = readings(problem_scores, outcomes, audit_flags) if published.height else {}
    parts = [pl.DataFrame(schema=TABLES["verdict_readings"].dtypes)]
    for reading, (of_a, of_b) in _COMPARED.items():
        if of_a in found:
            then = compare_counts(found[of_a], problems, ComparisonSettings(*settings), found[of_b], sentences=False)
            own = then.select(*pair, "difference", "p_adjusted", pl.col("verdict").alias("verdict_then"))
            rows = published.join(own, on=pair, how="left", maintain_order="left")
            rows = rows.with_columns(reading=pl.lit(reading), holds=pl.col("verdict") == pl.col("verdict_then"))
            parts.append(rows.select(parts[0].columns))
    return pl.concat(parts).lazy()
