"""What a run keeps of a validation: bounded texts, and every test with the one that did not pass first."""

import json
from pathlib import Path

from touchstone.validation.files.working_copy import HashedTree
from touchstone.validation.fixes.apply_fix import AppliedFix
from touchstone.validation.kept_texts import fix_columns, problem_file_rows
from touchstone.validation.protocol import Diagnostic, Problem, Report, Tree
from touchstone.validation.targets import NoTarget, Target


def target(content: bytes = b"x = 1\n") -> Target:
    tree = Tree(Path("none"), ("a.py", "b.py"), {"a.py": content, "b.py": b""})
    return Target(Problem("p", "a.py", Path("none")), tree, "python", HashedTree(Path("none"), ()))


def test_the_problems_file_is_kept_up_to_the_limit() -> None:
    targets: dict[str, Target | NoTarget] = {
        "p": target("é\n".encode()),
        "q": NoTarget("validator_unavailable", "none"),
    }
    assert list(problem_file_rows(targets, 2)) == [{"oid": "p", "path": "a.py", "bytes": 3, "text": "é\n"}]
    assert [row["text"] for row in problem_file_rows(targets, 1)] == [None]


def test_the_diff_covers_every_changed_file_up_to_the_limit() -> None:
    applied = AppliedFix({"a.py": b"x = 2\n", "b.py": None, "c.py": b"new\n"}, 1, 1)
    kept = fix_columns(target(), applied, Report("passed", "full"), Report("failed", "full"), 1000)
    assert kept["diff"].count("+++ ") == 2 and "+++ b/c.py" in kept["diff"], "an empty file has no lines to show"
    assert kept["tests"] is None and kept["tests_left_out"] == 0
    short = fix_columns(target(), applied, Report("passed", "full"), Report("failed", "full"), 10)
    assert short["diff"] is None and short["diff_characters"] == len(kept["diff"])


def test_tests_that_did_not_pass_come_first_with_what_they_said() -> None:
    said = Diagnostic("error", "test failed: t2", "lone \ud800 " + "x" * 1000, test="t2")
    after = Report("failed", "full", (said,), tests={"t1": True, "t2": False}, skipped=("t3",))
    before = Report("failed", "full", tests={"t1": False, "t2": True, "t0": True})
    kept = fix_columns(target(), AppliedFix({"a.py": b""}, 1, 1), after, before, 1000)
    tests = json.loads(kept["tests"])
    assert [(one["test"], one["status"]) for one in tests] == [
        *(("t0", "no result"), ("t2", "failed"), ("t3", "skipped"), ("t1", "passed")),
    ]
    assert tests[1]["message"].startswith("lone ? xx") and len(tests[1]["message"]) == 500


def test_of_thousands_of_tests_the_rest_is_counted() -> None:
    after = Report("failed", "full", tests={f"t{number}": number != 2500 for number in range(3000)})
    kept = fix_columns(target(), AppliedFix({"a.py": b""}, 1, 1), after, Report("failed", "full"), 1000)
    assert kept["tests_left_out"] == 1000
    assert json.loads(kept["tests"])[0] == {"test": "t2500", "status": "failed", "message": ""}
