"""Stage 3, beside the scores: how reliable a model is, where the uncertainty comes from, and what would shrink it.

The formulas belong in `touchstone.metrics.reliability` and `touchstone.metrics.variance`.
"""

from collections.abc import Callable

import dagster as dg
import polars as pl

from assets.common import plotted, result, tables_in_one_step
from touchstone.evaluation import Evaluation
from touchstone.metrics import reliability as metric
from touchstone.metrics import variance
from touchstone.storage.store import Part

GROUP = "reliability"
_READS = ["problem_pass_at_k", "problems"]


def reliability_(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """Flip rate and consistency: whether attempts at the same problem end alike."""
    part = _refreshed(evaluation, "reliability", metric.reliability, evaluation.config.intervals)
    return result("reliability", part, plotted(part, ["model", "tier"], ["flip_rate", "consistency"]))


def reliability_curve(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """pass@k and pass^k as k grows: one success among k, and all of k."""
    part = _refreshed(evaluation, "reliability_curve", metric.reliability_curve, evaluation.config.intervals)
    return result("reliability_curve", part)


def variance_split(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """How much of the uncertainty of pass@1 comes from the problems, and how much from the attempts."""
    part = _refreshed(evaluation, "variance_split", variance.variance_split)
    return result("variance_split", part, plotted(part, ["model", "tier"], ["standard_error", "share_from_problems"]))


def next_samples(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """What more problems or more samples would bring: the interval's expected width, and the cost."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "next_samples",
        ["variance_split", "attempt_scores"],
        intervals.model_dump(),
        lambda split, scores: variance.next_samples(split, scores, intervals),
    )
    return result("next_samples", part)


def _refreshed(evaluation: Evaluation, table: str, make: Callable[..., pl.LazyFrame], *settings: object) -> Part:
    return evaluation.refresh(table, _READS, settings, lambda *read: make(*read, *settings))


reliability_tables = tables_in_one_step(
    GROUP,
    {
        reliability_: _READS,
        reliability_curve: _READS,
        variance_split: _READS,
        next_samples: ["variance_split", "attempt_scores"],
    },
)
