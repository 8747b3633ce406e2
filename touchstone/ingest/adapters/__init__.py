"""Adapters: results files of other evaluation systems as rows of text cells under the names of the native fixes CSV.

Belongs here: one module per system that maps its keys to columns, the table that they produce, and JSON as text cells.
Parsing numbers and booleans does not: the rules in `cells` apply to native and adapted rows alike. Which files are read
is decided in `discovery`.
"""

from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import (
    bigcode,
    cruxeval,
    evalplus,
    failproof,
    forgetest,
    human_eval,
    livecodebench,
    livecodebench_tests,
    scylla,
)
from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.json_files import read_document
from touchstone.ingest.adapters.table import AdapterTable, ReportedFigure

__all__ = [
    "ADAPTERS",
    "NOT_KNOWN",
    "Adapter",
    "AdapterTable",
    "ReadOptions",
    "ReportedFigure",
    "detect_format",
    "read_adapted",
    "why_unknown",
]

# The first that recognizes a file reads it, so formats with more particular marks come first.
_IN_ORDER = (
    scylla.ADAPTER,
    failproof.ADAPTER,
    human_eval.ADAPTER,
    human_eval.SAMPLES,
    human_eval.PROBLEMS,
    evalplus.ADAPTER,
    livecodebench.ADAPTER,
    livecodebench.GENERATIONS,
    livecodebench_tests.ADAPTER,
    cruxeval.ADAPTER,
    bigcode.ADAPTER,
    forgetest.ADAPTER,
)
NOT_KNOWN = "not in a known format; `touchstone inspect-files --formats` lists them"

ADAPTERS = {adapter.format: adapter for adapter in _IN_ORDER}


def detect_format(path: Path) -> str | None:
    """The format of a file or folder, detected from its content; None for a native CSV and anything else."""
    head = Head(path)
    return next((adapter.format for adapter in _IN_ORDER if adapter.recognizes(head)), None)


def read_adapted(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a results file or folder of any system that has an adapter."""
    name = detect_format(path)
    if name is not None:
        return ADAPTERS[name].read(path, options or ReadOptions())
    raise InputFileError(f"{path}: {why_unknown(path)}")


def why_unknown(path: Path) -> str:
    """Why no adapter recognizes a file: it cannot be read, is empty or broken, or has another format."""
    try:
        if Head(path).text[:1] in ("{", "[", ""):
            read_document(path)
    except InputFileError as error:
        reason = str(error).removeprefix(f"{path}: ")
        # The first line may be a record of a file with one record a line.
        return reason if Head(path).first_line is None else NOT_KNOWN
    return NOT_KNOWN
