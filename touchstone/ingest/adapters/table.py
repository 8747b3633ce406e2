"""The table that every adapter produces, its records, and the names of models and columns in it.

JSON as text cells belongs in `json_files`; what a key of one system means belongs in that system's module.
"""

import gc
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeVar

import polars as pl

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, ROW_ERROR_KIND
from touchstone.ingest.limits import MAX_KEYS
from touchstone.ingest.sources import ChangedWhileReadError, Mark, mark_of
from touchstone.storage.files import check_model_name
from touchstone.text import counted_of
from touchstone.vocabulary import Dimension

MODEL = "__model"
OWN_COLUMNS = (LINE, ROW_ERROR_KIND, ROW_ERROR, MODEL)
NAME_COLUMN = "llm_name"
# Columns with a digest of what the model was asked.
ASKED_COLUMNS = ("asked_sha", "doc_hash")

REPEATS, APPENDED = "__repeats", "repeats line {}: the file was appended to itself"
_BATCH_ROWS, _WEIGHED_ROWS = 20_000, 20
# Of rows that wait in memory, some 40,000. Many such files are read at the same time.
MAX_BYTES = 4 << 20

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

    def stating(
        self, figures: Iterable[ReportedFigure], settings: Iterable[StatedSetting] = (), notes: Iterable[str] = ()
    ) -> "AdapterTable":
        """The table with what the tool states about it, and notes for users."""
        return replace(
            self,
            figures=tuple(replace(each, model=encodable(each.model)) for each in figures),
            settings=tuple(
                replace(each, model=encodable(each.model), suite=each.suite and encodable(each.suite))
                for each in settings
            ),
            notes=tuple(map(encodable, notes)),
        )

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


@dataclass(slots=True)
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
) -> Iterator[Record]:
    """A record for each numbered value: `fill` adds to the given cells, or raises `RefusedRecordError`.

    Records are made as they are taken, once: pass them on to `table_from_records`, which needs little memory however
    many there are, or keep a list where each depends on others and they are few. Figures, and cells that depend on
    other records, follow from the table: `counts_of_table`, `refuse_repetition`, `settle`, `AdapterTable.stating`.
    """
    for line, value in values:
        record = Record(line, dict(cells or {}))
        try:
            fill(record.cells, value)
        except RefusedRecordError as refusal:
            record.refuse(refusal)
        yield record


def number_attempts(records: Iterable[Record]) -> Counter[tuple[str | None, ...]]:
    """Number the accepted records of a model at a problem from 1, in this order; returns how many each has."""
    counts: Counter[tuple[str | None, ...]] = Counter()
    for record in records:
        if record.kind is None:
            key = (record.cells["llm_name"], record.cells.get("tier"), record.cells["oid"])
            counts[key] += 1
            record.cells["iteration_id"] = str(counts[key])
    return counts


def refuse_repetition(table: AdapterTable, answer: str) -> AdapterTable:
    """Refuse the rows of a file that was appended to itself, where attempts are numbered in the order of the file."""
    with table.reading():
        found = repeated_rows(table.rows, [answer], "iteration_id")
    if found.is_empty():
        return table
    rows = table.rows.join(found.lazy(), on=LINE, how="left", maintain_order="left").with_columns(
        pl.when(pl.col(REPEATS).is_null()).then(ROW_ERROR_KIND).otherwise(pl.lit("duplicate")).alias(ROW_ERROR_KIND),
        pl.coalesce(REPEATS, ROW_ERROR).alias(ROW_ERROR),
    )
    return replace(table, rows=rows.drop(REPEATS))


def repeated_rows(rows: pl.LazyFrame, answers: Sequence[str], *ignored: str) -> pl.DataFrame:
    """The lines of rows that were appended to their file, each with what it `REPEATS` as a reason; else none.

    Equal rows of one problem may be attempts, and so may rows without any of the `answers`. A file is compared by
    digests of its rows, first of their problems alone.
    """
    none = pl.DataFrame(schema={LINE: pl.Int64, REPEATS: pl.String})
    if not answers or _repeated(rows, pl.col("oid")).is_empty():
        return none
    if rows.select(pl.col("oid").n_unique() < 2).collect(engine="streaming").item():
        return none
    found = _repeated(rows, pl.struct(pl.exclude(LINE, *ignored)))
    has_answer = pl.any_horizontal(pl.col(*answers).is_not_null()).any()
    return found if not found.is_empty() and rows.select(has_answer).collect(engine="streaming").item() else none


