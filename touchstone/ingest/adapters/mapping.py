"""Adapters that are declared: a `JsonFormat` says where the records of a file are and what their keys mean.

    ADAPTER = mapped_adapter(JsonFormat(name="acme", records="runs[]", problem="task", passed="ok", attempt="trial"))

What a declaration cannot say is a function: `judge` decides from a record whether it passed (then the path `passed`
only helps to recognize the file), `fill` changes the cells of a record, both may raise `RefusedRecordError`; `figures`
has the figures that the tool states, beside the recomputed ones; `named` is the model by the file's name. Of the
document around the records, functions see what is no object or list, and the paths in `kept`: a large file is read
record by record.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

from touchstone.config.formats import JsonFormat, Word, paths_of
from touchstone.config.json_paths import (
    ELEMENTS,
    VALUES,
    Found,
    JsonPath,
    Step,
    WrongKind,
    follow,
    parse_field,
    parse_path,
    parse_records,
)
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
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
    skim_document,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.json_stream import Each, Keep, Members, Shape
from touchstone.ingest.adapters.marks import has_lines, has_mark
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    NamedModel,
    Record,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    fill_records,
    model_of_name,
    records_of,
    refuse_repetition,
    table_from_records,
)
from touchstone.ingest.compressed import uncompressed_name
from touchstone.vocabulary import FAIL_WORDS, FALSE_WORDS, PASS_WORDS, TRUE_WORDS, Dimension

Judge = Callable[[Found], bool | None]
Fill = Callable[[Cells, Found], None]
# Of the records, which are read again one by one, and the document.
Figures = Callable[[Iterable[Record], object], Iterable[ReportedFigure]]

_ENDING = re.compile(r"\.(?:jsonl?|ndjson)$", re.IGNORECASE)
_WORDS: Mapping[str, str | None] = dict.fromkeys((*TRUE_WORDS, *PASS_WORDS), "true") | dict.fromkeys(
    (*FALSE_WORDS, *FAIL_WORDS), "false"
)
# Equal rows without any of these may be attempts; with one, the file was appended to itself.
_TELLING = ("fixed_code", "duration_seconds", "cost_usd", "output_tokens")


def mapped_adapter(
    declared: JsonFormat,
    *,
    judge: Judge | None = None,
    fill: Fill | None = None,
    figures: Figures | None = None,
    named: Callable[[Path], NamedModel] | None = None,
    kept: Sequence[str] = (),
) -> Adapter:
    """The adapter of a declared format."""
    records = parse_records(declared.records).steps
    required = [[parse_path(text).steps for text in mark.split(" | ")] for mark in declared.marks()]

    def recognize(head: Head) -> bool:
        if declared.files is not None and not fnmatchcase(head.name, declared.files):
            return False
        has_records = head.text[:1] in ("{", "[") and has_mark(head, [records])
        return has_records and all(has_mark(head, mark) for mark in required)

    def read(path: Path, _: ReadOptions) -> AdapterTable:
        return _Reading(declared, path, judge, fill, kept).table(figures, named)

    named_so = f" (in a file named {declared.files})" if declared.files else ""
    marks = ", ".join(declared.marks()) + named_so
    return Adapter(declared.name, declared.title or declared.name, recognize, read, marks=marks)


@dataclass
class _Reading:
    """Reads one file."""

    declared: JsonFormat
    path: Path
    judge: Judge | None
    fill: Fill | None
    kept: Sequence[str]

    def __post_init__(self) -> None:
        declared = self.declared
        self.records = parse_records(declared.records)
        self.by_line = self.records.steps[:1] == (ELEMENTS,) and has_lines(Head(self.path))
        stem = _ENDING.sub("", uncompressed_name(self.path))
        self.names = (stem, self.path.resolve().parent.name)
        self.fields = {name: _getter(paths) for name, paths in self.declared.fields().items()}
        self.others = {name: get for name, get in self.fields.items() if name not in ("oid", "llm_name")}
        self.passed = _getter(self.declared.passed)
        listed = (declared.pass_values, declared.fail_values, declared.undecided_values)
        words = zip(("true", "false", None), listed, strict=True)
        self.outcomes = {_word(word): outcome for outcome, values in words for word in values} or _WORDS
        self.needs_object = any(
            path.steps and path.start == "record" and not path.up
            for path in paths_of((*self.declared.problem, *self.declared.passed))
        )
        self.attempts: Counter[tuple[str | None, ...]] = Counter()
        self.settings: dict[tuple[str, Dimension, str], list[object]] = {}
        self.root: object = None

    def table(self, figures: Figures | None, named_by: Callable[[Path], NamedModel] | None) -> AdapterTable:
        named = named_by(self.path) if named_by else None
        if named is None and self.declared.model in ((), ("@folder",)):
            named = model_of_name(self.path, "" if self.declared.model else self.names[0])
        records = fill_records(self.values(), self.fill_cells, {"llm_name": named.name} if named else None)
        columns = ("oid", "iteration_id", "llm_name", "passed", *self.fields)
        raw = raw_lines if self.one_per_line else raw_values(lambda _: self.raw())
        table = table_from_records(self.path, self.declared.name, columns, records, raw)
        telling = next((name for name in _TELLING if name in self.fields), None)
        if self.by_line and telling and not self.declared.attempt:
            table = refuse_repetition(table, telling)
        # Without the code of fixes.
        names = [name for name in table.columns if name != "fixed_code"]
        stated = figures(records_of(table, names), self.root) if figures else ()
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
        """The records of a document, part by part of the first list or object on the way to them."""
        steps = self.records.steps
        place = next((place for place, step in enumerate(steps) if step in (ELEMENTS, VALUES)), len(steps))
        before, each = steps[:place], steps[place:][:1]
        if not each:
            self.root = read_document(self.path)
            yield Found(self.root, names=self.names)
            return
        by_key = each == (VALUES,)
        shape: Shape = Members(Keep()) if by_key else Each(Keep())
        for step in reversed(before):
            shape = {str(step): shape}
        name = str(before[-1]) if before else ""
        if before:
            # What is around the records may come after them, so it is read first.
            *_, (_, self.root) = skim_document(self.path, self.around())
        top = Found(self.root, names=self.names)
        for index, (part_of, part) in enumerate(skim_document(self.path, shape, [name] if by_key else [])):
            if part_of is None:
                rest = follow(part, before)
                if rest is not None and not isinstance(rest, dict if by_key else list):
                    yield Found(WrongKind(rest, "an object" if by_key else "a list"), around=top)
            else:
                key, value = part if by_key and isinstance(part, tuple) else (None, part)
                yield from Found(value, key, index, top, self.names).each(steps[place + 1 :])

    def around(self) -> Shape:
        """The part of the document around the records that is kept."""
        levels = sum(step in (ELEMENTS, VALUES) for step in self.records.steps)
        texts = (*self.kept, *(text for texts in self.declared.settings.values() for text in texts))
        paths = [*map(parse_path, texts), *paths_of((*self.declared.passed, *chain(*self.declared.fields().values())))]
        shape: Shape = {}
        for path in paths:
            if path.start == "root" or (path.start == "record" and path.up >= levels):
                shape = _with_path(shape, path.steps)
        return shape

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
        cells |= {name: text_of(get(found)) for name, get in self.others.items()}
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

    def identifier(self, found: Found, name: str, key: str) -> str:
        value = self.fields[name](found)
        text = None if isinstance(value, dict | list) else text_of(value)
        if text is None or text.isspace():
            paths = " or ".join(getattr(self.declared, key))
            is_text = value is None or isinstance(value, str)
            why = f"is missing ({paths})" if is_text else f"({paths}) is {described(value)} where text belongs"
            raise RefusedRecordError("bad_id", f"the {key} {why}")
        return text

    def outcome(self, found: Found) -> str | None:
        if self.judge:
            passed = self.judge(found)
            return None if passed is None else text_of(passed)
        value = self.passed(found)
        if value is None:
            return self.outcomes.get(_word(None))
        if self.declared.at_least is not None:
            number = float(value) if isinstance(value, bool) else number_of(value)
            if number is None:
                raise self.unknown_outcome(value, "a number")
            return "true" if number >= self.declared.at_least else "false"
        word, usual = _word(value), self.outcomes is _WORDS
        word = word.lower() if usual else word
        if word not in self.outcomes:
            known = "true/false, 1/0, yes/no or pass/fail; name others in pass_values"
            raise self.unknown_outcome(value, known if usual else "in pass_values, fail_values or undecided_values")
        return self.outcomes[word]

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


def _getter(fields: Sequence[str]) -> Callable[[Found], object]:
    """A function that returns the first of these fields that a record has."""
    parsed = [parse_field(text) for text in fields]
    if len(parsed) == 1 and len(parsed[0]) == 1:
        (only,) = parsed[0]
        if isinstance(only, str):
            return lambda _: only
        if only.start == "record" and not only.up:
            return lambda found: follow(found.value, only.steps)
        return lambda found: found.at(only)

    def value(found: Found, parts: tuple[str | JsonPath, ...]) -> object:
        if len(parts) == 1 and isinstance(parts[0], JsonPath):
            return found.at(parts[0])
        texts = [part if isinstance(part, str) else text_of(found.at(part)) for part in parts]
        return None if None in texts else "".join(text or "" for text in texts)

    def first(found: Found) -> object:
        return next((each for parts in parsed if (each := value(found, parts)) is not None), None)

    return first


def _with_path(shape: Shape, steps: Sequence[Step]) -> Shape:
    """The shape with the value at a path kept, as far as keys lead to it."""
    if not steps or not isinstance(steps[0], str) or not isinstance(shape, Mapping):
        return Keep()
    return {**shape, steps[0]: _with_path(shape.get(steps[0], {}), steps[1:])}


def _word(value: Word | object) -> str:
    """A value of `passed` for comparison: 1 and 1.0 are equal, and so are the number and its text in a configuration.

    >>> _word(True), _word(1), _word("resolved"), _word(None)
    ('true', '1', 'resolved', 'null')
    """
    if value is None:
        return "null"
    number = number_of(value) if isinstance(value, Number | int | float) and not isinstance(value, bool) else None
    return f"{number:.12g}" if number is not None else (text_of(value) or "").strip()
