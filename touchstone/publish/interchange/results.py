"""The attempts that every format is made of, the folder that it is written to, and Touchstone's own formats."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, groupby
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.ingest.adapters.exported import COLUMNS
from touchstone.ingest.fix_columns import FIX_COLUMNS
from touchstone.ingest.sources import model_of
from touchstone.metrics.keys import without_excluded
from touchstone.progress import track
from touchstone.publish.export import scan_table
from touchstone.publish.formats import saving_folder
from touchstone.storage.files import file_key, table_file
from touchstone.storage.snapshots import FOLDER
from touchstone.storage.store import PUBLISHED_NAMES
from touchstone.vocabulary import PASS_CLASS

KEY = ["model", "tier", "oid", "iteration_id"]
STATUS = "outcome_status"
_BATCH_ROWS = 20_000
# File systems take 255 bytes.
_MAX_STEM = 150

NUMBER = pl.col("iteration_id").cast(pl.Int64, strict=False)
_ORDER = ("oid", NUMBER, "iteration_id")

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """The published tables of a run."""

    tables_dir: Path
    # Called with the number of attempts that were written.
    advance: Callable[[int], None] = lambda _: None

    def rows(self, model: str) -> pl.LazyFrame:
        """Every attempt with the outcome that counts, which validation may have found, in order of its key."""
        return self._joined(model).sort("tier", *_ORDER)

    def _joined(self, model: str) -> pl.LazyFrame:
        attempts, outcomes = (self._scan(table, model) for table in ("attempts", "outcomes"))
        counting = without_excluded(outcomes).select(*KEY, "passed", pl.col("status").alias(STATUS))
        return attempts.drop("passed").join(counting, on=KEY)

    def attempts(self, model: str) -> pl.LazyFrame:
        """The rows of all other formats: the outcome, the fix, a place among the attempts, and all that is carried."""
        rows = _without_contradictions(self._joined(model)).drop("cluster", "only_tier", "started_at", strict=False)
        rows = rows.join(self.table("problems").select("oid", "cluster", "only_tier"), on="oid", how="left")
        present, nothing = rows.collect_schema().names(), pl.lit(None, pl.String)
        fixes = [pl.col(name) for name in FIX_COLUMNS if name in present]
        made = {
            "started_at": pl.col("attempted_on"),
            "error": pl.col("error") if "error" in present else nothing,
            "fix": pl.coalesce(*fixes, nothing),
            "place": place_over("tier", "oid"),
        }
        return rows.with_columns(**made).select("model", *COLUMNS, "passed", STATUS, "fix", "place")

    def stream(self, rows: pl.LazyFrame) -> Iterator[Row]:
        """Rows in their order, of which a bounded number is in memory as Python objects."""
        for batch in rows.collect_batches(maintain_order=True, chunk_size=_BATCH_ROWS, engine="streaming"):
            yield from batch.iter_rows(named=True)
            self.advance(batch.height)

    def files(
        self, rows: pl.LazyFrame, by: Sequence[str], order: Sequence[str | pl.Expr] = _ORDER
    ) -> Iterator[tuple[Row, Iterator[Row]]]:
        """The attempts of each file: those that agree in `by`. Before them come the values and counts of the file."""
        passed = pl.col("passed")
        counts = rows.group_by(by).agg(
            pl.len().alias("total"),
            passed.sum().alias("passes"),
            passed.not_().sum().alias("failures"),
            passed.null_count().alias("undecided"),
        )
        known = {tuple(row[name] for name in by): row for row in counts.collect().iter_rows(named=True)}
        ordered = self.stream(rows.sort(*by, *order))
        for key, own in groupby(ordered, key=lambda row: tuple(row[name] for name in by)):
            yield known[key], own

    def attempt_files(self, folder: Path, suffix: str, slash: str = "/") -> Iterator[tuple[Path, Row, Iterator[Row]]]:
        """A new file for every model, tier and attempt, as `files` has them; `slash` is how their names write one."""
        names = FileNames()
        for model in self.models():
            for file, rows in self.files(self.attempts(model).drop("fix"), ["tier", "place"]):
                label = self.label(model.replace("/", slash), file["tier"])
                name = names.new(*label, end=f".attempt-{file['place']}.{suffix}")
                yield folder / name, {"model": model} | file, rows

    def label(self, model: str, tier: str) -> list[str]:
        """The beginning of a file name: the model, and the tier if there are several."""
        return [model, tier] if self._has_tiers else [model]

    @cached_property
    def _has_tiers(self) -> bool:
        tiers = self.table("attempts").select(pl.col("tier").n_unique())
        return bool(tiers.collect(engine="streaming").item() > 1)

    def _scan(self, table: str, model: str) -> pl.LazyFrame:
        """The part of one model: with a thousand models, each is looked up in its own file."""
        return pl.scan_parquet(table_file(self.tables_dir / table / f"{file_key(model)}.parquet"), glob=False)

    def models(self) -> list[str]:
        """The models that have attempts."""
        names = scan_table(self.tables_dir, "attempts", ["model"]).unique().collect(engine="streaming")
        return names["model"].sort().to_list()

    def table(self, name: str) -> pl.LazyFrame:
        """Any other table of the run."""
        return scan_table(self.tables_dir, name)


# Writes the files of one format into an empty folder, and says what a user should know about them.
Writer = Callable[[Run, Path], list[str]]


def save_folder(run: Run, path: Path, write: Writer) -> list[str]:
    """Write a folder atomically: beside its place first, renamed when it is complete. Returns the notes."""
    attempts = run.table("attempts").select(pl.len()).collect(engine="streaming").item()
    with saving_folder(path) as scratch, track("attempts", attempts) as advance:
        return write(replace(run, advance=advance), scratch)


class FileNames:
    """Names of new files from names that nobody has checked: safe, short, and each once, also where case is ignored."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, *parts: str, end: str = "") -> str:
        """The name for these parts.

        >>> names = FileNames()
        >>> names.new("a/b", "T0"), names.new("m", end=".json"), names.new("M", end=".json")
        ('a%2Fb@T0', 'm.json', 'M~2.json')
        """
        stem = "@".join(map(file_key, parts))[:_MAX_STEM]
        candidates = (f"{stem}{'' if number == 1 else f'~{number}'}{end}" for number in count(1))
        name = next(each for each in candidates if each.lower() not in self._taken)
        self._taken.add(name.lower())
        return name


