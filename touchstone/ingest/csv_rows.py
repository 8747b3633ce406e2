"""CSV bytes to rows of text, with the line that each row starts on. Nothing is inferred or converted here.

There are two readers with the same result. A *plain* file is UTF-8 without quotes and has exactly as many commas as its
lines need, so a row is a line and Polars can scan it in parallel; Polars rejects rows that are too long, so if the
total is right, no row is too short either. Any other file is read by Python's csv module, which knows where each row
starts and reads on after a ragged row. The meaning of cells belongs in `cells`.
"""

import codecs
import csv
import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

import polars as pl
from polars.io.plugins import register_io_source

from touchstone.errors import InputFileError
from touchstone.ingest.compressed import STILL_WRITTEN, open_input, open_text
from touchstone.ingest.dialect import (
    COMMA,
    UTF8,
    UTF_16,
    dialect_notes,
    encoding_of,
    found_columns,
    is_utf_16,
    separator_of,
    usual_names,
    usual_notes,
)
from touchstone.ingest.limits import MAX_COLUMNS, TOO_LARGE, limits, too_long
from touchstone.regular_files import require_regular

LINE = "__line"
ROW_ERROR = "__broken"
ROW_ERROR_KIND = "__kind"
MAX_RAW_LENGTH = 2000
# How many columns a message lists.
_CHUNK = 1 << 20
_BATCH_ROWS = 20_000
_BATCH_LENGTH = 64 << 20
# Of Parquet files that are read once and removed. To write a group of rows takes several times its size.
SCRATCH_FORMAT: Mapping[str, Any] = {"compression": "lz4", "statistics": False, "row_group_size": 10_000}

_SURROGATE = re.compile("[\ud800-\udfff]")
_COMPARED, _AGAIN = 2, "repeats the header"
_RESERVED = re.compile(r"__.*|\*|\^.*\$", re.DOTALL)

Row = tuple[int | str | None, ...]
Result = TypeVar("Result")

csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


@dataclass(frozen=True)
class TextTable:
    """A CSV file with its header; `plain` says which reader it needs, `lines` and `size` count lines and bytes.

    `complete` says whether the last line ends: a file that is being written may end anywhere. `notes` say what was
    assumed to read it. `header` has the first names as they are written; such a row is that of an appended file.
    """

    path: Path
    columns: tuple[str, ...]
    plain: bool
    lines: int
    size: int = 0
    complete: bool = True
    separator: str = COMMA
    encoding: str = UTF8
    notes: tuple[str, ...] = ()
    header: tuple[str, ...] = ()


@dataclass
class _ByteCounts:
    """Counts from one pass over the bytes of a file."""

    utf8: bool = True
    quotes: bool = False
    separators: int = 0
    newlines: int = 0
    returns: int = 0
    paired_returns: int = 0
    last_byte: int = 10
    size: int = 0
    # Bytes since the last line end, and the longest line that spans chunks.
    unended: int = 0
    longest: int = 0

    @property
    def lines(self) -> int:
        return self.newlines + (self.last_byte != 10)

    def is_plain(self, width: int) -> bool:
        fits = self.separators == self.lines * (width - 1) and self.longest <= limits().cell_bytes
        # Polars does not notice one empty cell too many at the end of a file without a last line end.
        return fits and not self.quotes and self.returns == self.paired_returns and self.last_byte != ord(",")

    def measure_lines(self, buffer: bytearray, size: int) -> None:
        """Add a chunk to the length of the longest line."""
        first = buffer.find(b"\n", 0, size)
        self.longest = max(self.longest, self.unended + (size if first < 0 else first))
        self.unended = self.unended + size if first < 0 else size - 1 - buffer.rfind(b"\n", 0, size)


