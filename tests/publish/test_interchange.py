"""`touchstone export` of all results: as Touchstone's own input, and for other tools."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

import touchstone as api
from tests.conftest import NOT_DRAWN, Command, made_once
from touchstone.errors import TouchstoneError
from touchstone.ingest.adapters import read_adapted
from touchstone.publish.interchange.evalplus import write_evalplus
from touchstone.publish.interchange.every_eval_ever import write_every_eval_ever
from touchstone.publish.interchange.inspect_logs import write_inspect
from touchstone.publish.interchange.lm_eval import write_lm_eval
from touchstone.publish.interchange.results import Run, Writer, save_folder, write_native_csv
from touchstone.publish.interchange.runner_reports import write_ctrf, write_junit, write_swebench
from touchstone.storage.files import file_key

GPT = """oid,iteration_id,tier,passed,classification,input_tokens,output_tokens,cost_usd,latency_ms,weighted_score,note
base/a,1,T0,true,pass,10,5,0.25,1500,1,"=SUM(1), ""x"" \ry"
base/a,2,T0,false,timeout,,,,,0.5,
plus/a,1,T0,false,fail,,,,,,
plus/a,2,T0,false,fail,,,,,,
-b,1,T0,,,,,,,,undecided
-b,2,T0,true,,,,,,,
-b,1,T1,false,,,,,,,
"""
MISTRAL = 'oid,iteration_id,plausible_fix,fixed_code\n-b,first,false,"x = 1\n"\n-b,second,true,y\n'
PROBLEMS = "oid,filename,suite,cluster\nbase/a,f.py,base,a\nplus/a,f.py,plus,a\n-b,g.py,own,\n"


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(root: Path) -> None:
        fixes = root / "fixes"
        fixes.mkdir()
        (fixes / "problems.csv").write_text(PROBLEMS)
        (fixes / "openai%2Fgpt-4o_fixes.csv").write_text(GPT, newline="")
        (fixes / "mistral_fixes.csv").write_text(MISTRAL)
        evaluate(root)

    return made_once(tmp_path_factory, "interchange", make) / "out" / "tables"


def evaluate(root: Path) -> api.Results:
    config = {"fixes_dir": "fixes", "output_dir": "out", "k_values": [1], "validation": {"mode": "never"}, **NOT_DRAWN}
    (root / "config.json").write_text(json.dumps(config))
    return api.evaluate(root / "config.json")


@pytest.mark.nightly
def test_native_csv_evaluates_to_the_same_results(tables: Path, tmp_path: Path) -> None:
    assert save_folder(Run(tables), tmp_path / "fixes", write_native_csv) == []
    names = ["mistral_fixes.csv", "openai%2Fgpt-4o_fixes.csv", "problems.csv"]
    assert sorted(path.name for path in (tmp_path / "fixes").iterdir()) == names
    again = evaluate(tmp_path)
    for table in ("problems", "attempts", "pass_at_k", "suite_scores", "economics"):
        before = pl.concat([pl.read_parquet(file) for file in sorted((tables / table).glob("*"))], how="diagonal")
        assert again[table].select(before.columns).equals(before), table


@pytest.mark.services
def test_a_model_that_no_csv_can_name_is_refused(tables: Path, tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="'a_synthetic' cannot be named in a CSV file's name"):
        save_folder(_Renamed(tables), tmp_path / "out", write_native_csv)
    assert list(tmp_path.iterdir()) == []


class _Renamed(Run):
    """A run with a model whose name a CSV file's name would lose."""

    def models(self) -> list[str]:
        return ["a_synthetic"]


def exported(tables: Path, folder: Path, write: Writer) -> dict[str, Any]:
    """What the files of an export have in them, by name; nothing was left out."""
    assert save_folder(Run(tables), folder, write) == []
    texts = {path.name: path.read_text() for path in sorted(folder.iterdir())}
    return {name: json.loads(text) if name.endswith(".json") else text for name, text in texts.items()}


def test_evalplus_has_base_and_plus_of_a_task_together(tables: Path, tmp_path: Path) -> None:
    notes = save_folder(Run(tables), tmp_path / "out", write_evalplus)
    assert notes == ["1 of 9 attempts are undecided; evalplus has no such status, so they are left out"]
    files = {path.name: json.loads(path.read_text()) for path in (tmp_path / "out").iterdir()}
    alone, paired = "openai--gpt-4o@T0_eval_results.json", "openai--gpt-4o@T0~2_eval_results.json"
    assert sorted(files) == ["mistral@T0_eval_results.json", alone, paired, "openai--gpt-4o@T1_eval_results.json"]
    statuses = [(sample["base_status"], sample["plus_status"]) for sample in files[paired]["eval"]["a"]]
    assert statuses == [("pass", "fail"), ("timeout", "fail")]
    assert [sample["base_status"] for sample in files[alone]["eval"]["-b"]] == ["pass"]
    assert files["mistral@T0_eval_results.json"]["eval"]["-b"][0] == {
        "task_id": "-b",
        "solution": "x = 1\n",
        "base_status": "fail",
        "plus_status": None,
        "base_fail_tests": [],
        "touchstone": {"base": {"oid": "-b", "iteration_id": "first", "tier": "T0", "suite": "own"}},
    }


