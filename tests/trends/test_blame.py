"""`touchstone blame` and `touchstone history`: the cases that changed, and whether model or grader did it."""

import json

import pytest

from tests.conftest import Command, Folder
from touchstone.config import load_config
from touchstone.evaluation import Evaluation, run

HEADER = "oid,iteration_id,plausible_fix,fixed_code,llm_name\n"


@pytest.fixture
def twice(evaluated: Folder) -> Folder:
    """Two nights: the fix of `a` is judged otherwise, `b` has another fix, and a setting of validation changed."""
    for outcome, fix, seconds in (("true", "y = 1", 60), ("false", "y = 2", 10)):
        rows = (f"a,1,{outcome},x = 1", f"a,2,{outcome},x = 1", f"b,1,{outcome},{fix}")
        evaluated.fixes("m", HEADER + "".join(f"{row},m-{seconds}\n" for row in rows))
        evaluated.configure(validation={"limits": {"seconds": seconds}})
        assert run(Evaluation(load_config(evaluated.config))).exit_code == 0
    return evaluated


@pytest.mark.services
def test_blame_and_history(twice: Folder, touchstone: Command) -> None:
    done = touchstone("blame", "--data", twice.output, "--json")
    found = json.loads(done.stdout)
    assert {case["oid"]: case["due_to"] for case in found["cases"]} == {"a": "grader", "b": "undecided"}
    (step,) = found["steps"]
    assert step["changed"] == "setting validation.limits.seconds 60.0 → 10.0; m: version m-60 → m-10"
    assert (step["cases"]["regression"], step["differences"]) == (2, {"m T0": -1.0})
    text = touchstone("blame", "--data", twice.output).stdout
    assert "2 cases fell" in text and "validation.limits.seconds" in text and "snapshots keep no fixes" in text
    lines = json.loads(touchstone("history", "--data", twice.output, "--format", "json").stdout)
    assert [row["value"] for row in lines["trends"] if row["item"] == "1"][-2:] == [1.0, 0.0]
    assert "pass@1" in touchstone("history", "--data", twice.output).stdout
    wrong = touchstone("blame", "--data", twice.output, "--from", "latest", "--to", "previous")
    assert wrong.returncode == 2 and "is not before" in wrong.stderr
