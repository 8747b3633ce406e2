"""Would the tests notice? Mutants of the reference fix through the real validator, and a suite that was weakened."""

import sys
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Folder
from tests.pipelines.test_retrying import table as csv_text
from tests.pipelines.test_run import evaluate
from tests.validation.test_noise import FAST, table
from touchstone.audit import strength
from touchstone.config import IntervalSettings
from touchstone.evaluation import RunOutcome
from touchstone.publish.report.sections import sections
from touchstone.publish.reported_run import ReportedRun

pytestmark = pytest.mark.services

BROKEN = "def grade(points):\n    return 'pass' if points > 50 else 'fail'\n"
RIGHT = "def grade(points):\n    return 'pass' if points >= 50 else 'fail'\n"
TESTS = "from grade import grade\n\n\ndef test_edge():\n    assert grade(50) == 'pass'\n"
# Without it, 49 may pass and 0 may pass.
BELOW = "\n\ndef test_below():\n    assert grade(49) == 'fail'\n"


# A problem with a command of its own and a patch as its reference fix: the same code, and the same mistakes.
PATCH = """--- a/grade.py
+++ b/grade.py
@@ -1,2 +1,2 @@
 def grade(points):
-    return 'pass' if points > 50 else 'fail'
+    return 'pass' if points >= 50 else 'fail'
"""
COMMAND = f"{sys.executable} -B check.py"
PROGRAM = {"readable": [sys.prefix, sys.base_prefix]}
CHECKED = "from grade import grade\n\nassert [grade(49), grade(50)] == ['fail', 'pass']\n"


def make(root: Path, most: int) -> tuple[Folder, RunOutcome]:
    """Problems with the same fix. One has lost a test, one has no reference fix, one is tested by a command."""
    folder, problems, attempts = Folder(root), [], []
    for oid, tests, *reference in (
        ("tested", TESTS + BELOW, RIGHT, "", ""),
        ("weakened", TESTS, RIGHT, "", ""),
        ("bare", TESTS, "", "", ""),
        ("command", "", "", PATCH, COMMAND),
    ):
        clone = root / "clones" / oid
        clone.mkdir(parents=True)
        (clone / "grade.py").write_text(BROKEN)
        (clone / "check.py").write_text(CHECKED)
        (clone / "test_grade.py").write_text(tests)
        problems.append((oid, "grade.py", oid, *reference))
        attempts.append((oid, 1, RIGHT))
    columns = ("oid", "filename", "working_directory", "reference_fix", "reference_patch", "test_command")
    folder.problems(csv_text(columns, *problems))
    folder.fixes("m", csv_text(("oid", "iteration_id", "fixed_file"), *attempts))
    return configured(folder, most)


def configured(folder: Folder, most: int) -> tuple[Folder, RunOutcome]:
    folder.configure(clones_dir="clones", k_values=[1], validation={**FAST, "command": PROGRAM, "mutants": most})
    return folder, evaluate(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, RunOutcome]:
    return make(tmp_path_factory.mktemp("mutants"), 10)


def test_a_weakened_suite_kills_fewer_mutants(run: tuple[Folder, RunOutcome]) -> None:
    folder, outcome = run
    rows = {row["oid"]: row for row in table(folder, "test_strength").iter_rows(named=True)}
    # >= to <, the condition negated, 50 to 51, 50 to 49, and None; >= to > is the file as it came.
    assert (rows["tested"]["mutants"], rows["tested"]["kill_rate"], rows["tested"]["weak"]) == (5, 1.0, False)
    assert (rows["weakened"]["mutants"], rows["weakened"]["survived"]) == (5, 1)
    assert rows["weakened"]["ci_low"] < rows["weakened"]["kill_rate"] < rows["weakened"]["ci_high"]
    assert (rows["command"]["mutants"], rows["command"]["kill_rate"]) == (5, 1.0)
    assert (rows["bare"]["kill_rate"], rows["bare"]["weak"]) == (None, None)
    assert rows["bare"]["reason"] == "no reference fix"
    assert outcome.exit_code == 0


def test_survivors_are_shown_with_their_mistake(run: tuple[Folder, RunOutcome]) -> None:
    folder, _ = run
    survivors = table(folder, "mutants").filter(pl.col("result") == "survived")
    assert survivors.select("oid", "line", "change").rows() == [("weakened", 2, "50 to 49")]
    assert "+    return 'pass' if points >= 49 else 'fail'" in survivors["diff"][0]
    shown = {section.title: tables for section, tables in sections(ReportedRun(folder.output))}
    _, mistakes = shown["Would the tests notice a wrong fix?"]
    reference = "return 'pass' if points >= 50 else 'fail'"
    assert [cell.text for cell in mistakes.cells()[0]][-2:] == [reference, reference.replace("50", "49")]


@pytest.mark.nightly
def test_the_next_run_validates_nothing_again_and_turning_it_off_changes_no_outcome(
    run: tuple[Folder, RunOutcome],
) -> None:
    folder, first = run
    before = table(folder, "outcomes"), table(folder, "mutants")
    assert evaluate(folder).made < first.made
    assert table(folder, "mutants").equals(before[1])
    _, off = configured(folder, 0)
    assert table(folder, "mutants").is_empty() and table(folder, "test_strength").is_empty()
    varying = ("cached", "duration_seconds")
    assert table(folder, "outcomes").drop(varying).equals(before[0].drop(varying))
    assert {check.name: check.message for check in off.checks}["test_strength.tests_notice"].startswith("off: ")


def judged(results: dict[str, str], statuses: dict[str, str | None]) -> pl.DataFrame:
    """The table from results such as `kks`, by problem, and the statuses of the reference fixes."""
    words = {"k": "killed", "s": "survived", "u": "undecided"}
    mutants = [{"oid": oid, "result": words[one]} for oid, each in results.items() for one in each]
    listed = pl.LazyFrame(mutants, schema={"oid": pl.String, "result": pl.String})
    baselines = pl.LazyFrame({"oid": list(statuses), "reference_status": list(statuses.values())})
    return strength.test_strength(listed, baselines, 10, IntervalSettings()).collect()


def test_kill_rates() -> None:
    found = judged(
        {"third": "kks", "more": "kss", "odd": "kuu", "none": "uu"},
        {"third": "passed", "more": "passed", "odd": "passed", "none": "passed", "text": "passed", "wrong": "failed"},
    )
    rows = {row["oid"]: row for row in found.iter_rows(named=True)}
    # Exactly a third is not more than a third.
    assert {oid: row["weak"] for oid, row in rows.items() if row["kill_rate"] is not None} == {
        "third": False,
        "more": True,
        "odd": False,
    }
    assert (rows["odd"]["kill_rate"], rows["odd"]["undecided"]) == (1.0, 2)
    assert rows["none"]["reason"] == "no mutant was decided"
    assert rows["text"]["reason"].startswith("nothing to change")
    assert rows["wrong"]["reason"] == "the reference fix does not pass: failed"
    check = strength.tests_notice(found.lazy())
    assert (check.passed, check.error, check.figures["weak"]) == (False, False, 1)
    assert check.message == (
        "3 of 6 problems judged; tests killed 57% of the mutants; "
        "the tests of 1 problem let more than a third survive: more (2 of 3)"
    )


def test_a_run_in_which_nothing_could_be_judged_says_why() -> None:
    check = strength.tests_notice(judged({}, {"a": None, "b": "timeout"}).lazy())
    assert check.passed
    assert check.message == "no problem could be judged: no reference fix, the reference fix does not pass: timeout"
