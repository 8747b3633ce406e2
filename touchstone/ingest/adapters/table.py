"""The table that every adapter produces, its records, and the names of models and columns in it.

JSON as text cells belongs in `json_files`; what a key of one system means belongs in that system's module.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import polars as pl

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, ROW_ERROR_KIND
from touchstone.ingest.limits import MAX_KEYS
from touchstone.ingest.unchanged import ChangedWhileReadError, Mark, mark_of
from touchstone.names import check_model_name
from touchstone.text import counted_of
from touchstone.vocabulary import Dimension

MODEL = "__model"
OWN_COLUMNS = (LINE, ROW_ERROR_KIND, ROW_ERROR, MODEL)
NAME_COLUMN = "llm_name"
# Columns with a digest of what the model was asked.
ASKED_COLUMNS = ("asked_sha", "doc_hash")

Cells = dict[str, str | None]
RawReader = Callable[[Path, set[int]], dict[int, str]]
Value = TypeVar("Value")


@dataclass(frozen=True)
class ReportedFigure:
    """An aggregate as the tool itself reports it, and the same aggregate by the tool's rule from the rows read here.

    `reported` is null if the file does not state it, `recomputed` if it cannot be computed from the file. `note` says
    why Touchstone's own figure differs on purpose, if it does.
    """

    model: str
    name: str
    reported: float | None
    recomputed: float | None
    suite: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class StatedSetting:
    """A setting that a file states about how a model was run or judged. `suite` is null for all of the file."""

    model: str
    dimension: Dimension
    name: str
    value: str
    suite: str | None = None


@dataclass(frozen=True)
class AdapterTable:
    """The records of one file as rows of text cells, before any rule has been applied. A large file is only scanned.

    Internal columns of the rows: `__line` is where the record starts; `__kind` and `__broken` are the kind and the
    reason of a record that the adapter refuses; `__model` is the name of the model, null if it is unknown or not
    allowed. The others are `columns`, all text.
    """

    path: Path
    format: str
    columns: tuple[str, ...]
    rows: pl.LazyFrame = field(repr=False, compare=False)
    raw_reader: RawReader = field(repr=False, compare=False)
    # Whether each problem belongs to a single tier, as the configurations of a task do.
    tier_bound: bool = False
    # The files that were read, if `path` is a folder or others beside it were needed.
    files: tuple[Path, ...] = ()
    figures: tuple[ReportedFigure, ...] = ()
    settings: tuple[StatedSetting, ...] = ()
    # Of a file whose rows are read each time they are used: its mark when it was opened.
    scanned: Mark | None = None
    # Kept alive for as long as the rows are used, such as files on disk.
    kept: object = field(default=None, repr=False, compare=False)
    # For users: parts of the file that were left out, and which of several readings was chosen.
    notes: tuple[str, ...] = ()

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All rows in memory."""
        with self.reading():
            return self.rows.collect()

    def models(self) -> list[str]:
        """The names of the models in the file."""
        with self.reading():
            names = self.rows.select(pl.col(MODEL).drop_nulls().unique()).collect(engine="streaming")
        return names[MODEL].sort().to_list()

    def for_model(self, model: str) -> "AdapterTable":
        """The table with the rows of one model."""
        return replace(self, rows=self.rows.filter(pl.col(MODEL) == model))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn errors of reading the rows, of which a scanned file may have some, into an `InputFileError`."""
        try:
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            self._require_unchanged()
            raise InputFileError(f"{self.path}: cannot be read ({first_line(error)})") from None
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        """Polars keeps the footer of a scanned file, so rows of another file would be read by the wrong one."""
        if self.scanned is not None and mark_of(self.path) != self.scanned:
            raise ChangedWhileReadError(self.path)

    def raw(self, lines: set[int]) -> dict[int, str]:
        """The text of the records at these lines, truncated to `MAX_RAW_LENGTH` characters."""
        return self.raw_reader(self.path, lines) if lines else {}


class RefusedRecordError(Exception):
    """Raised for a record that cannot become an attempt; the other records of the file are still read."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


@dataclass
class Record:
    """One record of a file: its cells, or why it is refused."""

    line: int
    cells: Cells = field(default_factory=dict)
    kind: str | None = None
    reason: str | None = None

    def refuse(self, refusal: RefusedRecordError) -> None:
        """Refuse the record; its model stays, so that the refusal is listed under it."""
        self.kind, self.reason = refusal.kind, refusal.reason


