"""The report as Markdown for a pull request: the paragraph in words, then the most important tables, cut to fit."""

from collections.abc import Iterator

from touchstone.comparison.report import ComparisonReport, case_section, markdown_section
from touchstone.publish import result_tables as tables
from touchstone.publish.report.summary import exploratory, headline, summary, why_they_fail
from touchstone.publish.reported_run import ReportedRun
from touchstone.publish.table_columns import markdown_table
from touchstone.text import markdown_paragraph, markdown_text

# GitHub takes 65,536 characters. Some are left for what surrounds the report.
_MAX_CHARACTERS = 60_000
_MAX_ROWS = 20
_CUT = "… shortened to fit a comment; the whole report is report.html in the output folder."


def markdown(run: ReportedRun) -> str:
    """The report, at most as long as a comment may be."""
    paragraphs = [" ".join(sentences) for sentences in (headline(run), summary(run))]
    blocks = [f"### Touchstone report: {markdown_text(run.name)}", *map(markdown_paragraph, paragraphs)]
    why = [f"- {markdown_text(line)}" for line in why_they_fail(run)]
    blocks += ["\n".join(["Why do they fail?", "", *why])] if why else []
    left = _MAX_CHARACTERS - sum(map(len, blocks))
    for block in filter(None, _tables(run)):
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
        made = declare(run) if is_wanted else ""
        if isinstance(made, str) or len(made.rows):
            yield made if isinstance(made, str) else markdown_table(made, _MAX_ROWS)


def _changed_cases(run: ReportedRun) -> str:
    """As `touchstone compare` writes them."""
    settings = run.settings
    comparison = ComparisonReport(
        "the baseline",
        "this run",
        float(settings.get("comparison.threshold", 0.05)),
        str(settings.get("comparison.score", "auto")),
        run.table("regressions"),
    )
    changed = case_section(comparison)
    return markdown_section(changed) if changed.rows else ""