def _repeated(rows: pl.LazyFrame, content: pl.Expr) -> pl.DataFrame:
    known = rows.select(LINE, content.hash().alias(REPEATS)).collect(engine="streaming").sort(LINE)
    lines, size = known[LINE], known.height
    block = repeated_block(known[REPEATS])
    if block == size:
        return known.clear()
    firsts = lines.gather(pl.int_range(block, size, eager=True) % block)
    reason = pl.format(APPENDED, REPEATS).alias(REPEATS)
    return pl.DataFrame({LINE: lines[block:], REPEATS: firsts}).with_columns(reason)


def repeated_block(digests: pl.Series) -> int:
    """How many of these come before they are repeated to the end; all of them if they are not.

    >>> repeated_block(pl.Series([5, 7, 5, 7])), repeated_block(pl.Series([5, 7, 5]))
    (2, 3)
    """
    contents, size = digests.to_numpy(), len(digests)
    blocks = (each for each in range(2, size // 2 + 1) if size % each == 0)
    return next((each for each in blocks if (contents[each:] == contents[:-each]).all()), size)


def records_of(table: AdapterTable, columns: Sequence[str]) -> Iterator[Record]:
    """The records of a table with these columns alone, read again one by one."""
    rows = table.rows.select(LINE, ROW_ERROR_KIND, ROW_ERROR, *columns)
    with table.reading():
        for batch in rows.collect_batches(maintain_order=True, engine="streaming"):
            for line, kind, reason, *cells in batch.iter_rows():
                yield Record(line, dict(zip(columns, cells, strict=True)), kind, reason)


def number_attempts_of_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Number the accepted rows of a model at a problem from 1, in their order, unless they have a number."""
    unnumbered = pl.col(ROW_ERROR_KIND).is_null() & pl.col("iteration_id").is_null()
    number = unnumbered.cast(pl.Int64).cum_sum().over("llm_name", "oid").cast(pl.String)
    return rows.with_columns(pl.coalesce("iteration_id", pl.when(unnumbered).then(number)).alias("iteration_id"))


def settle(table: AdapterTable, columns: Sequence[str], change: Callable[[pl.DataFrame], pl.DataFrame]) -> AdapterTable:
    """Change cells that depend on other rows: `change` gets `__line`, `__kind` and these columns of all rows in memory.

    It returns the same rows with other cells.
    """
    with table.reading():
        settled = change(table.rows.select(LINE, ROW_ERROR_KIND, *columns).collect(engine="streaming"))
    rows = pl.concat([table.rows.drop(settled.columns), settled.lazy()], how="horizontal")
    return replace(table, rows=rows.select(*OWN_COLUMNS, *table.columns))


def undecide_failures(table: AdapterTable, judged: pl.Expr, waiting: pl.Expr) -> tuple[AdapterTable, list[str]]:
    """Leave all attempts of a model undecided if none was judged and some still wait for it; returns notes.

    What failed without being judged, such as an empty patch, would else be the whole figure: 0 of what nobody judged.
    A model that failed at everything has failed.
    """
    accepted = pl.col(ROW_ERROR_KIND).is_null()
    counts = pl.len(), waiting.sum().alias("waiting"), pl.col("passed").count().alias("failed")
    with table.reading():
        models = table.rows.filter(accepted).group_by(NAME_COLUMN).agg(*counts, judged=judged.any()).collect()
    found = models.filter(~pl.col("judged"), pl.col("waiting") > 0, pl.col("failed") > 0).sort(NAME_COLUMN)
    undecided = accepted & pl.col(NAME_COLUMN).is_in(found[NAME_COLUMN].to_list())
    rows = table.rows.with_columns(pl.when(~undecided).then(name).alias(name) for name in ("passed", "classification"))
    notes = [
        f"not judged: {counted_of(unjudged, attempts, 'attempt')} of {model}; {failed:,} that failed without being "
        "judged would be the whole figure: undecided"
        for model, attempts, unjudged, failed in found.select(NAME_COLUMN, "len", "waiting", "failed").iter_rows()
    ]
    return replace(table, rows=rows) if notes else table, notes


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


class SpilledRows:
    """Rows of text cells with any columns that wait on disk, so that a file of any size is read in little memory.

    The files are removed with the last reference to this object.
    """

    def __init__(self, schema: dict[str, type[pl.DataType]]) -> None:
        self._schema = dict(schema)
        self._frames: list[pl.DataFrame] = []
        self._size = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: list[Path] = []

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order of their first use."""
        return list(self._schema)

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows after those that are there."""
        self._schema.update(dict.fromkeys((name for name in frame.columns if name not in self._schema), pl.String))
        self._frames.append(frame)
        self._size += int(frame.estimated_size())
        if self._size > MAX_BYTES:
            self._spill()

    def rows(self) -> pl.LazyFrame:
        """All rows in their order, with all columns; usable as long as this object is."""
        if not self._files:
            return pl.concat([pl.DataFrame(schema=self._schema), *self._frames], how="diagonal").lazy()
        if self._frames:
            self._spill()
        return pl.scan_parquet(
            self._files, glob=False, schema=self._schema, missing_columns="insert", extra_columns="ignore"
        )

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="touchstone-rows-", ignore_cleanup_errors=True)
        path = Path(self._folder.name, f"{len(self._files)}.parquet")
        pl.concat(self._frames, how="diagonal").write_parquet(path, compression="lz4", statistics=False)
        self._files.append(path)
        self._frames, self._size = [], 0


def spill_records(path: Path, records: Iterable[Record], columns: Sequence[str] = ()) -> SpilledRows:
    """Records as frames, most of them on disk: these columns first, then the others in the order of their first use."""
    own = (ROW_ERROR_KIND, ROW_ERROR)
    found = SpilledRows({LINE: pl.Int64, **dict.fromkeys((*own, *columns), pl.String)})
    with without_garbage_collection():
        for batch in _batches(records):
            found.add(_frame_of(batch))
            if len(found.columns) > MAX_KEYS + 1 + len(own):
                raise InputFileError(f"{path}: more than {MAX_KEYS:,} different keys; at most {MAX_KEYS:,} are read")
    return found


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause the search for cycles: it would go through all records again and again, and find none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    source, batch, characters = iter(records), list[Record](), 0
    while some := list(islice(source, _WEIGHED_ROWS)):
        batch += some
        characters += sum([len(cell) for record in some for cell in record.cells.values() if cell])
        if characters > MAX_BYTES or len(batch) >= _BATCH_ROWS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _frame_of(records: Sequence[Record]) -> pl.DataFrame:
    cells = [record.cells for record in records]
    # In the order of their first use, in one step a record: there may be millions of names, nearly all of them known.
    names: Cells = {}
    for each in cells:
        names.update(each)
    data: dict[str, list[int] | list[str | None]] = {
        LINE: [record.line for record in records],
        ROW_ERROR_KIND: [record.kind for record in records],
        ROW_ERROR: [record.reason for record in records],
    }
    data |= {name: [each.get(name) for each in cells] for name in names}
    schema = {name: pl.Int64 if name == LINE else pl.String for name in data}
    try:
        return pl.DataFrame(data, schema=schema)
    except UnicodeEncodeError:
        # Names of files and folders need not be UTF-8, and some become cells.
        clean = {name: [encodable(each) if isinstance(each, str) else each for each in data[name]] for name in data}
        return pl.DataFrame(clean, schema=schema)


def table_from_records(
    path: Path,
    format_name: str,
    native: Sequence[str],
    records: Iterable[Record],
    raw_reader: RawReader,
    *,
    shared: Cells | None = None,
    files: Sequence[Path] = (),
    figures: Sequence[ReportedFigure] = (),
    settings: Sequence[StatedSetting] = (),
    notes: Sequence[str] = (),
) -> AdapterTable:
    """Records as a table: the mapped columns first, then the others; `shared` are cells that all records have.

    The records are taken one by one and not kept. What is known only after the last is added by `AdapterTable.stating`;
    `shared` may get its values until then.
    """
    spilled = spill_records(path, records, (*native, *(shared or {})))
    common = {name: value and encodable(value) for name, value in (shared or {}).items()}
    rows = spilled.rows().with_columns(pl.lit(value, dtype=pl.String).alias(name) for name, value in common.items())
    columns = tuple(name for name in spilled.columns if name not in OWN_COLUMNS)
    table = replace(adapter_table(path, format_name, columns, rows, raw_reader), files=tuple(files), kept=spilled)
    return table.stating(figures, settings, notes)


def encodable(text: str) -> str:
    r"""Text that UTF-8 can encode: without lone surrogates, which JSON can escape and which stand for bytes in names.

    >>> encodable("run-\udcff"), encodable("ü")
    ('run-?', 'ü')
    """
    return str(text) if text.isascii() else text.encode("utf-8", "replace").decode()


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
    # To replace values, Polars collects all rows with all their texts.
    explained = pl.col(NAME_COLUMN).replace_strict(wrong, default=None, return_dtype=pl.String)
    refused = explained if wrong else pl.lit(None, pl.String)
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
