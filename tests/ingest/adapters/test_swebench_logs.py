"""Reading the logs of SWE-bench's harness: a folder at any level, single reports, and instances without a report."""

import json
import shutil
from pathlib import Path

import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, detect_format, read_adapted

FILES = Path(__file__).parent / "files" / "swebench"
MODEL = Path("logs", "run_evaluation", "run-2026-05", "acme__fixer-large")
FIRST = FILES / MODEL / "acme__tool-101" / "report.json"


@pytest.fixture
def harness(tmp_path: Path) -> Path:
    """A copy of the harness's working folder."""
    return Path(shutil.copytree(FILES, tmp_path / "work"))


def read(path: Path) -> AdapterTable:
    assert detect_format(path) == "swebench-logs"
    return read_adapted(path)


def statuses(table: AdapterTable) -> dict[str, tuple[str, str | None]]:
    return {
        oid.removeprefix("acme__tool-"): rest for oid, *rest in table.frame["oid", "swebench_status", "passed"].rows()
    }


def test_the_working_folder_of_the_harness() -> None:
    table = read(FILES)
    assert statuses(table) == {
        "101": ["resolved", "true"],
        "102": ["unresolved", "false"],
        "103": ["unresolved", "false"],
        "106": ["infra_failure", None],
        "104": ["empty_patch", "false"],
        "105": ["error", None],
    }
    assert [(figure.reported, figure.recomputed) for figure in table.figures] == [(1, 1), (1 / 7, 1 / 7)]
    assert {file.name for file in table.files} == {"report.json", "patch.diff", "acme__fixer-large.run-2026-05.json"}
    assert len(table.files) == 9


def test_the_report_and_the_logs_of_a_run_have_the_same_attempts() -> None:
    report, logs = (read_adapted(FILES / name).frame for name in ("acme__fixer-large.run-2026-05.json", "logs"))
    assert set(logs["sample_uuid"]) < set(report["sample_uuid"])
    assert "acme/fixer-large/run-2026-05/acme__tool-101" in set(logs["sample_uuid"])


def test_files_are_named_like_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FILES)
    assert FIRST.relative_to(FILES) in read(Path("logs")).files
    assert FIRST in read(FILES / "logs").files


def test_names_that_are_not_utf_8(harness: Path) -> None:
    model = harness / MODEL
    model.rename(model.with_name("acme__\udcff"))
    assert read(harness / "logs").frame["llm_name"].unique().to_list() == ["acme/?"]


@pytest.mark.parametrize("level", [MODEL.parents[2], MODEL.parents[1], MODEL.parents[0], MODEL], ids=str)
def test_every_level_gives_the_same_attempts(level: Path) -> None:
    table = read(FILES / level)
    assert list(statuses(table)) == ["101", "102", "103", "106"]
    assert table.frame.select("llm_name", "run_id", "iteration_id").unique().rows() == [
        ("acme/fixer-large", "run-2026-05", "1")
    ]
    assert [(figure.reported, figure.recomputed) for figure in table.figures] == [(None, 1)]


@pytest.mark.parametrize("path", [FIRST, FIRST.parent], ids=["file", "folder"])
def test_a_single_instance(path: Path) -> None:
    row = read(path).frame.row(0, named=True)
    assert (row["oid"], row["llm_name"], row["passed"]) == ("acme__tool-101", "acme/fixer-large", "true")
    assert (row["tests_passed"], row["tests_failed"]) == ("2", "0")
    assert row["model_patch"] == "diff --git a/acme__tool-101.py b/acme__tool-101.py\n"


def test_a_report_that_was_moved_names_no_model(tmp_path: Path) -> None:
    path = Path(shutil.copy(FIRST, tmp_path))
    with pytest.raises(InputFileError, match="the model is only in the names of the harness's folders"):
        read(path)


def test_the_logs_of_a_submission_belong_to_its_folder(tmp_path: Path) -> None:
    shutil.copytree(FILES / MODEL, tmp_path / "20260501_fixer" / "logs")
    for path in (tmp_path / "20260501_fixer", tmp_path / "20260501_fixer" / "logs"):
        assert read(path).frame.select("llm_name", "run_id", "iteration_id").unique().rows() == [
            ("20260501_fixer", None, "1")
        ]


