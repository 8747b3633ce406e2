"""One folder with a file of each of the four systems, evaluated at once."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Folder
from tests.pipelines.test_run import evaluate

# By day, test_every_format.py has a file of each among the others.
pytestmark = pytest.mark.nightly

SCYLLA = """experiment,agent_model,tier,subtest,run_number,score,impl_rate,passed,grade,cost_usd,duration_seconds,code
repair,scylla model,T0,001,1,0.9,1.028,True,A,0.5,NaN,0
repair,scylla model,T0,001,2,0.1,0.2,False,F,0.5,3.0,1
repair,scylla model,T1,001,1,0.9,0.9,True,A,inf,3.0,0
repair,scylla model,T1,001,1,0.8,0.9,True,B,0.1,3.0,0
"""


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


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Folder(tmp_path_factory.mktemp("four"))
    folder.problems("oid,filename\na,a.tf\nb,b.tf\n")
    folder.fixes("native", "oid,iteration_id,plausible_fix\na,1,true\nb,1,false\n")
    fixes = folder.root / "fixes"
    report = {"results": [forgetest_result("case-1", 1, 3, 0), forgetest_result("case-1", 2, 1, 2)]}
    report["results"].append(forgetest_result("case-2", 1, 0, 0, success=False))
    (fixes / "report.json").write_text(json.dumps(report, indent=1))
    (fixes / "runs.csv").write_text(SCYLLA)
    lines = [failproof_line("c1", "r1", "pass", 1, 1), failproof_line("c1", "r2", "refusal", 0, 2)]
    lines += [failproof_line("c2", "r1", "pass", 0, 1), "not json\n"]
    (fixes / "run_results.jsonl").write_text("".join(lines))
    folder.configure(k_values=[1], checks={"max_quarantine_share": 0.5, "min_coverage": 0})
    outcome = evaluate(folder)
    assert outcome.exit_code == 0, outcome
    return folder.output


def table(results: Path, name: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted((results / "tables" / name).iterdir())], how="diagonal")


def test_every_model_has_its_figures(results: Path) -> None:
    figures = table(results, "pass_at_k").select("model", "tier", "pass_at_k", "attempted").rows()
    assert figures == [
        ("native", "T0", 0.5, 2),
        ("openai/gpt-4o", "T0", 0.25, 2),
        ("prover", "T0", 0.5, 1),
        ("scylla model", "T0", 0.5, 1),
    ]


def test_problems_are_those_of_the_file_and_those_that_the_others_bring(results: Path) -> None:
    expected = ["a", "b", "c1", "case-1", "case-2", "repair/T0/001", "repair/T1/001"]
    assert table(results, "problems")["oid"].to_list() == expected


def test_what_is_refused_is_told_with_its_file(results: Path) -> None:
    refused = table(results, "quarantine").select("source_file", "kind").sort("source_file", "kind").rows()
    assert refused == [
        ("run_results.jsonl", "contradiction"),
        ("run_results.jsonl", "ragged"),
        ("runs.csv", "conflict"),
        ("runs.csv", "conflict"),
    ]


def test_each_systems_own_figures_are_there(results: Path) -> None:
    forge = table(results, "problem_statistics").filter(pl.col("model") == "openai/gpt-4o", pl.col("oid") == "case-1")
    # 3 of 3 tests and 1 of 3, two lint warnings each: 0.4 + 0.5 + 0.08 and 0.4 + 0.5 / 3 + 0.08.
    assert forge["best_score"].item() == pytest.approx(0.98)
    assert forge["avg_score"].item() == pytest.approx((0.98 + 0.48 + 0.5 / 3) / 2)
    scylla = table(results, "attempt_scores").filter(pl.col("model") == "scylla model")
    assert scylla["impl_rate"].to_list() == [1.0, 0.2]
    assert scylla["composite_score"].to_list() == [1.0, 0.1]
    runs = table(results, "run_scores").filter(pl.col("model") == "prover")
    assert dict(runs.select("run_id", "overall_score").iter_rows()) == {"r1": 1.0, "r2": 0.0}


def test_the_sources_table_says_where_everything_came_from(results: Path) -> None:
    rows = table(results, "sources").select("model", "source_file", "format", "rows", "accepted").sort("model").rows()
    assert rows == [
        (None, "problems.csv", "native", 2, 2),
        ("native", "native_fixes.csv", "native", 2, 2),
        ("openai/gpt-4o", "report.json", "forgetest", 3, 3),
        ("prover", "run_results.jsonl", "failproof", 3, 2),
        ("scylla model", "runs.csv", "scylla", 4, 2),
    ]
