"""Reading promptfoo's output: columns, repeats without numbers, tests without ids, errors and the cache."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from touchstone.ingest.adapters import AdapterTable, detect_format, read_adapted

OUTPUT = Path(__file__).parent / "files" / "promptfoo" / "output.json"


def row(**changes: object) -> dict[str, object]:
    made: dict[str, object] = {
        "provider": {"id": "openai:gpt-4o", "label": ""},
        "prompt": {"raw": "fix it", "label": "fix {{bug}}"},
        "promptId": "abc",
        "promptIdx": 0,
        "testIdx": 0,
        "testCase": {"description": "a test", "vars": {"bug": "x"}, "assert": [{"type": "contains", "value": "y"}]},
        "success": True,
        "score": 1,
        "failureReason": 0,
        "gradingResult": {"pass": True},
        "latencyMs": 12,
        "cost": 0.25,
        "namedScores": {},
        "response": {"output": "y", "tokenUsage": {"prompt": 3, "completion": 4, "total": 7}},
    }
    return made | changes


def document(*rows: object, **results: object) -> dict[str, object]:
    return {"evalId": "eval-1", "results": {"version": 3, "prompts": [], "results": list(rows), **results}}


def read(tmp_path: Path, *rows: object) -> AdapterTable:
    path = tmp_path / "output.json"
    path.write_text(json.dumps(document(*rows)))
    assert detect_format(path) == "promptfoo"
    return read_adapted(path)


def column(table: AdapterTable, name: str) -> list[str | None]:
    return table.frame[name].to_list()


def test_the_names_of_figures_do_not_hold_the_prompt(tmp_path: Path) -> None:
    """A prompt without a label has its whole text as one."""
    long = {"raw": "fix", "label": "You are an engineer. " * 200}
    metrics = {"testPassCount": 1, "testFailCount": 0, "testErrorCount": 0, "score": 1}
    path = tmp_path / "output.json"
    path.write_text(json.dumps(document(row(prompt=long), prompts=[{"metrics": metrics}])))
    names = [figure.name for figure in read_adapted(path).figures]
    assert names == ["testPassCount", "testFailCount", "testErrorCount", "pass rate", "score"]


@pytest.mark.parametrize(
    "error",
    [
        row(success=False, failureReason=2, error="HTTP 503", score=0, cost=0),
        row(success=False, failureReason=None, gradingResult=None, error="HTTP 503", score=0, cost=0),
        row(success=False, failureReason=2, error="", response={"error": "HTTP 503"}),
    ],
)
def test_an_error_is_undecided_and_its_zeros_are_unknown(tmp_path: Path, error: dict[str, object]) -> None:
    cells = read(tmp_path, error).frame.row(0, named=True)
    unknown = ("passed", "classification", "weighted_score", "input_tokens", "output_tokens", "cost_usd", "latency_ms")
    assert [cells[name] for name in unknown] == [None] * 7
    assert cells["error"] == "HTTP 503"


def test_a_failed_assertion_is_a_failure_although_it_has_an_error_text(tmp_path: Path) -> None:
    failed = row(success=False, failureReason=None, gradingResult={"pass": False}, error="not y", score=0.5)
    refused = row(success=False, failureReason=1, response={"isRefusal": True}, testIdx=1)
    table = read(tmp_path, failed, refused)
    assert table.frame.select("passed", "classification").rows() == [("false", "fail"), ("false", "refusal")]


def test_zeros_of_providers_that_report_nothing_are_unknown(tmp_path: Path) -> None:
    usage = {"prompt": 0, "completion": 0, "total": 0}
    cells = read(tmp_path, row(cost=0, response={"tokenUsage": usage})).frame.row(0, named=True)
    assert [cells[name] for name in ("input_tokens", "output_tokens", "cost_usd")] == [None] * 3


def test_cached_responses_are_flagged_and_have_no_cost_or_latency(tmp_path: Path) -> None:
    table = read(tmp_path, row(response={"cached": True, "tokenUsage": {"total": 7, "cached": 7}}))
    assert table.frame.select("cached", "passed", "cost_usd", "latency_ms").row(0) == ("true", "true", None, None)
    assert any("1 of 1 responses came from promptfoo's cache" in note for note in table.notes)


def test_repeats_are_numbered_by_their_test_index_whatever_the_order(tmp_path: Path) -> None:
    table = read(tmp_path, *(row(testIdx=place, score=place / 10) for place in (7, 1, 4)))
    assert column(table, "iteration_id") == ["3", "1", "2"]
    assert len(set(column(table, "oid"))) == 1


def test_tests_that_differ_only_in_their_assertions_are_different_problems(tmp_path: Path) -> None:
    other = {"description": "a test", "vars": {"bug": "x"}, "assert": []}
    assert len(set(column(read(tmp_path, row(), row(testCase=other)), "oid"))) == 2


@pytest.mark.parametrize(
    ("test", "oid"),
    [
        ({"vars": {"b": 1, "a": "x"}}, "a=x, b=1 #72b3c7f1a6"),
        ({"description": "no vars"}, "no vars"),
        ({"vars": {}, "assert": []}, "a test without variables"),
        ({"description": "d" * 200}, "d" * 79 + "… #ab552cfc1a"),
    ],
)
def test_a_test_is_named_by_description_or_variables(tmp_path: Path, test: object, oid: str) -> None:
    assert column(read(tmp_path, row(testCase=test)), "oid") == [oid]


def test_a_single_prompt_is_no_tier_and_several_are(tmp_path: Path) -> None:
    assert column(read(tmp_path, row()), "tier") == [None]
    long = row(promptIdx=1, promptId="def", prompt={"label": "long"})
    assert column(read(tmp_path, row(), long), "tier") == ["fix {{bug}}", "long"]


def test_one_provider_with_two_settings_stays_two_columns(tmp_path: Path) -> None:
    table = read(tmp_path, row(), row(promptIdx=1, success=False, failureReason=1))
    assert table.frame.select("tier", "iteration_id").rows() == [(None, "1"), ("T0 #2", "1")]
    assert any("label the providers" in note for note in table.notes)


def test_rows_of_old_files_without_indices_and_test_cases(tmp_path: Path) -> None:
    old = {"provider": "openai:gpt-4", "prompt": {"display": "p"}, "vars": {"bug": "x"}, "success": True, "score": 1}
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"results": {"version": 2, "results": [old, old], "stats": {"successes": 2}}}))
    table = read_adapted(path)
    assert table.frame.select("llm_name", "iteration_id", "passed").rows() == [
        ("openai:gpt-4", "1", "true"),
        ("openai:gpt-4", "2", "true"),
    ]
    assert [(figure.reported, figure.recomputed) for figure in table.figures] == [(2, 2)]


def test_json_lines_are_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    rows = json.loads(OUTPUT.read_text())["results"]["results"]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    lines, whole = read_adapted(path), read_adapted(OUTPUT)
    assert lines.format == "promptfoo"
    same = [name for name in whole.columns if name not in ("run_id", "eval_description")]
    assert lines.frame.select(same).equals(whole.frame.select(same))


CONFIG = """
prompts: [{label: plain, raw: "fix {{bug}}"}, {label: polite, raw: "please fix {{bug}}"}]
providers: [{id: echo, label: acme/echo-a}, {id: echo, config: {x: 1}}, {id: echo, config: {x: 2}}, "file://flaky.js"]
tests:
  - {description: one, vars: {bug: [a, b]}, assert: [{type: contains, value: a}]}
  - {vars: {bug: c}, assert: [{type: contains, value: please}]}
  - {vars: {bug: c}, assert: [{type: contains, value: fix}]}
