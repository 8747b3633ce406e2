"""Records of benchmarks: JSON Lines, a JSON list, or a JSON object by id; compressed or not.

Results files are evaluated without the records that are refused. An import needs all of its records: the first that
cannot be used is an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.json_files import Number, parse_document, parse_line
from touchstone.ingest.adapters.table import RefusedRecordError
from touchstone.ingest.compressed import open_input
from touchstone.ingest.csv_rows import decoded, readable

# 200 samples of each HumanEval problem are under 100 MB, all of SWE-bench with its patches 30 MB.
MAX_BYTES = 1 << 29


@dataclass(frozen=True)
class SourceRecord:
    """One record of a file, and where it is: `problems.jsonl, line 3`."""

    where: str
    values: dict[str, object]

    def text(self, name: str, *, may_be_blank: bool = False) -> str:
        """The text of a required key."""
        value = self.values.get(name)
        if not isinstance(value, str) or isinstance(value, Number):
            raise self.error(f"the {name} is missing or no text")
        if not value.strip() and not may_be_blank:
            raise self.error(f"the {name} is empty")
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise self.error(f"the {name} has characters that are not valid Unicode")
        return value

    def error(self, reason: str) -> InputFileError:
        """An error of one line that says where the record is."""
        return InputFileError(f"{self.where}: {reason}")


def read_records(path: Path, key: str) -> list[SourceRecord]:
    """The records of a file in its order; `key` is the one that names a record."""
    text = decoded(path, _content(path))
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise InputFileError(f"{path}: the file is empty")
    if len(lines) > 1 and _is_object(lines[0][1]):
        return [_from_line(path, number, line) for number, line in lines]
    return list(_from_document(path, parse_document(path, text), key))


def _content(path: Path) -> bytes:
    with readable(path), open_input(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputFileError(f"{path}: more than {MAX_BYTES:,} bytes; split the file")
    return content


def _is_object(line: str) -> bool:
    try:
        parse_line(line)
    except RefusedRecordError:
        return False
    return True


def _from_line(path: Path, number: int, line: str) -> SourceRecord:
    where = f"{path}, line {number}"
    try:
        return SourceRecord(where, parse_line(line, "record"))
    except RefusedRecordError as refusal:
        raise InputFileError(f"{where}: {refusal.reason}") from None


def _from_document(path: Path, document: object, key: str) -> Iterator[SourceRecord]:
    """The records of a list, of an object by id, or of the single one that the document is."""
    if isinstance(document, dict) and key not in document:
        records: list[object] = [
            {key: name, **value} if isinstance(value, dict) else value for name, value in document.items()
        ]
    else:
        records = document if isinstance(document, list) else [document]
    for number, value in enumerate(records, start=1):
        if not isinstance(value, dict):
            raise InputFileError(f"{path}, record {number}: an object with the key {key} belongs here")
        yield SourceRecord(f"{path}, record {number}", value)
