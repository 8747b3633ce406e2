"""The output folder: a draft that a run writes to, and published results that are replaced atomically.

```
tables/ summary_pass_at_k.csv csv/ warehouse.duckdb report.html    links into .store/current
.store/draft/tables/<table>/<part>.parquet        what the current run has made so far
.store/draft/stamps/<table>/<part>.json           what each part was made from
.store/published/<number>/                        a finished run: hard links to its tables and files, and the warehouse
.store/current                                    link to the published run; publishing replaces it
.store/unpublished/tables                         tables of a run that a gate stopped, for `--draft`
.store/run.json                                   what the published run depends on, if it can be skipped next time
```

A killed run leaves an incomplete draft in `.store/draft` and the last published results in place. A part is written to
a temporary name and renamed; one that violates its contract never is. Its stamp is removed before and written after, so
a stamp never describes another version of the part. What a table contains is decided in `ingest`, `validation` and
`metrics`.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from touchstone.contracts import conform
from touchstone.errors import TouchstoneError
from touchstone.names import file_key, name_of_key
from touchstone.storage.batches import blocks
from touchstone.storage.checked_files import PART_OF_MODEL, require_contract, write_checked
from touchstone.storage.code_version import table_code_version
from touchstone.storage.files import (
    file_mark,
    link_or_copy,
    parquet_files,
    refuse_links,
    refuse_links_out,
    remove_leftovers,
    replace_link,
    replacing,
)
from touchstone.storage.kept_results import KeptResults
from touchstone.storage.lock import lock_folder
from touchstone.storage.parts import Part, digest
from touchstone.storage.small_parts import SmallParts, scan_files
from touchstone.storage.stamps import Listings, Stamps
from touchstone.tables import TABLES

if TYPE_CHECKING:
    import polars as pl

SUMMARY = "summary_pass_at_k.csv"
WAREHOUSE = "warehouse.duckdb"
CSV_FOLDER = "csv"
REPORT = "comparison.md"
REPORT_PAGE = "report.html"
CHECKS_FOLDER = "checks"
PUBLISHED_NAMES = ("tables", SUMMARY, WAREHOUSE, CSV_FOLDER, REPORT_PAGE)
# All that a user sees in an output folder; the rest is hidden.
OUTPUT_NAMES = (*PUBLISHED_NAMES, REPORT, "snapshots", "cache")
# Dagster's home, beside an output folder or in it.
DAGSTER_FOLDER = ".dagster"
_GENERATION = re.compile(r"published/\d+")


class Store:
    """One output folder. Everything that reads or writes it goes through here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._home = root / ".store"
        self.draft = self._home / "draft"
        self.unpublished = self._home / "unpublished"
        self._stamps = Stamps()
        self.current_link = self._home / "current"
        self.run_record = self._home / "run.json"
        self.run_log = self._home / "run_log.parquet"
        # Of an output folder in object storage, which several machines write to.
        self.published_log = self._home / "published_run_log.parquet"
        self.content_hashes = self.draft / "hashes.json"
        self._written: dict[Path, str] = {}
        self._of_this_run: set[str] = set()
        self._listings: Listings[dict[str, Part]] = Listings()
        self._small_parts = SmallParts()

    # The lock

    @contextmanager
    def lock(self, wait_seconds: float = 0) -> Iterator[None]:
        """Lock the folder for one run. The lock ends with its process and is reentrant within it."""
        leftovers = self.refuse_links()
        with lock_folder(self._home, f"{self.root}: another run is writing here", wait_seconds):
            # Commands without the lock write pins and hashes.
            remove_leftovers(leftovers, spared=(self.content_hashes, self.root / "snapshots" / "pins.json"))
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

    def part(self, table: str, part: str | None = None) -> Part | None:
        """The part; None if it is missing, incomplete, or has the columns of another version."""
        path = self._path(table, part)
        made = self._stamps.of(self._stamp(table, part))
        if made is None or made.get("columns") != _columns(table) or not self._stamps.matches(path, made["file"]):
            return None
        same = {name: made[name] for name in ("inputs", "made_from", "settled", "models")}
        return Part(path, made["rows"], made["fingerprint"], reused=True, **same)

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
    ) -> Part:
        """Replace a part of a table, checked against its contract; `inputs` has the hashes of its source files.

        `fingerprint` is a hash of the content, for parts whose content may differ for equal inputs. `models` has what
        each model's rows were made from.
        """
        path = self._path(table, part)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as scratch:
            rows = write_checked(conform(frame, TABLES[table]), table, scratch, in_memory=part is None)
            self._unstamp(table, part)
        written = Part(path, rows, fingerprint or made_from, False, inputs or {}, made_from, settled, models or {})
        return self._stamped(written, table, part)

    def write_models(
        self,
        table: str,
        frame: "pl.DataFrame",
        made_from: Mapping[str, str],
        inputs: Mapping[str, Mapping[str, str]] | None = None,
    ) -> dict[str, Part]:
        """Replace the parts of the models in `made_from`; `frame` has the rows of all of them, one block each.

        The rows are checked against the contract before any of them is written.
        """
        import polars as pl

        frame = conform(frame.lazy(), TABLES[table]).collect()
        require_contract(frame.lazy(), table)
        rows = blocks(frame, made_from)
        paths = {model: self._path(table, model) for model in made_from}
        with ExitStack() as scratches:
            sinks = []
            for model, path in paths.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                scratch = scratches.enter_context(replacing(path))
                sinks.append(rows[model].lazy().sink_parquet(scratch, lazy=True, **PART_OF_MODEL))
            pl.collect_all(sinks, engine="streaming")
            for model in made_from:
                self._unstamp(table, model)
        return {
            model: self._stamped(
                Part(path, rows[model].height, version, False, (inputs or {}).get(model, {}), version), table, model
            )
            for (model, path), version in zip(paths.items(), made_from.values(), strict=True)
        }

    def _unstamp(self, table: str, part: str | None) -> None:
        """Remove the stamp of a part, which makes the part incomplete."""
        stamp = self._stamp(table, part)
        self._listings.forget(stamp.parent)
        stamp.unlink(missing_ok=True)

    def _stamped(self, written: Part, table: str, part: str | None) -> Part:
        """Write the stamp of a part, which makes the part complete."""
        stamp = self._stamp(table, part)
        self._listings.forget(stamp.parent)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        with replacing(stamp) as scratch:
            same = ("fingerprint", "made_from", "settled", "rows", "inputs", "models")
            stamped = {name: getattr(written, name) for name in same}
            stamped |= {"columns": _columns(table), "file": file_mark(written.path)}
            scratch.write_text(json.dumps(stamped))
        self._written[written.path] = written.made_from
        self._of_this_run.add(table)
        return written

    def parts(self, table: str) -> list[str]:
        """The names of the complete parts of a table, sorted."""
        return list(self.all_parts(table))

    def all_parts(self, table: str) -> dict[str, Part]:
        """Every complete part of a table by name, sorted."""
        folders = [_file(self.draft, kind, table) for kind in ("stamps", "tables")]
        return dict(self._listings.of(folders, lambda: self._list_parts(table)))

    def _list_parts(self, table: str) -> dict[str, Part]:
        return {name: part for name in self._stamp_names(table) if (part := self.part(table, name)) is not None}

    def _stamp_names(self, table: str) -> list[str]:
        """The names of the parts that have a stamp, sorted."""
        try:
            with os.scandir(self.draft / "stamps" / table) as files:
                found = [file.name.removesuffix(".json") for file in files if file.name.endswith(".json")]
            return sorted(map(name_of_key, found))
        except FileNotFoundError:
            return []

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

    def scan(self, table: str, parts: Sequence[str] | None = None) -> "pl.LazyFrame":
        """The contract's columns of a table, over all parts or the named ones."""
        found = self.all_parts(table)
        names = list(found) if parts is None else parts
        paths = [self._path(table, part) for part in names]
        rows, fingerprints = sum(part.rows for part in found.values()), [part.fingerprint for part in found.values()]
        return self._small_parts.scan(table, paths, rows, fingerprints)

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

    def keep_parts(self, table: str, names: Sequence[str]) -> list[str]:
        """Remove all parts but the named ones; returns the removed names."""
        gone = [name for name in self.parts(table) if name not in names]
        for name in gone:
            self.remove(table, name)
        return gone

    def remove(self, table: str, part: str) -> None:
        """Remove a part if it exists."""
        self._unstamp(table, part)
        self._path(table, part).unlink(missing_ok=True)

    def kept_results(self, table: str) -> KeptResults:
        """What the function of a table keeps for the next run."""
        return KeptResults(_file(self.draft, "kept", f"{table}.parquet"), table_code_version(table))

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
        made_along = [table.name for table in TABLES.values() if table.made_with in self._of_this_run]
        self._link_tables(sorted(self._of_this_run.union(made_along)), self.unpublished / "tables")
        self._link_files(self.unpublished, f"{CHECKS_FOLDER}/*.json")

    def _link_files(self, folder: Path, *patterns: str) -> None:
        for source in (file for pattern in patterns for file in self.draft.glob(pattern)):
            link_or_copy(source, folder / source.relative_to(self.draft))

    def _link_tables(self, tables: Iterable[str], folder: Path) -> None:
        for table in tables:
            for part in self.parts(table):
                source = self._path(table, part)
                link_or_copy(source, folder / table / source.name)

    def _refuse_foreign_files(self) -> None:
        has_csv = any((self.draft / CSV_FOLDER).glob("*.csv"))
        for name, remedy in (("tables", ""), (CSV_FOLDER, ", or set publish.csv to false")):
            folder = self.root / name
            if folder.is_dir() and not folder.is_symlink() and (name == "tables" or has_csv):
                raise TouchstoneError(f"{folder}: this folder was not created by touchstone; move it away{remedy}")

    def _path(self, table: str, part: str | None) -> Path:
        return _file(self.draft, "tables", table, f"{file_key(part or table)}.parquet")

    def _stamp(self, table: str, part: str | None) -> Path:
        return _file(self.draft, "stamps", table, f"{file_key(part or table)}.json")


# Kept, because a run asks for every path many times, and making one takes longer than looking at its file.
@lru_cache(maxsize=100_000)
def _file(folder: Path, *names: str) -> Path:
    return folder.joinpath(*names)


@cache
def _columns(table: str) -> str:
    """A hash of a table's columns and types."""
    return digest({name: str(dtype) for name, dtype in TABLES[table].dtypes.items()})