"""
FLAKY = """
module.exports = class {
  id() { return 'acme:flaky' }
  async callApi(prompt) {
    return prompt.includes(' b') ? {error: 'bad gateway'} : {output: prompt, cost: 0.001}
  }
}
"""


def promptfoo(folder: Path) -> str:
    """The program: as installed, else from npm; skips where neither is possible."""
    installed = shutil.which("promptfoo")
    if installed:
        return installed
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("promptfoo is not installed, and there is no node and npm to install it")
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "promptfoo"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("promptfoo is not installed, and npm cannot install it here")
    return str(folder / "node_modules" / ".bin" / "promptfoo")


@pytest.mark.nightly
def test_a_fresh_file_of_the_installed_promptfoo(tmp_path: Path) -> None:
    program = promptfoo(tmp_path / "npm")
    (tmp_path / "promptfooconfig.yaml").write_text(CONFIG)
    (tmp_path / "flaky.js").write_text(FLAKY)
    off = {f"PROMPTFOO_DISABLE_{name}": "1" for name in ("TELEMETRY", "UPDATE", "REMOTE_GENERATION")}
    command = [program, "eval", "--repeat", "2", "--no-cache", "--no-table", "-o", "output.json"]
    environment = os.environ | off | {"PROMPTFOO_CONFIG_DIR": str(tmp_path / "settings")}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    table = read_adapted(tmp_path / "output.json")
    keys = table.frame.select("llm_name", "tier", "oid", "iteration_id")
    assert keys.height == 64 and keys.is_unique().all() and table.frame["__kind"].null_count() == 64
    assert [column(table, "passed").count(each) for each in ("true", "false", None)] == [46, 14, 4]
    assert len(table.figures) == 3 + 8 * 5
    for figure in table.figures:
        assert figure.recomputed == pytest.approx(figure.reported), figure
