"""The functions that draw the charts, by the chart's name: each takes the frame of the chart's table."""

from collections.abc import Callable, Mapping
from typing import Any

from touchstone.publish.charts.bars import outcome_funnel, variance_split
from touchstone.publish.charts.comparison import pairwise_verdicts
from touchstone.publish.charts.dots import leaderboard, tier_uplift
from touchstone.publish.charts.economics import budget_curves, cost_quality
from touchstone.publish.charts.heatmaps import failure_classes, problem_heatmap, suite_heatmap
from touchstone.publish.charts.lines import history, pass_at_k_curves, pass_hat_k
from touchstone.publish.charts.problems import problem_discrimination
from touchstone.publish.charts.slices import slices

DRAW: Mapping[str, Callable[..., dict[str, Any]]] = {
    "leaderboard": leaderboard,
    "pass_at_k_curves": pass_at_k_curves,
    "pass_hat_k": pass_hat_k,
    "cost_quality": cost_quality,
    "budget_curves": budget_curves,
    "tier_uplift": tier_uplift,
    "suite_heatmap": suite_heatmap,
    "problem_heatmap": problem_heatmap,
    "outcome_funnel": outcome_funnel,
    "failure_classes": failure_classes,
    "variance_split": variance_split,
    "pairwise_verdicts": pairwise_verdicts,
    "history": history,
    "slices": slices,
    "problem_discrimination": problem_discrimination,
}