@pytest.mark.parametrize("level", ["", "logs"])
def test_the_results_of_a_submission_decide_its_logs_without_reports(tmp_path: Path, level: str) -> None:
    """As in Multi-SWE-bench's experiments: reports were not published, and an empty patch left no log."""
    submission = tmp_path / "20240825_fixer"
    for oid in ("google__gson-1", "google__gson-2"):
        (submission / "logs" / oid).mkdir(parents=True)
        (submission / "logs" / oid / "run_instance.log").write_text("INFO - Grading answer\n")
    (submission / "results").mkdir()
    lists = {
        "resolved": ["google__gson-1"],
        "unresolved_ids": ["google__gson-2"],
        "empty_patch_ids": ["google__gson-3"],
    }
    counts = {"total_instances": 3, "submitted_instances": 3, "resolved_instances": 1}
    (submission / "results" / "results.json").write_text(json.dumps(counts | lists))
    table = read(submission / level)
    assert table.frame.select("llm_name", "oid", "passed").rows() == [
        ("20240825_fixer", "google__gson-1", "true"),
        ("20240825_fixer", "google__gson-2", "false"),
        ("20240825_fixer", "google__gson-3", "false"),
    ]
    assert [(each.reported, each.recomputed) for each in table.figures] == [(1, 1), (1 / 3, 1 / 3)]


@pytest.mark.parametrize(
    ("log", "test_output", "status", "passed"),
    [
        ("INFO - >>>>> Patch Apply Failed:\npatch: **** malformed patch", "", "patch_failed", "false"),
        ("INFO - running", "line\n\nTimeout error: 1800 seconds exceeded.", "timeout", "false"),
        ("ERROR - Error creating container: no space left", "", "error", None),
        ("", "", "error", None),
    ],
)
def test_an_instance_without_a_report(
    harness: Path, log: str, test_output: str, status: str, passed: str | None
) -> None:
    folder = harness / MODEL / "acme__tool-105"
    folder.mkdir()
    (folder / "run_instance.log").write_text(log)
    (folder / "test_output.txt").write_text(test_output)
    # With the run report, which only knows that there was an error, and without it.
    assert statuses(read(harness))["105"] == statuses(read(harness / "logs"))["105"] == [status, passed]


@pytest.mark.parametrize("kept", ["patch.diff", "test_output.txt", "test_output.txt.gz"])
def test_an_instance_of_a_submission_without_a_report_or_a_log(tmp_path: Path, kept: str) -> None:
    logs = Path(shutil.copytree(FILES / MODEL, tmp_path / "20260101_acme" / "logs"))
    (logs / "acme__tool-999").mkdir()
    (logs / "acme__tool-999" / kept).write_bytes(b"x")
    (logs / "notes").mkdir()
    (logs / "notes" / kept).write_bytes(b"x")
    found = statuses(read(logs.parent))
    assert found["999"] == ["error", None]
    assert "notes" not in found


def test_several_runs_are_several_attempts(harness: Path) -> None:
    runs = harness / MODEL.parents[1]
    shutil.copytree(runs / "run-2026-05", runs / "run-2026-06")
    rows = read(harness).frame
    assert rows.filter(rows["oid"] == "acme__tool-101")["iteration_id"].to_list() == ["run-2026-05:1", "run-2026-06:1"]


@pytest.mark.parametrize(("oid", "passed"), [("acme__tool-101", "true"), ("acme__tool-102", "false")])
def test_the_run_report_decides_an_instance_whose_log_has_no_report(harness: Path, oid: str, passed: str) -> None:
    """Logs are often published without their reports, which only the run report then sums up."""
    folder = harness / MODEL / oid
    (folder / "report.json").unlink()
    (folder / "run_instance.log").write_text("2026-05-01 - INFO - Grading answer\n")
    table = read(harness)
    assert statuses(table)[oid.removeprefix("acme__tool-")][1] == passed
    assert table.frame["__broken"].null_count() == table.frame.height
    assert statuses(table) == statuses(read(FILES))