def fill_records(
    values: Iterable[tuple[int, Value]], fill: Callable[[Cells, Value], None], cells: Cells | None = None
) -> list[Record]:
    """A record for each numbered value: `fill` adds to the given cells, or raises `RefusedRecordError`."""
    records = []
    for line, value in values:
        record = Record(line, dict(cells or {}))
        try:
            fill(record.cells, value)
        except RefusedRecordError as refusal:
            record.refuse(refusal)
        records.append(record)
    return records


def number_attempts(records: Iterable[Record]) -> Counter[tuple[str | None, ...]]:
    """Number the accepted records of a model at a problem from 1, in this order; returns how many each has."""
    counts: Counter[tuple[str | None, ...]] = Counter()
    for record in records:
        if record.kind is None:
            key = (record.cells["llm_name"], record.cells.get("tier"), record.cells["oid"])
            counts[key] += 1
            record.cells["iteration_id"] = str(counts[key])
    return counts


def refuse_repetition(records: Sequence[Record], answer: str) -> None:
    """Refuse the rows of a file that was appended to itself, where attempts are numbered in the order of the file.

    Equal rows of one problem may be attempts, and so may rows without an `answer`, the name of its column.
    """

    def content(record: Record) -> object:
        cells = record.cells
        return record.kind, record.reason, {name: cells[name] for name in cells if name != "iteration_id"}

    def repeats(block: int) -> bool:
        return all(content(one) == content(other) for one, other in zip(records[block:], records, strict=False))

    told_apart = len({record.cells.get("oid") for record in records}) > 1
    block = repeated_block(len(records), repeats) if told_apart else None
    if block is not None and any(record.cells.get(answer) for record in records[:block]):
        for place, record in enumerate(records[block:]):
            record.refuse(RefusedRecordError("duplicate", appended_reason(records[place % block].line)))


