"""The ingest stage: input files become the tables `problems`, `attempts`, `sources` and `quarantine`.

How a file is read belongs in the readers beside this module; here it is decided what is read again and written where.
"""

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from touchstone.config import EvaluationConfig
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.fixes import IngestedAttempts, read_attempts, read_fixes, sort_attempts
from touchstone.ingest.inputs import Inputs
from touchstone.ingest.problems import derived_problems, read_problems
from touchstone.ingest.sources import NATIVE, Source
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
from touchstone.storage.code_version import table_code_version
from touchstone.storage.store import Part, Store, digest
from touchstone.tables import TABLES

# Model names cannot start with "@", so these parts cannot be taken for a model's.
PROBLEMS_PART = "@problems"
REFUSED_PART = "@refused"


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

    def problems(self) -> Part:
        """The problems to be solved: the denominator of every figure."""
        code = table_code_version("problems")
        fingerprint = digest(["problems", self.inputs.problems_version(), self.config.problem_key, code])
        current = self.store.current("problems", fingerprint)
        if current is not None:
            return current
        files = self.inputs.files_with_problems
        problems = derived_problems([self.inputs.discovery.adapter_tables[path] for path in files]).lazy()
        inputs = {path.name: self.inputs.file_hash(path) for path in files}
        for table in ("quarantine", "sources"):
            self.store.remove(table, PROBLEMS_PART)
        if self.inputs.problems_csv is not None:
            inputs["problems"] = self.inputs.file_hash(self.inputs.problems_csv)
            listed = self._read_problems(self.inputs.problems_csv, inputs["problems"], fingerprint)
            more = problems.join(listed, on="oid", how="anti")
            problems = pl.concat([listed, more], how="diagonal").sort("oid")
        part = self.store.write("problems", problems, fingerprint, inputs=inputs)
        self.store.clear_scratch()
        return part

    def _read_problems(self, path: Path, content: str, fingerprint: str) -> pl.LazyFrame:
        """The rows of the problems file, with its refused rows and its line in `sources` written."""
        read = read_problems(path, self.store.scratch("problems.parquet"), self.config.problem_key)
        self.inputs.require_unchanged(path, content)
        self.store.write("quarantine", read.quarantine.lazy(), fingerprint, PROBLEMS_PART)
        row = problems_row(path, content, read.rows, read.rows - read.quarantine.height)
        self.store.write("sources", sources_frame([row]), fingerprint, PROBLEMS_PART)
        return read.problems

    def attempts(self) -> dict[str, Part]:
        """Every attempt of every model, as its fixes file states it. Refused rows go to `quarantine`."""
        self.removed_models = self._remove_models_without_files()
        self._record_other_files()
        parts = {model: self.attempts_of(model) for model in self.inputs.each_model("attempts")}
        self.inputs.save_hashes()
        return parts

    def sources(self) -> dict[str, Part]:
        """One row per file and model: how many rows it had, how many became attempts, or why it was not evaluated."""
        return self.store.all_parts("sources")

    def quarantine(self) -> dict[str, Part]:
        """Every refused row with its file, line and reason."""
        return self.store.all_parts("quarantine")

    def attempts_of(self, model: str) -> Part:
        """One model's attempts, read again if its files changed. An unreadable file gives none, and says why."""
        sources = self.inputs.discovery.sources.get(model)
        if sources is None:
            raise TouchstoneError(f"{self.config.fixes_dir}: there is no fixes file for the model '{model}'")
        self.store.require("problems")
        kept = self.store.part("attempts", model)
        if kept is not None and self.store.part("sources", model) and self.only and model not in self.only:
            return kept
        hashes = {source.path: self.inputs.hash_or_none(source.path) for source in sources}
        contents = [(source.path.name, source.format, hashes[source.path]) for source in sources]
        made_from = [self.store.fingerprint("problems"), self.config.problem_key, table_code_version("attempts")]
        fingerprint = digest(["attempts", model, contents, made_from])
        current = self.store.current("attempts", fingerprint, model)
        if current is not None and model not in self.only:
            return current
        return self._read_model(model, sources, hashes, fingerprint)

    def _read_model(self, model: str, sources: list[Source], hashes: dict[Path, str | None], fingerprint: str) -> Part:
        rows, parts = [], []
        for place, source in enumerate(sources):
            scratch = self.store.scratch(f"fixes-{place}.parquet")
            row, read = self._read_source(source, hashes[source.path], scratch)
            rows.append(row)
            parts.append(read)
        error = conflicting_attempt(model, sources, parts)
        if error is not None:
            rows = [refused_row(source, None, error) for source in sources]
            parts = [no_attempts(source, error) for source in sources]
        quarantine = pl.concat([part.quarantine for part in parts])
        if quarantine.is_empty():
            self.store.remove("quarantine", model)
        else:
            self.store.write("quarantine", quarantine.lazy(), fingerprint, model)
        self.store.write("sources", sources_frame(rows), fingerprint, model)
        # The attempts last: their stamp says that all of it is current.
        attempts = pl.concat([part.attempts for part in parts], how="diagonal")
        inputs = {path.name: content or "unreadable" for path, content in hashes.items()}
        part = self.store.write("attempts", sort_attempts(attempts), fingerprint, model, inputs)
        self.store.clear_scratch()
        return part

    def _read_source(self, source: Source, content: str | None, scratch: Path) -> tuple[Row, IngestedAttempts]:
        problems = self.store.scan_with_extras("problems")
        try:
            content = content or self.inputs.file_hash(source.path)
            if source.format == NATIVE:
                read = read_fixes(source.path, source.model, problems, scratch, self.config.problem_key)
            else:
                table = self.inputs.discovery.adapter_tables[source.path].for_model(source.model)
                read = read_attempts(table, source.model, problems, scratch)
            self.inputs.require_unchanged(source.path, content)
        except InputFileError as error:
            reason = str(error)
            return refused_row(source, content, reason), no_attempts(source, reason)
        return evaluated_row(source, content, read), read

    @property
    def removal_warning(self) -> str:
        """What to say about the removed models."""
        return f"the fixes files of {', '.join(self.removed_models)} are gone; their results are removed"

    def _remove_models_without_files(self) -> list[str]:
        """Remove the parts of models whose files are gone; returns their names."""
        kept = [*self.inputs.models, PROBLEMS_PART, REFUSED_PART]
        tables = [table.name for table in TABLES.values() if table.per_model or table.made_with]
        return sorted({model for table in tables for model in self.store.keep_parts(table, kept)})

    def _record_other_files(self) -> None:
        """Record the files that are not evaluated and why, and the rows that name no model."""
        refusals = quarantine_without_model(self.inputs.discovery)
        rows = not_evaluated_rows(self.inputs.discovery)
        for table, frame in (("quarantine", refusals.lazy()), ("sources", sources_frame(rows))):
            fingerprint = digest([table, rows, refusals.rows(), table_code_version(table)])
            if self.store.current(table, fingerprint, REFUSED_PART) is None:
                self.store.write(table, frame, fingerprint, REFUSED_PART)
