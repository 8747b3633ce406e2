"""Stage 3, beside the scores: how reliable a model is, where the uncertainty comes from, and what would shrink it.

The formulas belong in `touchstone.metrics.reliability` and `touchstone.metrics.variance`.
"""

import dagster as dg

from assets.common import EvaluationParam, plotted, result, table_metadata
from assets.ingest import problems
from assets.metrics import problem_pass_at_k
from assets.scores import attempt_scores
from touchstone.metrics import reliability as metric
from touchstone.metrics import variance
from touchstone.metrics.pass_at_k import problem_counts

GROUP = "reliability"
_READS = ["problem_pass_at_k", "problems"]


@dg.asset(
    name="reliability",
    group_name=GROUP,
    kinds={"polars"},
    deps=[problem_pass_at_k, problems],
    metadata=table_metadata("reliability"),
)
def reliability_(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Flip rate and consistency: whether attempts at the same problem end alike."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "reliability",
        _READS,
        intervals.model_dump(),
        lambda figures, problems: metric.reliability(problem_counts(figures), problems, intervals),
    )
    return result("reliability", part, plotted(part, ["model", "tier"], ["flip_rate", "consistency"]))


@dg.asset(
    group_name=GROUP,
    kinds={"polars"},
    deps=[problem_pass_at_k, problems],
    metadata=table_metadata("reliability_curve"),
)
def reliability_curve(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """pass@k and pass^k as k grows: one success among k, and all of k."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "reliability_curve",
        _READS,
        intervals.model_dump(),
        lambda figures, problems: metric.reliability_curve(problem_counts(figures), problems, intervals),
    )
    return result("reliability_curve", part)


@dg.asset(
    group_name=GROUP, kinds={"polars"}, deps=[problem_pass_at_k, problems], metadata=table_metadata("variance_split")
)
def variance_split(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """How much of the uncertainty of pass@1 comes from the problems, and how much from the attempts."""
    part = evaluation.refresh(
        "variance_split",
        _READS,
        None,
        lambda figures, problems: variance.variance_split(problem_counts(figures), problems),
    )
    return result("variance_split", part, plotted(part, ["model", "tier"], ["standard_error", "share_from_problems"]))


@dg.asset(
    group_name=GROUP, kinds={"polars"}, deps=[variance_split, attempt_scores], metadata=table_metadata("next_samples")
)
def next_samples(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """What more problems or more samples would bring: the interval's expected width, and the cost."""
    intervals = evaluation.config.intervals
    part = evaluation.refresh(
        "next_samples",
        ["variance_split", "attempt_scores"],
        intervals.model_dump(),
        lambda split, scores: variance.next_samples(split, scores, intervals),
    )
    return result("next_samples", part)
