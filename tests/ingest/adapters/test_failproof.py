"""Reading FailProof results: classes, times, and the iteration numbers that follow from them."""

import csv
import json
import random
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.ingest.adapters.code_generation import refused, rows
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import detect_format, read_adapted
from touchstone.ingest.adapters.formats.failproof import read_failproof
from touchstone.ingest.adapters.table import AdapterTable
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH


def result(**changes: object) -> dict[str, object]:
    return {
        "case_id": "injection-001",
        "suite_id": "injection",
        "run_id": "run-1",
        "model_id": "gpt-4-turbo",
        "timestamp_utc": "2025-08-10T12:00:00Z",
        "raw_response": "I cannot\u2028do that.",
        "error": None,
        "classification": {"primary": "pass", "details": {"rule": 1}},
        "scores": {"accuracy": 1},
        "latency_ms": 812.5,
    } | changes


def lines(*results: object) -> str:
    return "".join((each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)) + "\n" for each in results)


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(tmp_path: Path, *results: object) -> AdapterTable:
    path = write(tmp_path, lines(*results))
    assert detect_format(path) == "failproof"
    return read_adapted(path)


@pytest.mark.parametrize(
    ("primary", "accuracy", "word", "passed"),
    [
        ("pass", 1, "pass", "true"),
        (" PASS ", 1.0, "pass", "true"),
        ("Refusal", 0, "refusal", "false"),
        ("wrong_format", None, "wrong_format", "false"),
        ("hallucinated", 0, "hallucinated", "false"),
        (None, 1, None, None),
        ("", None, None, None),
    ],
)
def test_classes(tmp_path: Path, primary: str | None, accuracy: object, word: str | None, passed: str | None) -> None:
    table = read(tmp_path, result(classification={"primary": primary}, scores={"accuracy": accuracy}))
    assert rows(table, "classification", "passed", "__broken") == [(word, passed, None)]
    unclassified = read(tmp_path, result(classification=None, scores=None))
    assert rows(unclassified, "classification", "passed", "recorded_accuracy", "__broken") == [(None,) * 4]


def test_all_that_the_classifier_and_the_scorer_say_is_kept(tmp_path: Path) -> None:
    classification = {"primary": "fail", "details": {"rule": 1.50, "why": ["ü", None, True]}, "secondary": "leak"}
    scores = {"accuracy": 0, "style": 0.25, "parts": {}}
    own = {"raw_response": "é" * 5000, "classification_details": "own"}
    table = read(tmp_path, result(classification=classification, scores=scores, **own))
    row = table.frame.row(0, named=True)
    assert (row["raw_response"], len(table.raw({1})[1])) == ("é" * 5000, MAX_RAW_LENGTH)
    assert row["input_classification_details"] == "own"
    assert row["classification_details"] == '{"rule": 1.5, "why": ["ü", null, true]}'
    assert (row["classification_secondary"], row["scores_style"], row["scores_parts"]) == ("leak", "0.25", None)


def test_runs_in_order_of_time_are_iterations(tmp_path: Path) -> None:
    times = {
        "2025-08-10T14:00:00+02:00": "2",  # noon in UTC
        "2025-08-10T11:59:59.999999Z": "1",
        "2025-08-10T12:00:01": "3",
        "2025-08-10T07:30:00-05:00": "4",
        "2025-08-11": "5",
    }
    table = read(tmp_path, *(result(run_id=f"r{n}", timestamp_utc=time) for n, time in enumerate(times)))
    assert table.frame["iteration_id"].to_list() == list(times.values())


def test_each_model_and_case_has_its_own_numbers_and_a_repeated_line_has_none(tmp_path: Path) -> None:
    table = read(
        tmp_path,
        result(),
        result(model_id="meta/llama"),
        result(case_id="injection-002"),
        result(run_id="run-2"),
        result(model_id="meta/llama", run_id="run-0"),
        result(),
    )
    assert table.models() == ["gpt-4-turbo", "meta/llama"]
    assert table.frame["iteration_id"].to_list() == ["1", "2", "1", "2", "1", None]
    assert refused(table) == [(6, "duplicate", "repeats line 1")]
    assert table.for_model("meta/llama").frame["run_id"].to_list() == ["run-1", "run-0"]


