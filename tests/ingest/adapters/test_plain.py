"""Plain tables of attempts as JSON Lines and Parquet: the same cells as a CSV, whatever their types."""

import datetime
import decimal
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import nightly_but
from touchstone.config import load_config
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest.adapters import AdapterTable, ReadOptions, detect_format, parquet_files, read_adapted
from touchstone.ingest.adapters.adapter import NotEvaluatedError
from touchstone.ingest.adapters.formats.plain import named_models, why_not_plain
from touchstone.ingest.dialect import ID_NAMES
from touchstone.ingest.implied_config import implied_config
from touchstone.ingest.read_inputs import read_inputs
from touchstone.tables import TABLES

OTHER_IDS = (
    f"; {' or '.join(ID_NAMES)} will do, if there is only one of them; `columns` in the configuration renames others"
)
ROWS: list[dict[str, Any]] = [
    {"oid": "a", "iteration_id": 1, "passed": True, "weighted_score": 0.1, "tags": {"x": [1, 2]}},
    {"oid": "b", "iteration_id": 2, "passed": False, "weighted_score": None, "tags": None},
]


def write(folder: Path, rows: list[dict[str, Any]], kind: str, name: str = "gpt_fixes") -> Path:
    path = folder / f"{name}.{kind}"
    if kind == "parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def cells(table: AdapterTable, *names: str) -> list[tuple[str | None, ...]]:
    return table.frame.select(names).rows()


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_every_cell_is_the_text_that_a_csv_would_have(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, ROWS, kind)
    table = read_adapted(path)
    assert detect_format(path) == table.format == kind
    assert table.columns == ("oid", "iteration_id", "passed", "weighted_score", "tags", "llm_name")
    assert table.frame.rows() == [
        (1, None, None, "gpt", "a", "1", "true", "0.1", '{"x": [1, 2]}', "gpt"),
        (2, None, None, "gpt", "b", "2", "false", None, None, "gpt"),
    ]
    assert json.loads(table.raw({2})[2])["oid"] == "b"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([2**63 - 1], "9223372036854775807"),
        ([0.1 + 0.2], "0.30000000000000004"),
        ([float("nan")], None),
        ([float("inf")], "inf"),
        ([""], None),
        ([b"bytes"], "bytes"),
        ([decimal.Decimal("1.50")], "1.50"),
        ([datetime.date(2026, 1, 2)], "2026-01-02"),
        ([datetime.datetime(2026, 1, 2, 3, 4, 5, 6)], "2026-01-02T03:04:05.000006"),
        ([[1.5, None]], "[1.5, null]"),
        (pl.Series(["x"], dtype=pl.Categorical), "x"),
        (pl.Series([0.1], dtype=pl.Float32), "0.1"),
        (pl.Series([None], dtype=pl.Null), None),
    ],
)
def test_typed_columns_of_parquet(tmp_path: Path, values: Any, text: str | None) -> None:
    path = tmp_path / "m.parquet"
    pl.DataFrame({"oid": ["a"], "iteration_id": [1], "passed": [True], "value": values}).write_parquet(path)
    assert cells(read_adapted(path), "value") == [(text,)]


def test_numbers_of_json_stay_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"oid": "a", "iteration_id": 1, "passed": 1.0, "cost_usd": 1e-3, "n": 123456789012345678901}\n')
    assert cells(read_adapted(path), "passed", "cost_usd", "n") == [("1.0", "1e-3", "123456789012345678901")]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("column", ["model", "llm_name"])
def test_a_column_of_models_makes_several_models_of_one_file(tmp_path: Path, kind: str, column: str) -> None:
    rows = [row | {column: name} for row in ROWS for name in ("openai/gpt-4o", "m", "")]
    table = read_adapted(write(tmp_path, rows, kind))
    assert table.models() == ["m", "openai/gpt-4o"]
    assert cells(table.for_model("m"), "oid") == [("a",), ("b",)]
    refused = table.frame.filter(pl.col("__kind").is_not_null()).select("__line", "__kind", "__broken").rows()
    assert refused == [(line, "bad_id", f"the {column} is missing") for line in (3, 6)]


