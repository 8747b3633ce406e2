"""What the screen shows of a run's inputs."""

import io

import polars as pl
from rich.console import Console

from touchstone.cli.input_tables import price_matches, quarantine_table
from touchstone.cli.terminal_tables import FittedTable
from touchstone.ingest.quarantine import SCHEMA


def drawn(table: FittedTable, width: int = 160) -> str:
    written = io.StringIO()
    table.print(Console(file=written, width=width, highlight=False))
    return written.getvalue()


def test_quarantine_is_grouped_by_file_and_kind_with_counts() -> None:
    rows = [("m_fixes.csv", line, "bad_boolean", f"line {line} is wrong", "") for line in range(2, 1502)]
    rows += [("m_fixes.csv", 9000, "ragged", "3 cells where the header has 4", "")]
    rows += [("n_fixes.csv", None, "unreadable_file", "n_fixes.csv: not UTF-8", None)]
    text = drawn(quarantine_table(pl.DataFrame(rows, schema=SCHEMA, orient="row")))
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert lines == [
        ["m_fixes.csv", "bad_boolean", "1,500", "2", "line 2 is wrong"],
        ["m_fixes.csv", "ragged", "1", "9,000", "3 cells where the header has 4"],
        ["n_fixes.csv", "unreadable_file", "all", "-", "n_fixes.csv: not UTF-8"],
    ]
    assert "1,502 in total: SELECT * FROM quarantine" in text


def test_the_price_of_another_name_is_shown() -> None:
    statistics = pl.DataFrame(
        {
            "model": ["claude-opus-4-5-20251101"] * 2 + ["gpt-4o", "free"],
            "tier": ["T0", "T1", "T0", "T0"],
            "priced_as": ["claude-opus-4.5"] * 2 + ["gpt-4o", None],
        }
    )
    assert price_matches(statistics) == ["claude-opus-4-5-20251101 is priced as claude-opus-4.5"]
