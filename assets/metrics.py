"""Stage 3: outcomes become pass@k. The formulas belong in `touchstone.metrics`."""

from typing import TYPE_CHECKING

from assets.common import checks_of, derived_tables
from assets.metadata import Metadata, leaderboard_metadata
from touchstone.text import visible

if TYPE_CHECKING:
    import polars as pl


def _by_k(table: "pl.DataFrame") -> Metadata:
    figures = table.select("model", "tier", "k", "pass_at_k")
    numbers = {visible(f"{model} {tier} pass@{k}"): value for model, tier, k, value in figures.iter_rows()}
    return {**leaderboard_metadata(table), **numbers}


pass_at_k_tables = derived_tables("metrics", {"pass_at_k": _by_k})
pass_at_k_checks = checks_of("pass_at_k", "slices")
