"""Adapters: results files of other evaluation systems as rows of text cells under the names of the native fixes CSV.

Belongs here: one module per system that maps its keys to columns, the table that they produce, and JSON as text cells.
Parsing numbers and booleans does not: the rules in `cells` apply to native and adapted rows alike. Which files are read
is decided in `discovery`.
"""

from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import failproof, forgetest, inspect_log, scylla
from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.json_files import read_text
from touchstone.ingest.adapters.table import AdapterTable, ReportedFigure, safe_model_name

__all__ = [
    "ADAPTERS",
    "NOT_KNOWN",
    "Adapter",
    "AdapterTable",
    "ReadOptions",
    "ReportedFigure",
    "detect_format",
    "read_adapted",
    "safe_model_name",
]

# The first that recognizes a file reads it, so formats with more particular marks come first.
_IN_ORDER = (
    inspect_log.ADAPTER,
    scylla.ADAPTER,
    failproof.ADAPTER,
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
    if read_text(path).lstrip()[:1] in ("{", "["):
        # This adapter reports what is wrong with broken JSON.
        return forgetest.read_forgetest(path)
    raise InputFileError(f"{path}: {NOT_KNOWN}")
