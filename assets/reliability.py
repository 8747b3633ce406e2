"""Stage 3, beside the scores: how reliable a model is, where the uncertainty comes from, and what would shrink it.

The formulas belong in `touchstone.metrics.reliability` and `touchstone.metrics.variance`.
"""

from assets.common import derived_tables, plotted

reliability_tables = derived_tables(
    "reliability",
    {
        "variance_split": plotted(["model", "tier"], ["standard_error", "share_from_problems"]),
        "reliability": plotted(["model", "tier"], ["flip_rate", "consistency"]),
    },
)