def test_inspect_logs(tables: Path, tmp_path: Path) -> None:
    logs = {
        (log["eval"]["model"], log["eval"]["task"], log["eval"]["task_args"]["tier"]): log
        for log in exported(tables, tmp_path / "out", write_inspect).values()
    }
    assert {log["version"] for log in logs.values()} == {2} and len(logs) == 5
    log = logs["openai/gpt-4o", "base", "T0"]
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.5
    assert [(each["id"], each["epoch"], each["scores"]["passed"]["value"]) for each in log["samples"]] == [
        ("a", 1, "C"),
        ("a", 2, "I"),
    ]
    usage = {"input_tokens": 10, "output_tokens": 5, "total_cost": 0.25, "total_tokens": 15}
    assert log["samples"][0]["model_usage"] == {"openai/gpt-4o": usage}
    undecided, decided = logs["openai/gpt-4o", "own", "T0"]["samples"]
    assert "scores" not in undecided and undecided["error"]["message"] and "error" not in decided
    assert logs["openai/gpt-4o", "own", "T0"]["results"]["completed_samples"] == 1
    assert logs["mistral", "own", "T0"]["samples"][0]["output"]["completion"] == "x = 1\n"


def test_swe_bench_has_a_report_per_attempt(tables: Path, tmp_path: Path) -> None:
    reports = exported(tables, tmp_path / "out", write_swebench)
    assert list(reports) == [
        "mistral@T0.attempt-1.json",
        "mistral@T0.attempt-2.json",
        "openai__gpt-4o@T0.attempt-1.json",
        "openai__gpt-4o@T0.attempt-2.json",
        "openai__gpt-4o@T1.attempt-1.json",
    ]
    first = reports["openai__gpt-4o@T0.attempt-1.json"]
    assert (first["resolved_ids"], first["unresolved_ids"], first["error_ids"]) == (["base/a"], ["plus/a"], ["-b"])
    assert (first["total_instances"], first["completed_instances"], first["resolved_instances"]) == (3, 2, 1)


