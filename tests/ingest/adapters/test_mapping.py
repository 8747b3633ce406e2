"""Declared formats: paths, outcomes, settings; a document read at once and record by record gives the same rows."""

import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from touchstone.config.formats import JsonFormat
from touchstone.config.json_paths import Found, JsonPathError, WrongKind, parse_field, parse_path, parse_records
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, mapping
from touchstone.ingest.adapters.adapter import Head, ReadOptions
from touchstone.ingest.adapters.json_files import read_document

FIELDS: dict[str, Any] = {"name": "ours", "problem": "id", "passed": "ok"}


def read(path: Path, **declared: Any) -> AdapterTable:
    adapter = mapping.mapped_adapter(JsonFormat(**FIELDS | declared))
    assert adapter.recognizes(Head(path))
    return adapter.read(path, ReadOptions())


def written(folder: Path, document: Any, name: str = "acme_results.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def column(table: AdapterTable, name: str) -> list[str | None]:
    return table.frame[name].to_list()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("a..b", "unexpected '..b' after 'a'"),
        (".a", "unexpected '.a' after ''"),
        ("a[x]", "unexpected '[x]' after 'a'"),
        ('a."b', "unexpected '.\"b' after 'a'"),
        ("@name", "known names are @key, @index, @file, @folder"),
        ("@key.a", "unexpected '.a' after '@key'"),
    ],
)
def test_a_text_that_is_no_path_says_where_it_ends(text: str, why: str) -> None:
    with pytest.raises(JsonPathError, match="is not a path") as error:
        parse_path(text)
    assert why in str(error.value) and "\n" not in str(error.value)


def test_records_are_several_and_a_field_is_one() -> None:
    for text in ("results", "a[0].b[]", "^[]", "@"):
        with pytest.raises(JsonPathError):
            parse_records(text)
    with pytest.raises(JsonPathError, match=r"'cases\[\]' leads to several values"):
        parse_field("={id}/{cases[]}")


def test_every_kind_of_path(tmp_path: Path) -> None:
    document = {"m": "x", "a.b": {"suites": {"s1": {"tier": "T1", "list": [{"id": 1, "ok": True, "n": [5, 7]}]}}}}
    table = read(
        written(tmp_path, document),
        records='"a.b".suites.*.list[]',
        problem="={^@key}/{id}",
        model=["nothing", "$.m"],
        suite="^@key",
        columns={
            "tier": "^.tier",
            "last": "n[-1]",
            "place": "@index",
            "from": "=of {@file} in {@folder}",
            "none": "n[9]",
        },
    )
    row = table.frame.row(0, named=True)
    expected = {"oid": "s1/1", "llm_name": "x", "suite": "s1", "tier": "T1", "last": "7", "place": "0", "none": None}
    assert {name: row[name] for name in expected} == expected
    assert row["from"] == f"of acme_results in {tmp_path.name}"


@pytest.mark.parametrize(
    ("settings", "value", "outcome"),
    [
        ({}, True, "true"),
        ({}, "FAILED", "false"),
        ({}, 1.0, "true"),
        ({}, None, None),
        ({}, "maybe", "ok: 'maybe' is not true/false, 1/0, yes/no or pass/fail; name others in pass_values"),
        ({"at_least": 0.5}, 0.5, "true"),
        ({"at_least": 0.5}, "0.49", "false"),
        ({"at_least": 0.5}, False, "false"),
        ({"at_least": 0.5}, "high", "ok: 'high' is not a number"),
        ({"pass_values": ["ok", 1], "fail_values": [None]}, 1.0, "true"),
        ({"pass_values": ["ok", 1], "fail_values": [None]}, None, "false"),
        ({"pass_values": ["ok"], "undecided_values": ["skip"]}, "skip", None),
        ({"pass_values": ["ok"]}, "OK", "ok: 'OK' is not in pass_values, fail_values or undecided_values"),
        ({"pass_values": ["true"]}, {"deep": 1}, "is not in pass_values"),
    ],
)
def test_what_is_a_pass(tmp_path: Path, settings: dict[str, Any], value: Any, outcome: str | None) -> None:
    table = read(written(tmp_path, {"runs": [{"id": "a", "ok": value}]}), records="runs[]", **settings)
    reason = column(table, "__broken")[0]
    if outcome in ("true", "false", None):
        assert (column(table, "passed"), reason) == ([outcome], None)
    else:
        assert outcome in str(reason)


