"""Adapters: results files of other evaluation systems as rows of text cells under the names of the native fixes CSV.

Belongs here: one module per system in `formats` that maps its keys to columns, the table that they produce, and JSON as
text cells. Parsing numbers and booleans does not: the rules in `cells` apply to native and adapted rows alike. Which
files are read is decided in `discovery`.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from touchstone.errors import InputFileError, TouchstoneError, reason_of
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
    ("unread", "GIT_LFS", {"other"}),
    ("junit", "ADAPTER", {"other"}),
    ("dotnet", "TRX NUNIT", {"other"}),
    ("go_test", "ADAPTER", {"json", "other"}),
    ("json_reports", "CTRF JEST MOCHA RSPEC", {"json"}),
    ("every_eval_ever", "ADAPTER AGGREGATES", {"json"}),
    ("helm", "ADAPTER", {"json", "folder"}),
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
    """The adapters of a configuration; an error if one has the name of another."""
    if options is None or not (options.adapters or options.formats):
        return []
    from touchstone.ingest.adapters.own import own_adapters

    found = own_adapters(options)
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
    """What each adapter says about a file: that it reads it, or which of its marks the file lacks."""
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
        return adapter.read(path, options or ReadOptions())
    except RefusedRecordError as refusal:
        # Raised outside of any record, it is an error of the file.
        raise InputFileError(f"{path}: {refusal.reason}") from None


def why_unknown(path: Path) -> str:
    """Why no adapter recognizes a file: it cannot be read, is empty or broken, or has another format."""
    head = Head(path)
    if head.text.startswith("<") and not _PROLOG.sub("", head.text).strip():
        return "the XML has no element"
    if is_utf_16(head.data):
        return UTF_16
    try:
        if head.text[:1] in ("{", "[", ""):
            read_document(path)
    except InputFileError as error:
        reason = reason_of(error, path)
        # The first line may be a record of a file with one record a line.
        return reason if head.first_line is None else NOT_KNOWN
    return NOT_KNOWN
