"""Honest fixes: every right one passes and is controlled, every wrong one fails, as plain pytest says."""

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import nightly_but
from tests.validation.pytest_runner.honest_pairs import PAIRS, Pair
from tests.validation.pytest_runner.support import run_pytest
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.judging.verdicts import new_doubts
from touchstone.validation.protocol import Report
from touchstone.validation.validators.python import PythonValidator

APART = {
    # Their controls are run again and again, or the tests' texts are left as they are for them.
    **dict.fromkeys(("comparisons that are counted", "warnings that are counted"), "apart"),
    **dict.fromkeys(("a queue that is read by looking into it", "tests that read their own source"), "apart"),
    # It needs more memory than a test may have, if nobody collects the garbage.
    "garbage in cycles": "modest",
    # In a control, hypothesis shrinks a failure by hundreds of calls, each of which looks at every name of its group.
    **dict.fromkeys(("doctests and hypothesis", "functools.cache"), "few"),
    # The tests of others ask more.
    **dict.fromkeys(("methods that no test asks", "data beside the tests"), "modest"),
}
GROUPS = ("most", "apart", "few", "modest")
TOGETHER = {group: [pair for pair in PAIRS if APART.get(pair.name, "most") == group] for group in GROUPS}
# By day every fourth.
TOGETHER["some"] = TOGETHER["most"][::4]


def _run_together(validator: PythonValidator, pairs: Sequence[Pair], state: str) -> Report:
    """The report on many pairs as one problem, which takes a few runs instead of hundreds."""
    files = {path: text for number, pair in enumerate(pairs) for path, text in pair.as_part(number, state).items()}
    judge_files = tuple(path for path in files if "/solution_" not in path)
    return run_pytest(validator, files, "pair0/solution_0.py", is_fix=state != "before", judge_files=judge_files)


def _hold(report: Report, baseline: Report, originals: Sequence[str]) -> Report:
    """A report as it is compared with the problem's, whose files are `originals`."""
    found = hold_to_known_tests(report, baseline, None)
    return replace(found, doubts=new_doubts(found, baseline, [text.encode() for text in originals]))


def _of_pair(number: int, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(f"pair{number}/")]


@pytest.mark.parametrize("group", nightly_but(["some", "apart"], TOGETHER))
def test_right_fixes_pass_and_are_controlled_and_wrong_ones_fail(group: str, validator: PythonValidator) -> None:
    pairs = TOGETHER[group]
    baseline, right, wrong = (_run_together(validator, pairs, state) for state in ("before", "right", "wrong"))
    report = _hold(right, baseline, [text for pair in pairs for text in (pair.before, pair.wrong)])
    assert [(each.summary, each.detail) for each in report.diagnostics] == []
    assert (report.status, report.doubts) == ("passed", ()) and report.control is not None
    for number, pair in enumerate(pairs):
        uncontrolled = {*_of_pair(number, report.tests)} - {*_of_pair(number, report.control)}
        assert len(uncontrolled) == pair.uncontrolled, (pair.name, uncontrolled)
    found = hold_to_known_tests(wrong, baseline, None).tests
    assert [pair.name for number, pair in enumerate(pairs) if all(found[one] for one in _of_pair(number, found))] == []


@pytest.mark.nightly
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_alone_as_plain_pytest_says(pair: Pair, validator: PythonValidator, tmp_path: Path) -> None:
    """Each pair by itself, from several states of the problem."""
    states = {pair.before, pair.wrong, pair.right, ""}
    baselines = {code: run_pytest(validator, {"solution.py": code, **pair.files}, is_fix=False) for code in states}
    for fix, status in ((pair.right, "passed"), (pair.wrong, "failed")):
        files = {"solution.py": fix, **pair.files}
        report, plain = run_pytest(validator, files), _plain_pytest(tmp_path / status, files)
        for code, baseline in baselines.items():
            found = _hold(report, baseline, [code] if code else [pair.before, pair.wrong])
            assert (found.status, found.tests, found.doubts) == (status, plain, ()), baseline


def _plain_pytest(folder: Path, files: dict[str, str]) -> dict[str, bool]:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "--tb=no", "-o", "anyio_mode=auto", "test_solution.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    outcome = r"^(PASSED|FAILED|SUBFAILED)(?:\(.*\))? test_solution\.py::(.+?)(?: - .*)?$"
    lines = re.findall(outcome, done.stdout, re.MULTILINE)
    failed = {name for outcome, name in lines if outcome != "PASSED"}
    # anyio, which runs coroutines here, says in which loop.
    return {name.removesuffix("[asyncio]"): name not in failed for _, name in lines}
