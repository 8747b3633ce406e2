"""The sections of the report: which tables and charts there are, in which order, and what introduces them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from touchstone.publish.report import comparison_sections as comparisons
from touchstone.publish.report import figures_sections as figures
from touchstone.publish.report import trust_sections as trust
from touchstone.publish.report.grids import Grid
from touchstone.publish.report.run import ReportedRun


@dataclass(frozen=True)
class Section:
    """A part of the report. `charts` are names in `touchstone.publish.charts`; the tables say the same in figures."""

    id: str
    title: str
    intro: str
    grids: Sequence[Grid]
    charts: Sequence[str] = field(default=())


@dataclass(frozen=True)
class _Plan:
    id: str
    title: str
    intro: str
    grids: Callable[[ReportedRun], Iterator[Grid]]
    charts: tuple[str, ...] = ()


_PLANS = (
    _Plan(
        "leaderboard",
        "Leaderboard",
        "pass@k is the chance that at least one of k attempts at a problem passes: the mean over problems, with its "
        "confidence interval in brackets. Choose a model to see its problems.",
        figures.leaderboard,
        ("leaderboard",),
    ),
    _Plan(
        "reliability",
        "Reliability",
        "pass^k is the chance that all of k attempts pass. A problem flips if some attempts pass and others fail.",
        figures.reliability,
        ("pass_at_k_curves", "pass_hat_k", "variance_split"),
    ),
    _Plan(
        "tiers",
        "Tiers",
        "Grade of the median composite score, and uplift against the same model's baseline tier. Cliff's delta is +1 "
        "if every attempt scores above every one of the baseline tier, and 0 if neither has the higher scores.",
        figures.tiers,
        ("tier_uplift",),
    ),
    _Plan(
        "suites",
        "Suites",
        "Mean accuracy per suite. The overall score is the unweighted mean over suites.",
        figures.suites,
        ("suite_heatmap", "failure_classes"),
    ),
    _Plan(
        "statistics",
        "Code",
        "What the attempts' code does: whether it compiles, the share of tests that pass, lint, and the code score.",
        figures.statistics,
    ),
    _Plan("slices", "Slices", "pass@1 for each value of a problem's column.", figures.slices, ("slices",)),
    _Plan(
        "costs",
        "Costs",
        "Cost of pass is the mean cost of an attempt divided by the pass rate: what one working fix costs.",
        figures.costs,
        ("cost_quality",),
    ),
    _Plan(
        "comparison",
        "Pairwise comparison",
        "Both sides attempt the same problems, so the difference is taken within each problem. The verdict is on the "
        "first of the two.",
        comparisons.comparison,
        ("pairwise_verdicts",),
    ),
    _Plan(
        "changes",
        "Changes against the baseline",
        "This run against the snapshot that is pinned as its baseline.",
        comparisons.changes,
        ("history",),
    ),
    _Plan(
        "problems",
        "Hardest and flakiest problems",
        "The hardest first. Noise is highest where attempts of the same model disagree most.",
        trust.problems,
        ("problem_heatmap",),
    ),
    _Plan(
        "outcomes",
        "Outcomes",
        "How attempts ended and what decided it.",
        trust.outcomes,
        ("outcome_funnel",),
    ),
    _Plan(
        "checks",
        "Checks, gates and quarantine",
        "A failed gate keeps a run from being published; any other check warns or fails the run.",
        trust.checks,
    ),
)


def sections(run: ReportedRun) -> list[Section]:
    """The sections that this run has something for."""
    made = [Section(plan.id, plan.title, plan.intro, list(plan.grids(run)), plan.charts) for plan in _PLANS]
    return [section for section in made if section.grids]
