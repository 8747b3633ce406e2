"""Adapter for the output of `promptfoo eval`: a JSON document with `results.results`, or the same rows as JSON Lines.

A row is one test by one column, and a column is one prompt with one provider. The provider's label, else its id, is
the model. With several prompts the prompt's label is the tier; a column whose model and tier another one has too (the
same provider with other settings) gets a number behind its tier. Rows of equal tests in one column are repeats, which
promptfoo does not number: they are the attempts in order of `testIdx`.

Tests have no id either. A problem is named by its description, else by its variables, and a hash of the variables, so
that it has the same name in every file; of tests that differ in their assertions only, a hash of these is added.

An error (`failureReason` 2) is undecided: nothing was judged. Its cost, tokens and latency are unknown, although
promptfoo writes zeros, and so are those of a response from promptfoo's cache.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter
from touchstone.ingest.adapters.head import LIST, Head
from touchstone.ingest.adapters.json_files import numbered_lines, parse_line, raw_lines, read_document
from touchstone.ingest.adapters.json_values import object_of, section_of, text_of
from touchstone.ingest.adapters.lossless_json import Number, encode
from touchstone.ingest.adapters.promptfoo.names import assertions_of, name_columns, problem_of, whole_number
from touchstone.ingest.adapters.promptfoo.stats import counts_of, figures_of
from touchstone.ingest.adapters.table import AdapterTable, Cells, Record, RefusedRecordError, table_from_records
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH

FORMAT = "promptfoo"
COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "tier",
    "run_id",
    "passed",
    "classification",
    "weighted_score",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "latency_ms",
    "cached",
    "error",
    "provider_id",
    "prompt_label",
    "prompt_id",
    "test_description",
    "eval_description",
)
_VERSIONS = ("1", "2", "3")
# The document is parsed in memory, in which it takes several times its size.
_MAX_BYTES = 1 << 30
# What a person would group by; longer values are texts.
_MAX_CELL = 500
_MAX_ERROR = 2000
_LEFT_OUT = "left out: prompts, vars, outputs and the results of single assertions"


@dataclass
class Row:
    """One row of the output: where it is, and what is needed to name and number it."""

    record: Record
    column: str = ""
    test: str = ""
    assertions: str = ""
    order: int = 0


def read_promptfoo(path: Path) -> AdapterTable:
    """Read the rows of one evaluation into rows of text cells."""
    is_lines = _is_lines(path)
    document = {} if is_lines else _document(path)
    results = _object(document, "results")
    given = numbered_lines(path) if is_lines else enumerate(_list(results, "results"), start=1)
    shared = {"run_id": text_of(document.get("evalId")), "eval_description": _short(_config(document, "description"))}
    rows = [_row(place, value, shared) for place, value in given]
    if not rows:
        raise InputFileError(f"{path}: the file holds no results")
    read = [row for row in rows if row.record.kind is None]
    _name(read)
    counts = counts_of((row.column, row.record.cells) for row in read)
    figures = figures_of(results, counts)
    return table_from_records(
        path,
        FORMAT,
        COLUMNS,
        [row.record for row in rows],
        raw_lines if is_lines else _raw,
        figures=figures,
        notes=[_LEFT_OUT, *_notes(read)],
    )


def _recognizes(head: Head) -> bool:
    if {"provider", "success", "latencyMs"}.issubset(head.first_record):
        return "prompt" in head.first_record and "namedScores" in head.first_record
    paths = head.key_paths
    in_results = ("results", "results", LIST) in paths and ("results", "version") in paths
    return in_results or (head.has_keys("evalId") and ("results", "prompts", LIST) in paths)


ADAPTER = Adapter(FORMAT, "promptfoo results", _recognizes, lambda path, _: read_promptfoo(path))


def _is_lines(path: Path) -> bool:
    return "success" in Head(path).first_record


def _document(path: Path) -> dict[str, object]:
    size = path.stat().st_size
    if size > _MAX_BYTES:
        raise InputFileError(f"{path}: {size:,} bytes are too many (at most {_MAX_BYTES:,}); write JSON Lines instead")
    value = read_document(path)
    document = value if isinstance(value, dict) else {}
    results = document.get("results")
    if not isinstance(results, dict) or not isinstance(results.get("results"), list):
        raise InputFileError(f"{path}: there is no list results.results")
    version = text_of(results.get("version"))
    if version not in _VERSIONS:
        raise InputFileError(f"{path}: results.version is {version}; versions {', '.join(_VERSIONS)} are read")
    return document


def _raw(path: Path, places: set[int]) -> dict[int, str]:
    rows = enumerate(_list(_object(_document(path), "results"), "results"), start=1)
    return {place: encode(value)[:MAX_RAW_LENGTH] for place, value in rows if place in places}


def _object(value: Mapping[str, object], key: str) -> dict[str, object]:
    inside = value.get(key)
    return inside if isinstance(inside, dict) else {}


def _list(value: Mapping[str, object], key: str) -> list[object]:
    inside = value.get(key)
    return inside if isinstance(inside, list) else []


def _config(document: Mapping[str, object], key: str) -> object:
    return _object(document, "config").get(key)


def _row(place: int, value: object, shared: Cells) -> Row:
    row = Row(Record(place))
    try:
        result = parse_line(value, "row") if isinstance(value, str) else object_of(value, "row")
        _fill(row, result)
        row.record.cells |= shared
    except RefusedRecordError as refusal:
        row.record.kind, row.record.reason = refusal.kind, refusal.reason
    return row


def _fill(row: Row, result: Mapping[str, object]) -> None:
    cells = row.record.cells
    cells["provider_id"], cells["llm_name"] = _provider(result.get("provider"))
    prompt = _object(result, "prompt")
    cells["prompt_label"] = text_of(prompt.get("label") or prompt.get("display"))
    cells["prompt_id"] = text_of(result.get("promptId"))
    place = whole_number(result.get("promptIdx"))
    column = (cells["llm_name"], cells["prompt_id"] or cells["prompt_label"]) if place is None else place
    row.column = str(column)
    test = section_of(result, "testCase") or {}
    cells["test_description"] = text_of(test.get("description") or result.get("description"))
    row.test = problem_of(cells["test_description"], test.get("vars", result.get("vars")))
    row.assertions = assertions_of(test)
    row.order = whole_number(result.get("testIdx")) or 0
    cells |= _outcome(result)
    cells |= _carried("metadata", _object(test, "metadata")) | _carried("named_score", _object(result, "namedScores"))


def _provider(value: object) -> tuple[str, str]:
    """The id of the provider and the name of the model; older files have the id alone."""
    given = value if isinstance(value, dict) else {"id": value}
    name = given.get("id")
    if not isinstance(name, str) or isinstance(name, Number) or not name.strip():
        raise RefusedRecordError("bad_id", "the provider has no id")
    label = text_of(given.get("label"))
    return str(text_of(name)), label if label and label.strip() else str(text_of(name))


def _outcome(result: Mapping[str, object]) -> Cells:
    """The verdict of a row; an error has none, and no score, cost, tokens or latency either."""
    success = result.get("success")
    if not isinstance(success, bool):
        raise RefusedRecordError("bad_boolean", f"success: {text_of(success)!r} is not a boolean")
    response = _object(result, "response")
    reason = text_of(result.get("failureReason"))
    if success and reason not in (None, "0"):
        raise RefusedRecordError("contradiction", f"success is true but failureReason is {reason}")
    message = text_of(result.get("error")) or (text_of(response.get("error")) if not success else None)
    cells: Cells = {"cached": text_of(response.get("cached")), "error": message and message[:_MAX_ERROR]}
    # Older files have no reason; there, only an error has no grades.
    is_error = reason == "2" or (reason is None and not success and not result.get("gradingResult"))
    if is_error:
        return cells | {"error": cells["error"] or "an error without a message"}
    refusal = response.get("isRefusal") is True
    cells |= {
        "passed": text_of(success),
        "classification": "pass" if success else "refusal" if refusal else "fail",
        "weighted_score": _share(result.get("score")),
    }
    return cells if response.get("cached") is True else cells | _usage(result, response)


def _usage(result: Mapping[str, object], response: Mapping[str, object]) -> Cells:
    """Tokens, cost and latency. promptfoo writes 0 for what a provider does not report."""
    usage = _object(response, "tokenUsage") or _object(result, "tokenUsage")
    tokens = {"input_tokens": usage.get("prompt"), "output_tokens": usage.get("completion")}
    known = any(whole_number(value) for value in tokens.values())
    cells = {name: text_of(value) if known else None for name, value in tokens.items()}
    cost = result.get("cost")
    return cells | {
        "cost_usd": None if _is_zero(cost) else text_of(cost),
        "latency_ms": text_of(result.get("latencyMs")),
    }


def _is_zero(value: object) -> bool:
    return isinstance(value, Number) and not value.strip("-0.")


def _share(value: object) -> str | None:
    """A score from 0 to 1; assertions may also return others, which are no shares."""
    try:
        return str(value) if isinstance(value, Number) and 0 <= float(value) <= 1 else None
    except ValueError:
        return None


def _carried(prefix: str, values: Mapping[str, object]) -> Cells:
    """Short values of a nested object, each in a column of its own; `_` marks promptfoo's internal ones."""
    named = {f"{prefix}_{key}": _short(value) for key, value in values.items() if not key.startswith("_")}
    return {str(text_of(name)): value for name, value in named.items() if value is not None}


