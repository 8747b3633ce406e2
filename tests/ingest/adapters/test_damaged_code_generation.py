"""Damaged files of code-generation tools: one line for the whole file, or refused records, and never anything else."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.adapters.code_generation import (
    CRUXEVAL,
    EVALPLUS,
    HUMAN_EVAL,
    LIVECODEBENCH,
    LIVECODEBENCH_TESTS,
    swapped,
)
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import ReadOptions, adapter_of

FORMATS = {
    "human-eval": HUMAN_EVAL,
    "evalplus": EVALPLUS,
    "livecodebench": LIVECODEBENCH,
    "livecodebench-tests": LIVECODEBENCH_TESTS,
    "cruxeval": CRUXEVAL,
}


def read(name: str, path: Path, content: bytes) -> None:
    """Read a file as this format, whatever it looks like; refused records can be shown."""
    path.write_bytes(content)
    try:
        table = adapter_of(name).read(path, ReadOptions())
    except InputFileError as error:
        assert "\n" not in str(error)
        assert str(error).startswith(str(path))
        return
    assert table.frame.height > 0
    lines = table.frame["__line"].to_list()
    assert len(set(lines)) == len(lines)
    assert set(table.raw(set(lines))) == set(lines)


@pytest.mark.parametrize("name", FORMATS)
@given(start=st.integers(0, 3000), length=st.integers(0, 50), data=st.binary(max_size=5))
def test_bytes_that_are_missing_or_others(
    tmp_path_factory: pytest.TempPathFactory, name: str, start: int, length: int, data: bytes
) -> None:
    content = FORMATS[name].read_bytes()
    at = start % len(content)
    read(name, tmp_path_factory.getbasetemp() / "damaged.json", content[:at] + data + content[at + length :])


@pytest.mark.parametrize("name", FORMATS)
@given(places=st.data())
def test_values_of_another_kind(tmp_path_factory: pytest.TempPathFactory, name: str, places: st.DataObject) -> None:
    text = FORMATS[name].read_text()
    parts = text.splitlines() if name == "human-eval" else [text]
    odd = "\n".join(json.dumps(swapped(json.loads(part), places)) for part in parts)
    read(name, tmp_path_factory.getbasetemp() / "odd.json", odd.encode())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        b"[" * 10**5,
    ],
    ids=lambda content: repr(content[:10]),
)
def test_files_that_are_something_else(tmp_path: Path, name: str, content: bytes) -> None:
    read(name, tmp_path / "other.json", content)
