"""Outcome rows: reference fixes are validated under the configured success rule, and again if they change."""

import json
from pathlib import Path

import pytest

from tests.conftest import Folder
from tests.pipelines.test_retrying import evaluation_of, table, validate
from tests.validation.validators.support import tree_of
from touchstone.config.validation import ValidationSettings
from touchstone.validation.files.working_copy import HashedTree
from touchstone.validation.fixes.apply_fix import AppliedFix
from touchstone.validation.outcomes import fix_columns, problem_file_rows
from touchstone.validation.protocol import Diagnostic, NoTarget, Problem, Report, Tree
from touchstone.validation.targets import Target
from touchstone.vocabulary import Success

# What these rules need is an error in its place; Terraform itself takes ten times as long to find it.
STATIC = {"validators": {"terraform": "hcl"}, "workers": 1}


@pytest.mark.parametrize(("success", "status"), [("plausible", "passed"), ("clean", "failed")])
def test_a_reference_fix_follows_the_configured_success_rule(tmp_path: Path, success: Success, status: str) -> None:
    """The module has a second error, in another block, that the reference fix does not touch."""
    folder = Folder(tmp_path)
    first, second = 'output "a" {\n  value = var.a\n}\n', 'output "b" {\n  value = var.b\n}\n'
    tree_of(tmp_path / "clones" / "net", {"main.tf": first + second})
    fixed = first.replace("var.a", "1") + second
    header = ("oid", "filename", "working_directory", "line_start", "line_end", "reference_fix")
    folder.problems(table(header, ("p", "main.tf", "net", 1, 3, fixed)))
    folder.fixes("m", table(("oid", "iteration_id", "fixed_file"), ("p", "0", fixed)))
    folder.configure(clones_dir="clones", k_values=[1], validation={"success": success, **STATIC})
    problem, outcomes = validate(folder)
    assert (problem["reference_status"], outcomes["0"]) == (status, status)


def test_a_corrected_problem_is_judged_anew(tmp_path: Path) -> None:
    """The gates ask for a corrected reference fix, lines or summary, so the next run must look at them."""
    folder = Folder(tmp_path)
    tree_of(tmp_path / "clones" / "net", {"main.tf": 'output "a" {\n  value = var.a\n}\n'})
    right, wrong = 'output "a" {\n  value = 1\n}\n', 'output "a" {\n  value = var.b\n}\n'
    folder.fixes("m", table(("oid", "iteration_id", "fixed_file"), ("p", "0", right)))
    folder.configure(clones_dir="clones", k_values=[1], validation=STATIC)
    found = []
    for reference, line in ((wrong, 2), (right, 2), (right, 3)):
        header = ("oid", "filename", "working_directory", "line_start", "line_end", "reference_fix")
        folder.problems(table(header, ("p", "main.tf", "net", line, line, reference)))
        problem, outcomes = validate(folder)
        found.append((problem["reference_status"], problem["fails_as_recorded"], outcomes["0"]))
    unavailable = "validator_unavailable"
    assert found == [("failed", True, "passed"), ("passed", True, "passed"), (unavailable, False, unavailable)]


def test_a_failure_is_said_once_without_colours(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    tree_of(
        tmp_path / "clones" / "shop",
        {"price.txt": "1\n", "test.sh": "printf '\\033[31mwrong\\033[0m price\\n'; exit 1"},
    )
    folder.problems(
        table(("oid", "working_directory", "filename", "test_command"), ("p", "shop", "price.txt", "sh test.sh"))
    )
    folder.fixes("m", table(("oid", "iteration_id", "fixed_file"), ("p", "0", "2\n")))
    folder.configure(clones_dir="clones", k_values=[1])
    with evaluation_of(folder) as evaluation:
        (said,) = evaluation.store.scan("outcomes").collect()["diagnostics"]
    assert said == "still there: error: the command failed: exit code 1: wrong price"


# What a run keeps of a validation: bounded texts, and every test with the one that did not pass first.


def target(content: bytes = b"x = 1\n") -> Target:
    tree = Tree(Path("none"), ("a.py", "b.py"), {"a.py": content, "b.py": b""})
    return Target(Problem("p", "a.py", Path("none")), tree, "python", HashedTree(Path("none"), ()))


def test_the_problems_file_is_kept_up_to_the_limit() -> None:
    targets: dict[str, Target | NoTarget] = {
        "p": target("é\n".encode()),
        "q": NoTarget("validator_unavailable", "none"),
    }
    kept, cut = (list(problem_file_rows(targets, ValidationSettings(kept_characters=most))) for most in (2, 1))
    assert kept == [{"oid": "p", "path": "a.py", "bytes": 3, "text": "é\n", "reference_diff": None}]
    assert cut[0]["text"] is None


def test_the_diff_covers_every_changed_file_up_to_the_limit() -> None:
    applied = AppliedFix({"a.py": b"x = 2\n", "b.py": None, "c.py": b"new\n"}, (1, 1))
    kept = fix_columns(target(), applied, Report("passed", "full"), Report("failed", "full"), 1000)
    assert kept["diff"].count("+++ ") == 2 and "+++ b/c.py" in kept["diff"], "an empty file has no lines to show"
    assert kept["tests"] is None and kept["tests_left_out"] == 0
    short = fix_columns(target(), applied, Report("passed", "full"), Report("failed", "full"), 10)
    assert short["diff"] is None and short["diff_characters"] == len(kept["diff"])


def test_tests_that_did_not_pass_come_first_with_what_they_said() -> None:
    said = Diagnostic("error", "test failed: t2", "lone \ud800 " + "x" * 1000, test="t2")
    after = Report("failed", "full", (said,), tests={"t1": True, "t2": False}, skipped=("t3",))
    before = Report("failed", "full", tests={"t1": False, "t2": True, "t0": True})
    kept = fix_columns(target(), AppliedFix({"a.py": b""}, (1, 1)), after, before, 1000)
    tests = json.loads(kept["tests"])
    assert [(one["test"], one["status"]) for one in tests] == [
        *(("t0", "no result"), ("t2", "failed"), ("t3", "skipped"), ("t1", "passed"))
    ]
    assert tests[1]["message"].startswith("lone ? xx") and len(tests[1]["message"]) == 500


def test_of_thousands_of_tests_the_rest_is_counted() -> None:
    after = Report("failed", "full", tests={f"t{number}": number != 2500 for number in range(3000)})
    kept = fix_columns(target(), AppliedFix({"a.py": b""}, (1, 1)), after, Report("failed", "full"), 1000)
    assert kept["tests_left_out"] == 1000
    assert json.loads(kept["tests"])[0] == {"test": "t2500", "status": "failed", "message": ""}