def _short(value: object) -> str | None:
    text = text_of(value)
    return None if text is None or len(text) > _MAX_CELL else text


def _name(rows: Sequence[Row]) -> None:
    """Name the tier, the problem and the attempt of every row."""
    columns = {row.column: row.record.cells for row in rows}
    tiers = name_columns(columns)
    versions: dict[str, set[str]] = {}
    for row in rows:
        versions.setdefault(row.test, set()).add(row.assertions)
    counts: dict[tuple[str, str], int] = {}
    for row in sorted(rows, key=lambda each: (each.order, each.record.line)):
        several = len(versions[row.test]) > 1
        oid = f"{row.test}-{row.assertions}" if several else row.test
        counts[row.column, oid] = counts.get((row.column, oid), 0) + 1
        attempt = str(counts[row.column, oid])
        row.record.cells |= {"oid": oid, "tier": tiers[row.column], "iteration_id": attempt}


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    cells = [row.record.cells for row in rows]
    errors = sum(each.get("passed") is None for each in cells)
    cached = sum(each.get("cached") == "true" for each in cells)
    if errors:
        yield f"{errors} of {len(cells)} rows are errors and undecided"
    if cached:
        yield f"{cached} of {len(cells)} responses came from promptfoo's cache: as repeats they tell nothing new"
    if any(" #" in (each.get("tier") or "") for each in cells):
        yield "columns with the same provider and prompt label are numbered in the tier; label the providers"