def test_records_may_have_different_keys_and_bad_lines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"oid": "a", "iteration_id": 1, "passed": true}\n{broken\n[]\n{"oid": "b", "more": 2}\n')
    table = read_adapted(path)
    assert cells(table, "__line", "oid", "more", "llm_name")[-1] == (4, "b", "2", "m")
    assert table.frame["__kind"].to_list() == [None, "ragged", "ragged", None]


RENAMES = {"task": "oid", "trial": "iteration_id", "ok": "passed", "absent": "tier"}


def attempts_of(config: Path | dict[str, Any], model: str = "m") -> pl.DataFrame:
    """The attempts of a model, without the rest of a run."""
    evaluation = Evaluation(load_config(config))
    for table in ("problems", "attempts"):
        evaluation.materialize(table)
    return evaluation.store.scan_with_extras("attempts", model).collect()


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv"])
def test_columns_are_renamed_in_every_kind_of_table(tmp_path: Path, kind: str) -> None:
    rows = [{"task": oid, "trial": 1, "ok": oid == "a", "oid": "theirs"} for oid in ("a", "b")]
    (tmp_path / "fixes").mkdir()
    if kind == "csv":
        pl.DataFrame(rows).write_csv(tmp_path / "fixes" / "m_fixes.csv")
        (tmp_path / "fixes" / "problems.csv").write_text("task,filename\na,f\nb,f\n")
    else:
        write(tmp_path / "fixes", rows, kind, "m")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"fixes_dir": "fixes", "output_dir": "out", "columns": RENAMES}))
    attempts = attempts_of(config)
    assert attempts.select("model", "oid", "iteration_id", "passed", "input_oid").rows() == [
        ("m", "a", "1", True, "theirs"),
        ("m", "b", "1", False, "theirs"),
    ]
    config.write_text(json.dumps({"fixes_dir": "fixes", "output_dir": "out", "columns": RENAMES | {"oid": "note"}}))
    assert attempts_of(config)["note"].to_list() == ["theirs", "theirs"]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"a": "oid", "b": "oid"}, "two columns are renamed to 'oid'; keep one"),
        ({"a": " "}, "a column's name cannot be empty"),
        ({"a": 1}, "Input should be a valid string"),
    ],
)
def test_columns_that_cannot_be_renamed(tmp_path: Path, columns: dict[str, Any], reason: str) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"fixes_dir": ".", "output_dir": "out", "columns": columns}))
    with pytest.raises(TouchstoneError, match=reason):
        load_config(config)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_the_problem_key_of_the_configuration(tmp_path: Path, kind: str) -> None:
    rows = [{"specific_oid": "s", "oid": "o", "iteration_id": 1, "passed": True}]
    table = read_adapted(write(tmp_path, rows, kind), ReadOptions(problem_key="specific_oid"))
    assert cells(table, "oid", "input_oid") == [("s", "o")]
    renamed = ReadOptions(problem_key="specific_oid", columns={"oid": "specific_oid"})
    assert cells(read_adapted(write(tmp_path, rows, kind), renamed), "oid") == [("o",)]


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "json", "object"])
def test_a_table_without_attempts_is_not_recognised_and_says_what_is_missing(tmp_path: Path, kind: str) -> None:
    rows = [{"iteration_id": 1, "passed": True}]
    path = tmp_path / "runs.json"
    if kind in ("json", "object"):
        path.write_text(json.dumps(rows if kind == "json" else {"model": "m", "results": rows}))
    else:
        path = write(tmp_path, rows, kind)
    assert detect_format(path) is None
    assert why_not_plain(path, ReadOptions()) == f"missing column oid (found: iteration_id, passed){OTHER_IDS}"


def test_an_exported_table_is_not_read_back(tmp_path: Path) -> None:
    path = tmp_path / "attempts.parquet"
    pl.DataFrame(schema=TABLES["attempts"].dtypes).clear(1).write_parquet(path)
    assert detect_format(path) is None
    assert why_not_plain(path, ReadOptions()) == "an export of the table attempts, which is never read back"


def test_parquet_files_larger_than_the_limits_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, ROWS, "parquet")
    monkeypatch.setattr(parquet_files, "PARQUET_GROUP_ROWS", 1)
    with pytest.raises(InputFileError, match=r"a row group of 2 rows and .* is too large .* write smaller row groups"):
        read_adapted(path)
    monkeypatch.setattr(parquet_files, "PARQUET_ROWS", 1)
    with pytest.raises(InputFileError, match="2 rows; at most 1 are read"):
        read_adapted(path)


def test_texts_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    pl.DataFrame({"oid": ["a"], "iteration_id": [1], "passed": [True], "note": [b"\xff"]}).write_parquet(path)
    with pytest.raises(InputFileError, match="broken Parquet"):
        read_adapted(path)


