"""Files written now by SWE-bench's, Terminal-Bench's and Harbor's own code: their figures are reproduced.

`TOOLS_PYTHON` names an interpreter that has the tools installed; without it the one that runs the tests is tried.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from touchstone.ingest.adapters import AdapterTable, read_adapted
from touchstone.ingest.adapters.formats.harbor import outcome

TOOLS = Path(__file__).parent / "tools"
TRIAL = (
    Path(__file__).parent / "files" / "harbor" / "jobs" / "2026-05-01__09-00-00" / "fix-null__dX3q9Z" / "result.json"
)
SEEDS = range(3)

pytestmark = pytest.mark.nightly


def write_files(script: str, folder: Path, *arguments: object) -> None:
    """Run a script with the tool's interpreter in a folder; skips where the tool is not installed."""
    python = os.environ.get("TOOLS_PYTHON", sys.executable)
    # Terminal-Bench imports LiteLLM, which looks up prices on the network otherwise.
    environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [python, str(TOOLS / script), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"the tool is not installed: {done.stderr.splitlines()[-1]}; set TOOLS_PYTHON")
    assert done.returncode == 0, done.stderr


def require_reproduced(table: AdapterTable) -> None:
    assert table.figures
    for figure in table.figures:
        assert figure.recomputed == pytest.approx(figure.reported), figure.name


@pytest.mark.parametrize("seed", SEEDS)
def test_swebench(tmp_path: Path, seed: int) -> None:
    write_files("write_swebench.py", tmp_path, seed)
    kinds = json.loads((tmp_path / "expected.txt").read_text())
    outcomes = dict.fromkeys(("fails", "breaks", "empty", "memory"), "false") | {"resolved": "true"}
    report = tmp_path / "acme__fixer-1.5.run.1.json"
    (tmp_path / "elsewhere").mkdir()
    alone = Path(shutil.copy(report, tmp_path / "elsewhere" / "acme__fixer-1.5.run-1.json"))
    # Only the logs tell that a patch does not apply; that the tests timed out is in the report too.
    for path, apply in ((tmp_path, "false"), (report, "false"), (alone, None)):
        table = read_adapted(path)
        require_reproduced(table)
        expected = outcomes | {"network": None, "crash": None, "apply": apply, "timeout": "false"}
        assert dict(table.frame.select("oid", "passed").iter_rows()) == {
            oid: expected[kind] for oid, kind in kinds.items() if kind != "none"
        }
        assert table.frame["llm_name"].unique().to_list() == ["acme/fixer-1.5"]


@pytest.mark.parametrize("seed", SEEDS)
def test_terminal_bench(tmp_path: Path, seed: int) -> None:
    write_files("write_terminal_bench.py", tmp_path, seed)
    table = read_adapted(tmp_path / "run")
    require_reproduced(table)
    assert table.frame["__broken"].null_count() == table.frame.height
    rows = json.loads((tmp_path / "run" / "results.json").read_text())["results"]
    assert table.frame["trial_name"].to_list() == [row["trial_name"] for row in rows]


@pytest.mark.parametrize("seed", SEEDS)
def test_harbor(tmp_path: Path, seed: int) -> None:
    write_files("write_harbor.py", tmp_path, seed, TRIAL)
    table = read_adapted(tmp_path / "job")
    require_reproduced(table)
    attempts = Counter(table.frame["oid"])
    assert all(table.frame.filter(oid=oid)["iteration_id"].n_unique() == count for oid, count in attempts.items())


def test_harbor_classifies_exceptions_as_here(tmp_path: Path) -> None:
    write_files("write_harbor.py", tmp_path, 0, TRIAL)
    policies = json.loads((tmp_path / "policies.txt").read_text())
    provoked = {"VerifierTimeoutError", "MemoryLimitExceededError", "SandboxLikelyOutOfMemoryError"}
    differ = {
        name
        for name, (cause, valid) in policies.items()
        if (outcome(0, [name])[0] is not None) != (valid or cause == "unclassified")
    }
    assert differ == provoked
