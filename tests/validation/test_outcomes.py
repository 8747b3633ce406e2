"""Outcome rows: reference fixes are validated under the configured success rule, and again if they change."""

from pathlib import Path

import pytest

from tests.conftest import Folder
from tests.pipelines.test_retrying import table, validate
from touchstone.vocabulary import Success

# What these rules need is an error in its place; Terraform itself takes ten times as long to find it.
STATIC = {"validators": {"terraform": "hcl"}, "workers": 1}


@pytest.mark.parametrize(("success", "status"), [("plausible", "passed"), ("clean", "failed")])
def test_a_reference_fix_follows_the_configured_success_rule(tmp_path: Path, success: Success, status: str) -> None:
    """The module has a second error, in another block, that the reference fix does not touch."""
    folder = Folder(tmp_path)
    clone = tmp_path / "clones" / "net"
    clone.mkdir(parents=True)
    first, second = 'output "a" {\n  value = var.a\n}\n', 'output "b" {\n  value = var.b\n}\n'
    (clone / "main.tf").write_text(first + second)
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
    (tmp_path / "clones" / "net").mkdir(parents=True)
    (tmp_path / "clones" / "net" / "main.tf").write_text('output "a" {\n  value = var.a\n}\n')
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
