"""Adapters: results files of other evaluation systems as rows of text cells under the names of the native fixes CSV.

Belongs here: one module per system in `formats` that maps its keys to columns, the table that they produce, and JSON as
text cells. Parsing numbers and booleans does not: the rules in `cells` apply to native and adapted rows alike. Which
files are read is decided in `discovery`.

Users have adapters of their own: declared formats, and Python that the configuration names. Whatever such Python raises
becomes one line that names its file and line, and concerns only the file that was read.
"""

import hashlib
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import polars as pl

from touchstone.config.formats import AdapterSource
from touchstone.errors import InputFileError, TouchstoneError, reason_of
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
from touchstone.ingest.adapters.json_files import LINES_SUFFIXES, read_document
from touchstone.ingest.adapters.steps import Step
from touchstone.ingest.adapters.table import AdapterTable, RefusedRecordError, encodable, first_line
from touchstone.ingest.csv_rows import LINE
from touchstone.ingest.dialect import UTF_16, is_utf_16
from touchstone.regular_files import read_bytes

__all__ = [
    "NOT_KNOWN",
    "Adapter",
    "AdapterTable",
    "ReadOptions",
    "adapter_of",
    "adapters",
    "configured_adapters",
    "detect_format",
    "read_adapted",
    "read_as",
    "why_not",
    "why_unknown",
]

# The first that recognizes a file reads it, so formats with more particular marks come first. Each is imported when its
# turn comes, and only for what it may recognize: JSON, a folder, or any other file.
_IN_ORDER = (
    ("inspect_ai", "ADAPTER", {"json", "other"}),
    ("inspect_ai", "INDEX", {"json"}),
    ("scylla", "ADAPTER", {"other"}),
    ("scylla", "RAW", {"json", "folder"}),
    ("failproof", "ADAPTER", {"json", "other"}),
    ("nemo_skills", "ADAPTER", {"json", "folder"}),
    ("human_eval", "ADAPTER SAMPLES PROBLEMS", {"json"}),
    ("evalplus", "ADAPTER", {"json"}),
    ("bigcodebench", "ADAPTER FIGURES", {"json"}),
    ("multipl_e", "ADAPTER", {"json", "folder"}),
    ("multipl_e", "FIGURES", {"other"}),
    ("livecodebench", "ADAPTER GENERATIONS TESTS", {"json"}),
    ("cruxeval", "ADAPTER", {"json"}),
    ("bigcode", "ADAPTER FIGURES", {"json"}),
    ("swebench_pro", "ADAPTER ERRORS", {"json"}),
    ("openhands", "PARTS", {"json"}),
    ("swebench", "REPORT", {"json"}),
    ("swebench_logs", "ADAPTER", {"json", "folder"}),
    ("swebench", "SUBMISSION", {"json"}),
    ("openhands", "ADAPTER INDEX", {"json"}),
    ("swebench", "PREDICTIONS", {"json"}),
    ("swe_agent", "ADAPTER", {"json", "folder"}),
    ("terminal_bench", "ADAPTER", {"json", "folder"}),
    ("harbor", "ADAPTER", {"json", "folder"}),
    ("aider", "ADAPTER", {"folder"}),
    ("aider", "LEADERBOARD", {"other"}),
    ("tau_bench", "TAU TAU2 PARTS", {"json"}),
    ("plain", "GIT_LFS", {"other"}),
    ("xml_reports", "JUNIT TESTNG TRX NUNIT", {"other"}),
    ("unread_reports", "XML PRINTED", {"other"}),
    ("go_test", "ADAPTER", {"json", "other"}),
    ("json_reports", "CTRF JEST MOCHA RSPEC GOOGLETEST", {"json"}),
    ("unread_reports", "JSON", {"json"}),
    ("every_eval_ever", "ADAPTER AGGREGATES", {"json"}),
    ("helm", "ADAPTER PARTS", {"json", "folder"}),
    ("lighteval", "ADAPTER", {"other"}),
    ("lighteval", "RESULTS", {"json"}),
    ("repairbench", "ADAPTER CANDIDATES FIGURES", {"json"}),
    ("lm_eval", "ADAPTER RESULTS", {"json"}),
    ("deepeval", "ADAPTER", {"json", "folder"}),
    ("promptfoo", "ADAPTER", {"json"}),
    ("promptfoo", "TABLE", {"other"}),
    ("plain", "CSV PARQUET", {"other"}),
    ("plain", "JSON_LINES", {"json"}),
    ("forgetest", "ADAPTER", {"json"}),
)
# What may stand before the first element of XML.
_PROLOG = re.compile(r"<\?.*?\?>|<!--.*?-->", re.DOTALL)
_MAX_CODE_BYTES = 10_000_000
Result = TypeVar("Result")
# What else was printed above the report that a tool was asked for, as in `mocha --reporter json > FILE`.
_REPORT = r"[{\[]\s*[\"{]|<(?:\?xml|testsuites?)\b"
_PRINTED = re.compile(rf"(?:(?!{_REPORT})[^\n]*\n){{1,1000}}(?={_REPORT})")
NOT_KNOWN = "not in a known format; `touchstone inspect-files --why FILE` says what it lacks"


