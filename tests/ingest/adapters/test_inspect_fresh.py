"""Fresh logs of the installed inspect_ai: every sample and every figure as Inspect itself reads them.

It need not be installed beside this project: INSPECT_PYTHON may name the Python of another environment that has it.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from touchstone.ingest.adapters import read_adapted

SCRIPT = Path(__file__).parent / "inspect_task.py"
# How Inspect's metrics count the values of the script, NaN aside.
PASSING = ("C", True, 1, "yes", 7)
MAIN_KEY = {"keyed": "ok"}


def python_with_inspect() -> str:
    if named := os.environ.get("INSPECT_PYTHON"):
        return named
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed; set INSPECT_PYTHON to a Python that has it")
    return sys.executable


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    command = [python_with_inspect(), str(SCRIPT), str(tmp_path_factory.mktemp("logs"))]
    done = subprocess.run(command, capture_output=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = json.loads(done.stdout)
    assert isinstance(found, list)
    return found


def outcome(sample: dict[str, object]) -> str | None:
    """By the rules of this project: a value of at least 1 passes; errors, NaN and invalidated samples are undecided."""
    ((scorer, value),) = sample["values"].items() if sample["values"] else (("none", float("nan")),)  # type: ignore[attr-defined]
    value = value[MAIN_KEY[scorer]] if scorer in MAIN_KEY else value
    if sample["error"] or sample["invalidated"] or value != value:
        return None
    return "true" if value in PASSING else "false"


@pytest.mark.nightly
def test_every_sample_as_inspect_reads_it(logs: list[dict[str, object]]) -> None:
    for log in logs:
        table = read_adapted(Path(str(log["path"])))
        names = ("oid", "iteration_id", "passed", "limit", "retries", "input_tokens", "sample_uuid")
        rows = sorted(table.frame.select(names).rows())
        samples = log["samples"]
        assert isinstance(samples, list)
        expected = [
            (
                f"{log['task']}/{sample['id']}",
                str(sample["epoch"]),
                outcome(sample),
                sample["limit"],
                str(sample["retries"]),
                None if sample["input_tokens"] is None else str(sample["input_tokens"]),
                sample["uuid"],
            )
            for sample in samples
        ]
        assert rows == sorted(expected), log["path"]


@pytest.mark.nightly
def test_every_figure_as_inspect_reports_it(logs: list[dict[str, object]]) -> None:
    compared = 0
    for log in logs:
        figures = read_adapted(Path(str(log["path"]))).figures
        stated = log["figures"]
        assert isinstance(stated, list)
        assert len(figures) == len(stated)
        for figure, (scorer, name, reducer, metric, value) in zip(figures, stated, strict=True):
            label = scorer if scorer == name else f"{scorer}/{name}"
            implied = "every epoch" if log["task"] == "every_epoch" else "mean"
            assert figure.name == f"{label} {metric} ({reducer or implied})"
            assert figure.reported == pytest.approx(value)
            assert figure.recomputed == pytest.approx(value, abs=1e-12), (log["path"], figure)
            compared += 1
    assert compared > 100


@pytest.mark.nightly
def test_a_retried_log_keeps_the_task_id_and_the_uuids_of_the_samples_it_copied(logs: list[dict[str, object]]) -> None:
    paths = {Path(str(log["path"])).parent.name: Path(str(log["path"])) for log in logs}
    stopped, retried = (read_adapted(paths[name]).frame for name in ("stopped", "retried"))
    finished = set(stopped.filter(stopped["passed"].is_not_null())["sample_uuid"])
    assert finished
    assert finished <= set(retried["sample_uuid"])
    assert stopped["task_id"][0] == retried["task_id"][0]
    assert stopped["eval_id"][0] != retried["eval_id"][0]
    assert stopped["created"][0] < retried["created"][0]
