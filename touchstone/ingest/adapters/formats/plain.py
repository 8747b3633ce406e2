"""Plain tables with the columns of the native fixes CSV: JSON (lines or a list), Parquet, CSVs of several models.

The list may be in an object, under any key, if it is the only such list there; the object may name the model.

Values become the text cells that a CSV would have: numbers of JSON as they were written and those of Parquet in their
shortest form, booleans as words, nested values as JSON; empty texts and NaN are null. The model is the file's name, as
for a CSV, unless there is a column `llm_name` or `model`: then the file may have several. A CSV with one model in it is
read as a fixes CSV, and one that is named like a fixes CSV keeps its `llm_name` as data. Columns are renamed first, as
`columns` of the configuration says.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError, reason_of
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head, ReadOptions
from touchstone.ingest.adapters.json_files import (
    LINES_SUFFIXES,
    inside,
    line_records,
    list_elements,
    object_records,
    raw_lines,
    raw_values,
    scalar_of,
    skim_document,
    text_of,
)
from touchstone.ingest.adapters.json_stream import Each, Keep
from touchstone.ingest.adapters.parquet_files import MAGIC, raw_parquet, scan_parquet_text, schema_names
from touchstone.ingest.adapters.spilled_rows import SpilledRows
from touchstone.ingest.adapters.table import (
    NAME_COLUMN,
    AdapterTable,
    Cells,
    RawReader,
    Record,
    RefusedRecordError,
    adapter_table,
    spill_records,
)
from touchstone.ingest.compressed import CSV_SUFFIXES, data_suffix, uncompressed_name
from touchstone.ingest.csv_rows import (
    LINE,
    ROW_ERROR,
    ROW_ERROR_KIND,
    SCRATCH_FORMAT,
    TextTable,
    open_table,
    raw_rows,
    read_header,
    read_rows,
    rename_columns,
)
from touchstone.ingest.dialect import usual_names, usual_notes
from touchstone.ingest.limits import MAX_KEYS, TOO_LARGE, limits, too_long
from touchstone.ingest.sources import is_named_fixes, model_of
from touchstone.ingest.unchanged import mark_of

_OID = "oid"
_MODEL_COLUMNS = (NAME_COLUMN, "model", "model_name", "model_name_or_path")
# Records with the same keys in the same order share their column names.
_MAX_SHAPES = 10_000
_OWN = (LINE, ROW_ERROR_KIND, ROW_ERROR)


def read_json(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a record per line, or a list of them, into rows of text cells."""
    head = Head(path, options)
    lists = _lists_of_attempts(head)
    renames, notes = _named(head.options, next(iter(lists.values()), []) or _keys(head))
    elements = partial(list_elements, shape={key: Each(Keep()) for key in lists} or None)
    by_line = not lists and not head.text.startswith("[")
    make = partial(line_records, path, "record") if by_line else partial(object_records, elements(path), "record")
    kept, raw = _json_rows(path, renames, make), raw_lines if by_line else raw_values(elements)
    model = _model_around(path, lists) if lists else None
    table = _table(path, "jsonl", kept.rows(), kept.columns[len(_OWN) :], raw, model)
    return replace(table, kept=kept, notes=notes)