def adapters(options: ReadOptions | None = None) -> Iterator[Adapter]:
    """Every adapter, in the order in which they are asked: the user's own first."""
    yield from configured_adapters(options)
    yield from (_load(module, name) for module, names, _ in _IN_ORDER for name in names.split())


def adapter_of(format_name: str, options: ReadOptions | None = None) -> Adapter:
    """The adapter for a format."""
    own = (adapter for adapter in configured_adapters(options) if adapter.format == format_name)
    return next(own, None) or _built_in()[format_name]


@cache
def _built_in() -> dict[str, Adapter]:
    return {adapter.format: adapter for adapter in adapters()}


def configured_adapters(options: ReadOptions | None) -> list[Adapter]:
    """The adapters of a configuration, those in Python first; an error if one has the name of another."""
    if options is None or not (options.adapters or options.formats):
        return []
    from touchstone.ingest.adapters.mapping import mapped_adapter

    in_python = (each for source in options.adapters for each in _load_own(source))
    found = [*in_python, *map(mapped_adapter, options.formats)]
    names = [*_built_in(), *(adapter.format for adapter in found)]
    twice = next((adapter.format for adapter in found if names.count(adapter.format) > 1), None)
    if twice is not None:
        raise TouchstoneError(f"the format '{twice}' of the configuration is there already; give it another name")
    return found


@cache
def _load(module: str, name: str) -> Adapter:
    found = getattr(import_module(f"{__name__}.formats.{module}"), name)
    assert isinstance(found, Adapter)
    return found


def detect_format(path: Path, options: ReadOptions | None = None) -> str | None:
    """The format of a file or folder, detected from its content; None for a native CSV and anything else."""
    head = Head(path, options)
    return next((adapter.format for adapter in _may_recognize(head) if adapter.recognizes(head)), None)


def _may_recognize(head: Head) -> Iterator[Adapter]:
    kind = "folder" if head.is_folder else "json" if head.text[:1] in ("{", "[") else "other"
    yield from configured_adapters(head.options)
    known = ((module, names) for module, names, kinds in _IN_ORDER if kind in kinds)
    yield from (_load(module, name) for module, names in known for name in names.split())


def why_not(path: Path, options: ReadOptions | None = None) -> list[tuple[Adapter, str]]:
    """For each adapter, whether it reads a file, or which of its marks the file lacks."""
    from touchstone.ingest.adapters.marks import lacking

    head, found = Head(path, options), detect_format(path, options)
    said = []
    for adapter in adapters(options):
        if adapter.format == found:
            reason = "recognizes the file"
        elif found is not None and adapter.recognizes(head):
            reason = "would recognize it, but is asked later"
        else:
            reason = lacking(adapter, head)
        said.append((adapter, reason))
    return said


