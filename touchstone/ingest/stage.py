"""The ingest stage: input files become the tables `problems`, `attempts`, `sources` and `quarantine`.

How a file is read belongs in the readers beside this module; here it is decided what is read again and written where.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from touchstone.config import EvaluationConfig
from touchstone.config.audit import AuditRule, audit_rules
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.attempts import IngestedAttempts, file_notes, open_fixes, read_attempts, read_fixes, sort_read
from touchstone.ingest.clean_files import clean_batches, read_clean_files
from touchstone.ingest.combining import combine
from touchstone.ingest.csv_rows import TextTable
from touchstone.ingest.discovery import read_options
from touchstone.ingest.inputs import Inputs
from touchstone.ingest.problems import NO_PROBLEMS_FILE, derived_problems, read_problems, with_derived
from touchstone.ingest.slice_values import problem_slices
from touchstone.ingest.sources import NATIVE, ChangedWhileReadError, Source, read_unchanged
from touchstone.ingest.sources_table import (
    Row,
    evaluated_row,
    no_attempts,
    not_evaluated_rows,
    problems_row,
    quarantine_without_model,
    refused_row,
    reported_figures_frame,
    source_settings_frame,
    sources_frame,
)
from touchstone.ingest.transcripts import read_transcript_flags
from touchstone.progress import report_step
from touchstone.storage.batches import block_sizes, first_and_last
from touchstone.storage.code_version import table_code_version
from touchstone.storage.files import PROBLEMS_PART, REFUSED_PART
from touchstone.storage.store import Part, Store, digest
from touchstone.tables import TABLES


@dataclass(frozen=True)
class ModelFiles:
    """The sources of a model with their hashes, None if unreadable, and the fingerprint of what is made from them.

    `contents` has the hash of each file by name; a source that is a folder has several.
    """

    sources: list[Source]
    hashes: dict[Path, str | None]
    contents: dict[str, str]
    fingerprint: str


@dataclass
class IngestStage:
    """Reads the files that changed. Models named in `only` are read again even if nothing changed, others are kept.

    `removed_models` are those whose results were removed because their files are gone.
    """

    config: EvaluationConfig
    store: Store
    inputs: Inputs
    only: frozenset[str] = frozenset()
    removed_models: list[str] = field(init=False, default_factory=list)
    # Of each file with transcripts: the flags by line, and why some were not read.
    _transcripts: dict[Path, tuple[dict[int, str], str | None]] = field(init=False, default_factory=dict)

    def problems(self) -> Part:
        """The problems to be solved: the denominator of every figure."""
        excluded, fingerprint = self.inputs.rulings.excluded_problems, self._problems_fingerprint()
        made_from = digest([fingerprint, excluded]) if excluded else fingerprint
        current = self.store.current("problems", made_from)
        notes = ("quarantine", "sources") if self.inputs.problems_csv is not None else ()
        if current is not None and all(self.store.current(table, fingerprint, PROBLEMS_PART) for table in notes):
            return current
        files = self.inputs.files_with_problems
        problems = read_unchanged(lambda: files, lambda: self._derived_problems(files)).lazy()
        inputs = {
            self.inputs.label(file): self.inputs.file_hash(file)
            for path in files
            for file in self.inputs.files_of(path)
        }
        for table in ("quarantine", "sources"):
            self.store.remove(table, PROBLEMS_PART)
        path = self.inputs.problems_csv
        if path is not None:
            archive = [file for file in self.inputs.files_of(path) if file != path]
            inputs |= {self.inputs.label(file): self.inputs.file_hash(file) for file in archive}
            inputs["problems"] = self.inputs.file_hash(path)
            listed = self._read_problems(path, self.inputs.source_hash(path), fingerprint)
            problems = with_derived(listed, problems)
        problems = problems.with_columns(excluded=pl.col("oid").is_in(excluded))
        part = self.store.write("problems", problems, made_from, inputs=inputs)
        self.store.clear_scratch()
        return part

    def _problems_fingerprint(self) -> str:
        """A hash of what the problems are made from but for rulings, which change no attempt."""
        made_from = [self.inputs.problems_version(), asdict(read_options(self.config)), self.config.cluster_columns]
        return digest(["problems", *made_from, table_code_version("problems")])

    def _derived_problems(self, files: Sequence[Path]) -> pl.DataFrame:
        """The problems that these results name."""
        key, adapted = self.config.problem_key, self.inputs.discovery.adapter_tables
        tables = [adapted.get(path) or open_fixes(path, key, self.config.columns) for path in files]
        return derived_problems(tables, key)

    def problem_slices(self) -> Part:
        """The value that every problem has in each configured slice."""
        settings = [each.model_dump(mode="json") for each in self.config.slices]
        made_from = [self.store.fingerprint("problems") if settings else None, settings]
        fingerprint = digest(["problem_slices", made_from, table_code_version("problem_slices")])
        current = self.store.current("problem_slices", fingerprint)
        if current is not None:
            return current
        rows = pl.DataFrame(schema=TABLES["problem_slices"].dtypes)
        if settings:
            problems = self.store.scan_with_extras("problems").collect()
            rows = problem_slices(problems, self.config.slices)
        return self.store.write("problem_slices", rows.lazy(), fingerprint)

    def _read_problems(self, path: Path, content: str, fingerprint: str) -> pl.LazyFrame:
        """The rows of the problems file, with its refused rows and its line in `sources` written."""
        scratch, key = self.store.scratch("problems.parquet"), self.config.problem_key
        columns, levels = self.config.columns, self.config.cluster_columns
        read = read_unchanged(lambda: [path], lambda: read_problems(path, scratch, key, columns, levels))
        self.inputs.require_unchanged(path, content)
        name = self.inputs.label(path)
        refused = read.quarantine.lazy().with_columns(source_file=pl.lit(name))
        self.store.write("quarantine", refused, fingerprint, PROBLEMS_PART)
        row = problems_row(name, content, read.rows, read.rows - read.quarantine.height, read.notes)
        self.store.write("sources", sources_frame([row]), fingerprint, PROBLEMS_PART)
        return read.problems

    def attempts(self) -> dict[str, Part]:
        """Every attempt of every model, as its fixes file states it. Refused rows go to `quarantine`."""
        self.removed_models = self._remove_models_without_files()
        self._record_other_files()
        parts = self._attempts_of(self.inputs.models)
        self.inputs.save_hashes()
        return parts

    def attempts_of(self, model: str) -> Part:
        """One model's attempts, read again if its files changed. An unreadable file gives none, and says why."""
        return self._attempts_of([model])[model]

    def _attempts_of(self, models: Sequence[str]) -> dict[str, Part]:
        """The attempts of each model: clean files are read many at once, any other one by itself."""
        self.store.require("problems")
        limits = self.config.input_limits.model_dump()
        settings = [self.config.problem_key, self.config.score, self.config.junit_pattern, limits]
        settings += [rule.model_dump() for rule in self._transcript_rules]
        made_from = [self._problems_fingerprint(), settings, table_code_version("attempts")]
        changed = {model: self._files_of(model, made_from) for model in models if not self._is_kept(model)}
        parts = {model: self.store.current("attempts", files.fingerprint, model) for model, files in changed.items()}
        recorded = self._recorded(changed)
        stale = {
            model: files
            for model, files in changed.items()
            if parts[model] is None or model in self.only or model not in recorded
        }
        clean = self._read_clean_files(stale)
        for place, model in enumerate(models, start=1):
            if model in stale and model not in clean:
                report_step(f"attempts of {model} ({place} of {len(models)})")
                clean[model] = self._read_changing(model, made_from)
        return {
            model: clean.get(model) or parts.get(model) or self.store.require_part("attempts", model)
            for model in models
        }

    def _recorded(self, models: Mapping[str, ModelFiles]) -> set[str]:
        """The models whose files have their rows in `sources`, and in `quarantine` if any were refused.

        Such a part may have been damaged since; reading the files again restores it.
        """
        found = {model for model, files in models.items() if self.store.current("sources", files.fingerprint, model)}
        if not found:
            return found
        refused = (pl.col("status") == "refused") | (pl.col("quarantined") > 0)
        refusing = self.store.scan("sources", sorted(found)).filter(refused).select("model").unique().collect()
        without = {
            model
            for model in refusing["model"]
            if not self.store.current("quarantine", models[model].fingerprint, model)
        }
        return found - without

    def _is_kept(self, model: str) -> bool:
        """Whether a model stays as it is because others were named."""
        others_named = bool(self.only) and model not in self.only
        return others_named and all(self.store.part(table, model) is not None for table in ("attempts", "sources"))

    def _files_of(self, model: str, made_from: object) -> ModelFiles:
        sources = self.inputs.discovery.sources.get(model)
        if sources is None:
            raise TouchstoneError(f"{self.config.fixes_dir}: there is no fixes file for the model '{model}'")
        hashes = {source.path: self.inputs.hash_or_none(source.path) for source in sources}
        files = [file for source in sources for file in self.inputs.files_of(source.path)]
        contents = {self.inputs.label(file): self.inputs.hash_or_none(file) or "unreadable" for file in files}
        made_of = [(source.name, source.format, hashes[source.path]) for source in sources]
        return ModelFiles(sources, hashes, contents, digest(["attempts", model, made_of, made_from]))

    def _read_clean_files(self, stale: Mapping[str, ModelFiles]) -> dict[str, Part]:
        """The attempts of the models with a single file in which every row is accepted."""
        tables: dict[str, TextTable] = {}
        for model, files in stale.items():
            if [source.format for source in files.sources] == [NATIVE]:
                with suppress(InputFileError):
                    tables[model] = open_fixes(files.sources[0].path, self.config.problem_key, self.config.columns)
        problems = self.store.scan_with_extras("problems").collect().lazy()
        parts: dict[str, Part] = {}
        for batch in clean_batches(tables):
            report_step(f"attempts of {first_and_last(list(batch))}")
            attempts = read_clean_files(batch, problems, self.config.problem_key)
            notes = {model: [*file_notes(table), *self._notes_on_problems] for model, table in batch.items()}
            parts |= self._write_clean({model: stale[model] for model in batch}, attempts, notes)
        return parts

    def _write_clean(
        self, batch: Mapping[str, ModelFiles], attempts: pl.DataFrame, notes: Mapping[str, Sequence[str]]
    ) -> dict[str, Part]:
        """Write the attempts of clean files; not those of a file that changed while it was read."""
        found = block_sizes(attempts["model"])
        rows = {model: count for model, count in found.items() if self._unchanged(batch[model])}
        if len(rows) < len(found):
            attempts = attempts.filter(pl.col("model").is_in(list(rows)))
        if not rows:
            return {}
        for model in rows:
            self.store.remove("quarantine", model)
        made_from = {model: batch[model].fingerprint for model in rows}
        sources = [
            evaluated_row(source, str(batch[model].hashes[source.path]), count, count, notes[model])
            for model, count in rows.items()
            for source in batch[model].sources
        ]
        self.store.write_models("sources", sources_frame(sources), made_from)
        # The attempts last: their stamp says that all of it is current.
        inputs = {model: batch[model].contents for model in rows}
        return self.store.write_models("attempts", attempts.lazy(), made_from, inputs)

    def _unchanged(self, files: ModelFiles) -> bool:
        return all(self.inputs.hash_or_none(path) == content for path, content in files.hashes.items())

    def _read_changing(self, model: str, made_from: object) -> Part:
        """Read a model's files as they are now, and once more if one of them changes meanwhile."""
        try:
            return self._read_model(model, self._files_of(model, made_from), refuse_changed=False)
        except ChangedWhileReadError:
            return self._read_model(model, self._files_of(model, made_from), refuse_changed=True)

    def _read_model(self, model: str, files: ModelFiles, *, refuse_changed: bool) -> Part:
        errors: list[str | None] = []
        parts: list[IngestedAttempts] = []
        for place, source in enumerate(files.sources):
            scratch = self.store.scratch(f"fixes-{place}.parquet")
            content = files.hashes[source.path]
            try:
                errors.append(None)
                parts.append(self._read_source(source, content, scratch))
            except InputFileError as error:
                changed = self.inputs.hash_or_none(source.path) != content or isinstance(error, ChangedWhileReadError)
                if changed and not refuse_changed:
                    raise ChangedWhileReadError(source.path) from None
                errors[-1] = str(error)
                parts.append(no_attempts(source, str(error)))
        combined = combine(model, files.sources, parts, self.inputs.discovery.adapter_tables)
        parts = combined.parts
        if combined.conflict is not None:
            rows = [refused_row(source, None, combined.conflict) for source in files.sources]
            parts = [no_attempts(source, combined.conflict) for source in files.sources]
        else:
            rows = [
                self._source_row(*each, files)
                for each in zip(files.sources, errors, parts, combined.notes, strict=True)
            ]
        quarantine = pl.concat([part.quarantine for part in parts])
        if quarantine.is_empty():
            self.store.remove("quarantine", model)
        else:
            self.store.write("quarantine", quarantine.lazy(), files.fingerprint, model)
        self.store.write("sources", sources_frame(rows), files.fingerprint, model)
        # The attempts last: their stamp says that all of it is current.
        attempts = pl.concat([part.attempts for part in parts], how="diagonal")
        ordered, at_once = sort_read(attempts, self.store.scratch(""))
        part = self.store.write("attempts", ordered, files.fingerprint, model, files.contents, at_once=at_once)
        self.store.clear_scratch()
        return part

    def _source_row(
        self, source: Source, error: str | None, read: IngestedAttempts, note: str | None, files: ModelFiles
    ) -> Row:
        content = files.hashes[source.path]
        if error is not None:
            return refused_row(source, content, error)
        table = self.inputs.discovery.adapter_tables.get(source.path)
        notes = [*(table.notes if table is not None else self._notes_on_problems), *read.notes]
        _, not_audited = self._transcripts.get(source.path, ({}, None))
        notes += [each for each in (note, not_audited) if each]
        return evaluated_row(source, content or self.inputs.source_hash(source.path), read.rows, read.accepted, notes)

    @property
    def _notes_on_problems(self) -> Sequence[str]:
        """The note on a CSV without a problems file."""
        return [NO_PROBLEMS_FILE] if self.inputs.problems_csv is None else []

    def _read_source(self, source: Source, content: str | None, scratch: Path) -> IngestedAttempts:
        """The attempts of a source; `InputFileError` says why it cannot be used."""
        problems = self.store.scan_with_extras("problems")
        content = content or self.inputs.source_hash(source.path)
        if source.format == NATIVE:
            key, renames = self.config.problem_key, self.config.columns
            read = read_fixes(source.path, source.model, problems, scratch, key, renames)
        else:
            table = self.inputs.discovery.adapter_tables[source.path].for_model(source.model)
            flags, _ = self._transcript_flags(source.path)
            read = read_attempts(table, source.model, problems, scratch, flags=flags)
        self.inputs.require_unchanged(source.path, content)
        named = read.quarantine.with_columns(source_file=pl.lit(source.name))
        return replace(read, quarantine=named)

    @cached_property
    def _transcript_rules(self) -> list[AuditRule]:
        return [
            rule
            for rule in audit_rules(self.config.audit)
            if rule.look == "transcript" and self.config.audit.transcripts
        ]

    def _transcript_flags(self, path: Path) -> tuple[dict[int, str], str | None]:
        """The flags of a file's transcripts, read once for all of its models."""
        if path not in self._transcripts and self._transcript_rules:
            table = self.inputs.discovery.adapter_tables[path]
            self._transcripts[path] = read_transcript_flags(table, self._transcript_rules, read_options(self.config))
        return self._transcripts.get(path, ({}, None))

    @property
    def removal_warning(self) -> str:
        """The warning about the removed models."""
        return f"the fixes files of {', '.join(self.removed_models)} are gone; their results are removed"

    def _remove_models_without_files(self) -> list[str]:
        """Remove the parts of models whose files are gone; returns their names."""
        kept = [*self.inputs.models, PROBLEMS_PART, REFUSED_PART]
        made = [table for table in TABLES.values() if table.group != "publish"]
        tables = [table.name for table in made if table.per_model or table.written_with]
        return sorted({model for table in tables for model in self.store.remove_other_parts(table, kept)})

    def _record_other_files(self) -> None:
        """Record the files that are not evaluated and why, and the rows that name no model."""
        refusals = quarantine_without_model(self.inputs.discovery)
        rows = not_evaluated_rows(self.inputs.discovery)
        figures = reported_figures_frame(self.inputs.discovery)
        settings = source_settings_frame(self.inputs.discovery)
        for table, frame in (
            ("quarantine", refusals.lazy()),
            ("sources", sources_frame(rows)),
            ("reported_figures", figures.lazy()),
            ("source_settings", settings.lazy()),
        ):
            found = [rows, refusals.rows(), figures.rows(), settings.rows()]
            fingerprint = digest([table, found, table_code_version(table)])
            if self.store.current(table, fingerprint, REFUSED_PART) is None:
                self.store.write(table, frame, fingerprint, REFUSED_PART)
