"""Records of benchmarks, and the folder that an import makes of them: problems, files, fixes and a configuration.

Records are JSON Lines, a JSON list, or a JSON object by id; compressed or not. Results files are evaluated without the
records that are refused. An import needs all of its records: the first that cannot be used is an error.

The folder appears whole or not at all, and never replaces anything.
"""

import csv
import json
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters.json_files import Number, parse_document, parse_line
from touchstone.ingest.adapters.table import RefusedRecordError
from touchstone.ingest.compressed import open_input
from touchstone.ingest.csv_rows import decoded, readable
from touchstone.storage.files import check_model_name, file_key
from touchstone.vocabulary import MAX_ID_LENGTH

CLONES = "clones"
CONFIG = "evaluation_config.json"
PROBLEMS = "problems.csv"

_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_FOLDER_NAME = 100
# 200 samples of each HumanEval problem are under 100 MB, all of SWE-bench with its patches 30 MB.
MAX_BYTES = 1 << 29

Row = Mapping[str, str]

_KS = (1, 2, 3, 5, 10, 100)


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
    with readable(path), open_input(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputFileError(f"{path}: more than {MAX_BYTES:,} bytes; split the file")
    text = decoded(path, content)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise InputFileError(f"{path}: the file is empty")
    records: list[SourceRecord] = []
    for number, line in lines if len(lines) > 1 else ():
        where = f"{path}, line {number}"
        try:
            records.append(SourceRecord(where, parse_line(line, "record")))
        except RefusedRecordError as refusal:
            if records:
                raise InputFileError(f"{where}: {refusal.reason}") from None
            break
    return records or list(_from_document(path, parse_document(path, text), key))


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


def records_by_id(path: Path, key: str, what: str) -> dict[str, SourceRecord]:
    """The records of a file by their ids, of which none may be repeated; `what` says what each of them is."""
    found: dict[str, SourceRecord] = {}
    for record in read_records(path, key):
        name = record.text(key)
        if len(name) > MAX_ID_LENGTH:
            raise record.error(f"the {key} has {len(name)} characters; at most {MAX_ID_LENGTH} are allowed")
        if name in found:
            raise record.error(f"the {what} {name!r} is there twice")
        found[name] = record
    return found


@dataclass(frozen=True)
class ImportedProblem:
    """A problem: its row, the name of its folder among the clones, and a function that fills this folder.

    Without these two its files are elsewhere, where `clones_dir` in the settings says.
    """

    row: Row
    folder: str = ""
    fill: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class ImportedEvaluation:
    """Everything that is written. `fixes` has the rows of each model."""

    problems: Sequence[ImportedProblem]
    fixes: Mapping[str, Sequence[Row]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    problem_key: str = "oid"

    def k_values(self) -> list[int]:
        """The k of pass@k that every attempted problem has enough attempts for."""
        counts = Counter((model, row[self.problem_key]) for model, rows in self.fixes.items() for row in rows)
        return [k for k in _KS if k <= min(counts.values(), default=1)]

    def write(self, folder: Path) -> None:
        """Write the evaluation to a new or empty folder."""
        with _new_folder(folder) as scratch:
            for problem in self.problems:
                if problem.fill is not None:
                    clone = scratch / CLONES / problem.folder
                    clone.mkdir(parents=True)
                    problem.fill(clone)
            _write_csv(scratch / PROBLEMS, [problem.row for problem in self.problems])
            for model, rows in self.fixes.items():
                _write_csv(scratch / fixes_name(model), rows)
            files = {"problems_csv": PROBLEMS, "fixes_dir": ".", "output_dir": "output", "clones_dir": CLONES}
            config = {**files, "problem_key": self.problem_key, "k_values": self.k_values(), **self.settings}
            (scratch / CONFIG).write_text(json.dumps(config, indent=4) + "\n", encoding="utf-8")


def fixes_name(model: str) -> str:
    """The name of a model's fixes file; what a file name may not contain is escaped.

    >>> fixes_name("acme/fixer-7b")
    'acme%2Ffixer-7b_fixes.csv'
    """
    return f"{file_key(check_model_name(model))}_fixes.csv"


def folder_names(ids: Sequence[str]) -> dict[str, str]:
    """A folder name for each id, made of letters, digits and `. _ -`; ids that would share one get a number.

    >>> folder_names(["HumanEval/0", "HumanEval 0", ".."])
    {'HumanEval/0': 'HumanEval_0', 'HumanEval 0': 'HumanEval_0-2', '..': '_'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for each in ids:
        plain = _UNUSUAL.sub("_", each)[:_MAX_FOLDER_NAME].strip(".-") or "_"
        name, number = plain, 1
        # Some file systems do not distinguish upper and lower case.
        while name.casefold() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.casefold())
        names[each] = name
    return names


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary sibling; renamed to `folder` on success, deleted on error."""
    target = folder.resolve()
    scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        if target == Path.cwd():
            raise TouchstoneError(f"{folder}: is the current folder; name one that does not exist")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise TouchstoneError(f"{folder}: exists and is not an empty folder; name a new one")
        scratch.mkdir(parents=True)
        yield scratch
        # Replaces an empty folder; fails if something was put there meanwhile.
        scratch.rename(target)
    except OSError as error:
        raise TouchstoneError(f"{folder}: cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_csv(path: Path, rows: Sequence[Row]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        # A lone carriage return would not be quoted otherwise, and end the row.
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
