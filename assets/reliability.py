"""Stage 3, alongside the scores: reliability, sources of uncertainty, and how to reduce it.

The formulas belong in `touchstone.metrics.reliability` and `touchstone.metrics.variance`.
"""

from assets.common import derived_tables
from assets.metadata import plotted

reliability_tables = derived_tables(
    "reliability",
    {
        "variance_split": plotted(["model", "tier"], ["standard_error", "share_from_problems"]),
        "reliability": plotted(["model", "tier"], ["flip_rate", "consistency"]),
    },
)