def open_table(path: Path, renames: Mapping[str, str] | None = None, known: Collection[str] = ()) -> TextTable:
    """Scan the bytes and the header of a CSV file; raises `InputFileError` if it is not one.

    `renames` maps their column names to ours. If `known` names are given, other separators and encodings are read too,
    and a column that spells one of these names otherwise gets that name; the notes say so.
    """
    with readable(path):
        counts = _count_bytes(path)
        encoding = UTF8 if counts.utf8 else _other_encoding(path, known)
    columns, separator, named, header = _read_header(path, renames, known, encoding)
    # Polars opens no file whose name is not UTF-8.
    is_usual = separator == COMMA and encoding == UTF8 and not _SURROGATE.search(str(path))
    plain = is_usual and counts.is_plain(len(columns))
    complete, notes = counts.last_byte == 10, (*dialect_notes(separator, encoding), *named)
    return TextTable(path, columns, plain, counts.lines, counts.size, complete, separator, encoding, notes, header)


def read_header(path: Path, renames: Mapping[str, str] | None = None, known: Collection[str] = ()) -> tuple[str, ...]:
    """The column names of a CSV file, as `open_table` calls them; raises `InputFileError` if there are none."""
    try:
        return _read_header(path, renames, known, UTF8)[0]
    except UnicodeDecodeError:
        with readable(path):
            encoding = _other_encoding(path, known)
        return _read_header(path, renames, known, encoding)[0]


def _other_encoding(path: Path, known: Collection[str]) -> str:
    encoding = encoding_of(path)
    if not known and encoding != UTF8:
        raise InputFileError(f"{path}: not UTF-8; save it as UTF-8")
    return encoding


