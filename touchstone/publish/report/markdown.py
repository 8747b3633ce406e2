"""The report as Markdown for a pull request: the paragraph in words, then the most important tables, cut to fit."""

from collections.abc import Iterator, Sequence

from touchstone.compare.report import ComparisonReport, Section, case_section, markdown_section
from touchstone.publish.report import comparison_sections, figures_sections, trust_sections
from touchstone.publish.report.grids import Grid
from touchstone.publish.report.run import ReportedRun
from touchstone.publish.report.summary import headline, summary
from touchstone.text import markdown_paragraph, markdown_text

# GitHub takes 65,536 characters. Some are left for what surrounds the report.
_MAX_CHARACTERS = 60_000
_MAX_ROWS = 20
_CUT = "… shortened to fit a comment; the whole report is report.html in the output folder."


def markdown(run: ReportedRun) -> str:
    """The report, at most as long as a comment may be."""
    paragraphs = [" ".join(sentences) for sentences in (headline(run), summary(run))]
    blocks = [f"### Touchstone report: {markdown_text(run.name)}", *map(markdown_paragraph, paragraphs)]
    left = _MAX_CHARACTERS - sum(map(len, blocks))
    for section in _sections(run):
        block = markdown_section(section)
        if len(block) > left:
            blocks.append(_CUT)
            break
        blocks.append(block)
        left -= len(block) + 2
    return ("\n\n".join(blocks) + "\n").encode("utf-8", "replace").decode()


def _sections(run: ReportedRun) -> Iterator[Section]:
    """The tables, the most important first."""
    yield from map(_section, figures_sections.leaderboard(run))
    yield from (_section(each) for each in trust_sections.checks(run) if each.id == "checks-table" and _failed(run))
    yield from (_section(each) for each in comparison_sections.changes(run) if each.id == "verdicts-table")
    yield from _changed_cases(run)
    yield from map(_section, comparison_sections.comparison(run))
    yield from (_section(each) for each in figures_sections.tiers(run) if run.has_tiers)
    yield from (_section(each) for each in figures_sections.suites(run) if each.id == "suites-table")
    yield from map(_section, figures_sections.costs(run))


def _failed(run: ReportedRun) -> bool:
    return any(not check.passed for check in run.checks)


def _changed_cases(run: ReportedRun) -> Iterator[Section]:
    settings = run.settings
    comparison = ComparisonReport(
        "the baseline",
        "this run",
        float(settings.get("comparison.threshold", 0.05)),
        str(settings.get("comparison.score", "best")),
        run.table("regressions"),
    )
    changed = case_section(comparison)
    yield from [changed] if changed.rows else []


def _section(grid: Grid) -> Section:
    """A table of the page as one of Markdown: the columns of names come first there too."""
    rows = [[cell.text for cell in row] for row in grid.rows[:_MAX_ROWS]]
    titles = [column.title for column in grid.columns]
    kinds = ["number" if column.kind == "number" else "name" for column in grid.columns]
    order = sorted(range(len(kinds)), key=lambda place: kinds[place] == "number")
    return Section(
        grid.caption,
        [titles[place] for place in order if kinds[place] == "name"],
        [titles[place] for place in order if kinds[place] == "number"],
        [_ordered(row, order) for row in rows],
        grid.total - len(rows),
    )


def _ordered(row: Sequence[str], order: Sequence[int]) -> list[str]:
    return [row[place] for place in order]
