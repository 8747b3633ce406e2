"""Statistics of code and across tiers: shown on the terminal and in the report if the data have them, else not."""

import json
from pathlib import Path

import pytest

from tests.conftest import PROJECT, Command, Folder
from tests.pipelines.test_every_format import forgetest_result
from touchstone.publish.report.sections import sections
from touchstone.publish.reported_run import ReportedRun
from touchstone.publish.result_tables import CROSS_TIER_SENTENCES

pytestmark = pytest.mark.services


def shown_in_report(results: Path) -> dict[str, list[list[str]]]:
    """The rows of every table of the report."""
    tables = [table for _, tables in sections(ReportedRun(results)) for table in tables]
    return {table.id: [[cell.text for cell in row] for row in table.page_rows] for table in tables}


def rows_after(text: str, title: str) -> list[list[str]]:
    """The rows of the table on the terminal that has this title."""
    table = text.partition(title)[2].partition("└")[0]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in table.splitlines() if line[:1] == "│"]


def test_forgetest_statistics_per_model_and_case(tmp_path: Path, touchstone: Command) -> None:
    results = [
        forgetest_result("fib", 1, 3, 0),
        forgetest_result("fib", 2, 1, 2),
        forgetest_result("pal", 1, 0, 0, False),
    ]
    (tmp_path / "report.json").write_text(json.dumps({"results": results}))
    seen = touchstone("run", tmp_path).stdout
    (model,) = rows_after(seen, "code, cost and latency")
    assert [cell.partition(" [")[0] for cell in model] == [
        "openai/gpt-4o", "T0", "0.667", "0.667", "0.800", "0.542", "$0.0300", "900 ms",
    ]  # fmt: skip
    cases = rows_after(seen, "code score and pass@k per problem")
    assert cases == [
        ["fib", "openai/gpt-4o", "T0", "0.813", "0.980", "0.500", "1.000", "1 of 2"],
        ["pal", "openai/gpt-4o", "T0", "0.000", "0.000", "0.000", "-", "0 of 1"],
    ]
    assert "grade" not in seen and "across tiers" not in seen
    page = shown_in_report(tmp_path / "touchstone-results")
    assert [cell.partition(" [")[0] for cell in page["statistics-table"][0]] == [
        "openai/gpt-4o", "0.667", "0.667", "0.800", "0.542", "$0.0300", "900 ms",
    ]  # fmt: skip
    assert page["problem-statistics-table"][0] == ["fib", "openai/gpt-4o", "0.813", "0.980", "0.500", "1.000", "1 of 2"]


def test_tiers_and_what_they_differ_in(touchstone: Command, tmp_path: Path) -> None:
    source = PROJECT / "tests" / "seeds" / "projectscylla"
    seen = touchstone("run", source, "--output-dir", tmp_path / "out").stdout
    (across,) = rows_after(seen, "across tiers")
    # Medians: pass rates .5 and 1, composites .583 and .979, costs $.11 and $.21.
    assert across == ["claude-sonnet-4-5-20250929", "2", "0.0625", "0.0625", "0.0392", "0.00250", "$0.1000"]
    assert all(sentence in seen for sentence in CROSS_TIER_SENTENCES)
    tiers = rows_after(seen, "tiers: grade")
    assert [row[6] for row in tiers] == ["+0.750", "+0.000"], "the best first"
    page = shown_in_report(tmp_path / "out")
    assert page["cross-tier-table"] == [across]
    assert [[cell.strip() for cell in row] for row in page["tiers-table"]] == tiers


def test_no_table_without_its_data(folder: Folder, touchstone: Command) -> None:
    folder.configure(k_values=[1])
    seen = touchstone("run", "--config", folder.config).stdout
    assert "pass@k: mean over problems" in seen
    assert not any(title in seen for title in ("tiers:", "across tiers", "code", "cost and latency"))
    assert not {"tiers-table", "cross-tier-table", "statistics-table"} & set(shown_in_report(folder.output))
