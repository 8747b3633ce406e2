"""One evaluation: a configuration and its output folder, and the ingest and validation steps that write there.

This is where the engine's pure functions meet the store. It knows what each part is made from, and so what need
not be made again. The order of steps belongs to the graph in `assets/`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from touchstone.config import EvaluationConfig, find_problems_csv, first_problems_csv
from touchstone.contracts import TABLES
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.discovery import Discovery, discover
from touchstone.ingest.fixes import ATTEMPT_KEY, FIX_COLUMNS, IngestedAttempts, read_attempts, read_fixes, sort_attempts
from touchstone.ingest.problems import derived_problems, read_problems
from touchstone.ingest.sources import NATIVE, ContentHashes, Source
from touchstone.ingest.sources_table import (
    Row,
    conflicting_attempt,
    evaluated_row,
    no_attempts,
    not_evaluated_rows,
    problems_row,
    quarantine_without_model,
    refused_row,
    sources_frame,
)
from touchstone.publish.settings import settings_table
from touchstone.storage.freezing import freeze, history
from touchstone.storage.snapshots import Snapshot, list_snapshots
from touchstone.storage.store import Part, Store, digest, engine_version
from touchstone.validation.judging import judge_attempts, judge_problems
from touchstone.validation.recorded import recorded_outcomes
from touchstone.validation.retrying import content_digest, is_settled
from touchstone.validation.targets import COLUMNS, NoSubject, Subject, Subjects
from touchstone.validation.validating import Validation

# Model names cannot start with "@", so these parts cannot be taken for a model's.
PROBLEMS_PART = "@problems"
REFUSED_PART = "@refused"


@dataclass
class Evaluation:
    """A configuration at work on its output folder.

    Where `only` names models, those are made again even if nothing changed, and the others stay as they are. `accept`
    publishes what is worse than the pinned baseline, with a warning. `fresh` validates again what the cache knows.
    """

    config: EvaluationConfig
    only: frozenset[str] = frozenset()
    accept: bool = False
    fresh: bool = False
    stopped_by_gate: bool = field(init=False, default=False)
    store: Store = field(init=False)
    _hashes_of_read: dict[Path, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.store = Store(self.config.output_dir)

    @cached_property
    def discovery(self) -> Discovery:
        """The fixes files as they were when first asked for, and other systems' files as they were read then."""
        before = {path: _changed_at(path) for path in self.config.fixes_dir.glob("*")}
        found = discover(self.config)
        for path in found.adapter_tables:
            # These rows are read here and used later, so their hash is kept with them: whatever the file becomes in
            # between, its new bytes are never taken for those of the old rows.
            self._hashes_of_read[path] = self._hashes.of(path)
            if before.get(path) != _changed_at(path):
                raise TouchstoneError(f"{path}: changed while it was being read; run again")
        return found

    @cached_property
    def problems_csv(self) -> Path | None:
        """The problems file. There need not be one where other systems' files bring their own problems."""
        if self.config.problems_csv is None and self.discovery.adapter_tables:
            return first_problems_csv(self.config)
        return find_problems_csv(self.config)

    @property
    def _problem_bringers(self) -> list[Path]:
        """The files whose problems are added to the list; none where the configuration names the list."""
        return [] if self.config.problems_csv is not None else list(self.discovery.adapter_tables)

    def problems_version(self) -> str:
        """What the list of problems is made from."""
        files = [*([self.problems_csv] if self.problems_csv else []), *self._problem_bringers]
        return digest([self.file_hash(path) for path in files])

    @cached_property
    def _hashes(self) -> ContentHashes:
        return ContentHashes(self.store.draft / "hashes.json")

    @cached_property
    def engine(self) -> str:
        """What code makes the figures."""
        return engine_version()

    def file_hash(self, path: Path) -> str:
        """SHA-256 of an input file."""
        if path in self._hashes_of_read:
            return self._hashes_of_read[path]
        try:
            return self._hashes.of(path)
        except OSError as error:
            raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None

    def remember_hashes(self) -> None:
        """Keep the hashes of the files that were read, so that an untouched file need not be read again."""
        self._hashes.save(time.time_ns())

    def input_state(self) -> dict[str, str]:
        """The hash of every input file by name: what the sensor compares."""
        files = {path.name: self._hash_or_none(path) or "unreadable" for path in self.discovery.paths}
        return files | {"problems": self.problems_version()}

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
        """Bring the problems table up to date: the problems file, and what other systems' files speak of."""
        fingerprint = digest(["problems", self.problems_version(), self.config.problem_key, self.engine])
        current = self.store.current("problems", fingerprint)
        if current is not None:
            return current
        tables = [self.discovery.adapter_tables[path] for path in self._problem_bringers]
        problems = derived_problems(tables).lazy()
        inputs = {path.name: self.file_hash(path) for path in self._problem_bringers}
        for table in ("quarantine", "sources"):
            self.store.remove(table, PROBLEMS_PART)
        if self.problems_csv is not None:
            scratch = self.store.scratch("problems.parquet")
            inputs["problems"] = self.file_hash(self.problems_csv)
            read = read_problems(self.problems_csv, scratch, self.config.problem_key)
            self._require_unchanged(self.problems_csv, inputs["problems"])
            self.store.write("quarantine", read.quarantine.lazy(), fingerprint, PROBLEMS_PART)
            accepted = read.rows - read.quarantine.height
            row = problems_row(self.problems_csv, inputs["problems"], read.rows, accepted)
            self.store.write("sources", sources_frame([row]), fingerprint, PROBLEMS_PART)
            more = problems.join(read.problems, on="oid", how="anti")
            problems = pl.concat([read.problems, more], how="diagonal").sort("oid")
        part = self.store.write("problems", problems, fingerprint, inputs=inputs)
        self.store.clear_scratch()
        return part

    def ingest_model(self, model: str) -> Part:
        """Bring one model's attempts up to date with its files. A file that cannot be read gives none, and says why."""
        sources = self.discovery.sources.get(model)
        if sources is None:
            raise TouchstoneError(f"{self.config.fixes_dir}: there is no fixes file for the model '{model}'")
        self.require("problems")
        kept = self.store.part("attempts", model)
        if kept is not None and self.store.part("sources", model) and self.only and model not in self.only:
            return kept
        made_from = [self.store.fingerprint("problems"), self.config.problem_key, self.engine]
        hashes = {source.path: self._hash_or_none(source.path) for source in sources}
        contents = [(source.path.name, source.format, hashes[source.path]) for source in sources]
        fingerprint = digest(["attempts", model, contents, made_from])
        current = self.store.current("attempts", fingerprint, model)
        if current is not None and model not in self.only:
            return current
        reports, parts = [], []
        for place, source in enumerate(sources):
            scratch = self.store.scratch(f"fixes-{place}.parquet")
            report, read = self._read_source(source, hashes[source.path], scratch)
            reports.append(report)
            parts.append(read)
        error = conflicting_attempt(model, sources, parts)
        if error is not None:
            reports = [refused_row(source, None, error) for source in sources]
            parts = [no_attempts(source, error) for source in sources]
        quarantine = pl.concat([part.quarantine for part in parts])
        if quarantine.is_empty():
            self.store.remove("quarantine", model)
        else:
            self.store.write("quarantine", quarantine.lazy(), fingerprint, model)
        self.store.write("sources", sources_frame(reports), fingerprint, model)
        # The attempts last: their stamp says that all of it is current.
        attempts = pl.concat([part.attempts for part in parts], how="diagonal")
        inputs = {path.name: content or "unreadable" for path, content in hashes.items()}
        part = self.store.write("attempts", sort_attempts(attempts), fingerprint, model, inputs)
        self.store.clear_scratch()
        return part

    @cached_property
    def validation(self) -> Validation:
        """The sandbox, cache and workers of this run."""
        settings = self.config.validation
        return Validation(settings, self.cache_dir, self.store.scratch("validation"), fresh=self.fresh)

    def close(self) -> None:
        """End what the run keeps going: workers and their sandboxes. Keep the figures of a run that a gate stopped."""
        if "validation" in self.__dict__:
            self.validation.close()
        if self.stopped_by_gate:
            self.refresh_settings()
            self.store.keep_unpublished()

    def refresh_settings(self) -> Part:
        """Bring the table `settings` up to date, from which SQL macros take their weights."""
        table = settings_table(self.config)
        return self.refresh("settings", [], table.collect().rows(), lambda: table)

    @property
    def cache_dir(self) -> Path:
        """Where reports of validators are kept."""
        return self.config.validation.cache_dir or self.config.output_dir / "cache"

    def validate_problems(self) -> Part:
        """Validate every problem that has fixes to validate, as it came and with its reference fix."""
        models = self.store.parts("attempts")
        frames = [fixes.select("oid") for model in models if (fixes := self._fixes_of(model)) is not None]
        oids = pl.concat(frames).unique().collect()["oid"].to_list() if frames else []
        subjects = self._subjects(oids)
        made_from = self.validation.fingerprint(subjects) if subjects else None
        fingerprint = digest(["baselines", made_from, self.engine])
        current = self.store.current("baselines", fingerprint)
        if current is not None and current.settled:
            return current
        rows = judge_problems(subjects, self.validation) if subjects else []
        return self._write_validated("baselines", pl.DataFrame(rows, schema=TABLES["baselines"].dtypes), fingerprint)

    def validate_model(self, model: str) -> Part:
        """Bring one model's outcomes up to date: recorded ones as they are, and the other fixes validated."""
        fixes = self._fixes_of(model)
        rows = fixes.collect() if fixes is not None else pl.DataFrame()
        if rows.is_empty():
            return self.refresh_model("outcomes", ["attempts"], model, None, recorded_outcomes)
        subjects = self._subjects(rows["oid"].unique().to_list())
        attempts = self.store.part("attempts", model)
        assert attempts is not None
        made_from = [attempts.fingerprint, self.validation.fingerprint(subjects)]
        fingerprint = digest(["outcomes", made_from, self.engine])
        current = self.store.current("outcomes", fingerprint, model)
        if current is not None and (current.settled or self.only) and model not in self.only:
            return current
        judged = judge_attempts(rows.iter_rows(named=True), subjects, self.validation)
        dtypes = TABLES["outcomes"].dtypes
        validated = pl.LazyFrame(judged, schema=dtypes)
        recorded = recorded_outcomes(self.store.scan("attempts", [model])).select(list(dtypes))
        rest = recorded.join(validated, on=["model", *ATTEMPT_KEY], how="anti")
        outcomes = sort_attempts(pl.concat([rest, validated])).collect()
        return self._write_validated("outcomes", outcomes, fingerprint, model)

    def _write_validated(self, table: str, frame: pl.DataFrame, made_from: str, model: str | None = None) -> Part:
        """Write what validators found. The same inputs may give something else the next time, so the content counts."""
        return self.store.write(
            table, frame.lazy(), made_from, model, fingerprint=content_digest(frame), settled=is_settled(frame)
        )

    def _fixes_of(self, model: str) -> pl.LazyFrame | None:
        """A model's attempts whose fix is to be validated; None where there is none to be."""
        mode = self.config.validation.mode
        if self.config.clones_dir is None or mode == "never" or self.store.part("attempts", model) is None:
            return None
        attempts = self.store.scan_with_extras("attempts", model)
        present = [name for name in FIX_COLUMNS if name in attempts.collect_schema()]
        if not present:
            return None
        wanted = pl.lit(True) if mode == "always" else pl.col("passed").is_null()
        return attempts.filter(wanted).select("model", *ATTEMPT_KEY, *present)

    def _subjects(self, oids: Sequence[str]) -> dict[str, Subject | NoSubject]:
        if not oids:
            return {}
        problems = self.store.scan_with_extras("problems")
        present = [name for name in COLUMNS if name in problems.collect_schema()]
        rows = problems.filter(pl.col("oid").is_in(oids)).select("oid", *present).sort("oid").collect()
        return self._all_subjects.find(rows.iter_rows(named=True))

    @cached_property
    def _all_subjects(self) -> Subjects:
        return Subjects(self.config.clones_dir, self.config.validation)

    def freeze(self) -> tuple[Snapshot, Part]:
        """Keep the finished run as a snapshot, and bring the history of figures up to date."""
        config_hash = digest(self.config.model_dump(mode="json", exclude={"fixes_dir", "output_dir", "publish"}))
        snapshot = freeze(self.store, config_hash)
        kept = [each.id for each in list_snapshots(self.store.root)]
        fingerprint = digest(["history", kept, self.engine])
        current = self.store.current("history", fingerprint)
        if current is not None:
            return snapshot, current
        return snapshot, self.store.write("history", history(self.store.root), fingerprint)

    def keep_models(self, models: Sequence[str]) -> list[str]:
        """Forget the models whose files are gone; returns their names."""
        gone: set[str] = set()
        for table in ("attempts", "outcomes", "attempt_scores", "quarantine", "sources"):
            kept = [*models, PROBLEMS_PART, REFUSED_PART]
            gone.update(self.store.keep_parts(table, kept))
        return sorted(gone)

    def account_for_files(self) -> None:
        """Record the files that are not evaluated and why, and the rows that name no model."""
        refusals = quarantine_without_model(self.discovery)
        rows = not_evaluated_rows(self.discovery)
        for table, frame in (("quarantine", refusals.lazy()), ("sources", sources_frame(rows))):
            fingerprint = digest([table, rows, refusals.rows(), self.engine])
            if self.store.current(table, fingerprint, REFUSED_PART) is None:
                self.store.write(table, frame, fingerprint, REFUSED_PART)

    def _hash_or_none(self, path: Path) -> str | None:
        try:
            return self.file_hash(path)
        except InputFileError:
            return None

    def _require_unchanged(self, path: Path, content: str) -> None:
        """Refuse what was read from a file that no longer has the bytes that were hashed before."""
        if self.file_hash(path) != content:
            raise InputFileError(f"{path}: changed while it was being read; run again")

    def _read_source(self, source: Source, content: str | None, scratch: Path) -> tuple[Row, IngestedAttempts]:
        problems = self.store.scan_with_extras("problems")
        try:
            content = content or self.file_hash(source.path)
            if source.format == NATIVE:
                read = read_fixes(source.path, source.model, problems, scratch, self.config.problem_key)
            else:
                table = self.discovery.adapter_tables[source.path].for_model(source.model)
                read = read_attempts(table, source.model, problems, scratch)
            self._require_unchanged(source.path, content)
        except InputFileError as error:
            reason = str(error)
            return refused_row(source, content, reason), no_attempts(source, reason)
        return evaluated_row(source, content, read), read


def _changed_at(path: Path) -> int | None:
    try:
        return path.stat().st_ctime_ns
    except OSError:
        return None
