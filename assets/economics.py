"""Stage 3, alongside the scores: cost of pass, Pareto-optimal models, and savings from routing to the cheapest.

The formulas belong in `touchstone.metrics.economics` and `touchstone.metrics.routing`.
"""

from assets.common import derived_tables
from assets.metadata import plotted

economics_tables = derived_tables(
    "economics",
    {
        "economics": plotted(["model", "tier"], ["frontier_probability", "pareto_probability"]),
        "routing_policies": plotted(["policy"], ["saving"]),
    },
)
