"""The table that every adapter produces, and the names of models and columns in it.

JSON as text cells belongs in `json_values`; what a key of one system means belongs in that system's module.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.csv_rows import LINE, ROW_ERROR

ROW_ERROR_KIND = "__kind"
MODEL = "__model"
OWN_COLUMNS = (LINE, ROW_ERROR_KIND, ROW_ERROR, MODEL)
NAME_COLUMN = "llm_name"

_MAX_NAME_LENGTH = 100
_MAX_COLUMNS = 1000
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._+-]")

Cells = dict[str, str | None]
RawReader = Callable[[Path, set[int]], dict[int, str]]


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
class AdapterTable:
    """The records of one file as rows of text cells, before any rule has been applied.

    Internal columns of the frame: `__line` is where the record starts; `__kind` and `__broken` are the kind and the
    reason of a record that the adapter refuses; `__model` is the safe name of the model, null if it is unknown. The
    others are `columns`, all text.
    """

    path: Path
    format: str
    columns: tuple[str, ...]
    frame: pl.DataFrame
    raw_reader: RawReader = field(repr=False, compare=False)
    # Whether each problem belongs to a single tier, as the configurations of a task do.
    tier_bound: bool = False
    # The files that were read, if `path` is a folder or others beside it were needed.
    files: tuple[Path, ...] = ()
    figures: tuple[ReportedFigure, ...] = ()
    # What a user should know about the file: what was left out, and which of several readings was chosen.
    notes: tuple[str, ...] = ()

    def models(self) -> list[str]:
        """The safe names of the models in the file."""
        return self.frame[MODEL].drop_nulls().unique().sort().to_list()

    def for_model(self, model: str) -> "AdapterTable":
        """The table with the rows of one model."""
        return replace(self, frame=self.frame.filter(pl.col(MODEL) == model))

    def raw(self, lines: set[int]) -> dict[int, str]:
        """The text of the records at these lines, truncated to `MAX_RAW_LENGTH` characters."""
        return self.raw_reader(self.path, lines) if lines else {}


@dataclass
class Record:
    """One record of a file: its cells, or why it is refused."""

    line: int
    cells: Cells = field(default_factory=dict)
    kind: str | None = None
    reason: str | None = None


class RefusedRecordError(Exception):
    """Raised for a record that cannot become an attempt; the other records of the file are still read."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


def safe_model_name(name: str) -> str:
    """A name for the model that is valid as a partition key; see `sources.check_name`.

    >>> safe_model_name("openai/gpt-4o"), safe_model_name("llama3:8b"), safe_model_name(".hidden")
    ('openai_gpt-4o', 'llama3_8b', '_.hidden')
    """
    safe = _NOT_ALLOWED.sub("_", name)
    if safe[:1] in ("", ".", "+", "-"):
        safe = "_" + safe
    return safe[:_MAX_NAME_LENGTH]


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
    notes: Sequence[str] = (),
) -> AdapterTable:
    """Records as a table: the mapped columns first, then the others; `shared` are cells that all records have."""
    shared = shared or {}
    cells = [record.cells for record in records]
    columns = tuple(dict.fromkeys((*native, *shared, *_all_names(cells))))
    if len(columns) > _MAX_COLUMNS:
        raise InputFileError(
            f"{path}: its records have {len(columns)} different keys; at most {_MAX_COLUMNS} can be read"
        )
    data: dict[str, list[int] | list[str | None]] = {
        LINE: [record.line for record in records],
        ROW_ERROR_KIND: [record.kind for record in records],
        ROW_ERROR: [record.reason for record in records],
    }
    data |= {name: [each.get(name) for each in cells] for name in columns if name not in shared}
    data |= {name: [value] * len(cells) for name, value in shared.items()}
    schema = {LINE: pl.Int64, **dict.fromkeys((ROW_ERROR_KIND, ROW_ERROR, *columns), pl.String)}
    table = adapter_table(path, format_name, columns, pl.DataFrame(data, schema=schema), raw_reader)
    return replace(table, files=tuple(files), figures=tuple(figures), notes=tuple(notes))


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
    frame: pl.DataFrame,
    raw_reader: RawReader,
    *,
    tier_bound: bool = False,
) -> AdapterTable:
    """Complete a frame with its `__model` column; rows of models that would share a safe name are refused."""
    if frame.is_empty():
        # Without rows there is no model under which the file could be reported.
        raise InputFileError(f"{path}: the file holds no results")
    safe = {name: safe_model_name(name) for name in frame[NAME_COLUMN].unique() if name and name.strip()}
    names: dict[str, list[str]] = {}
    for name in sorted(safe):
        names.setdefault(safe[name], []).append(name)
    owner = {name: short for name, short in safe.items() if len(names[short]) == 1}
    clash = {name: _clash_reason(names[short], short) for name, short in safe.items() if name not in owner}
    given = frame[NAME_COLUMN]
    model = pl.Series(MODEL, [owner.get(name) for name in given], dtype=pl.String)
    clashes = pl.Series("clash", [clash.get(name) for name in given], dtype=pl.String)
    kind = pl.when(clashes.is_not_null()).then(pl.lit("bad_id"))
    frame = frame.with_columns(
        pl.coalesce(pl.col(ROW_ERROR_KIND), kind).alias(ROW_ERROR_KIND),
        pl.coalesce(pl.col(ROW_ERROR), clashes).alias(ROW_ERROR),
        model,
    )
    return AdapterTable(path, format_name, columns, frame.select(*OWN_COLUMNS, *columns), raw_reader, tier_bound)


def _clash_reason(names: list[str], short: str) -> str:
    listed = " and ".join(repr(name) for name in names[:3]) + (" and others" if len(names) > 3 else "")
    return f"the models {listed} would share the name '{short}'; rename all but one"
