"""Stage 3, beside the scores: what a pass costs, which models are worth it, and what routing to the cheapest saves.

The formulas belong in `touchstone.metrics.economics` and `touchstone.metrics.routing`.
"""

from assets.common import derived_tables, plotted

economics_tables = derived_tables(
    "economics",
    {
        "economics": plotted(["model", "tier"], ["frontier_probability", "pareto_probability"]),
        "routing_policies": plotted(["policy"], ["saving"]),
    },
)
