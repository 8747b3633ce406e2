"""JSON of results files as records of text cells: whole documents, and one object per line.

Numbers stay as they were written, so that no digit is lost before the rules of `touchstone.ingest.cells` parse them.
"""

import hashlib
import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.json_stream import Each, Keep, Members, Shape, TooLargePartError, skim
from touchstone.ingest.adapters.table import (
    Cells,
    RawReader,
    Record,
    RefusedRecordError,
    StatedSetting,
    carried_name,
    encodable,
    fill_records,
)
from touchstone.ingest.compressed import open_input
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH, decoded, readable
from touchstone.ingest.limits import TOO_LARGE, limits, too_long
from touchstone.vocabulary import Dimension

LINES_SUFFIXES = (".jsonl", ".ndjson")
_CHUNK = 1 << 20
# A document up to this size can be parsed at once, which takes ten times as much memory.
_AT_ONCE_BYTES = 32 << 20
# Prompts, transcripts and test inputs are longer, labels and settings shorter.
MAX_CARRIED_LENGTH = 2000
_MAX_SETTING = 200
_DIGITS = re.compile(r"[0-9]{1,9}")
# How answers are generated, under the names that most tools have for it.
GENERATION = (
    "temperature top_p top_k max_tokens max_output_tokens max_completion_tokens max_gen_toks reasoning_effort "
    "reasoning_tokens effort seed frequency_penalty presence_penalty num_choices do_sample"
)


class Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


DECODER = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)


def _decode(text: str) -> object:
    """The value of JSON text without space around it; `DECODER.decode` looks for that with two searches per line."""
    value, end = DECODER.raw_decode(text)
    return value if end == len(text) else DECODER.decode(text)


def encode(value: object) -> str:
    """JSON text with every number as it was written."""
    if isinstance(value, dict):
        members = (f"{json.dumps(key, ensure_ascii=False)}: {encode(each)}" for key, each in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(encode, value)) + "]"
    return str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)


def unmapped_cells(
    record: Mapping[str, object],
    mapped: Collection[str],
    sections: Mapping[str, Collection[str]],
    taken: Collection[str],
) -> Cells:
    """Everything without a column of its own; values of the nested `sections` are named `<section>_<key>`.

    `sections` lists the mapped keys of each nested object.
    """
    cells: Cells = {}
    for name, known in sections.items():
        section = section_of(record, name) or {}
        nested = {f"{name}_{key}": value for key, value in section.items() if key not in known}
        cells |= _carried_cells(nested, (), (*taken, *cells))
    return cells | _carried_cells(record, (*mapped, *sections), (*taken, *cells))


def _carried_cells(record: Mapping[str, object], mapped: Collection[str], taken: Collection[str]) -> Cells:
    """The values of a record that the adapter does not map; nested ones as JSON."""
    return {carried_name(encodable(key), taken): text_of(value) for key, value in record.items() if key not in mapped}


def text_of(value: object) -> str | None:
    """A JSON value as the text of a cell; null and empty values are null, as in a CSV."""
    if value is None:
        return None
    if type(value) is str and value.isascii():
        # Nearly every cell takes this way: no further call.
        return value or None
    if isinstance(value, str):
        return encodable(value) or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if value in ([], {}):
        return None
    try:
        return encodable(encode(value))
    except RecursionError:
        raise RefusedRecordError("ragged", "the JSON is nested too deeply") from None


def shown_json(value: object) -> str:
    """The JSON text of any value, to be shown to people."""
    try:
        return encodable(encode(value))
    except RecursionError:
        return "(nested too deeply to be shown)"


def identifier_of(record: Mapping[str, object], name: str) -> str:
    """The text of a required key."""
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise RefusedRecordError("bad_id", f"the {name} is {described(value)} where text belongs")
    text = text_of(value)
    if text is None or not text.strip():
        raise RefusedRecordError("bad_id", f"the {name} is missing")
    return text


def object_of(value: object, name: str) -> dict[str, object]:
    """A value that must be an object."""
    if not isinstance(value, dict):
        raise RefusedRecordError("ragged", f"the {name} is {described(value)} where an object belongs")
    return value


def section_of(record: Mapping[str, object], name: str) -> dict[str, object] | None:
    """A nested object of a record; None if it is missing or null."""
    value = record.get(name)
    return None if value is None else object_of(value, name)