@pytest.mark.parametrize(
    ("name", "header", "second", "named"),
    [
        ("results.csv", "model", "y", 2),
        ("results.csv", "llm_name", "y", 2),
        ("results_fixes.csv", "Model", "y", 2),
        ("results_fixes.csv", "llm_name", "y", 0),
        ("results_fixes.csv", "model_name", "y", 2),
        ("results_fixes.csv", "model", "x", 1),
        ("results.csv", "model_id", "y", 2),
        ("results.csv", "modelName", "y", 2),
        ("results.csv", "model", "x", 1),
        ("results.csv", "vendor", "y", 0),
    ],
)
def test_a_csv_may_name_its_models(tmp_path: Path, name: str, header: str, second: str, named: int) -> None:
    """Also after another file was appended, with its header."""
    path, titles = tmp_path / name, f"oid,iteration_id,{header},passed\n"
    path.write_text(f"{titles}a,1,x,1\n{titles}a,2,{second},0\n")
    assert named_models(path) == named
    is_fixes_csv = named == 0 or (named == 1 and "_fixes" in name)
    assert (detect_format(path) is None) is is_fixes_csv
    if not is_fixes_csv:
        table = read_adapted(path)
        assert table.models() == ["x", "y"][:named]
        assert table.frame["__broken"].to_list() == [None, "repeats the header", None]


def test_what_is_wrong_with_a_file_of_several_models_is_said_once(tmp_path: Path) -> None:
    rows = [{"oid": "a", "model": name, "harness": harness, "passed": True} for name in "xy" for harness in "st"]
    found = read_inputs(implied_config([write(tmp_path, rows, "jsonl")]), tmp_path)
    assert len(found.unreadable) == 1 and "'harness' differs" in found.unreadable[0]


def write_foreign(folder: Path, rows: list[dict[str, Any]], kind: str) -> Path:
    """Rows under the names of another tool: as CSV, JSON Lines, a JSON list or Parquet."""
    if kind == "json":
        path = folder / "runs.json"
        path.write_text(json.dumps(rows))
        return path
    if kind == "csv":
        path = folder / "runs.csv"
        pl.DataFrame(rows).write_csv(path)
        return path
    return write(folder, rows, kind, "runs")


KINDS = ("csv", "jsonl", "json", "parquet")
OTHER_NAMES = [("instance_id", "resolved"), ("task_id", "success"), ("taskId", "isResolved"), ("bug_id", "is_correct")]


@pytest.mark.parametrize(
    ("kind", "problem", "outcome"),
    nightly_but(
        [(kind, *names) for kind, names in zip(KINDS, OTHER_NAMES, strict=True)],
        [(kind, *names) for kind in KINDS for names in OTHER_NAMES],
    ),
)
def test_problems_and_outcomes_under_other_names(tmp_path: Path, kind: str, problem: str, outcome: str) -> None:
    """Without a column of attempts, they are those of a model at a problem in their order."""
    found = [("a", "m", True), ("b", "m", False), ("a", "n", False), ("a", "m", False), ("a", "n", None)]
    rows = [{problem: oid, "model_name": model, outcome: passed} for oid, model, passed in found]
    path = write_foreign(tmp_path, rows, kind)
    table = read_adapted(path)
    assert table.notes == (f"columns are read by their meaning: '{problem}' as oid, '{outcome}' as passed",)
    config = {"fixes_dir": tmp_path, "output_dir": tmp_path / "out"}
    keys = ["oid", "iteration_id", "passed"]
    assert attempts_of(config).select(keys).rows() == [("a", "1", True), ("a", "2", False), ("b", "1", False)]
    assert attempts_of(config, "n").select(keys).rows() == [("a", "1", False), ("a", "2", None)]


@pytest.mark.parametrize(
    "row",
    [
        {"task_id": "a", "success": True, "fixed_code": "x"},
        {"task_id": "a", "passed": False, "success": True},
        {"task_id": "a", "resolved": True, "success": True, "is_fixed": True},
    ],
)
def test_an_outcome_or_a_fix_of_ours_comes_first(tmp_path: Path, row: dict[str, Any]) -> None:
    """Success may mean that the model answered."""
    table = read_adapted(write_foreign(tmp_path, [row], "json"))
    assert table.frame["success"].to_list() == ["true"]
    assert "success" not in " ".join(table.notes)


