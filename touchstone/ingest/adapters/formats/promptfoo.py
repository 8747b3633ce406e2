"""Adapter for the output of `promptfoo eval`: a JSON document with `results.results`, or the same rows as JSON Lines.

A row is one test by one column, and a column is one prompt with one provider. The provider's label, else its id, is
the model. With several prompts the prompt's label is the tier; a column whose model and tier another one has too (the
same provider with other settings) gets a number behind its tier. Rows of equal tests in one column are repeats, which
promptfoo does not number: they are the attempts in order of `testIdx`.

Tests have no id either. A problem is named by its description, else by its variables, and a hash of the variables, so
that it has the same name in every file; of tests that differ in their assertions only, a hash of these is added. A test
with neither is called `a test without variables`.

An error (`failureReason` 2) is undecided: nothing was judged. Its cost, tokens and latency are unknown, although
promptfoo writes zeros, and so are those of a response from promptfoo's cache.
"""

import hashlib
import math
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head, not_evaluated
from touchstone.ingest.adapters.json_files import (
    GENERATION,
    Number,
    encode,
    inside,
    line_records,
    list_elements,
    list_of,
    number_of,
    numbered_lines,
    object_records,
    parse_line,
    raw_lines,
    raw_values,
    scalar_of,
    section_of,
    stated_settings,
    text_of,
    whole_number,
)
from touchstone.ingest.adapters.json_stream import Each, Keep, Shape
from touchstone.ingest.adapters.steps import Step, message_steps
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    settle,
    table_from_records,
    words,
)
from touchstone.ingest.csv_rows import LINE
from touchstone.vocabulary import DEFAULT_TIER

_SPACE = re.compile(r"\s+")
_NAME_LENGTH = 80
# Of the hash of a prompt.
_ID_LENGTH = 12
_HASH_BYTES = 5
ALL = "all providers"
_ERRORS = "promptfoo counts errors as not passed; here they are undecided and left out of the pass rate"
_KEYS = {"testPassCount": "passed", "testFailCount": "failed", "testErrorCount": "errors"}
_STATS = {"successes": "passed", "failures": "failed", "errors": "errors"}
FORMAT = "promptfoo"
COLUMNS = words(
    "oid iteration_id llm_name tier run_id passed classification weighted_score input_tokens output_tokens cost_usd "
    "latency_ms cached error provider_id prompt_label prompt_id test_description eval_description"
)
_VERSIONS = ("1", "2", "3")
_VERSION = "promptfooVersion"
_SHAPE: Shape = {
    "results": {"results": Each(Keep()), "prompts": Keep(), "stats": Keep()},
    "config": Keep(),
    "metadata": Keep(),
}
# Values that a person would group by; longer ones are texts.
_MAX_CELL = 500
_MAX_ERROR = 2000
_LEFT_OUT = "left out: prompts, vars, outputs and the results of single assertions"


def problem_of(description: str | None, variables: object) -> str:
    """A test's name: its description, else its variables, and a hash of the variables.

    >>> problem_of("off by one", {"bug": "n+1"}), problem_of(None, {"bug": "n+1"}), problem_of("no variables", {})
    ('off by one #ea7aadba89', 'bug=n+1 #ea7aadba89', 'no variables')
    """
    given = variables if isinstance(variables, dict) else {}
    shown = description or ", ".join(f"{key}={text_of(value)}" for key, value in sorted(given.items()))
    text = _one_line(shown) or "a test without variables"
    if shown and text != shown:  # another test may look the same when shortened
        return f"{text} #{_digest([shown, given])}"
    return f"{text} #{_digest(given)}" if given else text


def assertions_of(test: Mapping[str, object]) -> str:
    """A hash of what a test asserts."""
    return _digest([test.get("assert"), test.get("threshold")])


