"""Reading forgetest reports: which key becomes which cell, what is refused, and where a result stands."""

import json
from pathlib import Path

import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import detect_format, read_adapted
from touchstone.ingest.adapters.table import AdapterTable
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH


def result(**changes: object) -> dict[str, object]:
    return {
        "case_id": "fizzbuzz",
        "model": "claude-sonnet-4",
        "provider": "anthropic",
        "generated_code": 'pub fn f() -> &\'static str {\n    "ü"\n}',
        "compilation": {"success": True, "errors": [], "warnings": [{"level": "warning"}], "duration_ms": 812},
        "test_execution": {"passed": 5, "failed": 0, "ignored": 1, "duration_ms": 40, "failures": []},
        "clippy": {"warnings": [], "warning_count": 2},
        "timing": {"llm_request_ms": 1520, "compilation_ms": 812, "test_execution_ms": 40, "total_ms": 2372},
        "token_usage": {
            "prompt_tokens": 310,
            "completion_tokens": 120,
            "total_tokens": 430,
            "estimated_cost_usd": 0.00273,
        },
        "attempt": 1,
        "run_id": "7d7f1b1e",
    } | changes


def write(tmp_path: Path, report: object, indent: int | None = 2) -> Path:
    path = tmp_path / "report.json"
    text = report if isinstance(report, str) else json.dumps(report, indent=indent)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def read(tmp_path: Path, *results: object, indent: int | None = 2) -> AdapterTable:
    report = {"id": "r1", "created_at": "2026-01-02T03:04:05Z", "eval_set": {"results": 3}, "results": list(results)}
    path = write(tmp_path, report, indent)
    assert detect_format(path) == "forgetest"
    return read_adapted(path)


def only(table: AdapterTable) -> dict[str, object]:
    assert table.frame.height == 1
    return table.frame.row(0, named=True)


@pytest.mark.parametrize(
    ("changes", "passed", "tests"),
    [
        ({"compilation": {"success": False, "errors": [{}, {}]}, "test_execution": None}, "false", None),
        ({"test_execution": {"passed": 4, "failed": 1, "ignored": 0}}, "false", "4"),
        ({"test_execution": {"passed": 0, "failed": 0, "ignored": 3}}, "false", "0"),
        ({"test_execution": None}, "false", None),
        ({"compilation": None}, None, "5"),
        ({"compilation": {"errors": []}}, None, "5"),
        ({"compilation": {"success": "maybe"}}, None, "5"),
        ({"test_execution": {"passed": 5}}, None, "5"),
        ({"test_execution": {"passed": "many", "failed": 0}}, None, "many"),
    ],
)
def test_the_outcome_that_follows(
    tmp_path: Path, changes: dict[str, object], passed: str | None, tests: str | None
) -> None:
    row = only(read(tmp_path, result(**changes)))
    assert (row["passed"], row["tests_passed"], row["__broken"]) == (passed, tests, None)


def test_what_was_not_measured_is_null(tmp_path: Path) -> None:
    row = only(read(tmp_path, {"case_id": "c", "model": "m", "attempt": 2, "clippy": None}))
    given = {name for name, value in row.items() if value is not None}
    assert given == {"__line", "__model", "oid", "iteration_id", "llm_name"}


@pytest.mark.parametrize(
    ("total_ms", "seconds"),
    [
        ("1", "0.001"),
        ("2000", "2.000"),
        ("1234.5", "1.2345"),
        ("1e3", "1"),
        ("1e99999999", "1e99999999"),
        ('"soon"', "soon"),
        ("NaN", "NaN"),
        ("null", None),
    ],
)
def test_seconds_digit_for_digit(tmp_path: Path, total_ms: str, seconds: str | None) -> None:
    timing = f'{{"total_ms": {total_ms}}}'
    result = f'{{"case_id": "c", "model": "m", "attempt": 1, "timing": {timing}}}'
    path = write(tmp_path, f'{{"eval_set": 1, "results": [{result}]}}')
    assert only(read_adapted(path))["duration_seconds"] == seconds


def test_numbers_keep_their_digits(tmp_path: Path) -> None:
    digits = "0.1000000000000000055511151231257827"
    usage = f'{{"estimated_cost_usd": {digits}, "prompt_tokens": {"9" * 5000}}}'
    path = write(
        tmp_path,
        f'{{"eval_set": 1, "results": [{{"case_id": 1e5, "model": "m", "attempt": 1, "token_usage": {usage}}}]}}',
    )
    row = only(read_adapted(path))
    assert (row["oid"], row["cost_usd"], row["input_tokens"]) == ("1e5", digits, "9" * 5000)