def described(value: object) -> str:
    """The kind of a JSON value, for a message."""
    if isinstance(value, Number):
        return "a number"
    words = {dict: "an object", list: "a list", str: "a text", bool: "a boolean"}
    return words.get(type(value), "null")


def read_text(path: Path, max_bytes: int | None = None) -> str:
    """The text of a file that is not empty and has at most this many bytes."""
    with readable(path), open_input(path) as file:
        data = file.read(None if max_bytes is None else max_bytes + 1)
    if max_bytes is not None and len(data) > max_bytes:
        raise InputFileError(f"{path}: has more than {max_bytes:,} bytes, the most that are read")
    text = decoded(path, data)
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


def skim_document(path: Path, shape: Shape, members: Collection[str] = ()) -> Iterator[tuple[str | None, object]]:
    """The parts of a JSON file of any size that `skim` finds, decoded; last the rest of the document, under None.

    `members` are the names of objects that are read member by member: each member is a part, its key and its value. If
    there are some, no object may repeat a key.
    """
    import numpy as np

    # Digests: the keys of millions of members would take half as much memory as the file.
    keys: dict[str | None, array[int]] = {name: array("q") for name in members}
    decoder = _UNIQUE_KEYS if members else DECODER
    try:
        with readable(path), open_input(path) as file:
            start = file.read(_CHUNK).removeprefix(b"\xef\xbb\xbf")
            for name, text in skim(chain([start], iter(lambda: file.read(_CHUNK), b"")), shape):
                part = decoder.decode(text.decode())
                if name is None and any(len(np.unique(each)) < len(each) for each in keys.values()):
                    raise _RepeatedKeyError
                if name in keys and isinstance(part, dict):
                    keys[name].extend(map(hash, part))
                    yield from ((name, member) for member in part.items())
                else:
                    yield name, part
    except (ValueError, RecursionError, _RepeatedKeyError) as error:
        with readable(path), open_input(path) as file:
            is_small = len(file.read(_AT_ONCE_BYTES + 1)) <= _AT_ONCE_BYTES
        if is_small:
            read_document(path, unique_keys=bool(members))  # says where the error is
        why = f"broken JSON ({str(error)[:200]})"
        if isinstance(error, _RepeatedKeyError):
            why = "an object has a key twice"
        elif isinstance(error, TooLargePartError):
            why = f"it has {error}, which is not read"
        raise InputFileError(f"{path}: {why}") from None


def list_elements(
    path: Path, shape: Shape | None = None, around: dict[str, object] | None = None
) -> Iterator[tuple[int, object]]:
    """The elements of the list that a JSON file is, or that the shape leads to, each with its place from 1.

    Last, `around` gets what else the object has, without other lists and objects.
    """
    places = count(1)
    for name, part in skim_document(path, Each(Keep()) if shape is None else shape):
        if name is not None:
            yield next(places), part
        elif around is not None:
            around |= inside(part)


def members_by_id(path: Path, name: str) -> Iterator[tuple[int, object]]:
    """The members of the object that a JSON file is, each an object with its key under this name."""
    members = (part for key, part in skim_document(path, Members(Keep()), [""]) if key is not None)
    for place, member in enumerate(members, start=1):
        assert isinstance(member, tuple)
        key, value = member
        yield place, {name: key} | value if isinstance(value, dict) else value


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


def raw_values(elements: Callable[[Path], Iterable[tuple[int, object]]]) -> RawReader:
    """Shows the records of a file as JSON, for those that have no line of their own; `elements` reads them again."""

    def raw(path: Path, places: set[int]) -> dict[int, str]:
        return {place: _shown(value)[:MAX_RAW_LENGTH] for place, value in elements(path) if place in places}

    return raw


def _shown(value: object) -> str:
    return "" if isinstance(value, RefusedRecordError) else shown_json(value)


def raw_lines(path: Path, lines: set[int]) -> dict[int, str]:
    """The text of these lines, truncated."""
    return {number: text[:MAX_RAW_LENGTH] for number, text in numbered_lines(path) if number in lines}


def parse_line(text: str, what: str = "result") -> dict[str, object]:
    """The object on one line; `what` names it in the reason for which another value is refused."""
    if isinstance(text, OverlongLine):
        raise RefusedRecordError(TOO_LARGE, too_long("the line", limits().row_mb, "row_mb"))
    try:
        value = _decode(text)
    except json.JSONDecodeError as error:
        raise RefusedRecordError("ragged", f"broken JSON at column {error.colno} ({error.msg})") from None
    except RecursionError:
        raise RefusedRecordError("ragged", "the JSON is nested too deeply") from None
    return object_of(value, what)


