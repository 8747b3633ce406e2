"""One evaluation: a configuration and its output folder, and the ingest steps that write there.

This is where the engine's pure functions meet the store. It knows what each part is made from, and so what need
not be made again. The order of steps belongs to the graph in `assets/`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from touchstone.config import EvaluationConfig, find_problems_csv
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.fixes import read_fixes
from touchstone.ingest.problems import read_problems
from touchstone.ingest.quarantine import SCHEMA as QUARANTINE_SCHEMA
from touchstone.ingest.quarantine import refused_file
from touchstone.ingest.sources import ContentHashes, Discovery, Source, discover
from touchstone.store import Part, Store, digest, engine_version

# Model names cannot start with "@", so these parts cannot be taken for a model's.
PROBLEMS_PART = "@problems"
REFUSED_PART = "@refused"


@dataclass
class Evaluation:
    """A configuration at work on its output folder.

    Where `only` names models, those are made again even if nothing changed, and the others stay as they are.
    """

    config: EvaluationConfig
    only: frozenset[str] = frozenset()
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.store = Store(self.config.output_dir)

    @cached_property
    def discovery(self) -> Discovery:
        """The fixes files as they were when first asked for."""
        return discover(self.config)

    @cached_property
    def problems_csv(self) -> Path:
        """The problems file."""
        return find_problems_csv(self.config)

    @cached_property
    def _hashes(self) -> ContentHashes:
        return ContentHashes(self.store.work / "hashes.json")

    @cached_property
    def engine(self) -> str:
        """What code makes the figures."""
        return engine_version()

    def file_hash(self, path: Path) -> str:
        """SHA-256 of an input file."""
        try:
            return self._hashes.of(path)
        except OSError as error:
            raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None

    def remember_hashes(self) -> None:
        """Keep the hashes of the files that were read, so that an untouched file need not be read again."""
        self._hashes.save(time.time_ns())

    def input_state(self) -> dict[str, str]:
        """The hash of every input file by name: what the sensor compares."""
        files = {source.path.name: self.file_hash(source.path) for source in self.discovery.sources.values()}
        return files | {"problems": self.file_hash(self.problems_csv)}

    def refresh(
        self,
        table: str,
        reads: Sequence[str],
        settings: object,
        make: Callable[..., pl.LazyFrame],
    ) -> Part:
        """Make a table from others, unless it was already made from the same ones, settings and code."""
        self.require(*reads)
        fingerprint = digest([table, [self.store.fingerprint(name) for name in reads], settings, self.engine])
        current = self.store.current(table, fingerprint)
        if current is not None:
            return current
        return self.store.write(table, make(*(self.store.scan(name) for name in reads)), fingerprint)

    def refresh_model(
        self, table: str, reads: Sequence[str], model: str, settings: object, make: Callable[..., pl.LazyFrame]
    ) -> Part:
        """The same for one model's part of a table."""
        sources = [self.store.part(name, model) for name in reads]
        if None in sources:
            missing = reads[sources.index(None)]
            raise TouchstoneError(f"there are no {missing} of the model '{model}' yet; materialise them first")
        made_from = [source.fingerprint for source in sources if source is not None]
        fingerprint = digest([table, made_from, settings, self.engine])
        current = self.store.current(table, fingerprint, model)
        if current is not None and model not in self.only:
            return current
        return self.store.write(table, make(*(self.store.scan(name, [model]) for name in reads)), fingerprint, model)

    def require(self, *tables: str) -> None:
        """Refuse to go on where a table has not been made yet."""
        for table in tables:
            if not self.store.parts(table):
                raise TouchstoneError(f"there is no table '{table}' yet; materialise it first")

    def ingest_problems(self) -> Part:
        """Bring the problems table up to date with its file."""
        fingerprint = digest(["problems", self.file_hash(self.problems_csv), self.engine])
        current = self.store.current("problems", fingerprint)
        if current is not None:
            return current
        read = read_problems(self.problems_csv, self.store.scratch("problems.parquet"))
        self.store.write("quarantine", read.quarantine.lazy(), fingerprint, PROBLEMS_PART)
        part = self.store.write("problems", read.problems, fingerprint)
        self.store.clear_scratch()
        return part

    def ingest_model(self, model: str) -> Part:
        """Bring one model's attempts up to date with its file. A file that cannot be read gives none, and says why."""
        source = self.discovery.sources.get(model)
        if source is None:
            raise TouchstoneError(f"{self.config.fixes_dir}: there is no fixes file for the model '{model}'")
        self.require("problems")
        made_from = self.store.fingerprint("problems")
        kept = self.store.part("attempts", model)
        if kept is not None and self.only and model not in self.only:
            return kept
        try:
            content = self.file_hash(source.path)
        except InputFileError as error:
            return self._refuse(source, None, str(error), digest(["attempts", model, str(error)]))
        fingerprint = digest(["attempts", model, source.path.name, content, made_from, self.engine])
        current = self.store.current("attempts", fingerprint, model)
        if current is not None and model not in self.only:
            return current
        try:
            scratch = self.store.scratch("fixes.parquet")
            read = read_fixes(source.path, model, self.store.scan_with_extras("problems"), scratch)
            part = self._write_model(source, read.attempts, read.quarantine, content, fingerprint, read.rows, None)
        except InputFileError as error:
            part = self._refuse(source, content, str(error), fingerprint)
        self.store.clear_scratch()
        return part

    def keep_models(self, models: Sequence[str]) -> list[str]:
        """Forget the models whose files are gone; returns their names."""
        gone: set[str] = set()
        for table in ("attempts", "outcomes", "attempt_scores", "quarantine", "sources"):
            kept = [*models, PROBLEMS_PART, REFUSED_PART]
            gone.update(self.store.keep_parts(table, kept))
        return sorted(gone)

    def note_refused_files(self) -> None:
        """Record the files that speak for no usable model."""
        refused = self.discovery.refused
        frames = [refused_file(name, reason) for name, reason in sorted(refused.items())]
        frame = pl.concat(frames) if frames else pl.DataFrame(schema=QUARANTINE_SCHEMA)
        self.store.write("quarantine", frame.lazy(), digest(refused), REFUSED_PART)

    def _refuse(self, source: Source, content: str | None, reason: str, fingerprint: str) -> Part:
        nothing = self.store.scan("attempts", []).lazy()
        quarantine = refused_file(source.path.name, reason)
        return self._write_model(source, nothing, quarantine, content, fingerprint, 0, reason)

    def _write_model(
        self,
        source: Source,
        attempts: pl.LazyFrame,
        quarantine: pl.DataFrame,
        content: str | None,
        fingerprint: str,
        rows: int,
        error: str | None,
    ) -> Part:
        """Write the three parts of a model; the attempts last, since their stamp says that all of it is current."""
        refused = 0 if error else quarantine.height
        report = {
            "model": source.model,
            "source_file": source.path.name,
            "sha256": content,
            "rows": rows,
            "accepted": rows - refused,
            "quarantined": refused,
            "error": error,
        }
        if quarantine.is_empty():
            self.store.remove("quarantine", source.model)
        else:
            self.store.write("quarantine", quarantine.lazy(), fingerprint, source.model)
        self.store.write("sources", pl.LazyFrame([report]), fingerprint, source.model)
        return self.store.write("attempts", attempts, fingerprint, source.model)
