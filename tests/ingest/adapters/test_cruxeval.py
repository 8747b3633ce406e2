"""Reading CRUXEval's scored generations."""

import json
from pathlib import Path

import pytest

from tests.ingest.adapters.code_generation import refused, rows
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import detect_format, read_adapted
from touchstone.ingest.adapters.table import AdapterTable


def read(tmp_path: Path, name: str = "acme_temp0.8_output.json", **keys: object) -> AdapterTable:
    path = tmp_path / name
    path.write_text(json.dumps(keys))
    assert detect_format(path) == "cruxeval"
    return read_adapted(path)


def test_what_cannot_be_used_is_refused_and_missing_generations_are_counted(tmp_path: Path) -> None:
    scored = {"sample_0": [True, None], "sample_1": [], "sample_2": True, "sample_3": [False]}
    table = read(tmp_path, raw_generations={"sample_0": ["a"], "sample_3": ["b"]}, raw_scored_generations=scored)
    assert rows(table, "passed", "prediction") == [
        ("true", None),
        (None, None),
        (None, None),
        (None, None),
        ("false", "b"),
    ]
    assert [(line, kind) for line, kind, _ in refused(table)] == [(3, "ragged"), (4, "ragged")]
    assert table.notes[1].startswith("2 attempts have no generation")


def test_a_name_that_does_not_tell_what_was_predicted(tmp_path: Path) -> None:
    table = read(tmp_path, "mine.json", raw_generations={}, raw_scored_generations={"sample_0": [True]})
    assert rows(table, "oid", "suite", "cluster", "llm_name") == [("sample_0", None, None, "mine")]
    assert any("inputs or outputs" in note for note in table.notes)


@pytest.mark.parametrize("keys", [{}, {"raw_scored_generations": []}, {"raw_scored_generations": {}}])
def test_files_that_cannot_be_used(tmp_path: Path, keys: dict[str, object]) -> None:
    with pytest.raises(InputFileError, match=r"need an object 'raw_scored_generations'|holds no results"):
        read(tmp_path, raw_generations={}, **keys)
