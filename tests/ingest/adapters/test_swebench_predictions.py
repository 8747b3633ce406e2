"""Reading SWE-bench predictions, which have no verdict, and submissions, which do not list their failures."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, ReadOptions, detect_format, read_adapted

FILES = Path(__file__).parent / "files" / "swebench"
OBJECT, LINES = FILES / "preds.json", FILES / "preds.jsonl"


def prediction(**changes: object) -> dict[str, object]:
    return {"instance_id": "acme__tool-1", "model_name_or_path": "acme/m", "model_patch": "diff\n"} | changes


def write(tmp_path: Path, *predictions: object) -> Path:
    path = tmp_path / "preds.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in predictions))
    assert detect_format(path) == "swebench-predictions"
    return path


@pytest.mark.parametrize(
    "rewritten",
    [
        lambda good: json.dumps(list(good.values())),
        lambda good: json.dumps(list(good.values()), indent=2),
        lambda good: json.dumps(good),
        lambda good: "\n\n".join(map(json.dumps, good.values())),
    ],
    ids=["list", "indented list", "object on one line", "lines"],
)
def test_every_layout_gives_the_same_attempts(tmp_path: Path, rewritten: Callable[[object], str]) -> None:
    path = tmp_path / "preds.json"
    path.write_text(rewritten(json.loads(OBJECT.read_text())))
    columns = ["oid", "iteration_id", "llm_name", "passed", "classification", "model_patch"]
    tables = [read_adapted(each) for each in (OBJECT, LINES, path)]
    assert {table.format for table in tables} == {"swebench-predictions"}
    rows = [table.frame.select(columns).rows() for table in tables]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0][0] == ("acme__tool-101", "1", "acme/fixer-large", None, None, rows[0][0][-1])
    # An empty patch fails, but by itself it would be the whole figure.
    assert rows[0][3] == ("acme__tool-104", "1", "acme/fixer-large", None, None, None)


def test_several_predictions_are_attempts(tmp_path: Path) -> None:
    same = prediction()
    table = read_adapted(write(tmp_path, same, prediction(model_name_or_path="b"), same, prediction(model_patch=None)))
    assert table.frame.select("llm_name", "iteration_id", "passed").rows() == [
        ("acme/m", "1", None),
        ("b", "1", None),
        ("acme/m", "2", None),
        ("acme/m", "3", None),
    ]
    assert table.notes == (
        "not judged: 2 of 3 attempts of acme/m; "
        "1 that failed without being judged would be the whole figure: undecided",
        "1 instance has several predictions, which are attempts; the harness uses the last one",
    )


def test_a_model_without_any_patch_has_failed_at_everything(tmp_path: Path) -> None:
    table = read_adapted(write(tmp_path, prediction(model_patch=""), prediction(model_name_or_path="b")))
    assert table.frame.select("llm_name", "passed", "swebench_status").rows() == [
        ("acme/m", "false", "empty_patch"),
        ("b", None, "not_run"),
    ]
    assert table.notes == ()


def test_no_key_of_a_prediction_decides_anything(tmp_path: Path) -> None:
    table = read_adapted(write(tmp_path, prediction(passed=True, classification="pass", cost_usd=1, temperature=0.5)))
    row = table.frame.row(0, named=True)
    assert (row["passed"], row["classification"], row["temperature"]) == (None, None, "0.5")
    assert (row["input_passed"], row["input_classification"], row["input_cost_usd"]) == ("true", "pass", "1")


def test_transcripts_are_left_out_and_named(tmp_path: Path) -> None:
    table = read_adapted(write(tmp_path, prediction(full_output="I think", messages=[])))
    assert table.notes == ("left out of every prediction: full_output, messages",)
    assert not {"full_output", "messages"} & set(table.columns)


SUBMISSION = {"resolved": ["p-1", "p-2"], "no_generation": ["p-3", "p-3"], "no_logs": ["p-4"]}


def submission(tmp_path: Path, content: object = SUBMISSION) -> Path:
    path = tmp_path / "20260501_fixer" / "results" / "results.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content))
    assert detect_format(path) == "swebench-submission"
    return path


def outcomes(table: AdapterTable) -> dict[str, str | None]:
    return dict(table.frame.select("oid", "passed").iter_rows())


@pytest.mark.parametrize(
    ("folder", "known"),
    [("mine", "2 resolved, 1 no_generation"), ("verified", r"2 resolved of 500 \(0.4% of SWE-bench verified\), 1 no_")],
)
def test_a_submission_never_looks_like_one_without_failures(tmp_path: Path, folder: str, known: str) -> None:
    path = submission(tmp_path / folder)
    with pytest.raises(InputFileError, match=f"it says {known}.*, 1 no_logs, but not which problems failed; put the"):
        read_adapted(path)


def test_a_submission_with_the_list_of_problems(tmp_path: Path) -> None:
    problems = frozenset(f"p-{number}" for number in range(1, 7))
    table = read_adapted(submission(tmp_path), ReadOptions(problems=problems))
    assert outcomes(table) == {
        "p-1": "true",
        "p-2": "true",
        "p-3": "false",
        "p-4": None,
        "p-5": "false",
        "p-6": "false",
    }
    assert table.frame["llm_name"].unique().to_list() == ["20260501_fixer"]
    assert [(figure.name, figure.reported, figure.recomputed) for figure in table.figures] == [("resolved", 2, 2)]


def test_a_submission_with_its_predictions(tmp_path: Path) -> None:
    path = submission(tmp_path)
    shutil.copy(write(tmp_path, prediction(instance_id="p-1"), prediction(instance_id="p-9")), path.parents[1])
    table = read_adapted(path)
    assert outcomes(table) == {"p-1": "true", "p-2": "true", "p-3": "false", "p-4": None, "p-9": "false"}
    assert [file.name for file in table.files] == ["results.json", "preds.jsonl"]
    assert table.notes == ("the file does not list failures: they are the rest of the 2 problems in preds.jsonl",)


def test_a_submission_that_lists_its_failures(tmp_path: Path) -> None:
    table = read_adapted(submission(tmp_path, {"resolved": ["p-1"], "unresolved": ["p-2"]}))
    assert outcomes(table) == {"p-1": "true", "p-2": "false"}
    assert not table.notes
    with pytest.raises(InputFileError, match="p-1 is both resolved and unresolved"):
        read_adapted(submission(tmp_path / "other", {"resolved": ["p-1"], "unresolved": ["p-1"]}))


@pytest.mark.parametrize("as_list", [False, True])
def test_predictions_with_verdicts_are_a_table_of_attempts(tmp_path: Path, as_list: bool) -> None:
    rows = [prediction(resolved=True), prediction(resolved=False)]
    path = tmp_path / "judged.json"
    path.write_text(json.dumps(rows) if as_list else "\n".join(map(json.dumps, rows)))
    table = read_adapted(path)
    assert table.format == "jsonl"
    assert table.frame.select("llm_name", "passed").rows() == [("acme/m", "true"), ("acme/m", "false")]
    assert table.frame["model_patch"].null_count() == 0


def test_an_old_submission_lists_what_was_generated(tmp_path: Path) -> None:
    content = {
        "no_generation": ["p-1"],
        "generated": ["p-2", "p-3", "p-4", "p-5", "p-6"],
        "with_logs": ["p-2", "p-3", "p-4", "p-5", "p-6"],
        "install_fail": ["p-6"],
        "reset_failed": [],
        "no_apply": ["p-2"],
        "applied": ["p-3", "p-4", "p-5"],
        "test_errored": [],
        "test_timeout": ["p-3"],
        "resolved": ["p-4"],
    }
    table = read_adapted(submission(tmp_path, content))
    rows = {oid: (passed, word) for oid, passed, word in table.frame.select("oid", "passed", "classification").rows()}
    assert rows == {
        "p-1": ("false", "wrong_format"),
        "p-2": ("false", "wrong_format"),
        "p-3": ("false", "timeout"),
        "p-4": ("true", "pass"),
        "p-5": ("false", "fail"),
        "p-6": (None, None),
    }
