"""What the screen shows of a run's inputs."""

import io
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from tests.ingest.adapters.inspect_files import SPEC, header, scored, write_json
from touchstone.cli.run_tables import price_matches, quarantine_table, show_recognized
from touchstone.cli.terminal_tables import show_table
from touchstone.config import EvaluationConfig
from touchstone.ingest.discovery import discover
from touchstone.ingest.quarantine import SCHEMA
from touchstone.ingest.recognized import recognized_sources
from touchstone.tables.presentation import ResultTable


def drawn(table: ResultTable, width: int = 160) -> str:
    written = io.StringIO()
    show_table(Console(file=written, width=width, highlight=False), table, 30, compact=False)
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


@pytest.mark.parametrize(
    ("tasks", "lines"),
    [
        (
            2,
            [
                [f"m{model}", f"t{task}", "2", "6", f"m{model}t{task}r0.json and 2 more"]
                for model in "01"
                for task in "01"
            ],
        ),
        (6, [[m, "6", "12", "36", f"{m}t0r0.json and 17 more"] for m in ("m0", "m1")]),
    ],
)
def test_many_files_are_shown_by_model_and_task(tmp_path: Path, tasks: int, lines: list[list[str]]) -> None:
    """Two models, and three runs of each task with the same two problems; 36 files are shown by model."""
    for name in (f"m{model}t{task}r{run}" for model in range(2) for task in range(tasks) for run in range(3)):
        spec = SPEC | {"model": name[:2], "task": name[2:4], "run_id": name}
        write_json(tmp_path / f"{name}.json", [scored("C", id=each) for each in "ab"], header(eval=spec))
    (tmp_path / "n_fixes.csv").write_text("oid,iteration_id,passed\na,1,true\n")
    for name in range(12):
        (tmp_path / f"{name}.json").write_text("{}")
    config = EvaluationConfig(fixes_dir=tmp_path, output_dir=tmp_path / "out")
    found, written = discover(config), io.StringIO()
    screen = Console(file=written, width=160, highlight=False)
    show_recognized(screen, recognized_sources(found, config), found, with_notes=False)
    text = written.getvalue()
    shown = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert shown == [*lines, ["n", "" if tasks == 2 else "0", "1", "1", "n_fixes.csv"]]
    assert f"recognized: {6 * tasks + 1} files" in text
    assert text.count("not evaluated:") == 1 and "not evaluated: 0.json and 11 other files (" in text
