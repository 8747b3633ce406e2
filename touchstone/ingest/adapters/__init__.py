"""Adapters: results files of other evaluation systems as rows of text cells under the names of the native fixes CSV.

Belongs here: one module per system that maps its keys to columns, the table that they produce, and JSON as text cells.
Parsing numbers and booleans does not: the rules in `cells` apply to native and adapted rows alike. Which files are read
is decided in `discovery`.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import failproof, forgetest, scylla
from touchstone.ingest.adapters.table import AdapterTable, safe_model_name
from touchstone.ingest.csv_rows import decoded, readable
from touchstone.regular_files import open_regular

__all__ = ["AdapterTable", "detect_format", "read_adapted", "safe_model_name"]

_ADAPTERS = {
    forgetest.FORMAT: forgetest.read_forgetest,
    scylla.FORMAT: scylla.read_scylla,
    failproof.FORMAT: failproof.read_failproof,
}
_HEADER_BYTES = 1 << 16
_REPORT_BYTES = 1 << 20
_NATIVE = {"oid", "iteration_id"}
# A string that is not closed ends with the text: otherwise each of its quotes would be tried as another start.
_TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))(\s*:\s*\[)?|[{}\[\]]', re.DOTALL)


def detect_format(path: Path) -> str | None:
    """The format of a file, detected from the start of its content; None for a native CSV and anything else."""
    try:
        with open_regular(path) as file:
            head = file.read(_HEADER_BYTES)
            if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
                head += file.read(_REPORT_BYTES - len(head))
    except OSError:
        return None
    text = head.decode("utf-8-sig", errors="replace")
    if not text.lstrip().startswith("{"):
        return scylla.FORMAT if _is_runs_header(text) else None
    if _is_run_result(text.lstrip().partition("\n")[0]):
        return failproof.FORMAT
    return forgetest.FORMAT if "results" in _top_level_lists(text) else None


def read_adapted(path: Path) -> AdapterTable:
    """Read a results file of any system that has an adapter."""
    name = detect_format(path)
    if name is not None:
        return _ADAPTERS[name](path)
    with readable(path):
        text = decoded(path, path.read_bytes())
    if text.lstrip()[:1] in ("", "{", "["):
        # This adapter reports what is wrong with empty or broken JSON.
        return forgetest.read_forgetest(path)
    raise InputFileError(f"{path}: neither a forgetest report, a ProjectScylla runs.csv nor FailProof results")


def _is_runs_header(text: str) -> bool:
    try:
        header = {name.strip() for name in next(csv.reader(io.StringIO(text, newline="")), [])}
    except csv.Error:
        return False
    # A file with native ids is native, whichever columns of another system it kept.
    return header.issuperset(scylla.REQUIRED) and not header.issuperset(_NATIVE)


def _is_run_result(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and all(name in value for name in failproof.REQUIRED)


def _top_level_lists(text: str) -> Iterator[str]:
    """The keys of the outermost object that hold a list, within the given start of a file."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[1] is None:
            depth += 1 if token[0] in "{[" else -1
        elif token[2] is not None:
            if depth == 1:
                yield token[1][1:-1]
            depth += 1
