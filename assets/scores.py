"""Stage 3, continued: scores of attempts, tiers, suites, models and problems.

The formulas belong in `touchstone.metrics`; pass@k itself is in `assets.metrics`.
"""

from typing import TYPE_CHECKING

from assets.common import checks_of, derived_tables
from assets.metadata import Figures, plotted

if TYPE_CHECKING:
    import polars as pl


def _unsolved(table: "pl.DataFrame") -> Figures:
    import polars as pl

    return {"unsolved_problems": table.filter(pl.col("models_solving") == 0).height}


score_tables = derived_tables(
    "scores",
    {
        "tiers": plotted(["model", "tier"], ["composite_median", "uplift"]),
        "cross_tier": plotted(["model"], ["frontier_cost_of_pass"]),
        "run_scores": plotted(["model", "tier"], ["overall_score"]),
        "model_statistics": plotted(["model", "tier"], ["total_cost_usd"]),
        "problem_frontier": _unsolved,
    },
)
attempt_score_checks = checks_of("attempt_scores")
tier_checks = checks_of("tiers")
suite_checks = checks_of("suite_scores")
