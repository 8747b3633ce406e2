"""Stage 3, beside the scores: what a pass costs, who is worth it, and what sending problems to the cheapest saves.

The formulas belong in `touchstone.metrics.economics` and `touchstone.metrics.routing`.
"""

from collections.abc import Callable

import dagster as dg
import polars as pl

from assets.common import plotted, result, tables_in_one_step
from touchstone.evaluation import Evaluation
from touchstone.metrics import economics as metric
from touchstone.metrics import routing as routes
from touchstone.storage.store import Part

GROUP = "economics"
_READS = ["attempt_scores", "problems"]


def economics_(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """What a pass costs, and how likely each model is the cheapest or one that no other beats."""
    part = _refreshed(evaluation, "economics", metric.economics)
    return result("economics", part, plotted(part, ["model", "tier"], ["frontier_probability", "pareto_probability"]))


def routing(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """The cheapest model for every suite, how sure that is, and the next cheapest."""
    return result("routing", _refreshed(evaluation, "routing", routes.routing))


def routing_policies(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """What choosing the cheapest model per suite or per problem would save, on attempts that did not choose it."""
    part = _refreshed(evaluation, "routing_policies", routes.routing_policies)
    return result("routing_policies", part, plotted(part, ["policy"], ["saving"]))


def _refreshed(evaluation: Evaluation, table: str, make: Callable[..., pl.LazyFrame]) -> Part:
    intervals = evaluation.config.intervals
    return evaluation.refresh(table, _READS, intervals.model_dump(), lambda *read: make(*read, intervals))


economics_tables = tables_in_one_step(GROUP, dict.fromkeys([economics_, routing, routing_policies], _READS))
