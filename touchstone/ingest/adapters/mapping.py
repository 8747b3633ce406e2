"""Adapters that are declared: a `JsonFormat` says where the records of a file are and what their keys mean.

    ADAPTER = mapped_adapter(JsonFormat(name="acme", records="runs[]", problem="task", passed="ok", attempt="trial"))

What a declaration cannot say is a function: `judge` decides from a record whether it passed (then the path `passed`
only helps to recognize the file), `fill` changes the cells of a record, both may raise `RefusedRecordError`; `figures`
has the figures that the tool states, beside the recomputed ones; `recognizes` is a further mark of a file, and `named`
the model by the file's name.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from touchstone.config.formats import JsonFormat, Word, paths_of
from touchstone.config.json_paths import (
    ELEMENTS,
    VALUES,
    Found,
    JsonPath,
    Step,
    WrongKind,
    parse_field,
    parse_path,
    parse_records,
)
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head, ReadOptions
from touchstone.ingest.adapters.json_files import (
    Number,
    described,
    number_of,
    numbered_lines,
    object_of,
    parse_line,
    raw_lines,
    raw_values,
    read_document,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    NamedModel,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    fill_records,
    model_of_name,
    refuse_repetition,
    table_from_records,
)
from touchstone.ingest.compressed import uncompressed_name
from touchstone.vocabulary import FAIL_WORDS, FALSE_WORDS, PASS_WORDS, TRUE_WORDS, Dimension

Judge = Callable[[Found], bool | None]
Fill = Callable[[Cells, Found], None]
Figures = Callable[[AdapterTable, object], Iterable[ReportedFigure]]

_ENDING = re.compile(r"\.(?:jsonl?|ndjson)$", re.IGNORECASE)
_WORDS = dict.fromkeys((*TRUE_WORDS, *PASS_WORDS), "true") | dict.fromkeys((*FALSE_WORDS, *FAIL_WORDS), "false")
# Equal rows without any of these may be attempts; with one, the file was appended to itself.
_TELLING = ("fixed_code", "duration_seconds", "cost_usd", "output_tokens")
# How deep `Head.key_paths` looks: what counts is the brackets around a key, two for the element of a list.
_MAX_KEY_DEPTH, _MAX_LIST_DEPTH = 4, 5


def mapped_adapter(
    declared: JsonFormat,
    *,
    judge: Judge | None = None,
    fill: Fill | None = None,
    figures: Figures | None = None,
    recognizes: Callable[[Head], bool] | None = None,
    named: Callable[[Path], NamedModel] | None = None,
) -> Adapter:
    """The adapter of a declared format."""
    marks = [_mark(paths) for paths in _required(declared)]

    def recognize(head: Head) -> bool:
        named = declared.files is None or fnmatchcase(uncompressed_name(head.path), declared.files)
        return named and all(_has(head, mark) for mark in marks) and (recognizes is None or recognizes(head))

    def read(path: Path, _: ReadOptions) -> AdapterTable:
        return _Reading(declared, path, judge, fill).table(figures, named(path) if named else None)

    return Adapter(declared.name, declared.title or declared.name, recognize, read, reads_compressed=True)


def _required(declared: JsonFormat) -> list[list[tuple[Step, ...]]]:
    """The steps from the document to what every file has; of several, one."""
    records = parse_records(declared.records).steps
    required = [[records], *([parse_path(text).steps] for text in declared.requires)]
    for field in (declared.problem, declared.passed):
        own = [path for path in paths_of(field) if path.start == "record" and not path.up]
        required += [[records + path.steps for path in own]] if own else []
    return required


def _mark(alternatives: list[tuple[Step, ...]]) -> list[tuple[str | None, ...]]:
    """Steps as entries of `Head.key_paths`, as deep as those go; None is any key."""
    found = []
    for steps in alternatives:
        depth, names = 0, list[str | None]()
        for step in steps:
            is_list = step is ELEMENTS or isinstance(step, int)
            depth += 2 if is_list else 1
            if depth > (_MAX_LIST_DEPTH if is_list else _MAX_KEY_DEPTH):
                break
            names.append(LIST if is_list else None if step is VALUES else str(step))
        found.append(tuple(names))
    return found


def _has(head: Head, mark: list[tuple[str | None, ...]]) -> bool:
    return any(not names or _has_path(head, names) for names in mark)


def _has_path(head: Head, names: tuple[str | None, ...]) -> bool:
    if names[0] == LIST and _has_lines(head):
        names = names[1:]
    if None not in names:
        return not names or names in head.key_paths
    # An entry is a prefix of another: it suffices to look for one of this length.
    return any(
        len(path) == len(names) and all(name in (None, each) for name, each in zip(names, path, strict=True))
        for path in head.key_paths
    )


def _has_lines(head: Head) -> bool:
    """Whether the file has an object per line; the first may be longer than what is looked at."""
    return head.text.startswith("{") and (bool(head.first_record) or "\n" not in head.text)


@dataclass
class _Reading:
    """Reads one file."""

    declared: JsonFormat
    path: Path
    judge: Judge | None
    fill: Fill | None

    def __post_init__(self) -> None:
        self.records = parse_records(self.declared.records)
        self.by_line = self.records.steps[:1] == (ELEMENTS,) and _has_lines(Head(self.path))
        stem = _ENDING.sub("", uncompressed_name(self.path))
        self.names = (stem, self.path.resolve().parent.name)
        self.fields = {name: [parse_field(text) for text in paths] for name, paths in self.declared.fields().items()}
        self.needs_object = any(
            path.steps and path.start == "record" and not path.up
            for path in paths_of((*self.declared.problem, *self.declared.passed))
        )
        self.attempts: Counter[tuple[str | None, ...]] = Counter()
        self.settings: dict[tuple[str, Dimension, str], list[object]] = {}
        self.root: object = None

    def table(self, figures: Figures | None, named: NamedModel | None) -> AdapterTable:
        if not self.declared.model:
            named = named or model_of_name(self.path, self.names[0])
        records = fill_records(self.values(), self.fill_cells, {"llm_name": named.name} if named else None)
        telling = next((name for name in _TELLING if name in self.fields), None)
        table = table_from_records(
            self.path,
            self.declared.name,
            ("oid", "iteration_id", "llm_name", "passed", *self.fields),
            records,
            raw_lines if self.one_per_line else raw_values(lambda _: self.raw()),
        )
        if self.by_line and telling and not self.declared.attempt:
            table = refuse_repetition(table, telling)
        stated = figures(table, self.root) if figures else ()
        return table.stating(stated, self.stated_settings(), [named.note] if named else [])

    @property
    def one_per_line(self) -> bool:
        return self.by_line and len(self.records.steps) == 1

    def values(self) -> Iterator[tuple[int, Found | RefusedRecordError]]:
        """The records, by line where each has one of its own, else by their place."""
        if self.one_per_line:
            return self.lines()
        found = self.found_in_lines() if self.by_line else self.found_in_document()
        return enumerate(found, start=1)

    def raw(self) -> Iterator[tuple[int, object]]:
        for place, found in self.values():
            value = found.value if isinstance(found, Found) else found
            yield place, value.value if isinstance(value, WrongKind) else value

    def lines(self) -> Iterator[tuple[int, Found | RefusedRecordError]]:
        document = Found(None, names=self.names)
        for index, (line, text) in enumerate(numbered_lines(self.path)):
            try:
                yield line, Found(parse_line(text, "record"), None, index, document, self.names)
            except RefusedRecordError as refusal:
                yield line, refusal

    def found_in_lines(self) -> Iterator[Found | RefusedRecordError]:
        for _, found in self.lines():
            yield from found.each(self.records.steps[1:]) if isinstance(found, Found) else [found]

    def found_in_document(self) -> Iterator[Found]:
        self.root = read_document(self.path, unique_keys=VALUES in self.records.steps)
        yield from Found(self.root, names=self.names).each(self.records.steps)

    def fill_cells(self, cells: Cells, found: Found | RefusedRecordError) -> None:
        if isinstance(found, RefusedRecordError):
            raise found
        if isinstance(found.value, WrongKind):
            wrong = found.value
            raise RefusedRecordError("ragged", f"{described(wrong.value)} where {wrong.wanted} of records belongs")
        if self.declared.model:
            cells["llm_name"] = self.identifier(found, "llm_name", "model")
        if self.needs_object:
            object_of(found.value, "record")
        cells |= {name: self.text(found, name) for name in self.fields if name not in ("oid", "llm_name")}
        cells["oid"] = self.identifier(found, "oid", "problem")
        if not self.declared.attempt:
            # A refused record keeps its number, so that those after it keep theirs.
            key = (cells["llm_name"], cells.get("tier"), cells["oid"])
            self.attempts[key] += 1
            cells["iteration_id"] = str(self.attempts[key])
        cells["passed"] = self.outcome(found)
        if self.fill:
            self.fill(cells, found)
        self.note_settings(cells["llm_name"] or "", found)

    def value(self, found: Found, parts: tuple[str | JsonPath, ...]) -> object:
        if len(parts) == 1:
            return found.at(parts[0]) if isinstance(parts[0], JsonPath) else parts[0]
        texts = [part if isinstance(part, str) else text_of(found.at(part)) for part in parts]
        return None if None in texts else "".join(text or "" for text in texts)

    def first(self, found: Found, fields: Sequence[tuple[str | JsonPath, ...]]) -> object:
        values = (self.value(found, parts) for parts in fields)
        return next((value for value in values if value is not None), None)

    def text(self, found: Found, name: str) -> str | None:
        return text_of(self.first(found, self.fields[name]))

    def identifier(self, found: Found, name: str, key: str) -> str:
        value, paths = self.first(found, self.fields[name]), " or ".join(getattr(self.declared, key))
        if isinstance(value, dict | list):
            raise RefusedRecordError("bad_id", f"the {key} ({paths}) is {described(value)} where text belongs")
        text = text_of(value)
        if text is None or not text.strip():
            raise RefusedRecordError("bad_id", f"the {key} is missing ({paths})")
        return text

    def outcome(self, found: Found) -> str | None:
        if self.judge:
            passed = self.judge(found)
            return None if passed is None else text_of(passed)
        value = self.first(found, [parse_field(text) for text in self.declared.passed])
        if value is None and None not in (*self.declared.pass_values, *self.declared.fail_values):
            return None
        if self.declared.at_least is not None:
            number = float(value) if isinstance(value, bool) else number_of(value)
            if number is None:
                raise self.unknown_outcome(value, "a number")
            return "true" if number >= self.declared.at_least else "false"
        word = _word(value)
        if not self.declared.pass_values:
            outcome = _WORDS.get(word.lower())
            if outcome is None:
                raise self.unknown_outcome(value, "true/false, 1/0, yes/no or pass/fail; name others in pass_values")
            return outcome
        for outcome, listed in (("true", "pass_values"), ("false", "fail_values"), (None, "undecided_values")):
            if word in map(_word, getattr(self.declared, listed)):
                return outcome
        raise self.unknown_outcome(value, "in pass_values, fail_values or undecided_values")

    def unknown_outcome(self, value: object, wanted: str) -> RefusedRecordError:
        paths = " or ".join(self.declared.passed)
        return RefusedRecordError("bad_boolean", f"{paths}: {(text_of(value) or '')[:100]!r} is not {wanted}")

    def note_settings(self, model: str, found: Found) -> None:
        for dimension, paths in self.declared.settings.items():
            for text in paths:
                values, value = self.settings.setdefault((model, dimension, text), []), found.get(text)
                if value not in values and len(values) < 2:
                    values.append(value)

    def stated_settings(self) -> list[StatedSetting]:
        """The settings that all records of a model agree in."""
        stated = []
        for (model, dimension, text), values in self.settings.items():
            name = next((step for step in reversed(parse_path(text).steps) if isinstance(step, str)), text)
            section = {name.replace(" ", "_"): values[0]} if len(values) == 1 else {}
            stated += stated_settings(model, dimension, section, " ".join(section))
        return stated


def _word(value: Word | object) -> str:
    """A value of `passed` for comparison: 1 and 1.0 are equal, and so are the number and its text in a configuration.

    >>> _word(True), _word(1), _word("resolved"), _word(None)
    ('true', '1', 'resolved', 'null')
    """
    if value is None:
        return "null"
    number = number_of(value) if isinstance(value, Number | int | float) and not isinstance(value, bool) else None
    return f"{number:.12g}" if number is not None else (text_of(value) or "").strip()
