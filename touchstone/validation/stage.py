"""The validation stage: attempts become the tables `validator_noise`, `baselines` and `outcomes`.

Beside them, `problem_files` and `validated_fixes` keep texts for people to look at.
Recorded outcomes are taken as they are, the other fixes are validated. How belongs in the modules beside this one,
which are imported only if there is something to validate; here it is decided what is validated again.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from touchstone.config import EvaluationConfig
from touchstone.ingest.adapters.formats.swebench import INFRA_FAILURE, STATUS
from touchstone.ingest.attempts import sort_attempts
from touchstone.ingest.fix_columns import FIX_COLUMNS
from touchstone.ingest.inputs import Inputs
from touchstone.ingest.rulings import Ruling, plain
from touchstone.storage.batches import MAX_ROWS, batches
from touchstone.storage.code_version import table_code_version
from touchstone.storage.files import PROBLEMS_PART
from touchstone.storage.store import Part, Store, digest
from touchstone.tables import TABLES
from touchstone.validation.files.file_identity import identified_since
from touchstone.validation.protocol import SETTLED, NoTarget
from touchstone.validation.recorded import (
    REASONS,
    apply_rulings,
    recorded_outcomes,
    rows_without_model,
    rulings_frame,
)
from touchstone.vocabulary import VALIDATION_COLUMNS

if TYPE_CHECKING:
    from touchstone.validation.session import ValidationSession
    from touchstone.validation.targets import Target, Targets


# Columns that differ between two runs with the same result.
_VARYING = ("cached", "duration_seconds")


@dataclass
class ValidationStage:
    """Validates what changed. `only` works as in ingest; `fresh` validates again what the cache has."""

    config: EvaluationConfig
    store: Store
    inputs: Inputs
    only: frozenset[str] = frozenset()
    fresh: bool = False
    _session_began: int | None = field(init=False, default=None)
    _open: ExitStack = field(init=False, default_factory=ExitStack)

    def validator_noise(self) -> Part:
        """How often each test passes on the same files: problems, reference fixes and a sample of fixes, repeated."""
        settings, code = self.config.validation, table_code_version("validator_noise")
        targets = self.problem_targets() if settings.repeat > 1 else {}
        if not targets:
            fingerprint = digest(["validator_noise", "off", code])
            current = self.store.current("validator_noise", fingerprint)
            nothing = pl.LazyFrame(schema=TABLES["validator_noise"].dtypes)
            return current or self.store.write("validator_noise", nothing, fingerprint)
        intervals = self.config.intervals
        repeated: list[object] = [settings.repeat, settings.repeat_fixes, settings.exclude_flaky]
        repeated += [intervals.seed, intervals.confidence]
        made_from = [self.store.fingerprint("attempts"), self.session.fingerprint(targets), repeated]
        fingerprint = digest(["validator_noise", made_from, code])
        current = self.store.current("validator_noise", fingerprint)
        if current is not None and current.settled:
            return current
        from touchstone.validation.noise import noise_rows

        rows = noise_rows(targets, self._sampled_fixes(), self.session, intervals.confidence)
        frame = pl.DataFrame(rows, schema=TABLES["validator_noise"].dtypes)
        # If nothing was decided, the next run tries again; for a few problems that would cost too much.
        decided, content = bool(rows), content_digest(frame)
        return self.store.write("validator_noise", frame.lazy(), fingerprint, fingerprint=content, settled=decided)

    def _sampled_fixes(self) -> Iterator[dict[str, Any]]:
        from touchstone.validation.noise import sample_fixes

        at_most, seed = self.config.validation.repeat_fixes, self.config.intervals.seed
        for model in self.store.parts("attempts"):
            fixes = self._fixes_of(model)
            if fixes is not None:
                yield from sample_fixes(fixes, at_most, seed).iter_rows(named=True)

    def problem_targets(self) -> "dict[str, Target | NoTarget]":
        """The targets of all problems with fixes to validate."""
        models = self.store.parts("attempts")
        frames = [fixes.select("oid") for model in models if (fixes := self._fixes_of(model)) is not None]
        return self.targets(pl.concat(frames).unique().collect()["oid"].to_list() if frames else [])

    def excluded_tests(self) -> dict[str, frozenset[str]]:
        """The tests that do not count, by problem: the flaky ones, if the configuration excludes them."""
        if not self.config.validation.exclude_flaky:
            return {}
        tests = self.store.scan("validator_noise").filter("excluded").group_by("oid").agg("test").sort("oid").collect()
        return {oid: frozenset(names) for oid, names in tests.iter_rows()}

    def baselines(self) -> Part:
        """The problems as they came and with their reference fixes, validated: what every fix is compared with."""
        targets, excluded = self.problem_targets(), self.excluded_tests()
        made_from = self.session.fingerprint(targets) if targets else None
        fingerprint = digest(["baselines", made_from, _plain(excluded), table_code_version("baselines")])
        current = self.store.current("baselines", fingerprint)
        files = self.store.current("problem_files", fingerprint, PROBLEMS_PART)
        if current is not None and current.settled and files is not None:
            return current
        rows: list[dict[str, Any]] = []
        originals: list[dict[str, Any]] = []
        if targets:
            from touchstone.validation.outcomes import baseline_rows, problem_file_rows

            rows = baseline_rows(targets, self.session, excluded)
            originals = list(problem_file_rows(targets, self.config.validation))
        kept = pl.LazyFrame(originals, schema=TABLES["problem_files"].dtypes)
        self.store.write("problem_files", kept, fingerprint, PROBLEMS_PART)
        return self._write(
            "baselines", pl.DataFrame(rows, schema={**TABLES["baselines"].dtypes, SETTLED: pl.Boolean()}), fingerprint
        )

    def outcomes(self) -> dict[str, Part]:
        """The verdict on every attempt: passed, failed, or not decided."""
        self._write_rulings_without_model()
        no_texts = digest(["validated_fixes", table_code_version("validated_fixes")])
        if self.store.current("validated_fixes", no_texts, PROBLEMS_PART) is None:
            self._keep_texts(None, no_texts, ())
        recorded = self._recorded_outcomes([model for model in self.inputs.models if self._fixes_of(model) is None])
        return {model: recorded.get(model) or self.outcomes_of(model) for model in self.inputs.each_model("outcomes")}

    def _recorded_outcomes(self, models: Sequence[str]) -> dict[str, Part]:
        """The outcomes of models without fixes to validate, made many at once."""
        made_from = {model: self._fingerprint(model, None, {}) for model in models}
        parts = {model: self._current_outcomes(model, made_from[model]) for model in models}
        stale = {model: self.store.require_part("attempts", model).rows for model in models if parts[model] is None}
        written: dict[str, Part] = {}
        for batch in batches(stale):
            outcomes = recorded_outcomes(self.store.scan("attempts", batch, REASONS))
            for model in batch:
                self.store.remove("validated_fixes", model)
            outcomes = self._ruled(outcomes, {model: made_from[model] for model in batch})
            versions = {model: made_from[model] for model in batch}
            in_memory = sum(stale[model] for model in batch) <= MAX_ROWS
            written |= self.store.write_models("outcomes", outcomes, versions, in_memory=in_memory)
        return written | {model: part for model, part in parts.items() if part is not None}

    def _current_outcomes(self, model: str, made_from: str) -> Part | None:
        """A model's outcomes unless they must be made again."""
        current = self.store.current("outcomes", made_from, model)
        if self._rulings_about(model) and self.store.current("rulings", made_from, model) is None:
            return None
        keep = current is not None and (current.settled or bool(self.only)) and model not in self.only
        return current if keep else None

    def _rulings_about(self, model: str) -> dict[int, Ruling]:
        return self.inputs.rulings.about(model)

    def _ruled(self, outcomes: pl.LazyFrame, made_from: Mapping[str, str]) -> pl.LazyFrame:
        """The outcomes of some models with what people ruled, of which the table `rulings` is written."""
        concerning = {model: rulings for model in made_from if (rulings := self._rulings_about(model))}
        for model in made_from.keys() - concerning.keys():
            self.store.remove("rulings", model)
        if not concerning:
            return outcomes
        attempts = self.store.scan("attempts", list(concerning))
        ruled, rows = apply_rulings(outcomes.collect(), attempts, concerning)
        for model, found in rows.items():
            self.store.write("rulings", rulings_frame(found), made_from[model], model)
        return ruled.lazy()

    def _write_rulings_without_model(self) -> None:
        """Write the rulings about no model, and the lines that were refused; empty if there are none."""
        found = self.inputs.rulings
        rows: list[dict[str, Any]] = []
        if found.sha256 is not None:
            problems = self.store.scan("problems").select("oid").collect()["oid"]
            rows = rows_without_model(found, self.inputs.models, problems)
        made_from = digest(["rulings", rows, found.sha256, table_code_version("rulings")])
        if self.store.current("rulings", made_from, PROBLEMS_PART) is None:
            read = {} if found.sha256 is None else {"rulings": found.sha256}
            content = digest(rows)
            self.store.write("rulings", rulings_frame(rows), made_from, PROBLEMS_PART, read, fingerprint=content)

    def outcomes_of(self, model: str) -> Part:
        """One model's outcomes."""
        fixes = self._fixes_of(model)
        rows = fixes.collect() if fixes is not None else pl.DataFrame()
        targets = self.targets(rows["oid"].unique().to_list()) if rows.height else {}
        if not targets:
            return self._recorded_outcomes([model])[model]
        excluded = {oid: tests for oid, tests in self.excluded_tests().items() if oid in targets}
        fingerprint = self._fingerprint(model, self.session.fingerprint(targets), excluded)
        current = self._current_outcomes(model, fingerprint)
        if current is not None:
            return current
        recorded = recorded_outcomes(self.store.scan("attempts", [model], REASONS))
        from touchstone.validation.outcomes import KEPT, outcome_rows

        table = TABLES["outcomes"]
        judged = outcome_rows(rows.iter_rows(named=True), targets, self.session, excluded)
        self._keep_texts(model, fingerprint, ({**row, **row[KEPT]} for row in judged if row.get(KEPT)))
        judged_rows = pl.LazyFrame(judged, schema={**table.dtypes, SETTLED: pl.Boolean()})
        validated = judged_rows.with_columns(measured="passed")
        rest = recorded.select(list(table.dtypes)).join(validated, on=table.key, how="anti")
        every = sort_attempts(pl.concat([rest, validated], how="diagonal"))
        return self._write("outcomes", self._ruled(every, {model: fingerprint}).collect(), fingerprint, model)

    def _fingerprint(self, model: str, validated_by: object, excluded: Mapping[str, frozenset[str]]) -> str:
        """A hash of what a model's outcomes are made from."""
        attempts = self.store.require_part("attempts", model).fingerprint
        made_from = [attempts, validated_by, _plain(excluded), plain(self._rulings_about(model))]
        return digest(["outcomes", made_from, table_code_version("outcomes")])

    def _keep_texts(self, model: str | None, fingerprint: str, rows: Iterable[dict[str, Any]]) -> None:
        """Write what `validated_fixes` has of a model. Without one, an empty part, so that the table always exists."""
        kept = pl.LazyFrame(list(rows), schema=TABLES["validated_fixes"].dtypes)
        self.store.write("validated_fixes", kept, fingerprint, model or PROBLEMS_PART)

    @cached_property
    def session(self) -> "ValidationSession":
        """The sandbox, cache and workers of this run."""
        from touchstone.validation.session import ValidationSession

        self._session_began = time.monotonic_ns()
        settings = self.config.validation
        scratch, workers = self.store.scratch("validation"), self.config.worker_settings
        session = ValidationSession(settings, self.cache_dir, scratch, fresh=self.fresh, workers=workers)
        return self._open.enter_context(session)

    @property
    def tools(self) -> frozenset[Path] | None:
        """The programs and packages that validation depends on; None if nothing had to be validated."""
        return None if self._session_began is None else identified_since(self._session_began)

    @property
    def cache_dir(self) -> Path:
        """The folder of the validation cache."""
        return self.config.validation.cache_dir or self.config.output_dir / "cache"

    def close(self) -> None:
        """Stop the workers and their sandboxes."""
        self._open.close()

    def _write(self, table: str, frame: pl.DataFrame, made_from: str, model: str | None = None) -> Part:
        """Write what validators found. The same inputs may give another result next time, so the content counts."""
        settled, frame = bool(frame[SETTLED].fill_null(True).all()), frame.drop(SETTLED)
        return self.store.write(
            table, frame.lazy(), made_from, model, fingerprint=content_digest(frame), settled=settled
        )

    def _fixes_of(self, model: str) -> pl.LazyFrame | None:
        """A model's attempts whose fix must be validated; None if there is none."""
        mode = self.config.validation.mode
        if self.config.clones_dir is None or mode == "never" or self.store.part("attempts", model) is None:
            return None
        attempts = self.store.scan_with_extras("attempts", model)
        columns = attempts.collect_schema()
        present = [name for name in FIX_COLUMNS if name in columns]
        if not present:
            return None
        wanted = pl.lit(True) if mode == "always" else pl.col("passed").is_null()
        if STATUS in columns:
            # Ended by the provider or the environment, so there is no fix to judge: not an empty one, which fails.
            wanted &= pl.col(STATUS).ne_missing(INFRA_FAILURE)
        return attempts.filter(wanted).select(*TABLES["attempts"].key, *present)

    def targets(self, oids: Sequence[str]) -> "dict[str, Target | NoTarget]":
        """The target of each problem: files, lines and validator."""
        if not oids:
            return {}
        return self._targets.find(self._problem_rows(pl.col("oid").is_in(oids)))

    def _problem_rows(self, wanted: pl.Expr) -> Iterator[dict[str, Any]]:
        """The columns of problems that validation reads."""
        problems = self.store.scan_with_extras("problems")
        present = [name for name in VALIDATION_COLUMNS if name in problems.collect_schema()]
        return problems.filter(wanted).select("oid", *present).sort("oid").collect().iter_rows(named=True)

    @cached_property
    def _targets(self) -> "Targets":
        """Finds the targets. The validator of Terraform files is chosen once, for all problems of the evaluation."""
        from touchstone.validation.targets import Targets
        from touchstone.validation.terraform_choice import choose_terraform_validator

        clones = self.config.clones_dir
        return Targets(clones, choose_terraform_validator(self._problem_rows(pl.lit(True)), clones, self.session))


def _plain(excluded: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    return {oid: sorted(tests) for oid, tests in excluded.items()}


def content_digest(results: pl.DataFrame) -> str:
    """A hash of the results, ignoring duration and whether they were cached.

    >>> first = pl.DataFrame({"oid": ["a"], "status": ["passed"], "duration_seconds": [0.5]})
    >>> content_digest(first) == content_digest(first.with_columns(duration_seconds=pl.lit(0.7)))
    True
    """
    text = results.drop(_VARYING, strict=False).write_csv(null_value="\0")
    return hashlib.sha256(text.encode()).hexdigest()
