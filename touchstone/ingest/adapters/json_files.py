"""JSON files as adapters read them: whole documents, and one object per line."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.json_values import object_of, shown_json
from touchstone.ingest.adapters.lossless_json import DECODER, Number
from touchstone.ingest.adapters.table import RefusedRecordError
from touchstone.ingest.compressed import open_input
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH, decoded, readable
from touchstone.ingest.limits import TOO_LARGE, limits, too_long

LINES_SUFFIXES = (".jsonl", ".ndjson")
_CHUNK = 1 << 20


def read_text(path: Path) -> str:
    """The text of a file that is not empty."""
    with readable(path), open_input(path) as file:
        text = decoded(path, file.read())
    if not text.strip():
        raise InputFileError(f"{path}: the file is empty")
    return text


class _RepeatedKeyError(Exception):
    pass


def _without_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RepeatedKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return members


_UNIQUE_KEYS = json.JSONDecoder(
    parse_float=Number, parse_int=Number, parse_constant=Number, object_pairs_hook=_without_repeated_keys
)


def read_document(path: Path, *, unique_keys: bool = False) -> object:
    """The value of a JSON file; numbers stay as they were written.

    With `unique_keys`, an object that repeats a key is refused: where keys name problems, one of them would be lost.
    """
    return parse_document(path, read_text(path), unique_keys=unique_keys)


def parse_document(path: Path, text: str, *, unique_keys: bool = False) -> object:
    """The value of the JSON text that a file contains."""
    try:
        return (_UNIQUE_KEYS if unique_keys else DECODER).decode(text)
    except _RepeatedKeyError as error:
        raise InputFileError(f"{path}: an object has the key {str(error)[:100]!r} twice") from None
    except json.JSONDecodeError as error:
        raise InputFileError(f"{path}: broken JSON at line {error.lineno} column {error.colno} ({error.msg})") from None
    except RecursionError:
        raise InputFileError(f"{path}: the JSON is nested too deeply") from None


class OverlongLine(str):
    """The start of a line that is longer than a row may be, which `parse_line` refuses."""


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line that is not blank. Only `\\n` ends a line: JSON strings may contain other line separators."""
    offset, most = 0, limits().row_bytes
    with readable(path), open_input(path) as file:
        for number in count(1):
            data = file.readline(most + 1)
            if not data:
                return
            length = len(data)
            if length > most:
                text: str = OverlongLine(data[:MAX_RAW_LENGTH].decode("utf-8", "replace"))
                while data and not data.endswith(b"\n"):
                    data = file.readline(most)
                    length += len(data)
            else:
                text = decoded(path, data, offset).strip(" \t\r\n")
            offset += length
            if text:
                yield number, text


def unended_line(path: Path) -> int | None:
    """The number of the last line if nothing ends it, as in a file that is being written."""
    lines, last = 0, b"\n"
    with readable(path), open_input(path) as file:
        for chunk in iter(lambda: file.read(_CHUNK), b""):
            lines, last = lines + chunk.count(b"\n"), chunk[-1:]
    return None if last == b"\n" else lines + 1


def raw_values(values: Iterable[tuple[int, object]], places: set[int]) -> dict[int, str]:
    """The JSON text of the values at these places, truncated; for records that do not stand on lines of their own."""
    return {place: shown_json(value)[:MAX_RAW_LENGTH] for place, value in values if place in places}


def raw_lines(path: Path, lines: set[int]) -> dict[int, str]:
    """The text of these lines, truncated."""
    return {number: text[:MAX_RAW_LENGTH] for number, text in numbered_lines(path) if number in lines}


def parse_line(text: str, what: str = "result") -> dict[str, object]:
    """The object on one line; `what` names it in the reason for which another value is refused."""
    if isinstance(text, OverlongLine):
        raise RefusedRecordError(TOO_LARGE, too_long("the line", limits().row_mb, "row_mb"))
    try:
        value = DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise RefusedRecordError("ragged", f"broken JSON at column {error.colno} ({error.msg})") from None
    except RecursionError:
        raise RefusedRecordError("ragged", "the JSON is nested too deeply") from None
    return object_of(value, what)