def test_logs_and_report_that_contradict_each_other(harness: Path) -> None:
    file = harness / "acme__fixer-large.run-2026-05.json"
    report = json.loads(file.read_text())
    report["resolved_ids"].append("acme__tool-102")
    report["unresolved_ids"].remove("acme__tool-102")
    file.write_text(json.dumps(report))
    refused = read(harness).frame.drop_nulls("__broken")
    assert refused.select("oid", "__kind", "__broken").rows() == [
        (
            "acme__tool-102",
            "contradiction",
            "acme__tool-102: its log says unresolved and the run report says resolved; evaluate it again",
        )
    ]


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        ("{broken", "ragged", "acme__tool-101/report.json: broken JSON at line 1"),
        ("[]", "ragged", "the report is a list where an object belongs"),
        ('{"other": {}}', "bad_id", "acme__tool-101/report.json: it is about another instance"),
        ('{"acme__tool-101": {"resolved": "yes"}}', "bad_boolean", "resolved is not true or false"),
        ('{"acme__tool-101": null}', "ragged", "the report is null where an object belongs"),
    ],
)
def test_a_broken_report_refuses_its_instance(harness: Path, content: str, kind: str, reason: str) -> None:
    file = harness / MODEL / "acme__tool-101" / "report.json"
    file.write_text(content)
    (file.parent / "run_instance.log").touch()
    table = read(harness / "logs")
    refused = table.frame.drop_nulls("__broken")
    assert refused["oid"].to_list() == ["acme__tool-101"]
    assert (refused["__kind"][0], reason in refused["__broken"][0]) == (kind, True)
    assert table.raw({1}) == {1: content}
    assert table.frame.height == 4


def test_other_folders_are_not_logs(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "report.json").write_text('{"resolved": 3}')
    assert detect_format(tmp_path) is None
    assert detect_format(tmp_path / "a") is None


MADE = Path(__file__).parent / "made"
MINI = MADE / "mini-swe-agent" / "20260501_mini-v1.15.0_fixer-large"
LIVE = MADE / "swebench-live" / "logs"


@pytest.mark.parametrize(
    ("folder", "logs"), [(MINI, MINI / "logs"), (LIVE / "fixer-large", LIVE)], ids=["mini", "live"]
)
def test_other_tools_reports_at_every_level(folder: Path, logs: Path) -> None:
    """mini-swe-agent and SWE-bench-Live leave reports without the instance around them."""
    assert read(folder).frame.equals(read(logs).frame)
    assert read(folder).figures == read(logs).figures


def test_the_logs_of_swe_smith(tmp_path: Path) -> None:
    """As `swesmith.harness.eval` leaves them, with one prediction of four that was never run."""
    run, oids = tmp_path / "logs" / "run_evaluation" / "run-1", [f"acme__tool.1fd5253{place}.lm__x" for place in "abc"]
    tests = {"FAIL_TO_PASS": {"success": ["t"], "failure": []}, "PASS_TO_PASS": {"success": [], "failure": ["u"]}}
    resolved = {"patch_is_None": False, "patch_exists": True, "resolved": True, "tests_status": tests}
    empty = {"patch_is_None": True, "patch_exists": False, "resolved": False, "model_name_or_path": "fixer"}
    for oid, report in zip(oids, (resolved, empty, {"timed_out": True, "timeout": 360}), strict=True):
        (run / oid).mkdir(parents=True)
        (run / oid / "report.json").write_text(json.dumps(report))
        (run / oid / "run_instance.log").touch()
    count = {"resolved": 1, "unresolved": 2, "total": 4, "ids_resolved": oids[:1], "ids_unresolved": oids[1:]}
    (run / "report.json").write_text(json.dumps(count))
    table = read(run)
    assert table.frame.select("oid", "llm_name", "iteration_id", "swebench_status", "passed", "cluster").rows() == [
        (oids[0], "run-1", "1", "resolved", "true", "acme__tool"),
        (oids[1], "run-1", "1", "empty_patch", "false", "acme__tool"),
        (oids[2], "run-1", "1", "timeout", "false", "acme__tool"),
    ]
    assert [(figure.reported, figure.recomputed) for figure in table.figures] == [(1, 1), (1 / 4, 1 / 4)]
    report = read_adapted(run / "report.json")
    assert report.frame["passed"].to_list() == ["true", "false", "false"] and len(report.figures) == 2


