"""The report on a run: `report.html`, one file that needs nothing else, Markdown for a pull request, tables in LaTeX.

`summary` says in words what the tables mean, `sections` orders the tables that `touchstone.publish.result_tables`
declares and writes them as Markdown, `cases` picks the attempts to show in full, `page` writes the page. No figure is
computed here. Charts belong in `touchstone.publish.charts`.
"""

from pathlib import Path

DEFAULT_CASES_KB = 500


def report_html(results_folder: Path, cases_kb: int = DEFAULT_CASES_KB) -> str:
    """The report on the run in a folder that has `tables`; attempts shown in full take at most `cases_kb`."""
    from touchstone.publish.report.page import page
    from touchstone.publish.reported_run import ReportedRun

    return page(ReportedRun(results_folder), cases_kb * 1000)


def report_markdown(results_folder: Path) -> str:
    """The report as Markdown that fits the comment of a pull request."""
    from touchstone.publish.report.sections import markdown
    from touchstone.publish.reported_run import ReportedRun

    return markdown(ReportedRun(results_folder))


def report_latex(results_folder: Path) -> str:
    """The tables of the report as LaTeX for a paper."""
    from touchstone.publish.report.sections import sections
    from touchstone.publish.reported_run import ReportedRun
    from touchstone.tables.presentation import latex

    return "\n".join(latex(table) for _, tables in sections(ReportedRun(results_folder)) for table in tables)