def repeated_block(size: int, repeats: Callable[[int], bool]) -> int | None:
    """How many rows a file of `size` rows repeats from its start to its end; None if it does not.

    `repeats` says whether every row is equal to the one so many rows before it.

    >>> repeated_block(6, lambda block: block == 3), repeated_block(6, lambda block: block == 4)
    (3, None)
    """
    return next((each for each in range(2, size // 2 + 1) if size % each == 0 and repeats(each)), None)


def appended_reason(line: int) -> str:
    """Why a row of a file that was appended to itself is refused."""
    return f"repeats line {line}: the file was appended to itself"


def undecide_failures(
    records: Iterable[Record], judged: Callable[[Cells], bool], waiting: Callable[[Cells], bool]
) -> list[str]:
    """Leave all attempts of a model undecided if none was judged and some still wait for it; returns notes.

    What failed without being judged, such as an empty patch, would else be the whole figure: 0 of what nobody judged.
    A model that failed at everything has failed.
    """
    by_model: dict[str, list[Cells]] = {}
    for record in records:
        if record.kind is None:
            by_model.setdefault(record.cells["llm_name"] or "", []).append(record.cells)
    notes = []
    for model, attempts in by_model.items():
        unjudged, failed = sum(map(waiting, attempts)), [cells for cells in attempts if cells["passed"] is not None]
        if unjudged and failed and not any(map(judged, attempts)):
            for cells in failed:
                cells["passed"] = cells["classification"] = None
            others = f"{len(failed):,} that failed without being judged would be the whole figure"
            notes.append(
                f"not judged: {counted_of(unjudged, len(attempts), 'attempt')} of {model}; {others}: undecided"
            )
    return notes


def words(text: str) -> tuple[str, ...]:
    """The words of a text, for long lists of names.

    >>> words("oid passed")
    ('oid', 'passed')
    """
    return tuple(text.split())


def first_line(error: BaseException) -> str:
    """The first line of what a library says, for a message of one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def carried_name(name: str, taken: Collection[str]) -> str:
    """The column for a key that the adapter does not map: its own name unless that is taken.

    >>> carried_name("provider", ["passed"]), carried_name("passed", ["passed"])
    ('provider', 'input_passed')
    """
    core = name
    # Prefixes are stripped first; otherwise `passed` and `input_passed` would end up in the same column.
    while core not in taken and core.startswith("input_"):
        core = core.removeprefix("input_")
    if not core or core in taken or core.startswith("__"):
        return f"input_{name}"
    return name


def table_from_records(
    path: Path,
    format_name: str,
    native: Sequence[str],
    records: Sequence[Record],
    raw_reader: RawReader,
    *,
    shared: Cells | None = None,
    files: Sequence[Path] = (),
    figures: Sequence[ReportedFigure] = (),
    settings: Sequence[StatedSetting] = (),
    notes: Sequence[str] = (),
) -> AdapterTable:
    """Records as a table: the mapped columns first, then the others; `shared` are cells that all records have."""
    shared = shared or {}
    cells = [record.cells for record in records]
    columns = tuple(dict.fromkeys((*native, *shared, *_all_names(cells))))
    if len(columns) > MAX_KEYS:
        raise InputFileError(f"{path}: its records have {len(columns)} different keys; at most {MAX_KEYS} can be read")
    data: dict[str, list[int] | list[str | None]] = {
        LINE: [record.line for record in records],
        ROW_ERROR_KIND: [record.kind for record in records],
        ROW_ERROR: [record.reason for record in records],
    }
    data |= {name: [each.get(name) for each in cells] for name in columns if name not in shared}
    data |= {name: [value] * len(cells) for name, value in shared.items()}
    schema = {LINE: pl.Int64, **dict.fromkeys((ROW_ERROR_KIND, ROW_ERROR, *columns), pl.String)}
    try:
        frame = pl.DataFrame(data, schema=schema)
    except UnicodeEncodeError:
        # Names of files and folders need not be UTF-8, and some become cells.
        clean = {name: [encodable(each) if isinstance(each, str) else each for each in data[name]] for name in data}
        frame = pl.DataFrame(clean, schema=schema)
    table = adapter_table(path, format_name, columns, frame, raw_reader)
    figures = [replace(figure, model=encodable(figure.model)) for figure in figures]
    settings = [
        replace(each, model=encodable(each.model), suite=each.suite and encodable(each.suite)) for each in settings
    ]
    notes = tuple(map(encodable, notes))
    return replace(table, files=tuple(files), figures=tuple(figures), settings=tuple(settings), notes=notes)


def encodable(text: str) -> str:
    r"""Text that UTF-8 can encode: without lone surrogates, which JSON can escape and which stand for bytes in names.

    >>> encodable("run-\udcff"), encodable("ü")
    ('run-?', 'ü')
    """
    return str(text) if text.isascii() else text.encode("utf-8", "replace").decode()


def _all_names(cells: Sequence[Cells]) -> Cells:
    """The names in any of the records, in the order of their first use."""
    names: Cells = {}
    for each in cells:
        # In one step: there may be millions of names, nearly all of them known.
        names.update(each)
    return names


def adapter_table(
    path: Path,
    format_name: str,
    columns: tuple[str, ...],
    frame: pl.DataFrame | pl.LazyFrame,
    raw_reader: RawReader,
    *,
    tier_bound: bool = False,
) -> AdapterTable:
    """Complete a frame with its `__model` column; rows whose model has a name that is not allowed are refused."""
    rows = frame.lazy()
    names = rows.select(pl.col(NAME_COLUMN).unique()).collect(engine="streaming")[NAME_COLUMN]
    if names.is_empty():
        # Without rows there is no model under which the file could be reported.
        raise InputFileError(f"{path}: the file holds no results")
    wrong = {name: reason for name in names if name and (reason := _refused_name(name))}
    refused = pl.col(NAME_COLUMN).replace_strict(wrong, default=None, return_dtype=pl.String)
    unusable = refused.is_not_null() | (pl.col(NAME_COLUMN).str.strip_chars() == "")
    rows = rows.with_columns(
        pl.coalesce(ROW_ERROR_KIND, pl.when(refused.is_not_null()).then(pl.lit("bad_id"))).alias(ROW_ERROR_KIND),
        pl.coalesce(ROW_ERROR, refused).alias(ROW_ERROR),
        pl.when(~unusable).then(NAME_COLUMN).alias(MODEL),
    )
    return AdapterTable(path, format_name, columns, rows.select(*OWN_COLUMNS, *columns), raw_reader, tier_bound)


def _refused_name(name: str) -> str | None:
    try:
        check_model_name(name)
    except TouchstoneError as error:
        return str(error)
    return None


_GENERIC = re.compile(r"(?:^|[-_.])(?:samples?|results?)$")


@dataclass(frozen=True)
class NamedModel:
    """The name of a model, and a sentence for `notes` that says where it was found."""

    name: str
    note: str


def model_of_name(path: Path, stem: str) -> NamedModel:
    """The model that a file's name stands for; the folder's name if `stem`, the rest of the file's name, says nothing.

    >>> model_of_name(Path("gpt-4_samples.jsonl"), "gpt-4_samples").name
    'gpt-4'
    >>> model_of_name(Path("/runs/gpt-4/samples.jsonl"), "samples").name
    'gpt-4'
    """
    name = _GENERIC.sub("", stem).strip(" ._-")
    if name:
        return NamedModel(name, f"the file does not name the model; '{name}' comes from the file's name")
    folder = path.parent.resolve().name.strip() or "unnamed"
    return NamedModel(folder, f"the file does not name the model; '{folder}' is the name of its folder")