def test_such_a_report_alone_says_nothing_about_its_instance(tmp_path: Path) -> None:
    path = Path(shutil.copy(MINI / "logs" / "other__lib-7" / "report.json", tmp_path))
    with pytest.raises(InputFileError, match="keep the file in <model>/<instance>/"):
        read(path)


def test_reports_of_several_instances_in_one_file(tmp_path: Path) -> None:
    """As people put them together; the verdicts are those of the logs."""
    reports = [json.loads(file.read_text()) for file in sorted((FILES / MODEL).glob("*/report.json"))]
    path = tmp_path / "fixer" / "evaluation_report.json"
    path.parent.mkdir()
    path.write_text(
        json.dumps({oid: report for each in reports for oid, report in each.items()} | {"x": {"resolved": 1}})
    )
    table = read(path)
    logs = read(FILES / MODEL)
    columns = ["oid", "passed", "swebench_status", "tests_passed"]
    assert table.frame.select(columns).rows()[:4] == logs.frame.select(columns).rows()[:4]
    assert set(table.frame["llm_name"]) == {"fixer"}
    assert table.frame["__broken"].to_list() == [None] * 4 + ["x: resolved is not true or false"]


MULTI = FILES.parents[1] / "made" / "multi-swe-bench-logs" / "20260501_fixer-multi"


def test_a_valid_report_of_multi_swe_bench_is_not_resolved_by_itself(tmp_path: Path) -> None:
    run = shutil.copytree(MULTI, tmp_path / "run")
    of_data_set = run / "logs" / "orbit-io" / "flags" / "instances" / "pr-11"
    of_data_set.mkdir(parents=True)
    (of_data_set / "run_instance.log").write_text("made the data set")
    columns = ["oid", "llm_name", "passed", "swebench_status"]
    judged = read_adapted(run)
    assert judged.frame.select(columns).rows() == [
        ("orbit-io__flags-11", "run", "true", "resolved"),
        ("orbit-io__flags-12", "run", "false", "unresolved"),
        ("orbit-io__flags-13", "run", "false", "unresolved"),
        ("orbit-io__flags-14", "run", None, "error"),
    ]
    undecided = [
        ("orbit-io/flags:pr-11", "run", None, "error"),
        ("orbit-io/flags:pr-12", "run", None, "error"),
        ("orbit-io/flags:pr-13", "run", "false", "unresolved"),
        ("orbit-io/flags:pr-14", "run", None, "error"),
    ]
    part = read_adapted(run / "logs" / "orbit-io" / "flags")
    assert part.frame.select(columns).rows() == undecided and "read all logs" in part.notes[-1] and not part.figures
    shutil.rmtree(run / "results")
    assert read_adapted(run).frame.select(columns).rows() == undecided
    report = run / "logs" / "orbit-io" / "flags" / "evals" / "pr-11" / "report.json"
    assert read_adapted(report).frame.select(columns).rows() == undecided[:1]
    ids = {"resolved_ids": ["orbit-io/flags:pr-12"], "unresolved_ids": ["orbit-io/flags:pr-13"]}
    counts = dict.fromkeys(("total_instances", "submitted_instances"), 3) | {"resolved_instances": 1}
    (run / "final_report.json").write_text(json.dumps(counts | ids | {"error_ids": ["orbit-io/flags:pr-11"]}))
    assert read_adapted(run).frame.select("oid", "passed").rows()[:3] == [
        ("orbit-io/flags:pr-11", None),
        ("orbit-io/flags:pr-12", "true"),
        ("orbit-io/flags:pr-13", "false"),
    ]
    document = json.loads(report.read_text())
    report.write_text(json.dumps(document | {"number": 12}))
    assert "it is about another instance" in (read_adapted(run).frame["__broken"][0] or "")
    report.write_text(json.dumps(document | {"valid": None}))
    assert "valid is not true or false" in (read_adapted(run).frame["__broken"][0] or "")
