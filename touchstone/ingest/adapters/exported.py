"""Reads back the names and columns that `touchstone export` adds to the files of other tools, whose formats lack them.

The object `touchstone` of a file, or in its `metadata` or `extra`, names the model. That of an attempt has every column
that is not null. The verdict is always the tool's own.
"""

from touchstone.ingest.adapters.json_files import inside, scalar_of, text_of
from touchstone.ingest.adapters.table import Cells, words
from touchstone.vocabulary import PASS_CLASS

KEY = "touchstone"
# Of JUnit XML: the model of a suite, and the JSON of a test case.
MODEL_PROPERTY, ATTEMPT_PROPERTY = f"{KEY}.model", f"{KEY}.attempt"
COLUMNS = words(
    "oid iteration_id tier suite cluster only_tier run_id compiled tests_passed tests_failed lint_warnings "
    "weighted_score structure_score classification input_tokens output_tokens cache_read_tokens cache_write_tokens "
    "cost_usd duration_seconds latency_ms started_at error"
)
_PLACES = ((KEY,), ("metadata", KEY), ("extra", KEY))


def exported_model(document: object) -> str | None:
    """The model that an exported file names; None for any other file."""
    return next((name for place in _PLACES if (name := scalar_of(inside(document, *place).get("model")))), None)


def restore(cells: Cells, given: object) -> None:
    """Put the columns that Touchstone added to an attempt in place of those that the format implies, if it did."""
    if not isinstance(given, dict) or "oid" not in given:
        return
    cells |= {name: text_of(given.get(name)) for name in COLUMNS}
    # Somebody may have judged it again since.
    is_pass = cells["classification"] == PASS_CLASS
    if cells.get("passed") is None or is_pass != (cells["passed"] == "true"):
        cells["classification"] = None