def write_pieces(path: Path, start: str, pieces: Iterable[str], end: str, between: str = ",\n") -> None:
    """Write a long file piece by piece."""
    with path.open("w", encoding="utf-8") as file:
        file.write(start)
        for place, piece in enumerate(pieces):
            file.write((between if place else "") + piece)
        file.write(end)


def place_over(*group: str) -> pl.Expr:
    """The place of an attempt among those of a group, from 1."""
    return pl.int_range(1, pl.len() + 1).over(group, order_by=[NUMBER, "iteration_id"])


def name_in_suite(by: Sequence[str]) -> pl.Expr:
    """A problem's name without the suite in front, in groups of which every problem has it there."""
    rest = pl.col("oid").str.strip_prefix(pl.format("{}/", "suite"))
    is_part = (rest != pl.col("oid")) & (rest.str.strip_chars() != "")
    return pl.when(is_part.all().over(by)).then(rest).otherwise("oid")


def carried(row: Row) -> Row:
    """The columns of an attempt, which the reader of every format restores."""
    return {name: row[name] for name in COLUMNS if row[name] is not None}


def undecided_note(run: Run, what: str) -> list[str]:
    """A note on the attempts that a format cannot express."""
    outcomes = without_excluded(run.table("outcomes"))
    counts = outcomes.select(pl.col("passed").null_count(), total=pl.len()).collect(engine="streaming")
    undecided, total = counts.row(0)
    return [f"{undecided:,} of {total:,} attempts are undecided; {what}, so they are left out"] if undecided else []


_NEEDED = ("oid", "iteration_id", "tier", "suite", "passed")
# Made by reading; an input has no such columns.
_MADE = ("model", "fix_sha", STATUS)


def write_native_csv(run: Run, folder: Path) -> list[str]:
    """Write the problems and one fixes file per model."""
    run.table("problems").sink_csv(folder / "problems.csv")
    for model in run.models():
        name = f"{file_key(model)}_fixes.csv"
        if model_of(Path(name)) != model:
            raise TouchstoneError(f"the model '{model}' cannot be named in a CSV file's name; export another format")
        rows = _without_contradictions(run.rows(model)).drop(_MADE)
        filled = rows.select(pl.all().count() > 0).collect(engine="streaming").row(0, named=True)
        kept = [column for column, has_values in filled.items() if has_values]
        rows.select(*dict.fromkeys([*_NEEDED, *kept])).sink_csv(folder / name)
    return []


def _without_contradictions(rows: pl.LazyFrame) -> pl.LazyFrame:
    """A class that contradicts the outcome would be refused; without an outcome, other columns must not imply one."""
    is_pass = pl.col("classification") == PASS_CLASS
    return rows.with_columns(
        pl.when(is_pass == pl.col("passed")).then("classification").alias("classification"),
        pl.when(pl.col("passed").is_not_null()).then("compiled").alias("compiled"),
    )


def write_published_files(run: Run, folder: Path) -> list[str]:
    """Copy every published file. The copy can be read, compared and queried, but a run in it starts from scratch."""
    results = run.tables_dir.parent
    for name in (*PUBLISHED_NAMES, FOLDER):
        # Not what is still being written, such as an unfinished snapshot.
        if (results / name).is_dir():
            shutil.copytree(results / name, folder / name, ignore=shutil.ignore_patterns(".*"))
        elif (results / name).is_file():
            shutil.copy2(results / name, folder / name)
    return []
