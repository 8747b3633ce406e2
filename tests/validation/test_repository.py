"""A small repository with records as SWE-bench has them: patch, test_patch, FAIL_TO_PASS and PASS_TO_PASS.

An attempt is resolved exactly when all named tests pass, and every other outcome says why it is not.
"""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.conftest import Command, Folder
from tests.pipelines.test_retrying import evaluation_of, table
from tests.validation.sections import sections
from tests.validation.validators.support import tree_of
from touchstone.validation.validators import command

pytestmark = pytest.mark.services

TEXTS = sections(Path(__file__).with_suffix(".txt"))
CART, TAX, OLD_TESTS, CART_PATCH, TAX_PATCH, TEST_PATCH = TEXTS.values()
FILES = {"shop/__init__.py": "", "shop/cart.py": CART, "shop/tax.py": TAX, "tests/test_cart.py": OLD_TESTS}
FAIL_TO_PASS = ["tests/test_total.py::test_total", "tests/test_total.py::test_large"]
PASS_TO_PASS = ["tests/test_cart.py::test_count", "tests/test_total.py::test_nothing"]

BREAKS = CART_PATCH.replace("+    return with_tax(sum(prices))\n", "+    return with_tax(sum(prices) or 1)\n")
TEST_EDIT = (
    "--- a/tests/test_cart.py\n+++ b/tests/test_cart.py\n@@ -1,2 +1,2 @@\n-from shop import cart\n+cart = None\n \n"
)
EXIT = "--- a/shop/__init__.py\n+++ b/shop/__init__.py\n@@ -0,0 +1,2 @@\n+import os\n+os._exit(0)\n"
RIGHT_FILES = {
    "shop/cart.py": CART.replace("0)", "sum(prices))"),
    "shop/tax.py": "from shop.rates import RATE\n\n\ndef with_tax(amount):\n    return amount + amount * RATE // 100\n",
    "shop/rates.py": "RATE = 10\n",
}

GONE = "--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-pass\n"

# What a model wrote, the verdict, and the words that tell it from the others.
ATTEMPTS: dict[str, tuple[str, str, str]] = {
    "right": (CART_PATCH + TAX_PATCH + GONE, "passed", "the fix deletes gone.py, which is not there"),
    "partial": (CART_PATCH, "failed", "still there: error: test failed: tests/test_total.py::test_large"),
    "breaking": (BREAKS + TAX_PATCH, "failed", "new: error: test failed: tests/test_total.py::test_nothing"),
    "empty": (" \n", "failed", "the fix is empty"),
    "not applying": (
        CART_PATCH.replace("with_tax(0)", "with_tax(1)"),
        "failed",
        "the patch does not apply: shop/cart.py: hunk 1 does not match\n@@ -2,7 +2,7 @@",
    ),
    "editing tests": (CART_PATCH + TAX_PATCH + TEST_EDIT, "passed", "put back: tests/test_cart.py"),
    "editing tests alone": (TEST_EDIT, "failed", "the fix changes only files on the judge's side: tests/test_cart.py"),
    "leaving": ("../" + CART_PATCH.replace("/shop", "/../shop"), "failed", "the patch is refused: the path"),
    "ending the run": (EXIT, "no_report", "the pytest report lacks pytest's summary, so pytest did not finish"),
}


# The problem's row, and the outcomes by attempt.
Judged = tuple[Mapping[str, Any], dict[str, Mapping[str, Any]]]


