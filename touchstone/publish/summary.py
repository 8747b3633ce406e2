"""The summary CSV: one row per model (and tier), one column per k."""

from pathlib import Path

import polars as pl

from touchstone.publish.csv_files import write_csv


def summary(pass_at_k: pl.DataFrame) -> pl.DataFrame:
    """`LLM, pass@1, …, attempted, problems` and the intervals that the table has; `tier` only if there are several.

    >>> row = {"model": "m", "tier": "T0", "k": 1, "pass_at_k": .5, "ci_low": .4, "ci_high": .6,
    ...        "ci_method": "wilson", "ci_units": 9, "attempted": 9, "problems": 10}
    >>> summary(pl.DataFrame([row])).columns[-4:]
    ['pass@1_ci_low', 'pass@1_ci_high', 'pass@1_ci_method', 'pass@1_ci_units']
    """
    return _without_single_tier(_by_tier(pass_at_k))


def summaries(pass_at_k: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The summary of each model by itself, all made at once: one by one takes milliseconds each."""
    return {
        str(model): _without_single_tier(rows)
        for (model,), rows in _by_tier(pass_at_k).partition_by("LLM", as_dict=True, maintain_order=True).items()
    }


def _without_single_tier(rows: pl.DataFrame) -> pl.DataFrame:
    return rows if rows["tier"].n_unique() > 1 else rows.drop("tier")


def _by_tier(pass_at_k: pl.DataFrame) -> pl.DataFrame:
    ks = pass_at_k["k"].unique().sort().to_list()
    ends = [("low", "high"), ("method", "units")] if "ci_low" in pass_at_k.columns else []

    def at(k: int, column: str) -> pl.Expr:
        return pl.col(column).filter(pl.col("k") == k).first()

    return (
        pass_at_k.lazy()
        .group_by("model", "tier")
        .agg(
            *(at(k, "pass_at_k").alias(f"pass@{k}") for k in ks),
            pl.col("attempted", "problems").first(),
            *(at(k, f"ci_{end}").alias(f"pass@{k}_ci_{end}") for pair in ends for k in ks for end in pair),
        )
        .sort("model", "tier")
        .rename({"model": "LLM"})
        .collect()
    )


def write_summary(pass_at_k: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Write the summary CSV atomically, and return the table."""
    table = summary(pass_at_k)
    write_csv(table.lazy(), path)
    return table
