"""The sections of the report: which tables and charts there are, in which order, and what introduces them.

As Markdown for a pull request: the paragraphs in words, then the most important tables, cut to fit.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from touchstone.comparison.report import ComparisonReport, case_table
from touchstone.publish import result_tables as tables
from touchstone.publish.audit import audit_table
from touchstone.publish.report.summary import exploratory, headline, summary, why_they_fail
from touchstone.publish.reported_run import ReportedRun
from touchstone.tables.presentation import ResultTable, markdown_table
from touchstone.text import markdown_paragraph, markdown_text


@dataclass(frozen=True)
class Section:
    """A part of the report. `charts` are names in `touchstone.publish.charts`; the tables say the same in figures."""

    id: str
    title: str
    intro: str
    declared: tuple[Callable[[ReportedRun], ResultTable], ...]
    charts: tuple[str, ...] = ()


SECTIONS = (
    Section(
        "leaderboard",
        "Leaderboard",
        "pass@k is the chance that at least one of k attempts at a problem passes: the mean over problems, with its "
        "confidence interval in brackets. Choose a model to see its problems.",
        (tables.leaderboard,),
        ("leaderboard",),
    ),
    Section(
        "gates",
        "Gates",
        "A gate holds if every value in the figure's confidence interval satisfies it, and failed if none does; "
        "otherwise the data cannot tell.",
        (tables.gate_results,),
    ),
    Section(
        "reliability",
        "Reliability",
        "pass^k is the chance that all of k attempts pass. A problem flips if some attempts pass and others fail.",
        (tables.reliability, tables.reliability_curve),
        ("pass_at_k_curves", "pass_hat_k", "variance_split"),
    ),
    Section(
        "tiers",
        "Tiers",
        "Grade of the median composite score, and uplift against the same model's baseline tier. Cliff's delta is +1 "
        "if every attempt scores above every one of the baseline tier, and 0 if neither has the higher scores.",
        (tables.graded_tiers, tables.cross_tier),
        ("tier_uplift",),
    ),
    Section(
        "suites",
        "Suites",
        "Mean accuracy per suite. The overall score is the unweighted mean over suites.",
        (tables.suites, tables.classes),
        ("suite_heatmap", "failure_classes"),
    ),
    Section(
        "statistics",
        "Code",
        "What the attempts' code does: whether it compiles, the share of tests that pass, lint, and the code score.",
        (tables.code_statistics, tables.problem_statistics),
    ),
    Section("slices", "Slices", "pass@1 for each value of a problem's column.", (tables.slices,), ("slices",)),
    Section(
        "factors",
        "Factors",
        "pass@1 at each level of a column of the attempts, and what a level changes within problems that have both.",
        (tables.factors, tables.factor_effects),
    ),
    Section(
        "costs",
        "Costs",
        "Cost of pass is the mean cost of an attempt divided by the pass rate: what one working fix costs.",
        (tables.costs, tables.budgets, tables.prices, tables.routing),
        ("cost_quality", "budget_curves"),
    ),
    Section(
        "comparison",
        "Pairwise comparison",
        "Both sides attempt the same problems, so the difference is taken within each problem. The verdict is on the "
        "first of the two.",
        (tables.pairs,),
        ("pairwise_verdicts",),
    ),
    Section(
        "changes",
        "Changes against the baseline",
        "This run against the snapshot that is pinned as its baseline.",
        (tables.baseline_verdicts, tables.regressions),
    ),
    Section(
        "trends",
        "Over time",
        "Every snapshot of this evaluation. A change is shown once it cannot be chance: of all lines together, at most "
        "one in 365 snapshots is a false alarm.",
        (tables.change_points, tables.trends),
        ("history",),
    ),
    Section(
        "comparability",
        "Were the two sides comparable?",
        "A comparison is exploratory if its sides differ in a dimension in which they must agree. Unknown is what not "
        "both sides state; it does not count as a difference.",
        (tables.comparability,),
    ),
    Section(
        "plan",
        "Was it planned?",
        "What a plan fixed before the results were known, and what was done.",
        (tables.registered_plan,),
    ),
    Section(
        "problems",
        "Hardest and flakiest problems",
        "The hardest first. Noise is highest where attempts of the same model disagree most.",
        (tables.problems, tables.flaky_tests),
        ("problem_heatmap",),
    ),
    Section(
        "problem-audit",
        "Can the problems be trusted?",
        "A sound problem is passed more often by better models. Discrimination is Kendall's tau-b between its pass "
        "rate per model and the models' pass@1 on all other problems; if negative, better models fail more often. "
        "A suspect is a problem to read, not a proof.",
        (tables.problem_verdicts, tables.audited_problems, tables.audited_leaderboard),
        ("problem_discrimination",),
    ),
    Section("outcomes", "Outcomes", "How attempts ended and what decided it.", (tables.outcomes,), ("outcome_funnel",)),
    Section(
        "failures",
        "Why do they fail?",
        "Failed attempts by the first reason that their diagnostics give, without what varies between failures of one "
        "kind. New and gone modes may be chance; grown and shrunk ones are significant (Holm).",
        (tables.failure_modes,),
    ),
    Section(
        "pass_audit",
        "Were the passes earned?",
        "Fixes and transcripts are searched for signs that a pass was not earned. No flag changes a verdict: beside "
        "pass@k is what it would be if every pass with a flag of severity high had failed.",
        (tables.pass_audit, tables.audit_flags),
    ),
    Section(
        "readings",
        "Rulings and undecided attempts",
        "The ruling of a person counts in place of the measured outcome. An undecided attempt counts neither way; here "
        "is what the figures would be if all of them had failed, or passed, and without any ruling.",
        (tables.rulings, tables.readings, tables.verdict_readings),
    ),
    Section(
        "test-strength",
        "Would the tests notice a wrong fix?",
        "Each mutant is the reference fix with one mistake, which the tests should reject. One that passes shows a "
        "mistake that no test notices, or means the same as the reference fix, which only a reader can tell.",
        (tables.test_strength, tables.surviving_mutants),
    ),
    Section(
        "contamination",
        "Had the model seen the answer?",
        "A model that has seen the answers does better on problems from before its training cutoff, and its fixes "
        "resemble the reference fix. Neither is a proof: older problems may be easier, and all right fixes are alike.",
        (tables.contamination, tables.reference_overlap),
    ),
    Section(
        "checks",
        "Checks, gates and quarantine",
        "A failed gate keeps a run from being published; any other check warns or fails the run.",
        (tables.checks, tables.quarantine),
    ),
    Section(
        "audit",
        "What would a hostile reader attack?",
        "The answers to the questions that a figure has to survive; the command touchstone audit prints the same.",
        (audit_table,),
    ),
)


def sections(run: ReportedRun, wanted: Iterable[Section] = SECTIONS) -> list[tuple[Section, list[ResultTable]]]:
    """The sections that this run has something for, with their tables."""
    made = [(section, [declare(run) for declare in section.declared]) for section in wanted]
    filled = [(section, [table for table in tables if len(table.rows)]) for section, tables in made]
    return [(section, tables) for section, tables in filled if tables]


# GitHub takes 65,536 characters. Some are left for what surrounds the report.
_MAX_CHARACTERS = 60_000
# The cases that changed are cut by their kinds.
_MAX_ROWS, _MAX_CASES = 20, 1_000
_CUT = "… shortened to fit a comment; the whole report is report.html in the output folder."


def markdown(run: ReportedRun) -> str:
    """The report, at most as long as a comment may be."""
    paragraphs = [" ".join(sentences) for sentences in (headline(run), summary(run))]
    blocks = [f"### Touchstone report: {markdown_text(run.name)}", *map(markdown_paragraph, paragraphs)]
    why = [f"- {markdown_text(line)}" for line in why_they_fail(run)]
    blocks += ["\n".join(["Why do they fail?", "", *why])] if why else []
    left = _MAX_CHARACTERS - sum(map(len, blocks))
    for block in _tables(run):
        if len(block) > left:
            blocks.append(_CUT)
            break
        blocks.append(block)
        left -= len(block) + 2
    return ("\n\n".join(blocks) + "\n").encode("utf-8", "replace").decode()


def _tables(run: ReportedRun) -> Iterator[str]:
    """The tables in Markdown, the most important first."""
    for declare, is_wanted in (
        (tables.leaderboard, True),
        (tables.gate_results, True),
        (tables.checks, any(not check.passed for check in run.checks)),
        (tables.comparability, any(exploratory(run))),
        (tables.registered_plan, True),
        (tables.baseline_verdicts, True),
        (_changed_cases, True),
        (tables.pairs, True),
        (tables.rulings, True),
        (tables.readings, True),
        (tables.graded_tiers, run.has_tiers),
        (tables.cross_tier, run.has_tiers),
        (tables.suites, True),
        (tables.costs, True),
        (tables.routing, True),
    ):
        made = declare(run) if is_wanted else None
        if made is not None and len(made.rows):
            yield markdown_table(made, _MAX_CASES if declare is _changed_cases else _MAX_ROWS)


def _changed_cases(run: ReportedRun) -> ResultTable:
    """As `touchstone compare` writes them."""
    settings = run.settings
    threshold, score = settings.get("comparison.threshold", 0.05), settings.get("comparison.score", "auto")
    return case_table(ComparisonReport("the baseline", "this run", threshold, score, run.table("regressions")))
