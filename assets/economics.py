"""Stage 3, beside the scores: what a pass costs, who is worth it, and what sending problems to the cheapest saves.

The formulas belong in `touchstone.metrics.economics` and `touchstone.metrics.routing`.
"""

import dagster as dg

from assets.common import plotted, result, tables_in_one_step
from touchstone.evaluation import Evaluation
from touchstone.metrics import economics as metric
from touchstone.metrics import routing as routes

GROUP = "economics"
_READS = ["attempt_scores", "problems"]


def economics_(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """What a pass costs, and how likely each model is the cheapest or one that no other beats."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "economics",
        _READS,
        intervals.model_dump(),
        lambda scores, problems: metric.economics(scores, problems, intervals),
    )
    return result("economics", part, plotted(part, ["model", "tier"], ["frontier_probability", "pareto_probability"]))


def routing(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """The cheapest model for every suite, how sure that is, and the next cheapest."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "routing",
        _READS,
        intervals.model_dump(),
        lambda scores, problems: routes.routing(scores, problems, intervals),
    )
    return result("routing", part)


def routing_policies(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """What choosing the cheapest model per suite or per problem would save, on attempts that did not choose it."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "routing_policies",
        _READS,
        intervals.model_dump(),
        lambda scores, problems: routes.routing_policies(scores, problems, intervals),
    )
    return result("routing_policies", part, plotted(part, ["policy"], ["saving"]))


economics_tables = tables_in_one_step(GROUP, dict.fromkeys([economics_, routing, routing_policies], _READS))
