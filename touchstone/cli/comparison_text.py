"""The report of `touchstone compare` as text: on a terminal, and in a file.

What the report says belongs in `touchstone.compare.report`, which also writes the formats for programs.
"""

import io

from rich.console import Console
from rich.text import Text

from touchstone.cli.fitted_table import UNLIMITED, FittedTable, SafeConsole, names, numbers, print_line, terminal
from touchstone.compare.report import ComparisonReport, Section, count_line, inputs_line, sections
from touchstone.text import visible

_STYLES = {"Regressions": "bold red", "Lost cases": "bold red", "Improvements": "bold green"}


def show_comparison(report: ComparisonReport, console: Console | None = None) -> None:
    """Print the report; tables are fitted to the width of the console."""
    console = console or terminal()
    for line in report.verdict_lines:
        print_line(console, line, "bold")
    print_line(console, count_line(report))
    print_line(console, inputs_line(report), "dim")
    for line in report.notes:
        print_line(console, line)
    for section in sections(report):
        console.print()
        console.print(Text(section.title, style=_STYLES.get(section.title, "bold")))
        _table(section).print(console)


def comparison_text(report: ComparisonReport) -> str:
    """The report as plain text of unlimited width, for a file."""
    out = io.StringIO()
    show_comparison(report, SafeConsole(out, width=UNLIMITED, color_system=None))
    return out.getvalue()


def _table(section: Section) -> FittedTable:
    columns = [*names(*section.names), *numbers(*section.numbers)]
    more = f"… and {section.more:,} more" if section.more else ""
    table = FittedTable(columns, caption=more, keep_figures=True)
    for row in section.rows:
        # A line break in a name is shown as \n, not as a second line of the cell.
        table.add_row(*map(visible, row))
    return table
