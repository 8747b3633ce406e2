"""The output folder: a draft that a run writes to, and published results that are replaced atomically.

```
tables/ summary_pass_at_k.csv csv/ warehouse.duckdb report.html    links into .store/current
.store/draft/tables/<table>/<part>.parquet        what the current run has made so far
.store/draft/stamps/<table>/<part>.json           what each part was made from
.store/published/<number>/                        a finished run: hard links to its tables and files, and the warehouse
.store/current                                    link to the published run; publishing replaces it
.store/unpublished/tables                         tables of a run that a gate stopped, for `--draft`
.store/run.json                                   what the published run depends on, if it can be skipped next time
.store/rulings_file                               where people's rulings are, seen from the output folder
```

A killed run leaves an incomplete draft in `.store/draft` and the last published results in place. A part is written to
a temporary name and renamed; one that violates its contract never is. Its stamp is removed before and written after, so
a stamp never describes another version of the part. The content of tables is decided in `ingest`,
`validation`, `metrics` and `compare`.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from touchstone.errors import TouchstoneError
from touchstone.regular_files import read_json
from touchstone.storage.batches import blocks
from touchstone.storage.files import (
    file_key,
    file_mark,
    is_as_written,
    link_or_copy,
    lock_folder,
    name_of_key,
    parquet_files,
    refuse_links,
    refuse_links_out,
    remove_leftovers,
    replace_link,
    replacing,
)
from touchstone.tables import TABLES, conform, violations
from touchstone.tables.checks import CHECKS, Check, CheckOutcome, CheckResult
from touchstone.text import counted

if TYPE_CHECKING:
    import polars as pl

SUMMARY = "summary_pass_at_k.csv"
WAREHOUSE = "warehouse.duckdb"
CSV_FOLDER = "csv"
REPORT = "comparison.md"
REPORT_PAGE = "report.html"
CHECKS_FOLDER = "checks"
# Kept for the next run to reuse; no reader needs it.
DRAFT = ".store/draft/"
PUBLISHED_NAMES = ("tables", SUMMARY, WAREHOUSE, CSV_FOLDER, REPORT_PAGE)
# All that a user sees in an output folder; the rest is hidden.
OUTPUT_NAMES = (*PUBLISHED_NAMES, REPORT, "snapshots", "cache")
# Dagster's home, beside an output folder or in it.
DAGSTER_FOLDER = ".dagster"
_GENERATION = re.compile(r"published/\d+")

_FORMAT: Mapping[str, Any] = {"compression_level": 1, "row_group_size": 250_000}
# The rows of one model are read together: least and largest values would skip nothing, and cost a tenth of writing.
_FORMAT_OF_MODEL: Mapping[str, Any] = {
    "statistics": {"min": False, "max": False, "distinct_count": False, "null_count": True},
    **_FORMAT,
}


@dataclass(frozen=True)
class Part:
    """A part of a table in the draft; `inputs` has the SHA-256 of the files that it was read from.

    `made_from` is the fingerprint of the inputs, settings and code that the part was made from: if it is the same, the
    part is reused. `fingerprint` identifies its content for tables that read it. It equals `made_from`, unless equal
    inputs may give another content, as in validation. A part that is not `settled` may differ when made again. `models`
    has the fingerprint of each model's rows of a table that is made model by model; see `model_rows`.
    """

    path: Path
    rows: int
    fingerprint: str
    reused: bool
    inputs: Mapping[str, str] = field(default_factory=dict)
    made_from: str = ""
    settled: bool = True
    models: Mapping[str, str] = field(default_factory=dict)


# The values in the stamp of a part, besides its columns and its file, with their types.
_STAMPED = {"rows": int, "fingerprint": str, "made_from": str, "inputs": dict, "models": dict, "settled": bool}


def digest(value: object) -> str:
    """A stable hash of plain data.

    >>> digest({"b": 1, "a": [2]}) == digest({"a": [2], "b": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


class Store:
    """One output folder. Everything that reads or writes it goes through here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._home = root / ".store"
        self.draft = self._home / "draft"
        self.unpublished = self._home / "unpublished"
        self.current_link = self._home / "current"
        self.run_record = self._home / "run.json"
        self.rulings_place = self._home / "rulings_file"
        self.run_log = self._home / "run_log.parquet"
        # Of an output folder in object storage, which several machines write to.
        self.published_log = self._home / "published_run_log.parquet"
        self.content_hashes = self.draft / "hashes.json"
        self._written: dict[Path, str] = {}
        self._of_this_run: set[str] = set()
        # As first read after the lock was taken: nobody else writes to the draft.
        self._parts: dict[str, dict[str, Part]] = {}

    # The lock

    @contextmanager
    def lock(self, wait_seconds: float = 0) -> Iterator[None]:
        """Lock the folder for one run. The lock ends with its process and is reentrant within it."""
        leftovers = self.refuse_links()
        with lock_folder(self._home, f"{self.root}: another run is writing here", wait_seconds):
            # Commands without the lock write pins and hashes.
            remove_leftovers(leftovers, spared=(self.content_hashes, self.root / "snapshots" / "pins.json"))
            self._parts.clear()
            yield

    def refuse_links(self) -> list[Path]:
        """Raise an error if the folder holds links of somebody else: a run would write through them.

        Returns the temporary files and folders in it.
        """
        found = [path for name in PUBLISHED_NAMES for path in self.root.glob(f".{name}.*.tmp")]
        for name in (".store", "snapshots", "cache"):
            found += refuse_links(self.root / name, {self.current_link: _GENERATION})
        refuse_links_out(self.root, *OUTPUT_NAMES)
        return found

    # Parts of tables

    def all_parts(self, table: str) -> dict[str, Part]:
        """Every complete part of a table by name, sorted."""
        return dict(sorted(self._known_parts(table).items()))

    def part(self, table: str, part: str | None = None) -> Part | None:
        """The part; None if it is missing, incomplete, or has the columns of another version."""
        return self._known_parts(table).get(part or table)

    def _known_parts(self, table: str) -> dict[str, Part]:
        """Every complete part of a table, in any order."""
        if table not in self._parts:
            found = {name: self._read_part(table, name) for name in self._stamped_names(table)}
            self._parts[table] = {name: part for name, part in found.items() if part is not None}
        return self._parts[table]

    def _stamped_names(self, table: str) -> list[str]:
        """The names of the parts that have a stamp."""
        try:
            with os.scandir(self.draft / "stamps" / table) as files:
                return [name_of_key(file.name[: -len(".json")]) for file in files if file.name.endswith(".json")]
        except FileNotFoundError:
            return []

    def _read_part(self, table: str, name: str) -> Part | None:
        """The part that a stamp describes; None if the stamp is damaged, or the file not the one that was written."""
        path = self._path(table, name)
        try:
            made = read_json(self._stamp(table, name))
            known = {each: made[each] for each in _STAMPED}
            if made["columns"] != _columns(table) or not is_as_written(path, made["file"]):
                return None
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return Part(path, reused=True, **known) if all(isinstance(known[n], _STAMPED[n]) for n in known) else None

    def current(self, table: str, made_from: str, part: str | None = None) -> Part | None:
        """The part if it was made from `made_from`, else None. `reused` is false for parts that this store wrote."""
        found = self.part(table, part)
        if found is None or found.made_from != made_from:
            return None
        self._of_this_run.add(table)
        return replace(found, reused=self._written.get(found.path) != made_from)

    def write(
        self,
        table: str,
        frame: "pl.LazyFrame",
        made_from: str,
        part: str | None = None,
        inputs: Mapping[str, str] | None = None,
        *,
        fingerprint: str | None = None,
        settled: bool = True,
        models: Mapping[str, str] | None = None,
        at_once: int | None = None,
    ) -> Part:
        """Replace a part of a table, checked against its contract; `inputs` has the hashes of its source files.

        `fingerprint` is a hash of the content, for parts whose content may differ for equal inputs. `models` has what
        each model's rows were made from. `at_once` rows are written together.
        """
        path = self._path(table, part)
        path.parent.mkdir(parents=True, exist_ok=True)
        is_small = part is None and "oid" not in TABLES[table].key
        with replacing(path) as scratch:
            checked = conform(frame, TABLES[table])
            rows = _write_checked(checked, table, scratch, in_memory=is_small, at_once=at_once)
            self._unstamp(table, part)
        written = Part(path, rows, fingerprint or made_from, False, inputs or {}, made_from, settled, models or {})
        self._write_stamp(written, table, part)
        return written

    def write_models(
        self,
        table: str,
        frame: "pl.LazyFrame",
        made_from: Mapping[str, str],
        inputs: Mapping[str, Mapping[str, str]] | None = None,
        *,
        in_memory: bool = True,
    ) -> dict[str, Part]:
        """Replace the parts of the models in `made_from`; `frame` has the rows of all of them, one block each.

        The rows are checked against the contract before any of them is written. Without `in_memory`, those of a single
        model are never in memory together.
        """
        import polars as pl

        if not in_memory:
            [(model, version)] = made_from.items()
            return {model: self.write(table, frame, version, model, (inputs or {}).get(model))}
        collected = conform(frame, TABLES[table]).collect()
        _require_contract(collected.lazy(), table)
        rows = blocks(collected, made_from)
        paths = {model: self._path(table, model) for model in made_from}
        with ExitStack() as scratches:
            sinks = []
            for model, path in paths.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                scratch = scratches.enter_context(replacing(path))
                sinks.append(rows[model].lazy().sink_parquet(scratch, lazy=True, **_FORMAT_OF_MODEL))
            pl.collect_all(sinks, engine="streaming")
            for model in made_from:
                self._unstamp(table, model)
        parts = {}
        for (model, path), version in zip(paths.items(), made_from.values(), strict=True):
            parts[model] = Part(path, rows[model].height, version, False, (inputs or {}).get(model, {}), version)
            self._write_stamp(parts[model], table, model)
        return parts

    def _unstamp(self, table: str, part: str | None) -> None:
        """Remove the stamp of a part, which makes the part incomplete."""
        self._known_parts(table).pop(part or table, None)
        self._stamp(table, part).unlink(missing_ok=True)

    def _write_stamp(self, written: Part, table: str, part: str | None) -> None:
        """Write the stamp of a part, which makes the part complete."""
        stamp = self._stamp(table, part)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamped = {name: getattr(written, name) for name in _STAMPED}
        with replacing(stamp) as scratch:
            scratch.write_text(json.dumps({**stamped, "columns": _columns(table), "file": file_mark(written.path)}))
        self._known_parts(table)[part or table] = replace(written, reused=True)
        self._written[written.path] = written.made_from
        self._of_this_run.add(table)

    def parts(self, table: str) -> list[str]:
        """The names of the complete parts of a table, sorted."""
        return list(self.all_parts(table))

    def require(self, *tables: str) -> None:
        """Raise an error if a table has not been made yet."""
        for table in tables:
            if not self.all_parts(table):
                raise TouchstoneError(f"there is no table '{table}' yet; materialize it first")

    def require_part(self, table: str, part: str) -> Part:
        """A part; an error if it has not been made yet."""
        found = self.part(table, part)
        if found is None:
            raise TouchstoneError(f"there are no {table} of model '{part}' yet; materialize them first")
        return found

    def scan(self, table: str, parts: Sequence[str] | None = None, extras: Sequence[str] = ()) -> "pl.LazyFrame":
        """The contract's columns of a table, over all parts or the named ones, and these `extras` of the input."""
        if parts is None:
            return scan_files(table, [part.path for part in self.all_parts(table).values()], extras)
        return scan_files(table, [self._path(table, name) for name in parts], extras)

    def scan_with_extras(self, table: str, part: str | None = None) -> "pl.LazyFrame":
        """One part including extra columns from the input."""
        import polars as pl

        return pl.scan_parquet(self._path(table, part), glob=False)

    def fingerprint(self, table: str) -> str:
        """A hash of the fingerprints of all parts."""
        return digest({name: part.fingerprint for name, part in self.all_parts(table).items()})

    def inputs(self, *tables: str) -> dict[str, str]:
        """The SHA-256, when read, of every file that the tables were read from, by name."""
        parts = [part for table in tables for part in self.all_parts(table).values()]
        read = {name: content for part in parts for name, content in part.inputs.items()}
        return dict(sorted(read.items()))

    def remove_other_parts(self, table: str, kept: Sequence[str]) -> list[str]:
        """Remove all parts but the named ones; returns the removed names."""
        gone = [name for name in self.parts(table) if name not in kept]
        for name in gone:
            self.remove(table, name)
        return gone

    def remove(self, table: str, part: str) -> None:
        """Remove a part if it exists."""
        self._unstamp(table, part)
        self._path(table, part).unlink(missing_ok=True)

    def scratch(self, name: str) -> Path:
        """A path for a temporary file of the current run."""
        folder = self.draft / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    def clear_scratch(self) -> None:
        """Remove the scratch folder, including leftovers of killed runs."""
        shutil.rmtree(self.draft / "scratch", ignore_errors=True)

    def discard_draft(self) -> None:
        """Delete the draft. Published results, snapshots and the validation cache are kept."""
        shutil.rmtree(self.draft, ignore_errors=True)
        self._parts.clear()

    # Publishing

    def publish(self, fill: Callable[[Path], None]) -> Path:
        """Link the draft as a new generation, let `fill` add files, and switch to it with one rename.

        The last one stays for those who are reading it.
        """
        published = self._home / "published"
        published.mkdir(parents=True, exist_ok=True)
        self._refuse_foreign_files()
        numbers = sorted(int(path.name) for path in published.iterdir() if path.name.isdigit())
        generation, last = published / str(numbers[-1] + 1 if numbers else 1), self.generation
        self._link_tables(TABLES, generation / "tables")
        link_or_copy(self.draft / SUMMARY, generation / SUMMARY)
        self._link_files(generation, REPORT_PAGE, f"{CSV_FOLDER}/*.csv", f"{CHECKS_FOLDER}/*.json")
        fill(generation)
        self._switch_to(generation)
        for name in {str(number) for number in numbers} - {last}:
            shutil.rmtree(published / name, ignore_errors=True)
        shutil.rmtree(self.unpublished, ignore_errors=True)
        return generation

    def publish_log(self, log: Path) -> None:
        """Publish a run log that has been completed; readers of a local folder see it already."""

    def _switch_to(self, generation: Path) -> None:
        replace_link(self.current_link, Path("published") / generation.name)
        for name in PUBLISHED_NAMES:
            if (generation / name).exists():
                replace_link(self.root / name, Path(".store/current") / name)
            elif (self.root / name).is_symlink():
                (self.root / name).unlink()

    @property
    def has_published(self) -> bool:
        """Whether a run has been published."""
        return self.current_link.exists()

    @property
    def generation(self) -> str | None:
        """The name of the published run; None if there is none."""
        return self.current_link.readlink().name if self.current_link.is_symlink() else None

    def scan_published(self, table: str) -> "pl.LazyFrame":
        """The contract's columns of a published table."""
        return scan_files(table, parquet_files(self.current_link / "tables" / table))

    def keep_unpublished(self) -> None:
        """Keep the tables that this run made or found current; the rest of the draft is from earlier runs."""
        shutil.rmtree(self.unpublished, ignore_errors=True)
        made_along = [table.name for table in TABLES.values() if table.written_with in self._of_this_run]
        self._link_tables(sorted(self._of_this_run.union(made_along)), self.unpublished / "tables")
        self._link_files(self.unpublished, f"{CHECKS_FOLDER}/*.json")

    def _link_files(self, folder: Path, *patterns: str) -> None:
        for source in (file for pattern in patterns for file in self.draft.glob(pattern)):
            link_or_copy(source, folder / source.relative_to(self.draft))

    def _link_tables(self, tables: Iterable[str], folder: Path) -> None:
        for table in tables:
            for part in self.all_parts(table).values():
                link_or_copy(part.path, folder / table / part.path.name)

    def _refuse_foreign_files(self) -> None:
        has_csv = any((self.draft / CSV_FOLDER).glob("*.csv"))
        for name, remedy in (("tables", ""), (CSV_FOLDER, ", or set publish.csv to false")):
            folder = self.root / name
            if folder.is_dir() and not folder.is_symlink() and (name == "tables" or has_csv):
                raise TouchstoneError(f"{folder}: this folder was not created by touchstone; move it away{remedy}")

    def _path(self, table: str, part: str | None) -> Path:
        return self.draft / "tables" / table / f"{file_key(part or table)}.parquet"

    def _stamp(self, table: str, part: str | None) -> Path:
        return self.draft / "stamps" / table / f"{file_key(part or table)}.json"


def scan_files(table: str, paths: list[Path], extras: Sequence[str] = ()) -> "pl.LazyFrame":
    """The contract's columns of a table in these files, and further ones of the input, null where a file has none."""
    import polars as pl

    dtypes = pl.Schema(TABLES[table].dtypes | dict.fromkeys(extras, pl.String()))
    if not paths:
        return pl.LazyFrame(schema=dtypes)
    return pl.scan_parquet(
        paths, glob=False, schema=dtypes, extra_columns="ignore", missing_columns="insert" if extras else "raise"
    )


def _write_checked(rows: "pl.LazyFrame", table: str, path: Path, *, in_memory: bool, at_once: int | None) -> int:
    """Write the rows of a table and return their number. Those that may not fit into memory are read back to check."""
    import polars as pl

    if in_memory:
        frame = rows.collect(engine="streaming")
        if frame.height:
            _require_contract(frame.lazy(), table)
        frame.write_parquet(path, **_FORMAT)
        return frame.height
    most = _FORMAT["row_group_size"]
    rows.sink_parquet(path, **{**_FORMAT, "row_group_size": min(at_once or most, most)})
    written = pl.scan_parquet(path, glob=False)
    _require_contract(written, table)
    return int(written.select(pl.len()).collect().item())


def _require_contract(rows: "pl.LazyFrame", table: str) -> None:
    """Raise an error if a row violates the contract of its table."""
    broken = violations(rows, TABLES[table])
    if broken:
        shown = ", ".join(f"{rule} ({counted(rows, 'row')})" for rule, rows in broken.items())
        raise ValueError(f"table '{table}' violates its contract: {shown}")


@cache
def _columns(table: str) -> str:
    """A hash of a table's columns and types."""
    return digest({name: str(dtype) for name, dtype in TABLES[table].dtypes.items()})


# Results of checks, kept in the draft: a check runs again only if the tables, settings or code behind it changed


def check_if_stale(store: Store, check: Check, version: str, run: Callable[[], CheckResult]) -> CheckResult:
    """The kept result if it was found in the same tables by the same `version` of settings and code, else a new one."""
    made_from = digest([check.full_name, version, [store.fingerprint(table) for table in check.reads]])
    kept = _read(store.draft, check)
    if kept is not None and kept[0] == made_from:
        return kept[1]
    result = run()
    keep_result(store, check, result, made_from)
    return result


def keep_result(store: Store, check: Check, result: CheckResult, made_from: str = "") -> None:
    """Keep the result of a check for later readers of the results, and for the next run if it says `made_from`."""
    plain = CheckResult(result.passed, result.message, result.error, dict(result.figures))
    path = _path(store.draft, check)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        scratch.write_text(json.dumps({"made_from": made_from, "result": asdict(plain)}))


def kept_outcomes(folder: Path) -> list[CheckOutcome]:
    """The outcomes of the checks of the tables in a draft or published run, in the order of `CHECKS`.

    Results of tables that are not there are from an earlier run.
    """
    due = [check for check in CHECKS if (folder / "tables" / check.table).is_dir()]
    return [CheckOutcome.of(check, kept[1]) for check in due if (kept := _read(folder, check)) is not None]


def _read(folder: Path, check: Check) -> tuple[str, CheckResult] | None:
    """The fingerprint of the kept result's inputs, and the result; None if it is missing or damaged."""
    try:
        found = read_json(_path(folder, check))
        return found["made_from"], CheckResult(**found["result"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(folder: Path, check: Check) -> Path:
    return folder / CHECKS_FOLDER / f"{check.full_name}.json"