def _read_header(
    path: Path, renames: Mapping[str, str] | None, known: Collection[str], encoding: str
) -> tuple[tuple[str, ...], str, tuple[str, ...], tuple[str, ...]]:
    """The names of the columns, the separator, notes, and the first names as they are written."""
    try:
        with readable(path), open_text(path, encoding) as file:
            lines = _bounded_lines(path, file)
            first = next(lines, "")
            separator = separator_of(path, first) if known else COMMA
            header = next(csv.reader(itertools.chain([first], lines), delimiter=separator), [])
    except csv.Error as error:
        raise InputFileError(f"{path}: the header cannot be read ({error})") from None
    if not any(name.strip() for name in header):
        raise InputFileError(f"{path}: the file is empty; it must start with a header line")
    if len(header) > MAX_COLUMNS:
        raise InputFileError(f"{path}: the header has {len(header):,} columns; at most {MAX_COLUMNS:,} are read")
    columns = tuple(name.strip() or f"column_{place}" for place, name in enumerate(header, start=1))
    twice = next((name for name, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise InputFileError(f"{path}: the column '{twice}' appears twice in the header")
    named = rename_columns(columns, renames or {})
    usual = usual_names(named, known)
    return tuple(usual.get(name, name) for name in named), separator, usual_notes(usual), tuple(header[:_COMPARED])


def rename_columns(columns: Sequence[str], renames: Mapping[str, str]) -> tuple[str, ...]:
    """Column names as Touchstone calls them: `renames` maps theirs to ours. A name that is taken over gets another one.

    >>> rename_columns(["task", "oid", "ok"], {"task": "oid", "ok": "passed", "trial": "iteration_id"})
    ('oid', 'input_oid', 'passed')
    """
    given = {renames[name] for name in columns if name in renames}
    names: list[str] = []
    for name in columns:
        ours = renames.get(name, name)
        is_taken = name not in renames and name in given
        names.append(unused_column_name(name, (*columns, *given, *names)) if is_taken else ours)
    return _without_internal_names(tuple(names))


def unused_column_name(name: str, taken: Collection[str]) -> str:
    """A name for an input column whose own name is reserved: `input_` in front, as often as needed.

    >>> unused_column_name("model", ["oid", "model"]), unused_column_name("model", ["model", "input_model"])
    ('input_model', 'input_input_model')
    """
    free = f"input_{name}"
    while free in taken:
        free = f"input_{free}"
    return free


def _without_internal_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Rename columns that start with two underscores, which are internal, and those that Polars takes for patterns."""
    taken = set(columns)
    names = []
    for name in columns:
        names.append(unused_column_name(name, taken) if _RESERVED.fullmatch(name) else name)
        taken.add(names[-1])
    return tuple(names)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors of opening a file into an `InputFileError` of one line; refuse what is not a regular file."""
    try:
        require_regular(path)
        yield
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputFileError(f"{path}: is a folder, not a file") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None


def decoded(path: Path, data: bytes, offset: int = 0) -> str:
    """Decode bytes that start at this offset of the file; a byte order mark at its start is dropped."""
    try:
        return data.decode("utf-8-sig" if offset == 0 else "utf-8")
    except UnicodeDecodeError as error:
        if offset == 0 and is_utf_16(data):
            raise InputFileError(f"{path}: {UTF_16}") from None
        raise InputFileError(f"{path}: not UTF-8 (at byte {offset + error.start}); save it as UTF-8") from None


def require_columns(path: Path, columns: Sequence[str], *names: str) -> None:
    """Raise `InputFileError` if one of the named columns is missing."""
    missing = [name for name in names if name not in columns]
    if missing:
        noun = "column" if len(missing) == 1 else "columns"
        raise InputFileError(f"{path}: missing {noun} {', '.join(missing)} {found_columns(columns)}")


def plain_rows(table: TextTable) -> pl.LazyFrame:
    """The rows of a plain file, scanned by Polars. Collecting raises a Polars error if a row is too long."""
    frame = scan_text([table.path], table.columns, row_index_name=LINE, row_index_offset=2)
    named = zip(table.columns, table.header, strict=False)
    again = pl.when(pl.all_horizontal(pl.col(name).eq_missing(pl.lit(text or None)) for name, text in named))
    error = again.then(pl.lit("ragged")).alias(ROW_ERROR_KIND), again.then(pl.lit(_AGAIN)).alias(ROW_ERROR)
    return frame.with_columns(pl.col(LINE).cast(pl.Int64), *error)


def scan_text(
    paths: Sequence[Path], columns: Sequence[str], types: Mapping[str, type[pl.DataType]] | None = None, **options: Any
) -> pl.LazyFrame:
    """The cells of plain files with these columns, as text unless `types` has another type."""
    schema = {name: (types or {}).get(name, pl.String) for name in columns}
    return pl.scan_csv(
        list(paths), schema=schema, has_header=False, skip_rows=1, quote_char=None, glob=False, **options
    )


def careful_rows(table: TextTable) -> pl.LazyFrame:
    """The rows of any file, read by the csv module; `ROW_ERROR` says why a row does not fit the header."""
    schema = {LINE: pl.Int64, **dict.fromkeys((ROW_ERROR_KIND, ROW_ERROR, *table.columns), pl.String)}

    def batches(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        left = n_rows
        for rows in _batched(_cells(table), batch_size or _BATCH_ROWS):
            frame = pl.DataFrame(rows, schema=schema, orient="row")
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            if predicate is not None:
                frame = frame.filter(predicate)
            yield frame if with_columns is None else frame.select(with_columns)
            if left == 0:
                return

    return register_io_source(batches, schema=schema)


def read_rows(table: TextTable, consume: Callable[[pl.LazyFrame], Result]) -> Result:
    """Pass the rows to `consume` by the fast reader if possible, else by the careful one."""
    if table.plain:
        try:
            return consume(plain_rows(table))
        except pl.exceptions.PolarsError:
            pass
    return consume(careful_rows(table))


def raw_rows(table: TextTable, lines: set[int]) -> dict[int, str]:
    """The text of the rows that start on these lines, truncated to `MAX_RAW_LENGTH` characters."""
    if not lines:
        return {}
    found: dict[int, str] = {}
    last = max(lines)
    for line, raw, _ in _records(table):
        if line in lines:
            found[line] = raw.rstrip("\r\n")[:MAX_RAW_LENGTH]
        if line >= last:
            break
    return found


def _count_bytes(path: Path) -> _ByteCounts:
    """One pass over the bytes: the counts that decide whether the file is plain."""
    import numpy as np  # Here, because many commands use this module's names and read no CSV.

    decoder = codecs.getincrementaldecoder("utf-8")()
    counts = _ByteCounts()
    buffer = bytearray(_CHUNK)
    view = np.frombuffer(buffer, dtype=np.uint8)
    with open_input(path) as file:
        while size := file.readinto(buffer):
            seen = view[:size]
            if counts.utf8 and (seen.max() > 127 or decoder.getstate() != (b"", 0)):
                try:
                    decoder.decode(buffer[:size])
                except UnicodeDecodeError:
                    counts.utf8 = False
            counts.quotes |= buffer.find(b'"', 0, size) >= 0
            counts.separators += int(np.count_nonzero(seen == 44))
            counts.newlines += int(np.count_nonzero(seen == 10))
            if counts.last_byte == 13 and buffer[0] == 10:
                counts.paired_returns += 1
            if buffer.find(b"\r", 0, size) >= 0:
                counts.returns += buffer.count(b"\r", 0, size)
                counts.paired_returns += buffer.count(b"\r\n", 0, size)
            counts.measure_lines(buffer, size)
            counts.last_byte = buffer[size - 1]
            counts.size += size
    counts.utf8 &= not decoder.getstate()[0]
    return counts


def _records(table: TextTable) -> Iterator[tuple[int, str, list[str] | csv.Error]]:
    """Every row after the header: the line it starts on, its text, and its cells or the error in them."""
    consumed: list[str] = []
    with open_text(table.path, table.encoding) as file:

        def recorded_lines() -> Iterator[str]:
            length = 0
            for text in _bounded_lines(table.path, file, start):
                length = len(text) if not consumed else length + len(text)
                if length > limits().row_bytes:
                    raise _too_long_row(table.path, start)
                consumed.append(text)
                yield text

        start = 1
        reader = csv.reader(recorded_lines(), strict=True, delimiter=table.separator)
        while True:
            consumed.clear()
            cells: list[str] | csv.Error
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if "unexpected end of data" in str(error):
                    raise InputFileError(
                        f"{table.path}: the quote opened at line {start} is never closed; {STILL_WRITTEN}"
                    ) from None
                cells = error
            if start > 1:
                yield start, "".join(consumed), cells
            start += len(consumed)


def _bounded_lines(path: Path, file: TextIO, start: int = 1) -> Iterator[str]:
    """The lines of a file, of which none is read that is longer than a row may be."""
    most = limits().row_bytes
    while text := file.readline(most + 1):
        if len(text) > most:
            raise _too_long_row(path, start)
        start += 1
        yield text


def _too_long_row(path: Path, line: int) -> InputFileError:
    return InputFileError(f"{path}, line {line}: " + too_long("the row", limits().row_mb, "row_mb"))


def _cells(table: TextTable) -> Iterator[tuple[int, Row]]:
    """The length and the cells of every row that is not blank."""
    width = len(table.columns)
    nothing = (None,) * width
    longest = limits().cell_bytes
    for line, raw, cells in _records(table):
        if isinstance(cells, csv.Error):
            yield len(raw), (line, "ragged", f"malformed quotes ({cells})", *nothing)
        elif len(raw) > longest // 4 and any(len(cell.encode()) > longest for cell in cells):
            yield 0, (line, TOO_LARGE, too_long("a cell", limits().cell_mb, "cell_mb"), *nothing)
        elif tuple(cells[:_COMPARED]) == table.header:
            yield len(raw), (line, "ragged", _AGAIN, *nothing)
        elif len(cells) == width:
            yield len(raw), (line, None, None, *(cell or None for cell in cells))
        elif raw.strip():
            yield len(raw), (line, "ragged", f"{len(cells)} cells where the header has {width}", *nothing)


def _batched(rows: Iterator[tuple[int, Row]], size: int) -> Iterator[list[Row]]:
    batch: list[Row] = []
    weight = 0
    for length, row in rows:
        batch.append(row)
        weight += length
        if len(batch) >= size or weight > _BATCH_LENGTH:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch
