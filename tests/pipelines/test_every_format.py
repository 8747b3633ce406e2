"""One folder with a file of every format, beside damaged, empty and hostile ones, evaluated by one command."""

import json
import os
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import PROJECT, call_here, made_once
from tests.ingest.adapters.test_openhands import INDEX
from tests.ingest.adapters.test_swe_agent import trajectory
from touchstone.ingest.adapters import adapters
from touchstone.vocabulary import RESULTS_FOLDER

pytestmark = pytest.mark.services

REAL = PROJECT / "tests" / "ingest" / "adapters" / "files"
MADE = REAL.parent / "made"
TRUNCATED = (REAL / "inspect" / "letters.eval").read_bytes()[:20_000]
DAMAGED = {
    "cut.eval": "the directory at the end of the ZIP file is missing or damaged; copy the file again",
    "deep.json": "the JSON is nested too deeply",
    "empty_fixes.csv": "the file is empty; it must start with a header line",
    "entities.xml": "has a document type declaration, which is refused",
    "nothing.json": "the file is empty",
    "pointer.jsonl": "git lfs pull",
}
# Formats that never hold attempts, or whose attempts another file in this folder has.
NOT_EVALUATED = {
    "bigcode-figures": "ignored",
    "printed-tests": "ignored",
    "unread-json": "unknown",
    "unread-xml": "unknown",
    "git-lfs": "refused",
    "human-eval-problems": "ignored",
    "human-eval-samples": "ignored",
    "livecodebench-tests": "ignored",
    "lm-eval-results": "ignored",
    "aider-leaderboard": "ignored",
    "bigcodebench-figures": "ignored",
    "every-eval-ever-aggregates": "ignored",
    "lighteval-results": "ignored",
    "multipl-e-figures": "ignored",
    "repairbench-figures": "ignored",
    "swebench-pro-errors": "ignored",
    "tau2-bench-parts": "ignored",
}
# Variants of other formats, with tests of their own.
NOT_HERE = {
    "helm-parts",
    "openhands-parts",
    "inspect-index",
    "promptfoo-table",
    "livecodebench-generations",
    "repairbench-candidates",
}
SCYLLA = """experiment,agent_model,tier,subtest,run_number,score,impl_rate,passed,grade,cost_usd,duration_seconds,code
repair,scylla model,T0,001,1,0.9,1.028,True,A,0.5,NaN,0
repair,scylla model,T0,001,2,0.1,0.2,False,F,0.5,3.0,1
repair,scylla model,T1,001,1,0.9,0.9,True,A,inf,3.0,0
repair,scylla model,T1,001,1,0.8,0.9,True,B,0.1,3.0,0
"""


def write(path: Path, content: str | bytes | object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def forgetest_result(case: str, attempt: int, passed: int, failed: int, success: bool = True) -> dict[str, object]:
    return {
        "case_id": case,
        "model": "openai/gpt-4o",
        "provider": "openai",
        "attempt": attempt,
        "compilation": {"success": success, "errors": [], "warnings": [], "duration_ms": 5},
        "test_execution": {"passed": passed, "failed": failed, "ignored": 0} if success else None,
        "clippy": {"warning_count": 2},
        "timing": {"llm_request_ms": 900, "total_ms": 1500},
        "token_usage": {"prompt_tokens": 100, "completion_tokens": 50, "estimated_cost_usd": 0.01},
    }


def failproof_line(case: str, run: str, primary: str, accuracy: int, minute: int) -> str:
    record = {
        "case_id": case,
        "suite_id": "json_api",
        "run_id": run,
        "model_id": "prover",
        "timestamp_utc": f"2026-01-01T00:{minute:02}:00Z",
        "raw_response": "…",
        "error": None,
        "classification": {"primary": primary, "details": ""},
        "scores": {"accuracy": accuracy},
        "latency_ms": 120,
    }
    return json.dumps(record) + "\n"


def put_plain_files(root: Path) -> None:
    write(root / "problems.csv", "oid,filename\na,a.tf\nb,b.tf\n")
    write(root / "native_fixes.csv", "oid,iteration_id,plausible_fix\na,1,true\na,2,true\nb,1,false\nb,2,true\n")
    write(root / "plain" / "models.csv", "oid,model,passed\na,table_one,pass\na,table_two,fail\nb,table_two,pass\n")
    write(root / "plain" / "lines.jsonl", '{"oid": "a", "iteration_id": 1, "passed": true, "tier": "T1"}\n')
    write(root / "problems-of-others.csv", "oid,filename\nz,z.tf\n")
    pl.DataFrame({"oid": ["a", "b"], "iteration_id": [1, 1], "passed": [True, False]}).write_parquet(
        root / "plain" / "columns.parquet"
    )


def put_other_systems(root: Path) -> None:
    write(root / "report.json", {"results": [forgetest_result("case-1", 1, 3, 0), forgetest_result("case-1", 2, 1, 2)]})
    write(root / "runs.csv", "".join(SCYLLA.splitlines(keepends=True)[:-1]))
    shutil.copytree(PROJECT / "tests" / "seeds" / "projectscylla", root / "scylla")
    write(root / "run_results.jsonl", failproof_line("c1", "r1", "pass", 1, 1))
    write(root / "trajectories" / "acme__tool-1" / "acme__tool-1.traj", trajectory("exit_cost", None))
    write(root / "index" / "claude-x" / "instance_results" / "swe-bench.json", INDEX)
    report = (root / "swebench" / "acme__fixer-large.run-2026-05.json").read_bytes()
    write(root / "reports" / "acme__reported.run-1.json", report)
    write(root / "Test.xml", '<Site Name="here"><Testing/></Site>')
    write(root / "bats.tap", "TAP version 13\n1..1\nok 1 - adds\n")
    write(root / "behave.json", [{"keyword": "Feature", "elements": []}])
    (root / "predictions").mkdir()
    shutil.move(root / "swebench" / "preds.jsonl", root / "predictions" / "preds.jsonl")


def put_damaged_files(root: Path) -> None:
    write(root / "cut.eval", TRUNCATED)
    write(root / "empty_fixes.csv", "")
    write(root / "deep.json", "[" * 100_000)
    write(root / "nothing.json", "")
    write(root / "entities.xml", '<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuites><testsuite/></testsuites>')
    write(root / "pointer.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    os.mkfifo(root / "pipe.jsonl")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after one run, with what the command printed beside it."""

    def make(folder: Path) -> None:
        shutil.copytree(REAL, folder / "every")
        shutil.copytree(MADE, folder / "every" / "made")
        put_plain_files(folder / "every")
        put_other_systems(folder / "every")
        put_damaged_files(folder / "every")
        done = call_here("run", folder / "every")
        write(folder / "printed.json", [done.returncode, done.stdout, done.stderr])

    return made_once(tmp_path_factory, "every_format", make) / "every"


@pytest.fixture(scope="module")
def results(root: Path) -> Path:
    return root / RESULTS_FOLDER


def table(results: Path, name: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted((results / "tables" / name).iterdir())], how="diagonal")


def test_every_file_is_accounted_for(root: Path, results: Path) -> None:
    known = table(results, "sources")["source_file"].to_list()
    files = [path.relative_to(root) for path in root.rglob("*") if not path.is_dir()]
    inputs = [path for path in files if path.parts[0] != RESULTS_FOLDER]
    assert [str(path) for path in inputs if not {str(path), *map(str, path.parents)} & set(known)] == []


def test_every_format_is_there_and_has_its_status(results: Path) -> None:
    sources = table(results, "sources").filter(~pl.col("source_file").is_in(list(DAMAGED)))
    evaluated = set(sources.filter(pl.col("status") == "evaluated")["format"])
    assert evaluated == {"native", *(adapter.format for adapter in adapters())} - set(NOT_EVALUATED) - NOT_HERE
    others = table(results, "sources").filter(pl.col("format").is_in(list(NOT_EVALUATED)))
    assert dict(others.select("format", "status").iter_rows()) == NOT_EVALUATED


def test_the_figures_that_the_tools_state_are_reproduced(results: Path) -> None:
    stated = table(results, "reported_figures").drop_nulls(["reported", "recomputed"])
    rounded = pl.col("note").str.contains("rounded to one decimal", literal=True).fill_null(False)
    tools = {"cruxeval", "harbor", "inspect", "junit", "livecodebench", "lm-eval", "promptfoo", "swebench"}
    tools.add("test-reports")
    assert tools < {name.split("/")[0] for name in stated["source_file"]}
    off = (pl.col("reported") - pl.col("recomputed")).abs() > pl.when(rounded).then(0.05).otherwise(1e-9)
    assert stated.filter(off).is_empty()


def test_damaged_files_are_named_in_one_line_and_the_others_go_on(root: Path, results: Path) -> None:
    code, printed, errors = json.loads((root.parent / "printed.json").read_text())
    assert code == 1 and "Traceback" not in errors
    progress = re.compile(r".*\d of [\d,]+( to do)?")  # how many such lines there are depends on the time they take
    assert sum(progress.fullmatch(line) is None for line in errors.splitlines()) < 10, errors
    reasons = dict(table(results, "sources").select("source_file", "reason").iter_rows())
    told = [line for line in printed.splitlines() if line.startswith("not evaluated: ")]
    for name, reason in DAMAGED.items():
        assert reason in reasons[name] and "\n" not in reasons[name]
        assert sum(line.startswith(f"not evaluated: {name} (") and reason in line for line in told) == 1
    assert reasons["pipe.jsonl"] == "not a regular file"
    assert "results were published despite a failed check" in printed