def read_adapted(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a results file or folder of any system that has an adapter."""
    name = detect_format(path, options)
    if name is None:
        raise InputFileError(f"{path}: {why_unknown(path)}")
    return read_as(name, path, options)


def read_as(name: str, path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a results file or folder in a format that was detected."""
    adapter = adapter_of(name, options)
    if not adapter.reads_utf_16 and is_utf_16(Head(path).data):
        raise InputFileError(f"{path}: {UTF_16}")
    try:
        table = adapter.read(path, options or ReadOptions())
    except RefusedRecordError as refusal:
        # Raised outside of any record, it is an error of the file.
        raise InputFileError(f"{path}: {refusal.reason}") from None
    if path.is_absolute():
        return table
    # Callers know files by paths like the one that was given.
    here = Path.cwd()
    files = (file.relative_to(here) if file.is_relative_to(here) else file for file in table.files)
    return replace(table, files=tuple(files))


def why_unknown(path: Path) -> str:
    """Why no adapter recognizes a file: it cannot be read, is empty or broken, or has another format."""
    head = Head(path)
    if head.text.startswith("<") and not _PROLOG.sub("", head.text).strip():
        return "the XML has no element"
    if is_utf_16(head.data):
        return UTF_16
    printed = _PRINTED.match(head.text) if head.name.endswith((".json", ".xml", *LINES_SUFFIXES)) else None
    if printed is not None:
        kind = "XML" if head.text[printed.end()] == "<" else "JSON"
        return f"the {kind} begins at line {printed[0].count(chr(10)) + 1}; delete what was printed above it"
    try:
        if head.text[:1] in ("{", "[", ""):
            read_document(path)
    except InputFileError as error:
        reason = reason_of(error, path)
        # The first line may be a record of a file with one record a line.
        return reason if head.first_line is None else NOT_KNOWN
    return NOT_KNOWN


@cache
def _load_own(source: AdapterSource) -> tuple[Adapter, ...]:
    """The adapters of a file or entry point; its code runs here, once in each process."""
    with _one_line(source):
        if source.entry is not None:
            module, _, name = source.entry.partition(":")
            found = [getattr(import_module(module), name)] if name else list(vars(import_module(module)).values())
        else:
            found = list(vars(_module(source)).values())
    own = tuple(_guarded(each, source) for each in found if isinstance(each, Adapter))
    if not own:
        raise TouchstoneError(f"{source.name}: no adapter in it; assign an `Adapter` of touchstone.adapters to a name")
    return own


def _module(source: AdapterSource) -> ModuleType:
    code = read_bytes(source.path, _MAX_CODE_BYTES)
    if hashlib.sha256(code).hexdigest() != source.sha256:
        raise TouchstoneError(f"{source.name}: changed since the configuration was read; run again")
    module = ModuleType(f"touchstone_adapter_{source.sha256[:16]}")
    module.__file__ = str(source.path)
    # Where dataclasses and pickle look for it.
    sys.modules[module.__name__] = module
    exec(compile(code, str(source.path), "exec"), vars(module))
    return module


@contextmanager
def _one_line(source: AdapterSource, path: Path | None = None) -> Iterator[None]:
    """Turn any exception of an adapter's code into an error that says where in it."""
    about = "" if path is None else f"{path}: "
    try:
        yield
    except (TouchstoneError, RefusedRecordError):
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(source.path)), None)
        line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(source.path) else line
        where = f"{source.name}, line {line}" if line is not None else source.name
        said = encodable(f"{type(error).__name__}: {first_line(error)}")
        raise InputFileError(f"{about}the adapter failed in {where}: {said}") from None


def _guarded(adapter: Adapter, source: AdapterSource) -> Adapter:
    """The adapter with its code guarded. It is asked about files only."""

    def recognizes(head: Head) -> bool:
        try:
            return not head.is_folder and bool(adapter.recognizes(head))
        except (Exception, SystemExit):
            # Reading it says why.
            return True

    def read(path: Path, options: ReadOptions) -> AdapterTable:
        with _one_line(source, path):
            adapter.recognizes(Head(path, options))
            table = adapter.read(path, options)
            if not isinstance(table, AdapterTable):
                raise TypeError(f"read returned {type(table).__name__} instead of an AdapterTable")
        with table.reading():
            lines = table.rows.select(pl.col(LINE).is_not_null().all() & pl.col(LINE).is_unique().all()).collect()
        if not lines.item():
            raise InputFileError(f"{path}: the adapter {source.name} gives two records the same line, or none")
        raw = table.raw_reader
        return replace(table, format=adapter.format, raw_reader=lambda *given: guarded(path, raw, *given))

    def guarded(path: Path, function: Callable[..., Result], *given: object) -> Result:
        with _one_line(source, path):
            return function(*given)

    def transcripts(table: AdapterTable) -> Iterator[tuple[int, Iterable[Step]]]:
        with _one_line(source, table.path):
            assert adapter.transcripts is not None
            for line, steps in adapter.transcripts(table):
                yield line, list(steps)

    return replace(
        adapter, recognizes=recognizes, read=read, transcripts=transcripts if adapter.transcripts is not None else None
    )
