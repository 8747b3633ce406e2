"""Stage 3, beside the scores: what a pass costs, who is worth it, and what sending problems to the cheapest saves.

The formulas belong in `touchstone.metrics.economics` and `touchstone.metrics.routing`.
"""

import dagster as dg

from assets.common import EvaluationParam, plotted, result, table_metadata
from assets.ingest import problems
from assets.scores import attempt_scores
from touchstone.metrics import economics as metric
from touchstone.metrics import routing as routes

GROUP = "economics"
_READS = ["attempt_scores", "problems"]


@dg.asset(
    name="economics",
    group_name=GROUP,
    kinds={"polars"},
    deps=[attempt_scores, problems],
    metadata=table_metadata("economics"),
)
def economics_(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """What a pass costs, and how likely each model is the cheapest or one that no other beats."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "economics",
        _READS,
        intervals.model_dump(),
        lambda scores, problems: metric.economics(scores, problems, intervals),
    )
    return result("economics", part, plotted(part, ["model", "tier"], ["frontier_probability", "pareto_probability"]))


@dg.asset(group_name=GROUP, kinds={"polars"}, deps=[attempt_scores, problems], metadata=table_metadata("routing"))
def routing(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """The cheapest model for every suite, how sure that is, and the next cheapest."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "routing",
        _READS,
        intervals.model_dump(),
        lambda scores, problems: routes.routing(scores, problems, intervals),
    )
    return result("routing", part)


@dg.asset(
    group_name=GROUP, kinds={"polars"}, deps=[attempt_scores, problems], metadata=table_metadata("routing_policies")
)
def routing_policies(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """What choosing the cheapest model per suite or per problem would save, on attempts that did not choose it."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "routing_policies",
        _READS,
        intervals.model_dump(),
        lambda scores, problems: routes.routing_policies(scores, problems, intervals),
    )
    return result("routing_policies", part, plotted(part, ["policy"], ["saving"]))
