"""`touchstone show`: the attempts at a problem, and one attempt in full."""

import json
from pathlib import Path

import pytest

from tests.conftest import Command, Folder, small_folder
from tests.pipelines.test_run import evaluate
from tests.pipelines.test_validation import finished_repairs

__all__ = ["finished_repairs"]


@pytest.mark.parametrize("columns", [60, 160])
def test_a_list_of_attempts_and_one_in_full(finished_repairs: Folder, touchstone: Command, columns: int) -> None:
    data = ("--data", finished_repairs.output)
    listed = touchstone("show", "m", "p", *data, columns=columns, terminal=True)
    assert listed.returncode == 0 and "m, problem p: 5 attempts" in listed.stdout
    assert "1/2" in listed.stdout and ("the fix is empty" if columns > 60 else "not shown: message") in listed.stdout
    one = touchstone("show", "m", "p", "3", *data, columns=columns, terminal=True)
    assert "m, T0, problem p, attempt 3: failed" in one.stdout
    assert "+    return a * b" in one.stdout and "test_zero" in one.stdout
    assert "no raw_response: the input has no column" in one.stdout
    assert all(len(line) <= columns for line in (listed.stdout + one.stdout).splitlines())


def test_json_for_programs(finished_repairs: Folder, touchstone: Command) -> None:
    data = ("--data", finished_repairs.output, "--json")
    assert [row["passed"] for row in json.loads(touchstone("show", "m", "p", *data).stdout)][:3] == [True, True, False]
    one = json.loads(touchstone("show", "m", "p", "3", *data).stdout)
    assert one["tests"][0]["status"] == "failed" and one["missing"]["latency_ms"] == "not in the input"


HOSTILE = "\x1b[31m\u202e[bold]::error::<script>=cmd()"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with two tiers, and attempts whose name and texts would like to be more than text."""
    folder = small_folder(tmp_path_factory.mktemp("recorded"))
    lines = ["a,1,T0,true,,", "a,1,T1,false,,", "a,2,T1,true,,", f'b,{HOSTILE},T0,true,"{HOSTILE}","{HOSTILE}"']
    folder.fixes("m", "\n".join(["oid,iteration_id,tier,passed,fixed_code,raw_response", *lines]))
    assert evaluate(folder).exit_code == 0
    return folder.output


def test_the_tier_is_asked_for_only_if_it_matters(recorded: Path, touchstone: Command) -> None:
    data = ("--data", recorded)
    assert "attempt 2: passed" in touchstone("show", "m", "a", "2", *data).stdout
    assert "attempt 1: failed" in touchstone("show", "m", "a", "1", "--tier", "T1", *data).stdout
    asked = touchstone("show", "m", "a", "1", *data)
    assert asked.returncode == 2
    assert asked.stderr == "error: attempt '1' exists in several tiers; add --tier T0 or T1\n"


@pytest.mark.parametrize("attempt", [(), (HOSTILE,)], ids=["list", "one"])
def test_foreign_text_is_shown_and_never_in_effect(
    recorded: Path, touchstone: Command, attempt: tuple[str, ...]
) -> None:
    shown = touchstone("show", "m", "b", *attempt, "--data", recorded)
    assert shown.returncode == 0 and "[bold]" in shown.stdout and "<script>" in shown.stdout
    assert "\x1b" not in shown.stdout and "\u202e" not in shown.stdout