def read_parquet(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Scan a Parquet file as rows of text cells; it may be larger than memory."""
    mark = mark_of(path)
    renames, notes = _named(options or ReadOptions(), schema_names(path))
    rows, names = _parquet_rows(path, renames)
    return replace(_table(path, "parquet", rows, names, raw_parquet), scanned=mark, notes=notes)


def read_csv(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a CSV of several models into rows of text cells."""
    opened = _open_csv(path, options or ReadOptions())
    folder = tempfile.TemporaryDirectory(prefix="touchstone-rows-", ignore_cleanup_errors=True)
    rows = Path(folder.name, "rows.parquet")
    read_rows(opened, lambda found: found.sink_parquet(rows, **SCRATCH_FORMAT))

    def raw(_: Path, lines: set[int]) -> dict[int, str]:
        return raw_rows(opened, lines)

    table = _table(path, "csv", pl.scan_parquet(rows, glob=False), opened.columns, raw)
    return replace(table, kept=folder, notes=opened.notes)


def _open_csv(path: Path, options: ReadOptions) -> TextTable:
    return open_table(path, _renames(options), _csv_columns())


def _csv_columns() -> set[str]:
    """The columns that mean something, however they are spelled."""
    from touchstone.ingest.attempts import fixes_columns

    return fixes_columns() | {"model"}


def read_problem_table(path: Path, renames: Mapping[str, str]) -> AdapterTable | None:
    """A list of problems as JSON Lines or Parquet; None for a file with another name."""
    suffix, mark = data_suffix(path), mark_of(path)
    if suffix == ".parquet":
        rows, names = _parquet_rows(path, renames)
        return AdapterTable(path, "parquet", tuple(names), rows, raw_parquet, scanned=mark)
    if suffix in LINES_SUFFIXES:
        kept = _json_rows(path, renames, partial(line_records, path, "record"))
        return AdapterTable(path, "jsonl", tuple(kept.columns[len(_OWN) :]), kept.rows(), raw_lines, kept=kept)
    return None


def _json_rows(
    path: Path,
    renames: Mapping[str, str],
    make: Callable[[Callable[[Cells, dict[str, object]], None]], Iterable[Record]],
) -> SpilledRows:
    """The rows of the records that are made with a function which fills the cells of each."""
    shapes: dict[tuple[str, ...], tuple[str, ...]] = {}
    most = limits().cell_bytes

    def fill(cells: Cells, record: dict[str, object]) -> None:
        found = _cells(record, renames, shapes)
        if any(cell and len(cell) > most // 4 and len(cell.encode()) > most for cell in found.values()):
            raise RefusedRecordError(TOO_LARGE, too_long("a cell", limits().cell_mb, "cell_mb"))
        cells |= found

    found = spill_records(path, make(fill))
    if len(found.columns) == len(_OWN):
        first = found.rows().select(LINE, ROW_ERROR).head(1).collect().rows()
        why = f"no line is a record (line {first[0][0]}: {first[0][1]})" if first else "the file is empty"
        raise InputFileError(f"{path}: {why}")
    return found


def _parquet_rows(path: Path, renames: Mapping[str, str]) -> tuple[pl.LazyFrame, Sequence[str]]:
    names = rename_columns(schema_names(path), renames)
    return scan_parquet_text(path, names), names


def why_not_plain(path: Path, options: ReadOptions) -> str:
    """Which column a plain table lacks; empty if the file is not such a table."""
    try:
        head = Head(path, options)
        lines = head.first_record if data_suffix(path) in LINES_SUFFIXES else {}
        names = schema_names(path) if head.data.startswith(MAGIC) else list(lines)
        table = exported_table(names)
        if table is not None:
            return f"an export of the table {table}, which is never read back"
        if names:
            _require(path, rename_columns(names, _named(options, names)[0]))
    except InputFileError as error:
        return reason_of(error, path)
    return ""


def exported_table(columns: Collection[str]) -> str | None:
    """The table of a run that a file with these columns is an export of; None if it is none."""
    from touchstone.tables import TABLES

    # Tables without a model have few columns, which an input file may also have.
    own = (name for name, table in TABLES.items() if "model" in table.dtypes)
    return next((name for name in own if set(columns).issuperset(TABLES[name].dtypes)), None)


def _is_table(head: Head, names: Sequence[str]) -> bool:
    if exported_table(names) is not None:
        return False
    try:
        _require(head.path, rename_columns(names, _named(head.options, names)[0]))
    except InputFileError:
        return False
    return True


def _recognizes_parquet(head: Head) -> bool:
    if not head.data.startswith(MAGIC):
        return False
    try:
        return _is_table(head, schema_names(head.path))
    except InputFileError:
        # Reading it says what is wrong.
        return True


def _recognizes_json(head: Head) -> bool:
    return (bool(keys := _keys(head)) and _is_table(head, keys)) or bool(_lists_of_attempts(head))


def _lists_of_attempts(head: Head) -> dict[str, list[str]]:
    """The list in an object that is a table of attempts, with the keys of its records; none if several are."""
    lists: dict[str, list[str]] = {}
    for path in sorted(head.key_paths):
        if len(path) == 3 and path[1] == LIST and path[0] != LIST:
            lists.setdefault(path[0], []).append(path[2])
    # `compilation` and what follows from it are the outcome of forgetest.
    found = {key: names for key, names in lists.items() if "compilation" not in names and _is_table(head, names)}
    return found if len(found) == 1 else {}


def _model_around(path: Path, lists: Collection[str]) -> str | None:
    """The model that an object around a list names."""
    *_, (_, document) = skim_document(path, {key: Each({}) for key in lists})
    return next((name for key in _MODEL_COLUMNS if (name := scalar_of(inside(document).get(key)))), None)


def _keys(head: Head) -> list[str]:
    """The keys of the record on the first line, or of the records in a list."""
    return list(head.first_record) or sorted(path[1] for path in head.key_paths if len(path) == 2 and path[0] == LIST)


def has_several_models(path: Path, options: ReadOptions | None = None) -> bool:
    """Whether a CSV has attempts of several models. Only a file with a column of models is read to the end."""
    head = Head(path, options)
    if head.is_folder or data_suffix(path) not in CSV_SUFFIXES:
        return False
    try:
        columns = read_header(path, _renames(head.options), _csv_columns())
        named = [name for name in _MODEL_COLUMNS if name != NAME_COLUMN or not is_named_fixes(path)]
        column = next((name for name in named if name in columns), None)
        if column is None or not _is_table(head, columns):
            return False
        table = _open_csv(path, head.options)
        names = read_rows(table, lambda rows: rows.select(pl.col(column).drop_nulls().unique()).collect())
        return names.height > 1
    except InputFileError:
        return False


CSV = Adapter(
    "csv",
    "a CSV table of attempts of several models",
    lambda head: has_several_models(head.path, head.options),
    read_csv,
)
PARQUET = Adapter("parquet", "a Parquet table of attempts", _recognizes_parquet, read_parquet)
JSON_LINES = Adapter("jsonl", "a JSON table of attempts", _recognizes_json, read_json)


def _require(path: Path, columns: Sequence[str]) -> None:
    # Not at the top: `fixes` imports the tables of adapters.
    from touchstone.ingest.attempts import require_fixes_columns

    require_fixes_columns(path, columns, _OID)


def _renames(options: ReadOptions) -> dict[str, str]:
    """The renamed columns, and the one that names the problem as `oid`, which a column of that name makes way for."""
    key = options.problem_key
    if key == _OID:
        return dict(options.columns)
    renames = {theirs: _OID if ours == key else ours for theirs, ours in options.columns.items() if ours != _OID}
    return renames if _OID in renames.values() else renames | {key: _OID}


def _named(options: ReadOptions, columns: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The renamed columns, with those of these columns that other tools call otherwise, and a note on them."""
    renames = _renames(options)
    usual = usual_names(rename_columns(columns, renames), _csv_columns())
    return renames | usual, usual_notes(usual)


def _cells(
    record: Mapping[str, object], renames: Mapping[str, str], shapes: dict[tuple[str, ...], tuple[str, ...]]
) -> Cells:
    keys = tuple(record)
    names = shapes.get(keys)
    if names is None:
        if len(shapes) >= _MAX_SHAPES:
            shapes.clear()
        names = shapes[keys] = rename_columns([text_of(key) or "column" for key in keys], renames)
        if len(set(names)) < len(names):
            raise RefusedRecordError("ragged", "two keys have the same name")
    return {name: text_of(value) for name, value in zip(names, record.values(), strict=True)}


def _table(
    path: Path, kind: str, rows: pl.LazyFrame, names: Sequence[str], raw_reader: RawReader, model: str | None = None
) -> AdapterTable:
    """Complete rows of cells with their model; raises if a column is missing that every attempt needs."""
    if len(names) > MAX_KEYS:
        raise InputFileError(f"{path}: {len(names):,} columns; at most {MAX_KEYS:,} are read")
    _require(path, names)
    column = next((name for name in _MODEL_COLUMNS if name in names), None)
    if column is None:
        name = uncompressed_name(path).removesuffix(".json")
        rows = rows.with_columns(pl.lit(model or model_of(path.with_name(name))).alias(NAME_COLUMN))
    else:
        missing = pl.when(pl.col(column).is_null() & pl.col(ROW_ERROR).is_null())
        rows = rows.with_columns(
            pl.coalesce(ROW_ERROR_KIND, missing.then(pl.lit("bad_id"))).alias(ROW_ERROR_KIND),
            pl.coalesce(ROW_ERROR, missing.then(pl.lit(f"the {column} is missing"))).alias(ROW_ERROR),
            pl.col(column).alias(NAME_COLUMN),
        )
    columns = tuple(dict.fromkeys((*(name for name in names if name != column), NAME_COLUMN)))
    return adapter_table(path, kind, columns, rows, raw_reader)