def test_reports_of_test_runners_skip_what_is_undecided(tables: Path, tmp_path: Path) -> None:
    name = "openai%2Fgpt-4o@T0.attempt-1"
    report = exported(tables, tmp_path / "ctrf", write_ctrf)[f"{name}.json"]["results"]
    assert [(each["name"], each["suite"], each["status"]) for each in report["tests"]] == [
        ("-b", ["own"], "skipped"),
        ("base/a", ["base"], "passed"),
        ("plus/a", ["plus"], "failed"),
    ]
    assert {name: report["summary"][name] for name in ("tests", "passed", "failed", "skipped")} == {
        "tests": 3,
        "passed": 1,
        "failed": 1,
        "skipped": 1,
    }
    suite = ElementTree.fromstring(exported(tables, tmp_path / "junit", write_junit)[f"{name}.xml"])[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert [case.get("name") for case in suite.iter("testcase") if case.find("skipped") is not None] == ["-b"]


def test_lm_eval_has_a_folder_per_model_and_a_time_per_attempt(tables: Path, tmp_path: Path) -> None:
    notes = save_folder(Run(tables), tmp_path / "out", write_lm_eval)
    assert notes == ["1 of 9 attempts are undecided; lm-eval scores every document, so they are left out"]
    folder = tmp_path / "out" / "openai__gpt-4o@T0"
    assert len(list(folder.glob("samples_base_*.jsonl"))) == len(list(folder.glob("results_*.json"))) == 2
    results = json.loads(min(folder.glob("results_*.json")).read_text())
    assert results["model_name"] == "openai/gpt-4o" and results["results"]["base"]["acc,none"] == 1.0


def test_every_eval_ever_is_read_back(tables: Path, tmp_path: Path) -> None:
    save_folder(Run(tables), tmp_path / "out", write_every_eval_ever)
    key = ["oid", "tier", "iteration_id", "suite", "passed", "classification", "weighted_score", "input_tokens"]
    for model in Run(tables).models():
        read = read_adapted(tmp_path / "out" / f"{file_key(model)}_samples.jsonl")
        ours = Run(tables).rows(model).drop_nulls("passed").collect().select(key)
        # As a verdict, 1 is the score of what passed.
        score = pl.col("weighted_score")
        ours = ours.with_columns(score.replace(1.0, None)) if model.startswith("openai") else ours
        theirs = read.frame.select(pl.col(name).cast(ours.schema[name]) for name in key if name != "passed")
        assert theirs.rows() == ours.drop("passed").rows()
        assert (read.frame["passed"] == "true").to_list() == ours["passed"].to_list()
        assert read.figures and all(each.reported == pytest.approx(each.recomputed) for each in read.figures)


def test_every_eval_ever(tables: Path, tmp_path: Path) -> None:
    notes = save_folder(Run(tables), tmp_path / "out", lambda run, folder: write_every_eval_ever(run, folder, 7.9))
    assert notes == ["1 of 9 attempts are undecided; Every Eval Ever has no such instances, so they are left out"]
    record: dict[str, Any] = json.loads((tmp_path / "out" / "openai%2Fgpt-4o.json").read_text())
    # What the schema requires.
    assert record["schema_version"] == "0.3.0" and record["retrieved_timestamp"] == "7"
    assert record["evaluation_id"] == "touchstone/openai/gpt-4o/7"
    assert record["model_info"] == {"name": "openai/gpt-4o", "id": "openai/gpt-4o"}
    assert {"source_type", "source_organization_name", "evaluator_relationship"} <= set(record["source_metadata"])
    assert {"name", "version"} == set(record["eval_library"])
    figures = pl.read_parquet(tables / "pass_at_k").filter(pl.col("model") == "openai/gpt-4o").sort("tier")
    for result, row in zip(record["evaluation_results"], figures.iter_rows(named=True), strict=True):
        assert {"evaluation_name", "source_data", "metric_config", "score_details"} <= set(result)
        assert result["score_details"]["score"] == row["pass_at_k"]
        interval = result["score_details"]["uncertainty"]["confidence_interval"]
        assert (interval["lower"], interval["upper"], interval["confidence_level"]) == (
            row["ci_low"],
            row["ci_high"],
            0.95,
        )
    details = record["detailed_evaluation_results"]
    data = (tmp_path / "out" / details["file_path"]).read_bytes()
    assert details["checksum"] == hashlib.sha256(data).hexdigest() and details["total_rows"] == 6
    instance = json.loads(data.splitlines()[1])
    required = {"schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id", "interaction_type"}
    assert required | {"input", "output", "answer_attribution", "evaluation"} <= set(instance)
    assert instance["sample_id"] == "base/a" and instance["metadata"]["iteration_id"] == "1"
    assert instance["evaluation"] == {"score": 1.0, "is_correct": True}
    assert instance["token_usage"]["total_tokens"] == 15 and instance["performance"] == {"latency_ms": 1500.0}


@pytest.mark.parametrize("make", [lambda path: path.write_text(""), lambda path: (path / "x").mkdir(parents=True)])
def test_nothing_is_overwritten(tables: Path, tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "out")
    with pytest.raises(TouchstoneError, match="already exists; name a folder that is new or empty"):
        save_folder(Run(tables), tmp_path / "out", write_inspect)


def test_a_failed_export_leaves_nothing_behind(tables: Path, tmp_path: Path) -> None:
    def fail(run: Run, folder: Path) -> list[str]:
        (folder / "half").write_text("")
        raise OSError(28, "No space left on device")

    with pytest.raises(TouchstoneError, match="out: No space left on device"):
        save_folder(Run(tables), tmp_path / "out", fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "inspect"), "--to inspect writes a folder: add --save-to FOLDER"),
        ((), "--to csv writes a folder: add --save-to FOLDER"),
        (("--format", "latex"), "--format latex needs a table; `touchstone tables` lists them"),
        (("attempts", "--format", "evalplus"), "--to evalplus is for all results: leave the table out"),
        (("--save-to", "x", "--columns", "model"), "--columns goes with a table"),
    ],
)
def test_wrong_use_is_one_line(tables: Path, touchstone: Command, arguments: tuple[str, ...], message: str) -> None:
    done = touchstone("export", "--data", tables.parent, *arguments)
    assert done.returncode == 2 and done.stderr == f"error: {message}\n"


def test_the_command(tables: Path, tmp_path: Path, touchstone: Command) -> None:
    done = touchstone("export", "--data", tables.parent, "--format", "evalplus", "--save-to", tmp_path / "out")
    assert done.returncode == 0 and done.stderr.startswith("note: 1 of 9 attempts are undecided")
    assert len(list((tmp_path / "out").iterdir())) == 4