class Carried:
    """The unmapped cells of many records; counts what it leaves out."""

    def __init__(self, mapped: Collection[str], taken: Collection[str]) -> None:
        self._mapped = frozenset(mapped)
        self._taken = taken
        self._left_out: Counter[str] = Counter()

    def cells(self, record: Mapping[str, object]) -> Cells:
        """The short values of a record without a column of their own."""
        if record.keys() <= self._mapped:
            return {}
        cells = unmapped_cells(record, self._mapped, {}, self._taken)
        long = [name for name, text in cells.items() if text is not None and len(text) > MAX_CARRIED_LENGTH]
        self._left_out.update(long)
        return {name: text for name, text in cells.items() if name not in long}

    def notes(self) -> list[str]:
        """Notes on the values that were left out."""
        return [
            f"{name}: {count:,} values with more than {MAX_CARRIED_LENGTH:,} characters were left out"
            for name, count in sorted(self._left_out.items())
        ]


def line_records(
    path: Path, what: str, fill: Callable[[Cells, dict[str, object]], None], cells: Cells | None = None
) -> Iterator[Record]:
    """The records of a file with one object per line, made as they are taken, as by `fill_records`."""
    empty = True
    for record in fill_records(numbered_lines(path), lambda own, text: fill(own, parse_line(text, what)), cells):
        empty = False
        yield record
    if empty:
        raise InputFileError(f"{path}: the file is empty")


def object_records(
    values: Iterable[tuple[int, object]],
    what: str,
    fill: Callable[[Cells, dict[str, object]], None],
    cells: Cells | None = None,
) -> Iterator[Record]:
    """The records of values that must be objects; one that could not be read is refused with its own reason."""

    def fill_object(own: Cells, value: object) -> None:
        if isinstance(value, RefusedRecordError):
            raise value
        fill(own, object_of(value, what))

    return fill_records(values, fill_object, cells)


def scalar_of(value: object) -> str | None:
    """The text of a single value, such as a name; None for what is missing, empty, a list or an object."""
    return None if isinstance(value, dict | list) else text_of(value)


def inside(value: object, *keys: str) -> dict[str, object]:
    """The object under these keys; empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    """A value if it is a list, else none."""
    return value if isinstance(value, list) else []


def objects_of(value: object) -> list[dict[str, object]]:
    """The objects in a list; none if the value is something else."""
    return [each for each in list_of(value) if isinstance(each, dict)]


def object_in_text(value: object) -> dict[str, object] | None:
    """An object, also one that is written as JSON in a text; None for anything else."""
    if isinstance(value, str):
        try:
            value = DECODER.decode(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def whole_number(value: object) -> int | None:
    """A whole number of at most nine digits; None for anything else."""
    fits = isinstance(value, Number) and _DIGITS.fullmatch(value)
    return int(str(value)) if fits else None


def number_of(value: object) -> float | None:
    """A number, or the text of one, as a float; None for anything else and for what no float can hold."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def stated_settings(
    model: str,
    dimension: Dimension,
    section: Mapping[str, object],
    names: str,
    suite: str | None = None,
    unset: str | None = None,
) -> list[StatedSetting]:
    """The named settings of a section; `unset` is the value of one that is missing or null, which else is not stated.

    Only what is named is kept: a configuration may have secrets in it. A long value becomes its digest.

    >>> config = {"temperature": 0.5, "api_key": "secret"}
    >>> [(each.name, each.value) for each in stated_settings("m", "generation", config, "temperature top_p")]
    [('temperature', '0.5')]
    """
    texts = {name: unset if section.get(name) in (None, "") else _setting_text(section[name]) for name in names.split()}
    return [StatedSetting(model, dimension, name, text, suite) for name, text in texts.items() if text is not None]


def _setting_text(value: object) -> str:
    number = number_of(value) if isinstance(value, Number) else None
    text = shown_json(value) if number is None and not isinstance(value, str) else encodable(str(value))
    text = text if number is None else f"{number:.12g}"
    return text if len(text) <= _MAX_SETTING else f"sha256 {digest_of(text)}"


def digest_of(text: str) -> str:
    """A short digest of a text, to see whether it is the same elsewhere."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
