"""The report on a run: `report.html`, one file that needs nothing else, and Markdown for a pull request.

`summary` says in words what the tables mean, `sections` orders the tables that `touchstone.publish.result_tables`
declares, `cases` picks the attempts to show in full, `page` and `markdown` write the two forms. No figure is computed
here. Charts belong in `touchstone.publish.charts`.
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
    from touchstone.publish.report.markdown import markdown
    from touchstone.publish.reported_run import ReportedRun

    return markdown(ReportedRun(results_folder))
