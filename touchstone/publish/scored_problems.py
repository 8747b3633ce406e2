"""Problems with code scores, as the terminal and the report show them."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

_KEY = ["model", "tier", "oid"]


@dataclass(frozen=True)
class ScoredProblems:
    """The first rows by problem, model and tier, with a column `pass@<k>` for each k, and how many there are in all."""

    rows: pl.DataFrame
    passes: list[str]
    total: int


def scored_problems(scan: Callable[[str], pl.LazyFrame], at_most: int) -> ScoredProblems:
    """The code scores and pass@k of every problem, model and tier that has a code score."""
    scored = scan("problem_statistics").filter(pl.col("avg_score").is_not_null())
    rows = (
        scored.select(*_KEY, "n", "c", "avg_score", "best_score").sort("oid", "model", "tier").head(at_most).collect()
    )
    at_k = scan("problem_pass_at_k").join(rows.lazy(), on=_KEY, how="semi").select(*_KEY, "k", "pass_at_k").collect()
    ks = at_k["k"].unique().sort().to_list()
    wide = at_k.group_by(_KEY).agg(pl.col("pass_at_k").filter(pl.col("k") == k).first().alias(f"pass@{k}") for k in ks)
    total = int(scored.select(pl.len()).collect().item())
    return ScoredProblems(rows.join(wide, on=_KEY, how="left", maintain_order="left"), [f"pass@{k}" for k in ks], total)
