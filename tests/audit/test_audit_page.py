"""`touchstone audit` and the last section of the report: what a hostile reader would attack first."""

import json
from pathlib import Path

import pytest

from tests.conftest import Command, Folder
from touchstone.publish.report.sections import sections
from touchstone.publish.reported_run import ReportedRun

MODELS = "abcdefghijklmnop"


def benchmark(folder: Path, flipped: int | None = None, undecided: str = "") -> Path:
    """Sixteen models, each better than the one before it, on 24 problems; on the flipped one the worse models pass."""
    for place, model in enumerate(MODELS):
        solved = [(place > problem % 12) != (problem == flipped) for problem in range(24)]
        outcomes = ["" if model == undecided and problem > 20 else str(solved[problem]) for problem in range(24)]
        rows = [f"p{problem:02},1,{outcome}" for problem, outcome in enumerate(outcomes)]
        (folder / f"{model}_fixes.csv").write_text("\n".join(["oid,iteration_id,passed", *rows]) + "\n")
    return folder


def findings(text: str) -> dict[str, str]:
    return {each["part"]: each["finding"] for each in json.loads(text)["findings"]}


@pytest.mark.services
def test_files_of_any_tool_are_audited_and_nothing_is_left_behind(tmp_path: Path, touchstone: Command) -> None:
    seen = touchstone("audit", benchmark(tmp_path)).stdout
    assert "No problem is suspect" in seen and "every attempt was decided" in seen and "nobody overruled" in seen
    assert "Nothing here moves a figure. A hostile reader would ask first about the tests" in " ".join(seen.split())
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv"}


@pytest.mark.services
def test_what_moves_most_is_attacked_first(tmp_path: Path, touchstone: Command) -> None:
    seen = touchstone("audit", "--json", benchmark(tmp_path, 7, undecided="p")).stdout
    found = findings(seen)
    assert found["problems"].startswith("1 problem is suspect: p07.")
    # The best model fails the flipped problem, and 3 of its 24 attempts are undecided: 20 to 23 of 24.
    assert found["undecided attempts"].startswith("3 of 384 attempts; pass@1 of p is between 0.833 and 0.958")
    assert json.loads(seen)["first"].startswith("A hostile reader would attack the ")


def test_the_report_ends_with_it(finished: Folder, touchstone: Command) -> None:
    run = ReportedRun(finished.output)
    last, (table,) = sections(run)[-1]
    said = touchstone("audit", "--data", finished.output, "--json").stdout
    assert last.id == "audit"
    assert [cell.text for row in table.page_rows for cell in row] == [
        text for part in findings(said).items() for text in part
    ]
    assert table.notes == [json.loads(said)["first"]]


def test_a_check_that_failed_the_run_fails_the_audit(evaluated: Folder, touchstone: Command) -> None:
    assert touchstone("audit", "--data", evaluated.output).returncode == 0
    (check, *_) = (evaluated.output / ".store" / "current" / "checks").glob("*.json")
    document = json.loads(check.read_text())
    document["result"] |= {"passed": False, "error": True}
    check.write_text(json.dumps(document))
    assert touchstone("audit", "--data", evaluated.output).returncode == 1


@pytest.mark.parametrize("arguments", [["--data", "nowhere"], ["nowhere"], ["x_fixes.csv", "--data", "y"]])
def test_wrong_use_is_one_line(touchstone: Command, arguments: list[str]) -> None:
    seen = touchstone("audit", *arguments)
    assert (seen.returncode, len(seen.stderr.strip().splitlines())) == (2, 1)
