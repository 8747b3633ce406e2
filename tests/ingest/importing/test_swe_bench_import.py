"""Importing SWE-bench-style instances and predictions from a repository that the test makes."""

import csv
import functools
import json
import subprocess
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.conftest import Command
from tests.validation.test_repository import CART_PATCH, FAIL_TO_PASS, FILES, PASS_TO_PASS, TAX_PATCH, TEST_PATCH
from touchstone.errors import TouchstoneError
from touchstone.evaluation import evaluate
from touchstone.ingest.importing.swe_bench import InstanceTests, import_swe_bench
from touchstone.validation.validators import command

TESTS = InstanceTests()


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def committed(folder: Path, files: dict[str, str]) -> Path:
    """A repository with these files in its first commit."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "base")
    return folder


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository whose first commit has the bug; its archives would lack the tests."""
    folder = committed(tmp_path / "clones" / "acme__shop", {**FILES, ".gitattributes": "tests export-ignore\n"})
    (folder / "shop" / "cart.py").write_text("")
    git(folder, "commit", "--quiet", "--all", "--message", "later")
    return folder


def instance(clone: Path, **changes: object) -> dict[str, object]:
    return {
        "instance_id": "acme__shop-1",
        "repo": "acme/shop",
        "base_commit": git(clone, "rev-parse", "HEAD~1"),
        "patch": CART_PATCH + TAX_PATCH,
        "test_patch": TEST_PATCH,
        "FAIL_TO_PASS": json.dumps(FAIL_TO_PASS),
        "PASS_TO_PASS": PASS_TO_PASS,
    } | changes


def prediction(text: str | None, **changes: object) -> dict[str, object]:
    return {"instance_id": "acme__shop-1", "model_name_or_path": "m", "model_patch": text} | changes


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


SHELL = {
    "calc.sh": "add() { echo $(($1 - $2)); }\nsub() { echo $(($1 - $2)); }\n",
    "run.sh": """\
. ./calc.sh
[ "$(add 2 3)" = 5 ] && echo "ok 1 - adds" || { echo "not ok 1 - adds"; failed=1; }
[ "$(sub 3 2)" = 1 ] && echo "ok 2 - subtracts" || { echo "not ok 2 - subtracts"; failed=1; }
echo 1..2
exit ${failed:-0}
""",
}
SHELL_PATCH = """\
--- a/calc.sh
+++ b/calc.sh
@@ -1,2 +1,2 @@
-add() { echo $(($1 - $2)); }
+add() { echo $(($1 + $2)); }
 sub() { echo $(($1 - $2)); }
"""


@pytest.mark.nightly
def test_verdicts_of_the_instances_own_tests(tmp_path: Path, touchstone: Command) -> None:
    clone = committed(tmp_path / "clones" / "calc", SHELL)
    changes = {"repo": "acme/calc", "base_commit": git(clone, "rev-parse", "HEAD"), "test_patch": None}
    tests = {"FAIL_TO_PASS": '["adds"]', "PASS_TO_PASS": ["subtracts"]}
    record = {"instance_id": "acme__shop-1", "patch": SHELL_PATCH} | changes | tests
    breaking = SHELL_PATCH.replace(" sub() { echo $(($1 - $2)); }", "-sub() { echo $(($1 - $2)); }\n+sub() { echo; }")
    answers = (SHELL_PATCH, breaking, None, "")
    files = [
        write(tmp_path / "instances.json", [record]),
        write(tmp_path / "predictions.json", [prediction(answer) for answer in answers]),
    ]
    out = tmp_path / "out"
    options = ("--instances", files[0], "--predictions", files[1], "--clones", clone.parent)
    command = ("--test-command", "sh run.sh", "--test-report", "tap")
    shown = touchstone("import", "swe-bench", *options, *command, out)
    assert shown.stdout.splitlines()[:2] == [f"{out}: 1 problem", "  m: 4 attempts"]
    results = evaluate(out / "evaluation_config.json")
    assert results.passed
    baseline = results["baselines"].row(0, named=True)
    assert (baseline["baseline_status"], baseline["reference_status"]) == ("failed", "passed")
    outcomes = results["outcomes"].sort("iteration_id")
    assert outcomes["passed"].to_list() == [True, False, False, False]
    assert "the fix is empty" in outcomes["diagnostics"][2]


