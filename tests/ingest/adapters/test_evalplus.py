"""Reading evalplus results: base and plus as suites, both layouts, settings in the file's name."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.ingest.adapters.code_generation import figures, python_of, refused, rows
from touchstone.ingest.adapters import detect_format, read_adapted
from touchstone.ingest.adapters.table import AdapterTable

NAME = "acme--fixer-7b_vllm_temp_0.0_eval_results.json"


def sample(base: object, plus: object, **changes: object) -> dict[str, object]:
    return {"task_id": "HumanEval/0", "solution": "x = 1\n", "base_status": base, "plus_status": plus} | changes


def read(tmp_path: Path, tasks: object, name: str = NAME, **keys: object) -> AdapterTable:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"date": "2026-11-15 13:30", "hash": "1c0e", "eval": tasks} | keys))
    assert detect_format(path) == "evalplus"
    return read_adapted(path)


@pytest.mark.parametrize(
    ("base", "plus", "base_class", "plus_class"),
    [
        ("pass", "pass", "pass", "pass"),
        ("pass", "timeout", "pass", "timeout"),
        ("fail", "pass", "fail", "fail"),  # real files have it, and plus counts it as failed
        ("timeout", "pass", "timeout", "timeout"),
        ("pass", None, "pass", None),
        ("fail", None, "fail", "fail"),
        (None, "pass", None, None),
        (None, "fail", None, "fail"),
    ],
)
def test_plus_needs_base_too(
    tmp_path: Path, base: str | None, plus: str | None, base_class: str | None, plus_class: str | None
) -> None:
    table = read(tmp_path, {"HumanEval/0": [sample(base, plus), sample("pass", "pass")]})
    assert rows(table, "classification")[:2] == [(base_class,), (plus_class,)]
    verdicts = {None: None, "pass": "true"}
    assert rows(table, "passed")[:2] == [(verdicts.get(each, "false"),) for each in (base_class, plus_class)]


def test_without_plus_verdicts_there_is_one_suite(tmp_path: Path) -> None:
    table = read(tmp_path, {"HumanEval/0": [sample("pass", None), sample("fail", None)]})
    assert rows(table, "suite", "passed") == [("base", "true"), ("base", "false")]
    assert any("--base-only" in note for note in table.notes)


def test_the_layout_of_2023(tmp_path: Path) -> None:
    task = {
        "nfiles": 2,
        "base": [["success", [True]], ["timed out", None]],
        "plus": [["failed", [False]], ["success", []]],
    }
    table = read(tmp_path, {"HumanEval/0": task}, "chatgpt_temp_0.0_eval_results.json")
    assert rows(table, "llm_name", "iteration_id", "suite", "classification") == [
        ("chatgpt", "1", "base", "pass"),
        ("chatgpt", "1", "plus", "fail"),
        ("chatgpt", "2", "base", "timeout"),
        ("chatgpt", "2", "plus", "timeout"),
    ]
    assert rows(table, "backend", "temperature")[0] == (None, "0.0")
    runs = {"0": {"nfiles": 1, "base": [["failed", []]]}, "1": {"nfiles": 1, "base": [["success", [1], [4973]]]}}
    assert rows(read(tmp_path, {"HumanEval/0": runs}), "iteration_id", "passed") == [("1", "false"), ("2", "true")]


def test_figures_that_the_file_states(tmp_path: Path) -> None:
    stated = {"base": {"pass@1": 0.5, "pass@10": 1}, "plus": {"pass@1": 0.25}}
    tasks = {"HumanEval/0": [sample("pass", "fail"), sample("fail", "fail")]}
    assert figures(read(tmp_path, tasks, pass_at_k=stated)) == {
        ("base", "pass@1"): (0.5, 0.5),
        ("base", "pass@10"): (1, None),
        ("plus", "pass@1"): (0.25, 0.0),
    }


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    tasks = {
        "HumanEval/0": [sample("maybe", "pass"), sample("pass", "pass", task_id="HumanEval/9"), "x"],
        "HumanEval/1": None,
        "HumanEval/2": [sample("pass", "pass", task_id="HumanEval/2")],
    }
    table = read(tmp_path, tasks)
    assert [(line, kind) for line, kind, _ in refused(table)] == [
        (1, "bad_boolean"),
        (2, "bad_boolean"),
        (3, "contradiction"),
        (4, "contradiction"),
        (5, "ragged"),
        (6, "ragged"),
        (7, "ragged"),
        (8, "ragged"),
    ]
    assert refused(table)[0][2] == "base_status: 'maybe' is not pass, fail or timeout"
    assert '"maybe"' in table.raw({1})[1]


@pytest.mark.nightly
def test_a_file_that_the_installed_tool_has_just_written(tmp_path: Path) -> None:
    """Own problems under the ids that evalplus insists on: its data set would have to come from the network."""
    python = python_of("evalplus.evaluate", "evalplus")
    problems, samples = tmp_path / "problems.jsonl", tmp_path / "acme--fixer_openai_temp_0.8.jsonl"
    problem = {"prompt": "def f(x):\n", "canonical_solution": "    return abs(x)\n", "entry_point": "f", "atol": 0}
    inputs = {"base_input": [[1], [2]], "plus_input": [[-1]], "contract": "", "test": ""}
    bodies = ("abs(x)", "x", "None")  # passes both, base only, none
    tasks = [f"HumanEval/{number}" for number in range(164)]
    problems.write_text("".join(json.dumps({"task_id": task} | problem | inputs) + "\n" for task in tasks))
    answers = [{"task_id": task, "solution": f"def f(x):\n    return {body}\n"} for task in tasks for body in bodies]
    samples.write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    environment = os.environ | {"HUMANEVAL_OVERRIDE_PATH": str(problems), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [python, "-m", "evalplus.evaluate", "--dataset", "humaneval", "--samples", samples, "--parallel", "2"]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    table = read_adapted(tmp_path / "acme--fixer_openai_temp_0.8_eval_results.json")
    assert figures(table) == {("base", "pass@1"): (None, 0.6667), ("plus", "pass@1"): (None, 0.3333)}
    assert [line.split()[-1][:5] for line in printed.splitlines() if "pass@1" in line] == ["0.667", "0.333"]
    assert not refused(table)