@pytest.mark.parametrize("trial", ["trial", "run", "seed"])
def test_a_task_is_the_problem_beside_the_number_of_a_trial(tmp_path: Path, trial: str) -> None:
    row = {"task": "lru", "model": "a", "solved": True, "category": "x"}
    table = read_adapted(write(tmp_path, [row | {trial: 3}, row | {trial: 4, "model": "b"}], "jsonl"))
    assert cells(table, "oid", "iteration_id", "llm_name") == [("lru", "3", "a"), ("lru", "4", "b")]
    # Without one it may be a benchmark.
    assert detect_format(write(tmp_path, [row], "jsonl")) is None


def test_a_verdict_comes_before_success(tmp_path: Path) -> None:
    row = {"task_id": "a", "resolved": False, "success": True, "model_patch": "diff"}
    assert read_adapted(write_foreign(tmp_path, [row], "json")).frame["passed"].to_list() == ["false"]


@pytest.mark.parametrize(
    ("model", "named"), [({"model": "gpt"}, "gpt"), ({"model": {"name": "gpt"}}, "runs"), ({}, "runs")]
)
def test_a_table_in_an_object(tmp_path: Path, model: dict[str, Any], named: str) -> None:
    """As people write it: the model and sums around the results."""
    path = tmp_path / "runs.json"
    rows = [{"instance_id": "a", "resolved": True, "tests": [{"name": "t"}]}, {"instance_id": "b", "resolved": False}]
    path.write_text(
        json.dumps(model | {"summary": {"resolved": 1}, "notes": [{"text": ""}], "instances": rows}, indent=1)
    )
    table = read_adapted(path)
    assert table.frame.select("llm_name", "oid", "passed").rows() == [(named, "a", "true"), (named, "b", "false")]
    path.write_text(json.dumps({"one": rows, "two": rows}))
    assert detect_format(path) is None


@pytest.mark.parametrize("end", ["", "]]", "] {}", ", "])
def test_a_list_that_does_not_end_is_refused(tmp_path: Path, end: str) -> None:
    path = tmp_path / "runs.json"
    path.write_text('[{"oid": "a", "passed": true}' + end)
    with pytest.raises(InputFileError, match="broken JSON"):
        read_adapted(path)


def test_elements_of_a_list_that_are_no_records_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text('[{"oid": "a", "passed": true}, 3, {"oid": "b", "passed": false}, [4]]')
    table = read_adapted(path)
    assert table.frame["__kind"].to_list() == [None, "ragged", None, "ragged"]
    assert table.raw({2, 4}) == {2: "3", 4: "[4]"}


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("instance_id,gpt,claude,difficulty", "a,1,0,easy"),
        ("task_id,gpt", "a,1"),
        ("oid,compiled,linted", "a,1,1"),
        ("task_id,resolved,solved", "a,1,0"),
        ("task_id,gpt,claude", "a,1,0"),
        ("task_id,base,plus", "a,1,0"),
        ("name,gpt,claude", "a,0,1"),
        ("task_id,status", "a,success"),
        ("task_id,status", "a,completed"),
        ("task_id,status,result", "a,resolved,passed"),
        ("task_id,correct", "a,B"),
        ("task_id,correct,total", "a,1,5"),
        ("task_id,correct,pass", "a,true,true"),
        ("bug_id,plausible,correct", "a,true,false"),
    ],
)
def test_columns_that_may_be_something_else_are_not_outcomes(tmp_path: Path, header: str, row: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"{header}\n{row}\n")
    assert detect_format(path) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("oid,status\na,failed\nb,completed\n", "'status' (completed, failed) may be the state of a run; if it is"),
        (
            "oid,correct\na,True\nb,B\n",
            "'correct' (b, true) may be an answer or a count; if it is the outcome, call it",
        ),
        ("oid,status\na,failed\nb,failed\n", "'status' (failed) may be the state of a run; if it is the outcome, call"),
    ],
)
def test_later_rows_may_show_that_a_column_is_something_else(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    with pytest.raises(NotEvaluatedError, match=re.escape(f"runs.csv: {reason}")):
        read_adapted(path)


WORDS = [
    ("status", "resolved", "unresolved"),
    ("Outcome", "PASSED", "FAILED"),
    ("verdict", "correct", "incorrect"),
    ("correct", True, False),
    ("plausible", True, False),
]
WORDS_BY_KIND = [(kind, *words) for kind in ("csv", "jsonl", "json", "object") for words in WORDS]


@pytest.mark.parametrize(
    ("kind", "column", "yes", "no"), nightly_but(WORDS_BY_KIND[:5] + WORDS_BY_KIND[8::5], WORDS_BY_KIND)
)
def test_outcomes_in_words_under_the_name_of_a_state(
    tmp_path: Path, kind: str, column: str, yes: object, no: object
) -> None:
    rows = [{"question_id": "a", column: yes, "note": "x"}, {"question_id": "b", column: no, "note": "y"}]
    path = tmp_path / "runs.json"
    if kind == "object":
        path.write_text(json.dumps({"correct": 1, "samples": rows, "total": 2}))
    table = read_adapted(path if kind == "object" else write_foreign(tmp_path, rows, kind))
    found = table.frame.select("llm_name", "oid", pl.col("passed").str.to_lowercase()).rows()
    assert found == [("runs", "a", str(yes).lower()), ("runs", "b", str(no).lower())]
    assert table.notes[-1] == f"the words of '{column}' are read as outcomes"


@pytest.mark.parametrize(
    "document",
    [
        [{"task_id": "a", "status": "failed"}, {"task_id": "b", "status": "done", "resolved": True}],
        {"task_id": "x", "status": "passed", "runs": [{"task_id": "a"}, {"task_id": "b", "resolved": True}]},
    ],
)
def test_a_state_beside_an_outcome_is_none(tmp_path: Path, document: object) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(document))
    assert read_adapted(path).frame.select("oid", "passed").rows() == [("a", None), ("b", "true")]