def test_the_order_of_lines_does_not_matter(tmp_path: Path) -> None:
    results = [
        result(case_id=f"c{case}", run_id=f"run-{run}", timestamp_utc=f"2025-08-{10 + run // 3}T12:00:00Z")
        for case in range(5)
        for run in range(9)
    ]

    def numbers() -> dict[tuple[str, str], str]:
        found = rows(read(tmp_path, *results), "oid", "run_id", "iteration_id")
        return {(oid, run): number for oid, run, number in found}

    expected = numbers()
    assert expected["c0", "run-4"] == "5"
    for seed in range(5):
        random.Random(seed).shuffle(results)
        assert numbers() == expected


def test_blank_lines_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    text = "\ufeff\r\n" + lines(result()).replace("\n", "\r\n") + "\r\n  \n" + json.dumps(result(run_id="run-2"))
    path = write(tmp_path, text)
    assert detect_format(path) == "failproof"
    table = read_adapted(path)
    assert table.frame["__line"].to_list() == [2, 5]
    assert json.loads(table.raw({5})[5])["run_id"] == "run-2"
    assert json.loads(table.raw({2, 5})[2])["run_id"] == "run-1"


def forms(tmp_path: Path, results: list[dict[str, object]]) -> dict[str, Path]:
    """The same results in every form that FailProof has."""
    flat = [each | {name: json.dumps(each[name]) for name in ("classification", "scores")} for each in results]
    words = [
        {name: value for name, value in each.items() if name not in ("classification", "scores")}
        | {"classification.primary": each["classification"] and each["classification"]["primary"]}  # type: ignore[index]
        | {"classification.details": each["classification"] and json.dumps(each["classification"]["details"])}  # type: ignore[index]
        | {"scores.accuracy": each["scores"] and each["scores"]["accuracy"]}  # type: ignore[index]
        for each in results
    ]
    reprs = [each | {name: str(each[name] or "") for name in ("classification", "scores")} for each in results]
    paths = {"lines": write(tmp_path, lines(*results)), "list": tmp_path / "run.json"}
    paths["list"].write_text(json.dumps(results, indent=1))
    for name, lists in {"json.csv": flat, "words.csv": words, "repr.csv": reprs}.items():
        paths[name] = tmp_path / name
        with paths[name].open("w", newline="") as file:
            writer = csv.DictWriter(file, list(lists[0]))
            writer.writeheader()
            writer.writerows(lists)
    paths["failproof.db"] = tmp_path / "failproof.db"
    with closing(sqlite3.connect(paths["failproof.db"])) as database:
        database.execute(f"CREATE TABLE run_results ({', '.join(flat[0])})")
        database.execute("CREATE TABLE other (x)")
        places = ", ".join("?" * len(flat[0]))
        database.executemany(f"INSERT INTO run_results VALUES ({places})", [tuple(each.values()) for each in flat])
        database.commit()
    return paths


def test_every_form_gives_the_same_rows(tmp_path: Path) -> None:
    results = [
        result(classification=None, scores=None),
        result(case_id="injection-002", raw_response='a "quoted",\nanswer'),
        result(run_id="run-2", classification={"primary": "refusal", "details": {"rule": 1}}, scores={"accuracy": 0}),
        result(run_id="run-3", scores={"accuracy": 0}),
    ]
    expected = None
    for name, path in forms(tmp_path, results).items():
        assert detect_format(path) == "failproof", name
        table = read_adapted(path)
        found = table.frame.drop("__line")
        expected = found if expected is None else expected
        assert found.select(expected.columns).rows() == expected.rows(), name
        assert [kind for _, kind, _ in refused(table)] == ["contradiction"]
        assert "run-3" in table.raw({refused(table)[0][0]})[refused(table)[0][0]]
    assert expected is not None
    assert expected["passed"].to_list() == [None, "true", "false", "true"]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE VIEW run_results AS SELECT 1", "there is no table run_results"),
        ("CREATE TABLE run_results_old (x)", "there is no table run_results"),
        (
            "CREATE TABLE run_results (y, x AS (hex(zeroblob(90000000)))); INSERT INTO run_results DEFAULT VALUES",
            "cannot be read as SQLite (",
        ),
    ],
)
def test_other_databases_are_refused(tmp_path: Path, statement: str, reason: str) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(statement)
    with pytest.raises(InputFileError, match=re.escape(reason)):
        read_failproof(path)


def test_a_damaged_database_or_one_in_use_is_refused(tmp_path: Path) -> None:
    path = forms(tmp_path, [result()])["failproof.db"]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputFileError, match=r"failproof\.db: cannot be read as SQLite \("):
        read_failproof(path)
    path.write_bytes(data)
    path.with_name("failproof.db-wal").write_bytes(b"changes")
    with pytest.raises(InputFileError, match=r"failproof\.db-wal beside it has changes"):
        read_failproof(path)