def test_several_models_and_names_with_slashes_and_colons(tmp_path: Path) -> None:
    table = read(
        tmp_path, result(model="openai/gpt-4o"), result(model="llama3:8b"), result(model="openai/gpt-4o", attempt=2)
    )
    assert table.models() == ["llama3:8b", "openai/gpt-4o"]
    ours = table.for_model("openai/gpt-4o")
    assert ours.frame["iteration_id"].to_list() == ["1", "2"]
    assert set(ours.frame["llm_name"]) == {"openai/gpt-4o"}
    assert ours.models() == ["openai/gpt-4o"]
    assert table.for_model("nobody").frame.is_empty()


def test_a_model_with_a_name_that_is_not_allowed_is_refused(tmp_path: Path) -> None:
    table = read(tmp_path, result(model="a...b"), result(model="a:b"), result(model="a...b", attempt=None))
    assert table.models() == ["a:b"]
    assert table.frame["__kind"].to_list() == ["bad_id", None, "bad_id"]
    reason = "model name 'a...b' is not allowed: Dagster reserves '...' for ranges of models"
    assert table.frame["__broken"].to_list() == [reason, None, "the attempt is missing"]
    assert table.frame["llm_name"].to_list() == ["a...b", "a:b", "a...b"]


def test_further_scalars_travel_along(tmp_path: Path) -> None:
    extras = {
        "tier": "T1",
        "temperature": 0.80,
        "cached": False,
        "note": None,
        "tags": ["x"],
        "passed": "?",
        "__line": 3,
    }
    table = read(tmp_path, result(**extras, input_passed="!"), result(seed=4))
    first, second = table.frame.iter_rows(named=True)
    assert (first["tier"], first["temperature"], first["cached"], first["note"]) == ("T1", "0.8", "false", None)
    assert (first["passed"], first["input_passed"], first["input_input_passed"]) == ("true", "?", "!")
    assert first["input___line"] == "3"
    assert (first["seed"], second["seed"], second["tier"]) == (None, "4", None)
    assert first["tags"] == '["x"]'
    assert not {"compilation", "test_execution"} & set(table.columns)


def test_compiler_errors_and_test_failures_are_kept(tmp_path: Path) -> None:
    error = {"level": "error", "message": "mismatched types", "code": "E0308", "spans": [{"line_start": 3}]}
    failure = {"name": "tests::empty", "message": "assertion failed: `left == right`", "stdout": "x" * 5000}
    broken = result(compilation={"success": False, "errors": [error]}, test_execution=None)
    failing = result(attempt=2, test_execution={"passed": 1, "failed": 1, "ignored": 0, "failures": [failure]})
    first, second = read(tmp_path, broken, failing).frame.iter_rows(named=True)
    assert json.loads(str(first["compilation_errors"])) == [error]
    assert (first["compile_errors"], first["test_execution_failures"]) == ("1", None)
    assert json.loads(str(second["test_execution_failures"])) == [failure]


@pytest.mark.parametrize(
    ("eval_set", "suite"),
    [({"id": "rust-basics", "name": "Rust", "case_count": 3}, "rust-basics"), ({"name": "x"}, None), ("odd", None)],
)
def test_the_eval_set_is_the_suite(tmp_path: Path, eval_set: object, suite: str | None) -> None:
    for report in ({"eval_set": eval_set, "results": [result()]}, {"results": [result()], "eval_set": eval_set}):
        assert only(read_adapted(write(tmp_path, report)))["suite"] == suite


@pytest.mark.parametrize("indent", [1, None])
def test_results_are_called_by_their_place(tmp_path: Path, indent: int | None) -> None:
    table = read(tmp_path, result(), {"case_id": "c"}, result(case_id="é" * 3000), indent=indent)
    assert table.frame["__line"].to_list() == [1, 2, 3]
    assert table.raw({2}) == {2: '{"case_id": "c"}'} and table.raw(set()) == {}
    assert len(table.raw({3})[3]) == MAX_RAW_LENGTH


def test_keys_without_end(tmp_path: Path) -> None:
    results = [{"case_id": "c", "model": "m", "attempt": n, f"key{n}": 1} for n in range(1001)]
    with pytest.raises(InputFileError, match="more than 1,000 different keys"):
        read(tmp_path, *results)
