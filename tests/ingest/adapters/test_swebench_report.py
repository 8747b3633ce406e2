"""Reading SWE-bench run reports: what became of each instance, and the harness's own rate."""

import json
from pathlib import Path
from typing import Any

import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, detect_format, read_adapted

FILES = Path(__file__).parent / "files" / "swebench"
REPORT = FILES / "acme__fixer-large.run-2026-05.json"
GOOD: dict[str, Any] = json.loads(REPORT.read_text())


def read(tmp_path: Path, name: str = "m.r.json", **changes: object) -> AdapterTable:
    path = tmp_path / name
    path.write_text(json.dumps({key: value for key, value in (GOOD | changes).items() if value != "absent"}))
    assert detect_format(path) == "swebench-report"
    return read_adapted(path)


def outcomes(table: AdapterTable) -> dict[str, tuple[str | None, str | None, str | None]]:
    rows = table.frame.filter(table.frame["__broken"].is_null())
    return {oid: rest for oid, *rest in rows.select("oid", "passed", "classification", "error").iter_rows()}


def test_a_report_of_a_subset_says_what_it_leaves_out(tmp_path: Path) -> None:
    """The harness counts the whole dataset, and lists only what was submitted."""
    table = read(tmp_path, total_instances=500, incomplete_ids=[])
    count, rate = table.figures
    assert (count.reported, count.recomputed) == (1, 1)
    assert rate.reported == rate.recomputed == pytest.approx(1 / 500)
    assert rate.note == (
        "SWE-bench counts 494 problems never submitted and 2 attempts without a verdict (errors, infrastructure) "
        "as not resolved; Touchstone leaves them out"
    )
    assert "494 problems of the 500 that the report counts are not in it: the run was on a part of them" in table.notes


def test_the_model_that_a_report_names_inside(tmp_path: Path) -> None:
    """As those of OpenHands' benchmarks; the name of other files says it."""
    named = {"model_name_or_path": "OpenHands/acme-1"}
    assert read(tmp_path, "output.report.json", **named).models() == ["OpenHands/acme-1"]
    assert read(tmp_path, "m.r.json", **named).models() == ["m"]


def test_logs_beside_the_report_tell_where_the_run_starts(tmp_path: Path) -> None:
    (tmp_path / "logs" / "run_evaluation" / "v1.0" / "a__m").mkdir(parents=True)
    assert read(tmp_path, "a__m.v1.0.json").frame.select("llm_name", "run_id").row(0) == ("a/m", "v1.0")


@pytest.mark.parametrize(
    ("listed", "reason", "passed", "word"),
    [
        ("infra_failure_ids", "browser_launch_failed", None, None),
        ("infra_failure_ids", "out_of_memory", "false", "crash"),
        ("ambiguous_failure_ids", "missing_module", "false", "fail"),
        ("ambiguous_failure_ids", "tests_timed_out", "false", "timeout"),
    ],
)
def test_what_a_fix_can_cause_is_a_failure(
    tmp_path: Path, listed: str, reason: str, passed: str | None, word: str | None
) -> None:
    table = read(tmp_path, **{listed: ["acme__tool-105"], "failure_reasons": {"acme__tool-105": reason}})
    assert outcomes(table)["acme__tool-105"] == [passed, word, reason]


@pytest.mark.parametrize(
    ("log", "outcome"),
    [
        (">>>>> Patch Apply Failed", ["false", "wrong_format", "the patch does not apply"]),
        ("Test timed out after 1800 seconds.", ["false", "timeout", "the tests timed out"]),
        ("APIError: no space left on device", [None, None, "APIError: no space left on device"]),
    ],
)
def test_logs_beside_the_report_tell_what_an_error_was(tmp_path: Path, log: str, outcome: list[str | None]) -> None:
    file = tmp_path / "logs" / "run_evaluation" / "r" / "a__m" / "acme__tool-105" / "run_instance.log"
    file.parent.mkdir(parents=True)
    file.write_text(log)
    table = read(tmp_path, "a__m.r.json")
    assert outcomes(table)["acme__tool-105"] == outcome
    assert table.files == (tmp_path / "a__m.r.json", file)
    assert len(table.notes) == 1