def test_lines_are_numbered_compressed_and_not_counted_twice(tmp_path: Path) -> None:
    lines = [{"id": "a", "ok": 1, "s": 2}, {"id": "a", "ok": 0, "s": 3}, {"id": "b", "ok": 1, "s": 4}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path = tmp_path / "acme.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    table = read(path, records="[]", duration="s")
    assert column(table, "iteration_id") == ["1", "2", "1"] and column(table, "llm_name") == ["acme"] * 3
    path.write_bytes(gzip.compress(2 * text.encode()))
    table = read(path, records="[]", duration="s")
    assert column(table, "__broken")[2:4] == [None, "repeats line 1: the file was appended to itself"]


def test_settings_in_which_all_records_agree_are_stated(tmp_path: Path) -> None:
    document = {"set": {"t": 0.50}, "runs": [{"id": "a", "ok": 1, "seed": 1}, {"id": "b", "ok": 1, "seed": 2}]}
    table = read(written(tmp_path, document), records="runs[]", settings={"generation": ["$.set.t", "seed"]})
    assert [(each.name, each.value) for each in table.settings] == [("t", "0.5")]


def test_other_shapes_are_refused_one_by_one(tmp_path: Path) -> None:
    document = {"runs": {"a": [{"id": "a", "ok": 1}], "b": {}, "c": ["x", {"ok": 1}, {"id": [1], "ok": 1}], "d": None}}
    table = read(written(tmp_path, document), records="runs.*[]")
    assert column(table, "__broken") == [
        None,
        "an object where a list of records belongs",
        "the record is a text where an object belongs",
        "the problem is missing (id)",
        "the problem (id) is a list where text belongs",
    ]
    assert table.raw({1, 2}) == {1: '{"id": "a", "ok": 1}', 2: "{}"}


LEAVES = st.none() | st.booleans() | st.integers(0, 9) | st.text('ab"\\{[,:é', max_size=4)
RECORDS = st.fixed_dictionaries({"id": LEAVES, "ok": LEAVES}, optional={"x": st.lists(LEAVES, max_size=2)}) | LEAVES
LISTS = st.lists(RECORDS, max_size=3) | LEAVES
OBJECTS = st.dictionaries(st.text("ab.é", max_size=2), LISTS | RECORDS, max_size=3)


@given(
    first=LISTS | OBJECTS,
    around=st.dictionaries(st.sampled_from(["m", "n"]), LISTS | OBJECTS, max_size=2),
    records=st.sampled_from(["runs[]", "runs.*", "runs.*[]", "in.runs[]", "*", "*[]"]),
)
def test_part_by_part_finds_what_a_walk_through_the_document_finds(
    tmp_path_factory: pytest.TempPathFactory, first: Any, around: dict[str, Any], records: str
) -> None:
    document = {"runs": first, **around, "in": {"runs": first, "k": [1]}, "late": {"model": "m"}}
    path = written(tmp_path_factory.getbasetemp(), document)
    seen: list[tuple[Any, ...]] = []

    def fill(_: object, found: Found) -> None:
        seen.append((found.value, found.key, found.index, found.get("$.late.model"), found.get("$.in.k[0]")))

    declared = JsonFormat(**FIELDS | {"records": records, "problem": "=a", "passed": "=1"})
    adapter = mapping.mapped_adapter(declared, fill=fill, kept=["$.in.k", "$.late"])
    with contextlib.suppress(InputFileError):  # without results
        adapter.read(path, ReadOptions())
    whole = Found(read_document(path)).each(parse_records(records).steps)
    walked = [each for each in whole if not isinstance(each.value, WrongKind)]
    known = ("m", "1") if records[0] != "*" else (None, None)
    assert seen == [(each.value, each.key, each.index, *known) for each in walked]


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.json"
    path.write_text('{"runs": {"a": {"ok": true}, "b": {"ok": true}, "a": {"ok": false}}}')
    with pytest.raises(InputFileError, match="an object has the key 'a' twice"):
        read(path, records="runs.*", problem="@key")


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"problm": "id"}, r"unknown key 'problm' \(did you mean 'problem'\?\)"),
        ({"at_least": 1, "pass_values": [1]}, "give at_least or the values of passed, not both"),
        ({"fail_values": ["no"]}, "no value is a pass"),
        ({"pass_values": ["x"], "fail_values": ["x"]}, "the value 'x' is listed twice"),
        ({"columns": {"oid": "id"}}, "the column 'oid' has a key of its own"),
        ({"columns": {"__line": "id"}}, "pattern"),
        ({"records": "runs"}, "add '\\[\\]' for the elements of a list"),
    ],
)
def test_a_wrong_declaration_is_refused(declared: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        JsonFormat(**FIELDS | {"records": "runs[]"} | declared)


def test_found_values_know_what_is_around_them() -> None:
    (case,) = Found({"runs": [{"cases": [{"id": 1}]}]}).each(parse_records("runs[].cases[]").steps)
    assert case.get("^.cases[0].id") == 1 and case.get("^^.runs[0].cases") and case.get("^^^.id") is None
