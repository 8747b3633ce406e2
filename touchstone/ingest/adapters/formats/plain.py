"""Plain tables with the columns of the native fixes CSV: JSON (lines or a list), Parquet, CSVs of several models.

The list may be in an object, under any key, if it is the only such list there; the object may name the model. An
object of such records may have their problems as keys. A file may be a single record; if it is called after its
problem, its folder is the model.

Values become the text cells that a CSV would have: numbers of JSON as they were written and those of Parquet in their
shortest form, booleans as words, nested values as JSON; empty texts and NaN are null. The model is the file's name, as
for a CSV, unless there is a column `llm_name` or `model`: then the file may have several. A CSV that is named like a
fixes CSV and has one model is read as that, and keeps its `llm_name` as data. Columns are renamed first, as `columns`
of the configuration says.

A table may also have the outcome in a column that could be the state of a run (`status`), if all its words are outcomes
(`resolved`), or an answer or a count (`correct`, `plausible`), if all are true or false. The first row decides what is
tried. Several columns of outcomes may be models or criteria: none is read.
"""

import csv
import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NoReturn

import polars as pl

from touchstone.errors import InputFileError, reason_of
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head, NotEvaluatedError, ReadOptions
from touchstone.ingest.adapters.json_files import (
    LINES_SUFFIXES,
    line_records,
    list_elements,
    members_by_id,
    object_records,
    raw_lines,
    raw_values,
    read_document,
    scalar_of,
    text_of,
)
from touchstone.ingest.adapters.json_stream import Each, Keep
from touchstone.ingest.adapters.parquet_files import MAGIC, raw_parquet, scan_parquet_text, schema_names
from touchstone.ingest.adapters.table import (
    NAME_COLUMN,
    AdapterTable,
    Cells,
    NamedModel,
    RawReader,
    Record,
    RefusedRecordError,
    SpilledRows,
    adapter_table,
    model_of_name,
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
from touchstone.ingest.dialect import (
    MODEL_COLUMNS,
    letters,
    require_fixes_columns,
    separator_of,
    usual_names,
    usual_notes,
)
from touchstone.ingest.fix_columns import NATIVE_COLUMNS, has_attempts, has_outcomes
from touchstone.ingest.limits import MAX_KEYS, TOO_LARGE, limits, too_long
from touchstone.ingest.sources import is_named_fixes, mark_of, model_of

_OID = "oid"
_POINTER = "version https://git-lfs.github.com/spec/"
# Records with the same keys in the same order share their column names.
_MAX_SHAPES, _MANY_PATHS = 10_000, 5_000
_SHORT_ID = 3
_OWN = (LINE, ROW_ERROR_KIND, ROW_ERROR)
# The names of columns with an outcome or the state of a run, and the words that can only be an outcome.
_STATES = ("status", "result", "outcome", "verdict")
_NO_STATES = {"pass", "passed", "fail", "failed", "resolved", "unresolved", "solved", "unsolved"}
_NO_STATES |= {"correct", "incorrect"}
# The names of columns with an outcome, or with the right answer or a count. Plausible and correct are two criteria.
_ANSWERS, _NO_ANSWERS = ("correct", "pass", "plausible", "isplausible"), {"true", "false"}


def read_json(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a record per line, or a list or an object of them, into rows of text cells."""
    head, state = _with_state(Head(path, options))
    lists, by_id = _lists_of_attempts(head), _keys_by_id(head)
    alone = {} if lists or by_id else _lone_record(head)
    renames, notes = _named(head.options, by_id or next(iter(lists.values()), []) or _keys(head))
    around: dict[str, object] = {}
    elements: Callable[[Path], Iterable[tuple[int, object]]] = partial(
        list_elements, shape={key: Each(Keep()) for key in lists} or None, around=around
    )
    if by_id:
        elements = partial(members_by_id, name=head.options.problem_key)
    elif alone:
        elements = _only_element
    by_line = not (lists or by_id or alone or head.text.startswith("["))
    make = partial(line_records, path, "record") if by_line else partial(object_records, elements(path), "record")
    kept, raw = _json_rows(path, renames, make), raw_lines if by_line else raw_values(elements)
    columns = kept.columns[len(_OWN) :]
    model = next((name for key in MODEL_COLUMNS if (name := scalar_of(around.get(key)))), None)
    if (named := _folder_of(head, alone)) and not set(MODEL_COLUMNS).intersection(columns):
        model, notes = named.name, (*notes, named.note)
    table = _table(path, "jsonl", kept.rows(), columns, raw, model)
    return _require_outcomes(replace(table, kept=kept, notes=(*notes, *table.notes)), state)


def read_parquet(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Scan a Parquet file as rows of text cells; it may be larger than memory."""
    mark = mark_of(path)
    renames, notes = _named(options or ReadOptions(), schema_names(path))
    rows, names = _parquet_rows(path, renames)
    return replace(_table(path, "parquet", rows, names, raw_parquet), scanned=mark, notes=notes)


def read_csv(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read a CSV of several models into rows of text cells."""
    head, state = _with_state(Head(path, options))
    opened = _open_csv(path, head.options)
    folder = tempfile.TemporaryDirectory(prefix="touchstone-rows-", ignore_cleanup_errors=True)
    rows = Path(folder.name, "rows.parquet")
    read_rows(opened, lambda found: found.sink_parquet(rows, **SCRATCH_FORMAT))

    def raw(_: Path, lines: set[int]) -> dict[int, str]:
        return raw_rows(opened, lines)

    table = _table(path, "csv", pl.scan_parquet(rows, glob=False), opened.columns, raw)
    return _require_outcomes(replace(table, kept=folder, notes=(*opened.notes, *table.notes)), state)


def _open_csv(path: Path, options: ReadOptions) -> TextTable:
    return open_table(path, _renames(options), NATIVE_COLUMNS)


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
        records = head.first_record if data_suffix(path) in LINES_SUFFIXES else _keys_in_list(head)
        names = schema_names(path) if head.data.startswith(MAGIC) else list(records)
        table = exported_table(names)
        if table is not None:
            return f"an export of the table {table}, which is never read back"
        if names:
            require_fixes_columns(path, rename_columns(names, _named(options, names)[0]))
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
        require_fixes_columns(head.path, rename_columns(names, _named(head.options, names)[0]))
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


def _is_usual_json(head: Head) -> bool:
    is_table = bool(keys := _keys(head)) and _is_table(head, keys)
    return is_table or bool(_lists_of_attempts(head)) or bool(_keys_by_id(head))


def _keys_by_id(head: Head) -> list[str]:
    """The keys of the records that an object has by problem, after the one for the problem; none if it has others."""
    records: dict[str, set[str]] = {}
    for path in head.key_paths:
        records.setdefault(path[0], set()).update(path[1:2])
    shapes = Counter(map(frozenset, records.values()))
    others = sum(count for keys, count in shapes.items() if not _states_outcome(head, keys))
    # Of a large file the last one that was looked at may not be whole.
    is_whole = head.text.rstrip().endswith("}") and len(head.key_paths) < _MANY_PATHS
    names = sorted(set().union(*shapes)) if len(records) > 1 and others <= (not is_whole) else []
    return [head.options.problem_key, *names] if names else []


def _states_outcome(head: Head, keys: Iterable[str]) -> bool:
    names = [head.options.problem_key, *sorted(keys)]
    return _is_table(head, names) and has_outcomes(rename_columns(names, _named(head.options, names)[0]))


def _lists(head: Head) -> dict[str, list[str]]:
    """The lists of records in an object, with the keys of their records."""
    lists: dict[str, list[str]] = {}
    for path in sorted(head.key_paths):
        if len(path) == 3 and path[1] == LIST and LIST not in (path[0], path[2]):
            lists.setdefault(path[0], []).append(path[2])
    return lists


def _lists_of_attempts(head: Head) -> dict[str, list[str]]:
    """The list in an object that is a table of attempts, with the keys of its records; none if several are."""
    # `compilation` and what follows from it are the outcome of forgetest.
    found = {key: names for key, names in _lists(head).items() if "compilation" not in names and _is_table(head, names)}
    return found if len(found) == 1 else {}


def _keys_in_list(head: Head) -> list[str]:
    """The keys of the records in a list, or in the only list of an object."""
    lists = list(_lists(head).values())
    return lists[0] if len(lists) == 1 else _keys_of_records(head)


def _lone_record(head: Head) -> dict[str, object]:
    """The record that a whole .json file is; empty if it is something else."""
    if head.text[:1] != "{" or not head.name.endswith(".json"):
        return {}
    try:
        record = json.loads(head.text)
    except (ValueError, RecursionError):
        return {}
    return record if has_outcomes(_renamed(head, record)) else {}


def _only_element(path: Path) -> list[tuple[int, object]]:
    return [(1, read_document(path))]


def _folder_of(head: Head, record: Mapping[str, object]) -> NamedModel | None:
    """The folder of a file that is called after its only problem, as one of several results of a model."""
    oid = dict(zip(_renamed(head, record), record.values(), strict=True)).get(_OID)
    # A short one may also be the number of a model.
    is_named = isinstance(oid, str) and len(letters(oid)) > _SHORT_ID and letters(oid) in letters(head.name)
    return model_of_name(head.path, "") if is_named else None


def _keys(head: Head) -> list[str]:
    """The keys of the record on the first line or in the whole file, or of the records in a list."""
    return list(head.first_record) or _keys_of_records(head) or list(_lone_record(head))


def _keys_of_records(head: Head) -> list[str]:
    """The keys of the records in a list; none of a list of lists."""
    return sorted(path[1] for path in head.key_paths if len(path) == 2 and path[0] == LIST != path[1])


def _recognizes_csv(head: Head) -> bool:
    is_csv = not head.is_folder and data_suffix(head.path) in CSV_SUFFIXES
    named = named_models(head.path, head.options) if is_csv else 0
    return named > 1 or (is_csv and _states_outcome_in_words(head)) or (named == 1 and not is_named_fixes(head.path))


def named_models(path: Path, options: ReadOptions | None = None) -> int:
    """The number of models that a CSV of attempts names. Only a file with a column of models is read to the end."""
    head = Head(path, options)
    if head.is_folder or data_suffix(path) not in CSV_SUFFIXES:
        return 0
    try:
        columns = read_header(path, _renames(head.options), NATIVE_COLUMNS)
        named = [name for name in MODEL_COLUMNS if name != NAME_COLUMN or not is_named_fixes(path)]
        column = next((name for name in named if name in columns), None)
        if column is None or not _is_table(head, columns):
            return 0
        models = pl.col(column).filter(pl.col(ROW_ERROR).is_null()).drop_nulls().n_unique()
        found = read_rows(_open_csv(path, head.options), lambda rows: rows.select(models).collect())
        return int(found.item())
    except InputFileError:
        return 0


def _first_row(head: Head) -> dict[str, str]:
    """The words of the first row of a table, by the names that its columns have here; empty if it has none."""
    try:
        if head.text[:1] in ("{", "["):
            row = _first_record(head.text, head.text.index("{"))
            lists = list(_lists(head))
            if len(lists) == 1 and _OID not in _renamed(head, row):
                start = re.search(rf'"{re.escape(lists[0])}"\s*:\s*\[\s*(?=\{{)', head.text)
                row = _first_record(head.text, start.end()) if start else row
        else:
            mark = separator_of(head.path, head.text.partition("\n")[0])
            names, cells = islice(csv.reader(io.StringIO(head.text, newline=""), delimiter=mark), 2)
            row = dict(zip(map(str.strip, names), cells, strict=True))
    except (ValueError, RecursionError, csv.Error):
        return {}
    return {name: cell.strip().lower() for name, cell in zip(_renamed(head, row), row.values(), strict=True)}


def _first_record(text: str, start: int) -> dict[str, str]:
    first, _ = json.JSONDecoder().raw_decode(text, start)
    return {name: text_of(value) or "" for name, value in first.items()}


def _renamed(head: Head, row: Mapping[str, object]) -> tuple[str, ...]:
    return rename_columns(list(row), _named(head.options, list(row))[0])


def _states_outcome_in_words(head: Head) -> bool:
    row = _first_row(head)
    return _OID in row and exported_table(row) is None and _with_state(head)[1] is not None


def _with_state(head: Head) -> tuple[Head, str | None]:
    """The head with its column for a state read as the outcome, and that column, if the first row says so."""
    row = _first_row(head)
    answers, states = ([name for name in row if letters(name) in names] for names in (_ANSWERS, _STATES))
    found, allowed = (answers, _NO_ANSWERS) if answers else (states, _NO_STATES)
    if _is_usual_json(head) or has_attempts(row) or len(found) != 1 or row[found[0]] not in allowed:
        return head, None
    return Head(head.path, replace(head.options, columns={**head.options.columns, found[0]: "passed"})), found[0]


def _require_outcomes(table: AdapterTable, state: str | None) -> AdapterTable:
    """The table, if all words of the column for a state are outcomes."""
    if state is None:
        return table
    with table.reading():
        words = set(table.rows.select(_word("passed").drop_nulls().unique()).collect(engine="streaming")["passed"])
    is_answer = letters(state) in _ANSWERS
    if not words <= (_NO_ANSWERS if is_answer else _NO_STATES) or words <= {"fail", "failed"}:
        meaning = "an answer or a count" if is_answer else "the state of a run"
        reason = f"'{state}' ({', '.join(sorted(words)[:5])}) may be {meaning}"
        raise NotEvaluatedError(f"{table.path}: {reason}; if it is the outcome, call it passed", "unknown")
    return replace(table, notes=(*table.notes, f"the words of '{state}' are read as outcomes"))


def _word(column: str) -> pl.Expr:
    word = pl.col(column).str.strip_chars().str.to_lowercase()
    return pl.when(word != "").then(word).alias(column)


def _refuse_pointer(path: Path, _: ReadOptions) -> NoReturn:
    raise InputFileError(f"{path}: a Git LFS pointer, the file itself is not here; download it with `git lfs pull`")


# Repositories of results keep their large files in LFS, so any format may come as a pointer of three lines.
GIT_LFS = Adapter("git-lfs", "a Git LFS pointer", lambda head: head.text.startswith(_POINTER), _refuse_pointer)
CSV = Adapter("csv", "a CSV table of attempts", _recognizes_csv, read_csv)
PARQUET = Adapter("parquet", "a Parquet table of attempts", _recognizes_parquet, read_parquet)
JSON_LINES = Adapter(
    "jsonl", "a JSON table of attempts", lambda head: _is_usual_json(head) or _states_outcome_in_words(head), read_json
)


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
    usual = usual_names(rename_columns(columns, renames), NATIVE_COLUMNS)
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
    require_fixes_columns(path, names)
    column = next((name for name in MODEL_COLUMNS if name in names), None)
    if column is None:
        name = uncompressed_name(path).removesuffix(".json")
        rows = rows.with_columns(pl.lit(model or model_of(path.with_name(name))).alias(NAME_COLUMN))
    else:
        missing = pl.when(pl.col(column).is_null() & pl.col(ROW_ERROR).is_null())
        rows = rows.with_columns(
            pl.coalesce(ROW_ERROR_KIND, missing.then(pl.lit("bad_id"))).alias(ROW_ERROR_KIND),
            pl.coalesce(ROW_ERROR, missing.then(pl.lit(f"the {column} is missing"))).alias(ROW_ERROR),
            pl.when(pl.col(ROW_ERROR).is_null()).then(column).alias(NAME_COLUMN),
        )
    columns = tuple(dict.fromkeys((*(name for name in names if name != column), NAME_COLUMN)))
    return adapter_table(path, kind, columns, rows, raw_reader)