def repository(root: Path, fixes: str, **problem: str) -> Folder:
    """One problem about a whole repository, without a file name."""
    made = Folder(root)
    tree_of(root / "clones" / "shop-1", FILES)
    record = {
        "instance_id": "shop-1",
        "test_command": f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider tests",
        "patch": CART_PATCH + TAX_PATCH,
        "test_patch": TEST_PATCH,
        "FAIL_TO_PASS": json.dumps(FAIL_TO_PASS),
        "PASS_TO_PASS": json.dumps(PASS_TO_PASS),
        **problem,
    }
    made.problems(table(tuple(record), tuple(record.values())))
    made.fixes("m", fixes)
    settings = {
        "readable": [sys.prefix, sys.base_prefix],
        "environment": {"PYTHONPATH": ".", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    }
    validation = {"command": settings, "workers": 1, "limits": {"seconds": 60}}
    made.configure(clones_dir="clones", problem_key="instance_id", k_values=[1], validation=validation)
    return made


def outcomes_of(folder: Folder) -> Judged:
    with evaluation_of(folder) as evaluation:
        problem = evaluation.store.scan("baselines").collect().row(0, named=True)
        rows = evaluation.store.scan("outcomes", ["m"]).collect().iter_rows(named=True)
        return problem, {row["iteration_id"]: row for row in rows}


@pytest.fixture(scope="module", autouse=True)
def _python_is_not_read() -> Iterator[None]:
    """The interpreter's folders are readable, and so part of the cache key: a gigabyte. Names will do."""
    with patch.object(command, "content_identity", str):
        yield


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    header = ("instance_id", "iteration_id", "model_patch", "fixed_files")
    rows: list[tuple[object, ...]] = [("shop-1", name, patch, "") for name, (patch, _, _) in ATTEMPTS.items()]
    rows.append(("shop-1", "files", "", json.dumps(RIGHT_FILES)))
    return outcomes_of(repository(tmp_path_factory.mktemp("repository"), table(header, *rows)))


def test_the_record_can_be_trusted(judged: Judged) -> None:
    problem, _ = judged
    found = (problem["baseline_status"], problem["fails_as_recorded"], problem["reference_status"])
    assert found == ("failed", True, "passed")


@pytest.mark.parametrize("name", ATTEMPTS)
def test_every_kind_of_patch_has_its_own_verdict(judged: Judged, name: str) -> None:
    _, status, words = ATTEMPTS[name]
    row = judged[1][name]
    assert (row["status"], row["passed"]) == (status, status == "passed")
    assert words in (row["diagnostics"] or "")


def test_only_the_named_tests_count(judged: Judged) -> None:
    """Another test of the repository fails, before and after."""
    for name in ("right", "files"):
        row = judged[1][name]
        assert (row["status"], row["tests_passed"], row["tests_failed"]) == ("passed", 4, 0)
    assert judged[1]["partial"]["tests_failed"] == 2
    reasons = [row["diagnostics"] for name, row in judged[1].items() if row["status"] != "passed"]
    assert len(set(reasons)) == len(reasons) == len(ATTEMPTS) - 2


def test_changed_tests_are_listed(judged: Judged) -> None:
    listed = {name for name, row in judged[1].items() if row["changed_judge_files"] == "tests/test_cart.py"}
    assert listed == {"editing tests", "editing tests alone"}
    assert {row["flagged_files"] for row in judged[1].values()} == {None}


@pytest.mark.nightly
def test_validate_shows_test_by_test(touchstone: Command, tmp_path: Path) -> None:
    folder = repository(tmp_path, "instance_id,iteration_id,model_patch\n")
    (tmp_path / "fix.patch").write_text(CART_PATCH)
    (tmp_path / "bad.diff").write_text(CART_PATCH.replace("with_tax(0)", "with_tax(\x1b[31m)"))
    fixes = ("--fix", tmp_path / "fix.patch", tmp_path / "bad.diff")
    shown = touchstone("validate", "--config", folder.config, "--problem", "shop-1", *fixes)
    assert shown.returncode == 1
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.stdout.splitlines() if "│" in line]
    assert ["tests/test_total.py::test_total", "failed", "failed", "fail_to_pass"] in cells
    assert ["tests/test_cart.py::test_count", "passed", "passed", "pass_to_pass"] in cells
    assert "Success rule: all of fail_to_pass and pass_to_pass." in shown.stdout
    assert "hunk 1 does not match" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert r"with_tax(\x1b[31m)" in shown.stdout
