"""The declaration of an adapter: its name, how it recognizes a file or folder, and how it reads one.

A format is recognized by the start of a file or the names in a folder (`Head`). Everything is read at most once and
parsed when an adapter asks for it, so that asking all adapters costs little.
"""

import csv
import io
import json
import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from touchstone.config.formats import AdapterSource, JsonFormat
from touchstone.errors import InputFileError
from touchstone.ingest.adapters.json_files import LINES_SUFFIXES
from touchstone.ingest.adapters.steps import Step
from touchstone.ingest.adapters.table import AdapterTable
from touchstone.ingest.compressed import open_input, uncompressed_name
from touchstone.ingest.limits import limits
from touchstone.vocabulary import FileStatus

LIST = "[]"

_START_BYTES = 1 << 16
_JSON_BYTES = 1 << 20
_MAX_NAMES = 10_000
_MAX_DEPTH = 4
_MAX_PATHS = 20_000
# A string that is not closed ends with the text: otherwise each of its quotes would be tried as another start.
_TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))(\s*:)?|[{}\[\]]', re.DOTALL)


@dataclass(frozen=True)
class ReadOptions:
    """Settings of a user for files whose content leaves it open.

    `score` names one of several scores. `junit_pattern` says which parts of a path are the model, the tier and the
    attempt. `problems` are the ids of all problems, for files that do not list failures. `columns` maps the column
    names of plain tables to ours, and `problem_key` is the column of the problem. `formats` and `adapters` are the
    user's own.
    """

    score: str | None = None
    junit_pattern: str | None = None
    problems: frozenset[str] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    problem_key: str = "oid"
    formats: tuple[JsonFormat, ...] = ()
    adapters: tuple[AdapterSource, ...] = ()


class Head:
    """The first 64 KiB of a file (1 MiB of JSON), unpacked, or the entries of a folder. Empty if it cannot be read."""

    def __init__(self, path: Path, options: ReadOptions | None = None) -> None:
        self.path = path
        # Without the ending of a compression.
        self.name = uncompressed_name(path)
        self.options = options or ReadOptions()
        self.is_folder = path.is_dir()

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in a folder; none for a file."""
        if not self.is_folder:
            return frozenset()
        try:
            with os.scandir(self.path) as entries:
                return frozenset(entry.name for entry in islice(entries, _MAX_NAMES))
        except OSError:
            return frozenset()

    @cached_property
    def data(self) -> bytes:
        """The first bytes of a file; none for a folder."""
        if self.is_folder:
            return b""
        try:
            with open_input(self.path) as file:
                start = file.read(_START_BYTES)
                is_json = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
                return start + file.read(_JSON_BYTES - len(start)) if is_json else start
        except (OSError, InputFileError):
            return b""

    @cached_property
    def text(self) -> str:
        """The first characters of a file, without leading space."""
        encoding = "utf-16" if self.data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
        return self.data.decode(encoding, errors="replace").lstrip()

    @cached_property
    def first_line(self) -> object:
        """The JSON value on the first line, as in JSON Lines; None if there is none."""
        line, end, _ = self.text.partition("\n")
        try:
            # A record with the history of an agent may be longer than the start that is looked at.
            return json.loads(line if end or not self.name.lower().endswith(LINES_SUFFIXES) else self._whole_line())
        except (ValueError, RecursionError, OSError, InputFileError):
            return None

    def _whole_line(self) -> str:
        with open_input(self.path) as file:
            lines = iter(lambda: file.readline(limits().row_bytes), b"")
            return next((line for line in lines if line.strip()), b"").decode("utf-8-sig", errors="replace")

    @cached_property
    def first_record(self) -> dict[str, object]:
        """The object on the first line, as in JSON Lines; empty if there is none."""
        return self.first_line if isinstance(self.first_line, dict) else {}

    @cached_property
    def csv_header(self) -> frozenset[str]:
        """The names in the first row of a CSV file; none of JSON."""
        if self.text[:1] in ("", "{", "["):
            return frozenset()
        try:
            return frozenset(name.strip() for name in next(csv.reader(io.StringIO(self.text, newline="")), []))
        except csv.Error:
            return frozenset()

    @cached_property
    def key_paths(self) -> frozenset[tuple[str, ...]]:
        """The keys of JSON objects within the start of the file, each with those above it; `[]` stands for a list.

        `{"eval": {"task": 1}, "samples": [{"id": 1}]}` has the paths `eval`, `eval task`, `samples`, `samples []` and
        `samples [] id`. Nothing deeper than four levels is listed, and only the first 20,000 paths.
        """
        if self.text[:1] not in ("{", "["):
            return frozenset()
        return frozenset(islice(_key_paths(self.text), _MAX_PATHS))

    def has_keys(self, *keys: str) -> bool:
        """Whether the outermost object has all these keys within the start of the file."""
        return all((key,) in self.key_paths for key in keys)


def _key_paths(text: str) -> Iterator[tuple[str, ...]]:
    above: list[str | None] = []  # the key or `[]` that each open bracket stands under
    key: str | None = None
    for token in _TOKEN.finditer(text):
        if token[1] is not None:
            key = None
            if token[2] is not None:
                key = token[1][1:-1]
                if len(above) <= _MAX_DEPTH:
                    yield (*(name for name in above[1:] if name is not None), key)
        elif token[0] in "{[":
            above.append(key)
            if token[0] == "[":
                above.append(LIST)
                if len(above) <= _MAX_DEPTH + 1:
                    yield tuple(name for name in above[1:] if name is not None)
            key = None
        else:
            if token[0] == "]" and above and above[-1] == LIST:
                above.pop()
            if above:
                above.pop()
            key = None


class NotEvaluatedError(InputFileError):
    """A file of a known format that is not read, although nothing is wrong with it; `status` says how it counts."""

    def __init__(self, message: str, status: FileStatus) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Adapter:
    """One format. `read` raises `InputFileError` for a file that cannot be used at all."""

    format: str
    # The name of such a file in messages: "Inspect AI log".
    title: str
    recognizes: Callable[[Head], bool]
    read: Callable[[Path, ReadOptions], AdapterTable]
    # What the model did, for the audit: the steps of each record that has a transcript, by the line of the record.
    transcripts: Callable[[AdapterTable], Iterator[tuple[int, Iterable[Step]]]] | None = None
    # As XML can be.
    reads_utf_16: bool = False
    # How a file counts that is only recognized to say why it cannot be evaluated.
    unread: FileStatus | None = None
    # What every such file has, for people who wonder why theirs was not recognized; see `marks`.
    marks: str = ""


def not_evaluated(
    name: str, title: str, recognizes: Callable[[Head], bool], reason: str, status: FileStatus = "unknown"
) -> Adapter:
    """A format that is recognized to say why it cannot be evaluated."""

    def refuse(path: Path, _: ReadOptions) -> AdapterTable:
        raise NotEvaluatedError(f"{path}: {reason}", status)

    return Adapter(name, title, recognizes, refuse, unread=status)
