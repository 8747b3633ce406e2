"""Adapters: results files of other evaluation systems as rows of text cells under the names of the native fixes CSV.

Belongs here: one module per system that maps its keys to columns, the table that they produce, and JSON as
text cells. Parsing numbers and booleans does not: the rules in `cells` apply to native and adapted rows alike. Which
files are read is decided in `discovery`.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
from touchstone.ingest.adapters.json_files import read_document
from touchstone.ingest.adapters.table import AdapterTable, RefusedRecordError
from touchstone.ingest.dialect import UTF_16, is_utf_16

__all__ = [
    "NOT_KNOWN",
    "Adapter",
    "AdapterTable",
    "ReadOptions",
    "adapter_of",
    "adapters",
    "detect_format",
    "read_adapted",
    "read_as",
    "why_unknown",
    "why_unpack",
]

# The first that recognizes a file reads it, so formats with more particular marks come first. Each is imported when its
# turn comes, and only for what it may recognize: JSON, a folder, or any other file.
_IN_ORDER = (
    ("inspect_ai", "ADAPTER", {"json", "other"}),
    ("scylla", "ADAPTER", {"other"}),
    ("scylla", "RAW", {"json", "folder"}),
    ("failproof", "ADAPTER", {"json", "other"}),
    ("human_eval", "ADAPTER", {"json"}),
    ("human_eval", "SAMPLES", {"json"}),
    ("human_eval", "PROBLEMS", {"json"}),
    ("evalplus", "ADAPTER", {"json"}),
    ("livecodebench", "ADAPTER", {"json"}),
    ("livecodebench", "GENERATIONS", {"json"}),
    ("livecodebench", "TESTS", {"json"}),
    ("cruxeval", "ADAPTER", {"json"}),
    ("unread", "BIGCODE", {"json"}),
    ("swebench", "REPORT", {"json"}),
    ("swebench_logs", "ADAPTER", {"json", "folder"}),
    ("swebench", "SUBMISSION", {"json"}),
    ("openhands", "ADAPTER", {"json"}),
    ("openhands", "INDEX", {"json"}),
    ("swebench", "PREDICTIONS", {"json"}),
    ("swe_agent", "ADAPTER", {"json", "folder"}),
    ("terminal_bench", "ADAPTER", {"json", "folder"}),
    ("harbor", "ADAPTER", {"json", "folder"}),
    ("unread", "GIT_LFS", {"other"}),
    ("junit", "ADAPTER", {"other"}),
    ("dotnet", "TRX", {"other"}),
    ("dotnet", "NUNIT", {"other"}),
    ("go_test", "ADAPTER", {"json"}),
    ("json_reports", "CTRF", {"json"}),
    ("json_reports", "JEST", {"json"}),
    ("json_reports", "MOCHA", {"json"}),
    ("json_reports", "RSPEC", {"json"}),
    ("lm_eval", "ADAPTER", {"json"}),
    ("lm_eval", "RESULTS", {"json"}),
    ("promptfoo", "ADAPTER", {"json"}),
    ("plain", "CSV", {"other"}),
    ("plain", "PARQUET", {"other"}),
    ("plain", "JSON_LINES", {"json"}),
    ("forgetest", "ADAPTER", {"json"}),
)
# What may stand before the first element of XML.
_PROLOG = re.compile(r"<\?.*?\?>|<!--.*?-->", re.DOTALL)
NOT_KNOWN = "not in a known format; `touchstone inspect-files --formats` lists them"


def adapters() -> Iterator[Adapter]:
    """Every adapter, in the order in which they are asked."""
    return (_load(module, name) for module, name, _ in _IN_ORDER)


@cache
def adapter_of(format_name: str) -> Adapter:
    """The adapter for a format."""
    return next(adapter for adapter in adapters() if adapter.format == format_name)


@cache
def _load(module: str, name: str) -> Adapter:
    found = getattr(import_module(f"{__name__}.{module}"), name)
    assert isinstance(found, Adapter)
    return found


def detect_format(path: Path, options: ReadOptions | None = None) -> str | None:
    """The format of a file or folder, detected from its content; None for a native CSV and anything else."""
    head = Head(path, options)
    asked = (each for each in _may_recognize(head) if each.reads_compressed or not head.is_compressed)
    return next((adapter.format for adapter in asked if adapter.recognizes(head)), None)


def _may_recognize(head: Head) -> Iterator[Adapter]:
    kind = "folder" if head.is_folder else "json" if head.text[:1] in ("{", "[") else "other"
    return (_load(module, name) for module, name, kinds in _IN_ORDER if kind in kinds)


def read_adapted(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a results file or folder of any system that has an adapter."""
    name = detect_format(path, options)
    if name is None:
        raise InputFileError(f"{path}: {why_unknown(path)}")
    return read_as(name, path, options)


def read_as(name: str, path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a results file or folder in a format that was detected."""
    adapter = adapter_of(name)
    if not adapter.reads_utf_16 and is_utf_16(Head(path).data):
        raise InputFileError(f"{path}: {UTF_16}")
    try:
        return adapter.read(path, options or ReadOptions())
    except RefusedRecordError as refusal:
        # Raised outside of any record, it is an error of the file.
        raise InputFileError(f"{path}: {refusal.reason}") from None


def why_unpack(path: Path) -> str:
    """As what a compressed file could be read if it were unpacked; empty if as nothing, or if it is not compressed."""
    head = Head(path)
    found = next((each for each in _may_recognize(head) if each.recognizes(head)), None) if head.is_compressed else None
    return f"{found.title}: not read while compressed; unpack the file" if found else ""


def why_unknown(path: Path) -> str:
    """Why no adapter recognizes a file: it cannot be read, is empty or broken, or has another format."""
    head = Head(path)
    if head.text.startswith("<") and not _PROLOG.sub("", head.text).strip():
        return "the XML has no element"
    if is_utf_16(head.data) and not head.is_compressed:
        return UTF_16
    try:
        if head.text[:1] in ("{", "[", ""):
            read_document(path)
    except InputFileError as error:
        reason = str(error).removeprefix(f"{path}: ")
        # The first line may be a record of a file with one record a line.
        return reason if head.first_line is None else NOT_KNOWN
    return NOT_KNOWN