@pytest.mark.parametrize("oid", ["..", "../acme__tool-105", "/"])
def test_ids_do_not_lead_out_of_the_logs(tmp_path: Path, oid: str) -> None:
    file = tmp_path / "logs" / "run_evaluation" / "r" / "run_instance.log"
    file.parent.mkdir(parents=True)
    (file.parent / "m").mkdir()
    file.write_text(">>>>> Patch Apply Failed")
    assert outcomes(read(tmp_path, "m.r.json", error_ids=[oid]))[oid] == [None, None, None]


def test_old_reports_without_unresolved_ids(tmp_path: Path) -> None:
    gone = dict.fromkeys(("unresolved_ids", "infra_failure_ids", "failure_reasons", "schema_version"), "absent")
    found = outcomes(read(tmp_path, **gone))
    assert {oid: passed for oid, (passed, *_) in found.items()} == {
        "acme__tool-101": "true",
        "acme__tool-102": "false",
        "acme__tool-103": "false",
        "acme__tool-104": "false",
        "acme__tool-105": None,
        "acme__tool-106": "false",
    }


def test_completed_but_in_no_list_of_outcomes_is_undecided(tmp_path: Path) -> None:
    found = outcomes(read(tmp_path, unresolved_ids=["acme__tool-102", "acme__tool-106"]))
    assert found["acme__tool-103"] == [None, None, None]


def test_ids_that_are_refused(tmp_path: Path) -> None:
    table = read(tmp_path, resolved_ids=["acme__tool-101", "acme__tool-102", "acme__tool-101", [7], ""])
    refused = table.frame.filter(table.frame["__broken"].is_not_null())
    assert refused["__broken"].to_list() == [
        "the resolved_ids is a list where text belongs",
        "the resolved_ids is missing",
        "acme__tool-102 is in resolved_ids and unresolved_ids",
    ]
    assert "acme__tool-102" not in outcomes(table)
    assert table.raw(set(refused["__line"])) == dict(zip(refused["__line"], ["[7]", "", "acme__tool-102"], strict=True))


def test_submitted_ids_outside_the_dataset_are_counted_in_a_note(tmp_path: Path) -> None:
    table = read(tmp_path, submitted_ids=[*GOOD["submitted_ids"], "other-1"])
    assert table.notes[-1] == "1 submitted id is in no list of outcomes and no attempt (submitted_ids)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"resolved_ids": None}, "has a list resolved_ids"),
        ({name: [] for name in GOOD if name.endswith("_ids")}, "nothing was submitted"),
    ],
)
def test_reports_without_attempts(tmp_path: Path, content: dict[str, object], message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        read(tmp_path, **content)


def test_a_submission_to_multi_swe_bench(tmp_path: Path) -> None:
    """Its report has the key `resolved`, and is in the folder `results` of the submission."""
    (tmp_path / "20240825_fixer" / "results").mkdir(parents=True)
    table = read(
        tmp_path / "20240825_fixer" / "results", "results.json", resolved=GOOD["resolved_ids"], resolved_ids="absent"
    )
    assert outcomes(table) == outcomes(read_adapted(REPORT))
    assert table.frame["llm_name"].unique().to_list() == ["20240825_fixer"]
    both = GOOD["error_ids"] + GOOD["empty_patch_ids"]
    lists = {"error_ids": "absent", "empty_patch_ids": "absent", "empty_error_patch_ids": both}
    found = outcomes(read(tmp_path / "20240825_fixer" / "results", "results.json", **lists))
    assert {oid: found[oid][0] for oid in both} == dict.fromkeys(both)