def name_columns(columns: Mapping[str, Cells]) -> dict[str, str | None]:
    """The tier of each column: none for a single prompt, else the prompt's label, numbered where it is not unique.

    >>> cells = {"llm_name": "m", "prompt_id": "1", "prompt_label": "plain"}
    >>> name_columns({"0": cells, "1": cells, "2": cells | {"prompt_id": "2", "prompt_label": "long"}})
    {'0': 'plain', '1': 'plain #2', '2': 'long'}
    """
    several = len({cells["prompt_id"] or cells["prompt_label"] for cells in columns.values()}) > 1
    tiers: dict[str, str | None] = {}
    taken: set[tuple[str | None, str | None]] = set()
    for column in sorted(columns, key=lambda each: (whole_number(Number(each)) or 0, each)):
        cells = columns[column]
        label = _one_line(cells["prompt_label"] or cells["prompt_id"] or "") if several else ""
        tier, number = label or None, 1
        while (cells["llm_name"], tier) in taken:
            number += 1
            tier = f"{label or DEFAULT_TIER} #{number}"
        taken.add((cells["llm_name"], tier))
        tiers[column] = tier
    return tiers


def _one_line(text: str) -> str:
    line = _SPACE.sub(" ", text).strip()
    return line if len(line) <= _NAME_LENGTH else f"{line[: _NAME_LENGTH - 1]}…"


def _digest(value: object) -> str:
    try:
        text = encode(_ordered(value))
    except RecursionError:
        raise RefusedRecordError("ragged", "the JSON is nested too deeply") from None
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_HASH_BYTES).hexdigest()


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list) else value


@dataclass
class Counts:
    """The rows of one column, or of all of them. With several prompts, `tier` is the label of its prompt."""

    model: str
    tier: str | None
    passed: int = 0
    failed: int = 0
    errors: int = 0
    cached: int = 0
    scores: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, cells: Cells) -> None:
        """Count one row."""
        outcome = cells.get("passed")
        self.passed += outcome == "true"
        self.failed += outcome == "false"
        self.errors += outcome is None
        score = cells.get("weighted_score")
        self.cached += cells.get("cached") == "true"
        if score is not None:
            self.scores.append(float(score))


def figures_of(results: Mapping[str, object], counts: Mapping[str, Counts]) -> list[ReportedFigure]:
    """Everything that the file states about its columns (`prompts`) and its rows (`stats`)."""
    figures = _figures(results.get("stats"), _STATS, counts[ALL])
    for place, prompt in enumerate(list_of(results.get("prompts"))):
        metrics = inside(prompt).get("metrics")
        if str(place) in counts and isinstance(metrics, dict):
            column = counts[str(place)]
            figures += _figures(metrics, _KEYS, column)
            figures += _rate(metrics, column)
            reported = number_of(metrics.get("score"))
            if reported is not None:
                figures.append(
                    ReportedFigure(column.model, _named("score", column), reported, math.fsum(column.scores))
                )
    return figures


def _figures(stated: object, keys: Mapping[str, str], counts: Counts) -> list[ReportedFigure]:
    return [
        ReportedFigure(counts.model, _named(key, counts), reported, getattr(counts, attribute))
        for key, attribute in keys.items()
        if (reported := number_of(inside(stated).get(key))) is not None
    ]


def _rate(metrics: Mapping[str, object], counts: Counts) -> list[ReportedFigure]:
    """The pass rate that promptfoo prints: errors are part of the denominator."""
    passed, failed, errors = (number_of(metrics.get(key)) or 0 for key in _KEYS)
    total, read = passed + failed + errors, counts.passed + counts.failed + counts.errors
    reported = passed / total if total else None
    note = _ERRORS if counts.errors else None
    return [ReportedFigure(counts.model, _named("pass rate", counts), reported, counts.passed / read, note=note)]


def _named(key: str, counts: Counts) -> str:
    return key if counts.tier is None else f"{key} ({counts.tier})"