@pytest.mark.nightly
def test_verdicts_of_pytest(clone: Path, tmp_path: Path, touchstone: Command) -> None:
    files = [
        write(tmp_path / "instances.json", [instance(clone)]),
        write(
            tmp_path / "predictions.json",
            [prediction(CART_PATCH + TAX_PATCH), prediction(CART_PATCH), prediction(None)],
        ),
    ]
    out = tmp_path / "out"
    options = ("--instances", files[0], "--predictions", files[1], "--clones", clone.parent)
    shown = touchstone("import", "swe-bench", *options, out)
    assert shown.stdout.splitlines()[:2] == [f"{out}: 1 problem", "  m: 3 attempts"]
    config = json.loads((out / "evaluation_config.json").read_text())
    config["validation"]["command"]["environment"]["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    write(out / "evaluation_config.json", config)
    # The interpreter's folders are readable, so they are part of the cache key: a gigabyte.
    with patch.object(command, "content_identity", functools.cache(command.content_identity)):
        results = evaluate(out / "evaluation_config.json")
    assert results.passed
    baseline = results["baselines"].row(0, named=True)
    assert (baseline["baseline_status"], baseline["reference_status"]) == ("failed", "passed")
    outcomes = results["outcomes"].sort("iteration_id")
    assert outcomes["passed"].to_list() == [True, False, False]
    assert "the fix is empty" in outcomes["diagnostics"][2]


def test_the_tree_is_that_of_the_base_commit(clone: Path, tmp_path: Path) -> None:
    before = git(clone, "status", "--porcelain"), git(clone, "rev-parse", "HEAD")
    instances = write(tmp_path / "i.json", instance(clone))
    import_swe_bench(instances, [write(tmp_path / "p.json", [prediction("x")])], clone.parent, tmp_path / "out", TESTS)
    made = tmp_path / "out" / "clones" / "acme__shop-1"
    found = {str(path.relative_to(made)): path.read_text() for path in made.rglob("*") if path.is_file()}
    assert found == {**FILES, ".gitattributes": "tests export-ignore\n"}
    assert [path.name for path in made.parent.iterdir()] == ["acme__shop-1"]
    assert before == (git(clone, "status", "--porcelain"), git(clone, "rev-parse", "HEAD"))


def test_predictions_by_id_and_from_a_bare_clone(clone: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(clone), "bare/shop.git")
    instances = write(tmp_path / "i.json", {"acme__shop-1": instance(clone)})
    given = [
        write(tmp_path / "a.json", {"acme__shop-1": prediction("x", model_name_or_path="acme/fixer")}),
        write(
            tmp_path / "b.json", [prediction("y", model_name_or_path=None), prediction("z", model_name_or_path=None)]
        ),
    ]
    import_swe_bench(instances, given, tmp_path / "bare", tmp_path / "out", TESTS)
    assert (tmp_path / "out" / "acme%2Ffixer_fixes.csv").is_file()
    with (tmp_path / "out" / "b_fixes.csv").open(newline="") as file:
        assert [(row["iteration_id"], row["model_patch"]) for row in csv.DictReader(file)] == [("1", "y"), ("2", "z")]


@pytest.mark.parametrize(
    ("changes", "model_patch", "reason"),
    [
        (
            {"base_commit": "0" * 40},
            {},
            "has no commit 0000000000000000000000000000000000000000; run `git fetch --all`",
        ),
        ({"base_commit": "--output=x"}, {}, "'--output=x' is not a commit"),
        ({"repo": "acme/other"}, {}, "there is no clone acme__shop-1 or acme__other or acme/other or other"),
        ({"repo": "../shop"}, {}, "the repo '../shop' is not of the form owner/name"),
        ({"FAIL_TO_PASS": "[]"}, {}, "FAIL_TO_PASS names no test"),
        ({"FAIL_TO_PASS": "tests/a.py::x"}, {}, "the FAIL_TO_PASS is not a list of tests"),
        ({"PASS_TO_PASS": [1]}, {}, "the PASS_TO_PASS is not a list of tests"),
        ({"FAIL_TO_PASS": ["test_x (app.tests.Case)"]}, {}, "is not one of pytest's tests; pass --test-command"),
        ({}, {"instance_id": "other"}, "the instance 'other' is not among the instances"),
        ({}, {"model_patch": 7}, "the model_patch is missing or no text"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_nothing_is_written(
    clone: Path, tmp_path: Path, changes: dict[str, object], model_patch: dict[str, object], reason: str
) -> None:
    instances = write(tmp_path / "i.json", [instance(clone, **changes)])
    predictions = write(tmp_path / "p.json", [prediction("x", **model_patch)])
    with pytest.raises(TouchstoneError) as raised:
        import_swe_bench(instances, [predictions], clone.parent, tmp_path / "out", TESTS)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clones", "i.json", "p.json"]


def test_a_command_instead_of_pytest(clone: Path, tmp_path: Path) -> None:
    tests = InstanceTests(command="./runtests.py", report="junit")
    records = [
        instance(clone, FAIL_TO_PASS=["app.Case#x"], PASS_TO_PASS=[]),
        instance(clone, instance_id="own", test_command="make test"),
    ]
    instances, predictions = write(tmp_path / "i.json", records), write(tmp_path / "p.json", [prediction("x")])
    import_swe_bench(instances, [predictions], clone.parent, tmp_path / "out", tests)
    with (tmp_path / "out" / "problems.csv").open(newline="") as file:
        assert [row["test_command"] for row in csv.DictReader(file)] == ["./runtests.py", "make test"]
    config = json.loads((tmp_path / "out" / "evaluation_config.json").read_text())
    assert config["validation"]["command"]["report"] == "junit"
    assert config["problem_key"] == "instance_id"