def test_records_by_their_problem(tmp_path: Path) -> None:
    path = tmp_path / "gpt.json"
    path.write_text(json.dumps({"a": {"resolved": True, "cost": 1.5}, "b": {"resolved": False, "log": ["x"]}}))
    table = read_adapted(path)
    assert table.frame.select("llm_name", "oid", "passed", "cost").rows() == [
        ("gpt", "a", "true", "1.5"),
        ("gpt", "b", "false", None),
    ]
    assert table.raw({2}) == {2: '{"oid": "b", "resolved": false, "log": ["x"]}'}


@pytest.mark.parametrize(
    ("name", "more", "model"),
    [("acme__tool-1_result", {}, "fixer"), ("acme-tool-1", {"model": "gpt"}, "gpt"), ("gpt-4", {}, "gpt-4")],
)
def test_a_file_with_one_record(tmp_path: Path, name: str, more: dict[str, str], model: str) -> None:
    """As SWE-PolyBench writes a file for each instance: they are all of one model."""
    path = tmp_path / "fixer" / f"{name}.json"
    path.parent.mkdir()
    record = {"instance_id": "acme__tool-1", "resolved": False, "passed_tests": ["t"]} | more
    for indent in (None, 4):
        path.write_text(json.dumps(record, indent=indent))
        table = read_adapted(path)
        assert table.frame.select("llm_name", "oid", "passed").rows() == [(model, "acme__tool-1", "false")]
        assert json.loads(table.raw({1})[1]) == record


@pytest.mark.parametrize("keys", [1, 9])
def test_many_records_by_their_problem(tmp_path: Path, keys: int) -> None:
    """More of them than are looked at, or a longer text."""
    path = tmp_path / "gpt.json"
    record = {f"key {place}": "x" * (50 * keys) for place in range(keys)}
    path.write_text(json.dumps({f"p{place}": record | {"resolved": place % 2 == 0} for place in range(1200)}))
    assert detect_format(path) == "jsonl"
    assert read_adapted(path).frame["passed"].value_counts().sort("passed")["count"].to_list() == [600, 600]


@pytest.mark.parametrize(
    "document",
    [
        {"a": {"resolved": True}},
        {"a": {"resolved": True}, "total": 1},
        {"a": {"resolved": True}, "summary": {"count": 1}},
        {"a": [{"resolved": True}], "b": [{"resolved": True}]},
    ],
)
def test_objects_that_are_not_all_records_are_not_read(tmp_path: Path, document: object) -> None:
    path = tmp_path / "gpt.json"
    path.write_text(json.dumps(document))
    assert detect_format(path) is None


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_beside_a_problems_file_an_unknown_problem_is_refused_in_every_form(tmp_path: Path, form: str) -> None:
    (tmp_path / "problems.csv").write_text("oid,filename\na,a.py\n")
    frame = pl.DataFrame({"model": ["m", "m"], "oid": ["a", "A1"], "iteration_id": ["1", "1"], "passed": [True, True]})
    getattr(frame, {"csv": "write_csv", "jsonl": "write_ndjson", "parquet": "write_parquet"}[form])(
        tmp_path / f"table.{form}"
    )
    rows = read_inputs(implied_config([tmp_path]), tmp_path)
    assert rows.problems["oid"].to_list() == ["a"]
    assert [kind for refused in rows.quarantine for kind in refused["kind"]] == ["unknown_oid"]