@dataclass
class _Rows:
    """Facts about the accepted rows, complete once all are read: names, numbering and counts."""

    columns: dict[str, Cells] = field(default_factory=dict)
    counts: dict[str, Counts] = field(default_factory=lambda: {ALL: Counts(ALL, None)})
    lines: list[int] = field(default_factory=list)
    names: list[tuple[str, str, str, int]] = field(default_factory=list)

    def accept(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass all records on, and remember which were accepted."""
        for record in records:
            if record.kind is None:
                self.lines.append(record.line)
            yield record

    def fill(self, cells: Cells, result: Mapping[str, object]) -> None:
        """Fill the cells of a row, and count it."""
        column, test, assertions, order = _fill(cells, result)
        self.names.append((sys.intern(column), test, sys.intern(assertions), order))
        self.columns.setdefault(column, cells)
        self.counts.setdefault(column, Counts(cells["llm_name"] or "", None)).add(cells)
        self.counts[ALL].add(cells)

    def name(self, known: pl.DataFrame) -> pl.DataFrame:
        """Name the tier, the problem and the attempt of every row."""
        tiers = name_columns(self.columns)
        for column, tier in tiers.items():
            self.counts[column].tier = tier
        several = pl.col("assertions").n_unique().over("test") > 1
        number = pl.int_range(1, pl.len() + 1).over("column", "oid", order_by=["order", LINE])
        named = (
            pl.DataFrame(self.names, schema=["column", "test", "assertions", "order"], orient="row")
            .with_columns(
                pl.Series(LINE, self.lines, dtype=pl.Int64),
                oid=pl.when(several).then(pl.format("{}-{}", "test", "assertions")).otherwise("test"),
                tier=pl.col("column").replace_strict(tiers, return_dtype=pl.String),
            )
            .select(LINE, "oid", "tier", iteration_id=number.cast(pl.String))
        )
        return known.select(LINE).join(named, on=LINE, how="left", maintain_order="left")


def read_promptfoo(path: Path) -> AdapterTable:
    """Read the rows of one evaluation into rows of text cells."""
    is_lines = _is_lines(path)
    document: dict[str, object] = {}
    shared: Cells = dict.fromkeys(("run_id", "eval_description"))
    rows = _Rows()

    def elements() -> Iterator[tuple[int, object]]:
        yield from _elements(path, document)
        description = _short(inside(document, "config").get("description"))
        shared.update(run_id=text_of(document.get("evalId")), eval_description=description)

    records = line_records(path, "row", rows.fill) if is_lines else object_records(elements(), "row", rows.fill)
    raw = raw_lines if is_lines else raw_values(_elements)
    table = table_from_records(path, FORMAT, COLUMNS, rows.accept(records), raw, shared=shared)
    if rows.names:
        table = settle(table, (), rows.name)
    models = sorted({cells["llm_name"] or "" for cells in rows.columns.values()})
    figures = figures_of(inside(document, "results"), rows.counts)
    settings = _settings(document, models)
    for cells in rows.columns.values():
        prompt = (cells["prompt_id"] or "")[:_ID_LENGTH] or cells["prompt_label"]
        settings += stated_settings(cells["llm_name"] or "", "agent", {"prompt": prompt}, "prompt")
    return table.stating(figures, settings, [_LEFT_OUT, *_notes(rows.counts)])


def _settings(document: Mapping[str, object], models: Iterable[str]) -> list[StatedSetting]:
    """The version, and how each provider generates; providers' configurations have secrets, too."""
    found = [
        each for model in models for each in stated_settings(model, "harness", inside(document, "metadata"), _VERSION)
    ]
    for provider in map(inside, list_of(inside(document, "config").get("providers"))):
        model = scalar_of(provider.get("label")) or scalar_of(provider.get("id")) or ""
        found += stated_settings(model, "generation", inside(provider, "config"), GENERATION)
    return found


def _recognizes(head: Head) -> bool:
    if {"provider", "success", "latencyMs"}.issubset(head.first_record):
        return "prompt" in head.first_record and "namedScores" in head.first_record
    paths = head.key_paths
    in_results = ("results", "results", LIST) in paths and ("results", "version") in paths
    return in_results or (head.has_keys("evalId") and ("results", "prompts", LIST) in paths)


def _transcripts(table: AdapterTable) -> Iterator[tuple[int, Iterable[Step]]]:
    """The tool calls that an agent reports, in its output or beside it."""
    for line, value in _rows(table.path):
        response = inside(value, "response")
        calls = [*list_of(inside(response, "metadata").get("toolCalls")), *list_of(response.get("toolCalls"))]
        output = response.get("output")
        messages = output if isinstance(output, list) else inside(response, "metadata").get("messages")
        if calls:
            yield line, message_steps([{"role": "assistant", "tool_calls": [each]} for each in calls])
        elif messages:
            parts = list_of(messages)
            is_chat = any("role" in inside(each) for each in parts)
            yield line, message_steps(parts if is_chat else [{"role": "assistant", "content": parts}])


def _rows(path: Path) -> Iterator[tuple[int, object]]:
    if not _is_lines(path):
        yield from _elements(path)
        return
    for line, text in numbered_lines(path):
        with suppress(RefusedRecordError):
            yield line, parse_line(text, "row")


ADAPTER = Adapter(
    FORMAT, "promptfoo results", _recognizes, lambda path, _: read_promptfoo(path), transcripts=_transcripts
)


TABLE = not_evaluated(
    "promptfoo-table",
    "a table, YAML or XML of promptfoo",
    lambda head: (
        head.csv_header.issuperset({"Status", "Score", "Named Scores", "Grader Reason"})
        or head.text.startswith(("evalId: ", "<promptfoo>"))
    ),
    "a table, YAML or XML of promptfoo; JSON is evaluated: `promptfoo export eval ID -o FILE.json`",
)


def _is_lines(path: Path) -> bool:
    return "success" in Head(path).first_record


def _elements(path: Path, document: dict[str, object] | None = None) -> Iterator[tuple[int, object]]:
    """The rows of a document; then the rest of it is in `document`."""
    around: dict[str, object] = {} if document is None else document
    yield from list_elements(path, _SHAPE, around)
    results = inside(around, "results")
    if not isinstance(results.get("results"), list):
        raise InputFileError(f"{path}: there is no list results.results")
    version = text_of(results.get("version"))
    if version not in _VERSIONS:
        raise InputFileError(f"{path}: results.version is {version}; versions {', '.join(_VERSIONS)} are read")


def _fill(cells: Cells, result: Mapping[str, object]) -> tuple[str, str, str, int]:
    """Fill the cells of a row; returns its column, its test, what that asserts, and its place among the tests."""
    cells["provider_id"], cells["llm_name"] = _provider(result.get("provider"))
    prompt = inside(result, "prompt")
    cells["prompt_label"] = text_of(prompt.get("label") or prompt.get("display"))
    cells["prompt_id"] = text_of(result.get("promptId"))
    place = whole_number(result.get("promptIdx"))
    column = (cells["llm_name"], cells["prompt_id"] or cells["prompt_label"]) if place is None else place
    test = section_of(result, "testCase") or {}
    cells["test_description"] = text_of(test.get("description") or result.get("description"))
    problem = problem_of(cells["test_description"], test.get("vars", result.get("vars")))
    name = (str(column), problem, assertions_of(test), whole_number(result.get("testIdx")) or 0)
    cells |= _outcome(result)
    cells |= _carried("metadata", inside(test, "metadata")) | _carried("named_score", inside(result, "namedScores"))
    return name


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
    response = inside(result, "response")
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
    usage = inside(response, "tokenUsage") or inside(result, "tokenUsage")
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
    """A score from 0 to 1; assertions may also return others, which are not shares."""
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


def _notes(counts: Mapping[str, Counts]) -> Iterator[str]:
    every = counts[ALL]
    total = every.passed + every.failed + every.errors
    if every.errors:
        yield f"{every.errors} of {total} rows are errors and undecided"
    if every.cached:
        yield f"{every.cached} of {total} responses came from promptfoo's cache: as repeats they tell nothing new"
    if any(" #" in (each.tier or "") for each in counts.values()):
        yield "columns with the same provider and prompt label are numbered in the tier; label the providers"
