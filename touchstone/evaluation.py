"""One evaluation: a configuration at work on its output folder; and the public Python API.

It brings the tables declared in `tables` up to date, each by its stage or function, and runs the checks declared in
`checks`. The Dagster assets call `materialize` table by table; `run` does all of it without Dagster.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel

from touchstone.config import EvaluationConfig, load_config
from touchstone.errors import TouchstoneError
from touchstone.locations import is_working_copy, output_location
from touchstone.progress import report_stage, report_step, report_warning
from touchstone.storage import model_rows
from touchstone.storage.batches import MAX_ROWS, batches, first_and_last
from touchstone.storage.code_version import module_code_version, table_code_version
from touchstone.storage.files import parquet_files, refuse_links_out, replacing
from touchstone.storage.output_folders import open_store
from touchstone.storage.run_log import RunLog
from touchstone.storage.store import Part, Store, check_if_stale, digest, keep_result
from touchstone.tables import TABLES, Table
from touchstone.tables.checks import CHECKS, Check, CheckOutcome, CheckResult
from touchstone.text import near

if TYPE_CHECKING:
    import polars as pl

    from touchstone.audit.passes import PassAudit
    from touchstone.comparison.compare import ComparisonResult
    from touchstone.comparison.gate import Gate
    from touchstone.ingest.inputs import Inputs
    from touchstone.ingest.stage import IngestStage
    from touchstone.publish.stage import PublishStage
    from touchstone.publish.up_to_date import RunRecorder
    from touchstone.storage.published_objects import PathFilter
    from touchstone.validation.stage import ValidationStage


PathLike = str | Path


@dataclass
class Evaluation:
    """A configuration at work on its output folder.

    Models named in `only` are evaluated again even if nothing changed, and the others stay as they are. `accept`
    publishes results that fail against the pinned baseline, with a warning. `fresh` validates again what is cached.
    `made` and `reused` count parts of tables; `made_assets` are those that Dagster has made so far in this run.
    """

    config: EvaluationConfig
    only: frozenset[str] = frozenset()
    accept: bool = False
    fresh: bool = False
    stopped_by_gate: bool = field(init=False, default=False)
    published: bool = field(init=False, default=False)
    made: int = field(init=False, default=0)
    reused: int = field(init=False, default=0)
    made_assets: set[str] = field(init=False, default_factory=set)
    store: Store = field(init=False)
    run_log: RunLog = field(init=False)
    _checked: dict[str, CheckOutcome] = field(init=False, default_factory=dict)
    # Records the run once it is published, so that the next one can be skipped if nothing changed.
    _recorder: "RunRecorder | None" = field(init=False, default=None)
    _open: ExitStack = field(init=False, default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.store = open_store(self.config.output_dir)
        self.run_log = RunLog(self.store)

    @classmethod
    def load(
        cls,
        source: Path | Mapping[str, Any],
        output_dir: Path | None = None,
        only: Iterable[str] = (),
        *,
        accept: bool = False,
        fresh: bool = False,
    ) -> Self:
        """The evaluation that a configuration (a file, or its content) describes; writes the synthetic data asked for.

        Inputs in object storage are downloaded.
        """
        from touchstone.ingest.input_paths import fetch_inputs

        config = load_config(source, output_dir)
        fetch_inputs(config)
        if config.generate_synthetic_data:
            from touchstone.ingest.synthetic import generate_if_asked

            generate_if_asked(config)
        return cls(config, frozenset(only), accept, fresh)

    # The stages. Each imports what it needs when a run gets there: Dagster's definitions load without them.

    @cached_property
    def inputs(self) -> "Inputs":
        """The input files."""
        from touchstone.ingest.inputs import Inputs

        return Inputs(self.config, self.store.content_hashes)

    @cached_property
    def ingest(self) -> "IngestStage":
        """Files to rows."""
        from touchstone.ingest.stage import IngestStage

        return IngestStage(self.config, self.store, self.inputs, self.only)

    @cached_property
    def validation(self) -> "ValidationStage":
        """Rows to outcomes."""
        from touchstone.validation.stage import ValidationStage

        stage = ValidationStage(self.config, self.store, self.inputs, self.only, self.fresh)
        self._open.callback(stage.close)
        return stage

    @cached_property
    def gate(self) -> "Gate":
        """The run against its pinned baseline."""
        from touchstone.comparison.gate import Gate

        return Gate(self.config.comparison, self.store, self.accept)

    @cached_property
    def pass_audit(self) -> "PassAudit":
        """Fixes and transcripts to flags."""
        from touchstone.audit.passes import PassAudit

        return PassAudit(self.config, self.store, self.validation)

    @cached_property
    def publish(self) -> "PublishStage":
        """Tables to what people read."""
        from touchstone.publish.stage import PublishStage

        return PublishStage(self.config, self.store, self.run_log)

    # What makes tables and checks

    def _write_by_stage(self, table: Table) -> "Part | dict[str, Part]":
        """Have a stage write one of the tables that are declared with `step`."""
        if table.written_with and table.name != "run_log":
            return self.store.all_parts(table.name)
        if table.name == "mutants":
            from touchstone.audit.strength import write_mutants

            return write_mutants(self.validation)
        write: Callable[[], Part | dict[str, Part]] = getattr(getattr(self, table.group), table.name)
        return write()

    @cached_property
    def functions(self) -> "Mapping[str, Callable[..., pl.LazyFrame]]":
        """The functions of all other tables by name."""
        return {
            **{name: function for name, table in TABLES.items() if (function := table.function) is not None},
            "audit_flags": self.pass_audit.audit_flags,
            **{name: getattr(self.gate, name) for name, table in TABLES.items() if table.against_baseline},
        }

    @cached_property
    def check_functions(self) -> "Mapping[str, Callable[..., CheckResult]]":
        """The functions of the checks by name."""
        return {each.name: getattr(self.gate, each.name) if each.against_baseline else each.function for each in CHECKS}

    # Tables and checks

    def begin(self) -> None:
        """Prepare the output folder, which is locked, for a run."""
        from touchstone.publish.up_to_date import RunRecorder

        self._recorder = RunRecorder(self.config, self.store, self.inputs.hashes)
        with replacing(self.store.rulings_place) as scratch:
            scratch.write_text(os.path.relpath(self.config.rulings_file, self.store.root))
        if self.fresh:
            self.store.discard_draft()

    def materialize(self, name: str) -> dict[str, Part]:
        """Bring a table up to date; returns its parts, of which there is one per model or a single one."""
        with self.run_log.step(name) as step:
            parts = self._materialize(name)
            step.made(parts.values())
        if TABLES[name].written_with is None:
            reused = sum(part.reused for part in parts.values())
            self.made, self.reused = self.made + len(parts) - reused, self.reused + reused
        return parts

    def _materialize(self, name: str) -> dict[str, Part]:
        table = TABLES[name]
        if table.step:
            self.store.require(*() if table.written_with or name == "history" else table.reads)
            made = self._write_by_stage(table)
            return made if isinstance(made, dict) else {name: made}
        if table.per_model:
            return self._materialize_models(table)
        if table.by_model:
            return {name: self._materialize_changed_models(table)}
        return {name: self.materialize_if_stale(table)}

    def materialize_if_stale(self, table: Table) -> Part:
        """Make a table unless it was already made from the same tables, settings and code."""
        self.store.require(*table.reads)
        fingerprint = self._fingerprint(table, [self.store.fingerprint(name) for name in table.reads])
        current = self.store.current(table.name, fingerprint)
        if current is not None:
            return current
        return self.store.write(table.name, self._made(table), fingerprint)

    def _materialize_models(self, table: Table) -> dict[str, Part]:
        """Make the parts of the models that were not already made from the same, as many at once as memory allows."""
        parts: dict[str, Part] = {}
        made_from: dict[str, str] = {}
        rows: dict[str, int] = {}
        for model in self.inputs.models:
            read = [self.store.require_part(name, model) for name in table.reads]
            made_from[model] = self._fingerprint(table, [part.fingerprint for part in read])
            current = self.store.current(table.name, made_from[model], model)
            if current is not None and model not in self.only:
                parts[model] = current
            else:
                rows[model] = max(part.rows for part in read)
        for batch in batches(rows):
            report_step(f"{table.name} of {first_and_last(batch)}")
            frame = self._made(table, batch)
            versions = {model: made_from[model] for model in batch}
            in_memory = sum(rows[model] for model in batch) <= MAX_ROWS
            parts |= self.store.write_models(table.name, frame, versions, in_memory=in_memory)
        return {model: parts[model] for model in self.inputs.models}

    def _fingerprint(self, table: Table, read_from: Sequence[str]) -> str:
        """A hash of what a table or part is made from: tables, settings, baseline and code."""
        settings = [_plain(value) for value in self._settings(table)]
        return digest([table.name, read_from, settings, self._baseline_version(table), table_code_version(table.name)])

    def _made(self, table: Table, models: Sequence[str] | None = None) -> "pl.LazyFrame":
        """The rows of a table, made from those of all models or of some."""
        frames = [self.store.scan(name, models, self._further_columns(table, name)) for name in table.reads]
        return self.functions[table.name](*frames, *self._settings(table))

    def _further_columns(self, table: Table, read: str) -> list[str]:
        """The columns of the input that a table reads of `attempts` besides the declared ones."""
        if table.further_columns is None or read != "attempts":
            return []
        import polars as pl

        wanted: list[str] = attrgetter(table.further_columns)(self.config)
        files = [part.path for part in self.store.all_parts(read).values()] if wanted else []
        known = {column: None for file in files for column in pl.read_parquet_schema(file)}
        for name in wanted:
            if name not in known:
                hint = near(name, known)
                raise TouchstoneError(f"{table.further_columns}: the attempts have no column '{name}' ({hint})")
        return [name for name in wanted if name not in TABLES[read].dtypes]

    def _materialize_changed_models(self, table: Table) -> Part:
        """Make a table again for the models whose rows of what it reads changed; see `storage.model_rows`."""
        self.store.require(*table.reads)
        settings = self._settings(table)
        version = digest(
            [[_plain(value) for value in settings], self._baseline_version(table), table_code_version(table.name)]
        )
        fingerprint, models = model_rows.fingerprints(self.store, table.name, table.reads, version)
        current = self.store.current(table.name, fingerprint)
        if current is not None:
            return current
        function = self.functions[table.name]
        frame = model_rows.update_changed(self.store, table, models, lambda *frames: function(*frames, *settings))
        return self.store.write(table.name, frame, fingerprint, models=models)

    @property
    def checked(self) -> Mapping[str, CheckOutcome]:
        """The outcomes of the checks that have run, by their full names."""
        return self._checked

    def check(self, check: Check) -> CheckResult:
        """Run a check on the tables as they are in the draft."""
        self.store.require(*(name for name in check.reads if name not in ("sources", "quarantine")))
        function, settings = self.check_functions[check.name], self._settings(check)

        def run() -> CheckResult:
            return function(*(self.store.scan(name) for name in check.reads), *settings)

        if check.against_baseline:
            # It depends on the baseline too, and writes a report.
            result = run()
            keep_result(self.store, check, result)
        else:
            version = digest([[_plain(value) for value in settings], module_code_version(function.__module__)])
            result = check_if_stale(self.store, check, version, run)
        self._checked[check.full_name] = CheckOutcome.of(check, result)
        if check.gate and result.error and not result.passed:
            self.stopped_by_gate = True
        return result

    def _settings(self, declared: Table | Check) -> list[object]:
        return [attrgetter(key)(self.config) for key in declared.settings]

    def _baseline_version(self, table: Table) -> str | None:
        return self.gate.version if table.against_baseline else None

    def outcome(self, failures: Sequence[str]) -> "RunOutcome":
        """How the run ended, with the steps that failed."""
        checks = list(self._checked.values())
        return RunOutcome(checks, failures, self.made, self.reused, self.stopped_by_gate, self.published)

    def close(self) -> None:
        """Stop the workers. If a gate stopped the run, keep its figures for `--draft`."""
        self._open.close()
        if self.stopped_by_gate:
            self.materialize("settings")
            self.store.keep_unpublished()
        self.run_log.save()
        # Every model was brought up to date, and every check held it to the configured rules.
        is_whole = len(self._checked) == len(CHECKS) and not self.only and not self.accept
        if self._recorder is not None and is_whole:
            self._recorder.record(list(self._checked.values()), self.gate.version, self.validation.tools)
        self._alert()

    def _alert(self) -> None:
        """Send an alert about gates that did not pass, if there is anybody to tell."""
        if self.config.alerts.webhook is None and not self.config.alerts.command:
            return
        from touchstone.publish.alerts import ALERTED, alert_document, send_alert

        checks = [self._checked[name] for name in ALERTED if name in self._checked and not self._checked[name].passed]
        if checks:
            report_step("sending an alert")
            gates = self.store.scan("gate_results", None if ALERTED[1] in self._checked else []).collect()
            document = alert_document(self.config.name or self.store.root.name, checks, gates, self.published)
            for note in send_alert(self.config.alerts, document):
                if not report_warning(note):
                    print(f"warning: {note}", file=sys.stderr)


def _plain(value: object) -> object:
    return value.model_dump() if isinstance(value, BaseModel) else value


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended: its checks, the steps that failed, and how many parts were made or reused.

    `stopped`: a gate failed, so nothing after it was made and nothing was published. `published`: the output folder
    has this run's results. `notes` are about what was removed of earlier runs.
    """

    checks: Sequence[CheckOutcome]
    failures: Sequence[str]
    made: int
    reused: int
    stopped: bool = False
    published: bool = True
    notes: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """2 if a step could not do its work (wrong input), 1 if a check failed with an error, else 0."""
        if self.failures:
            return 2
        return int(any(check.error and not check.passed for check in self.checks))


def run(evaluation: Evaluation) -> RunOutcome:
    """Evaluate everything in this process, without Dagster and so without a history in its UI."""
    with evaluation.store.lock(), closing(evaluation):
        evaluation.begin()
        evaluation.inputs.require_only(sorted(evaluation.only), "only")
        failures: list[str] = []
        for table in _in_order():
            try:
                evaluation.materialize(table.name)
            except TouchstoneError as error:
                failures.append(f"{table.name}: {error}")
                break
            if table.name == "attempts" and evaluation.ingest.removed_models:
                report_warning(evaluation.ingest.removal_warning)
            for check in checks_due_after(table.name):
                evaluation.check(check)
            if evaluation.stopped_by_gate:
                break
        if not failures and not evaluation.stopped_by_gate:
            report_step("publishing")
            try:
                evaluation.publish.all()
                evaluation.published = True
            except TouchstoneError as error:
                failures.append(f"warehouse: {error}")
        return evaluation.outcome(failures)


def _in_order() -> Iterator[Table]:
    """The tables in the order of the declarations, with progress reported."""
    for place, table in enumerate(TABLES.values()):
        report_stage(table.group, place, len(TABLES))
        report_step(table.name)
        yield table


def checks_due_after(table: str) -> list[Check]:
    """The checks for which a table is the last made of those that they are about or read."""
    order = list(TABLES)
    return [check for check in CHECKS if max((check.table, *check.reads), key=order.index) == table]


# The public Python API. Import it from `touchstone`, not from here


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The unbiased estimate of pass@k from c passes among n attempts; None if there are fewer than k attempts.

    >>> import touchstone
    >>> touchstone.pass_at_k(n=20, c=3, k=5)
    0.6008771929824561
    >>> touchstone.pass_at_k(n=2, c=1, k=5) is None
    True
    """
    from touchstone.metrics.pass_at_k import pass_at_k_of

    return pass_at_k_of(n, c, k)


@dataclass(frozen=True, repr=False)
class Results(Mapping[str, "pl.DataFrame"]):
    """The published tables of an evaluation by name, read when they are asked for. Printed, it is the leaderboard.

    `checks` are those of the run that `evaluate` made; empty for results that were loaded.
    """

    folder: Path
    checks: Sequence[CheckOutcome] = ()
    # Downloads published files, for results in object storage.
    fetch: "Callable[[PathFilter], Path] | None" = field(default=None, repr=False, compare=False)

    def __getitem__(self, table: str) -> "pl.DataFrame":
        return self.scan(table).collect()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.name for path in self._tables.iterdir() if path.is_dir()))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def scan(self, table: str) -> "pl.LazyFrame":
        """A table as a lazy frame, for those that are large."""
        import polars as pl

        if self.fetch is not None:
            self.fetch(lambda path: path.startswith(f"tables/{table}/"))
        files = parquet_files(self._tables / table)
        if not files:
            raise KeyError(table)
        return pl.concat([pl.scan_parquet(file, glob=False) for file in files], how="diagonal")

    @property
    def passed(self) -> bool:
        """Whether no check failed with an error."""
        return all(check.passed or not check.error for check in self.checks)

    @property
    def _tables(self) -> Path:
        return self.folder / "tables"

    def __repr__(self) -> str:
        from touchstone.publish.result_tables import leaderboard_of
        from touchstone.tables.presentation import plain_text

        return f"{plain_text(leaderboard_of(self['pass_at_k']))}\nin {self.folder}: {len(self)} tables"


def evaluate(
    config: PathLike | Sequence[PathLike] | Mapping[str, object],
    *,
    output_dir: PathLike | None = None,
    only: Sequence[str] = (),
) -> Results:
    """Run a whole evaluation in this process: ingest, validate, score, publish. Unchanged input is not read again.

    `config` is a configuration file, its content as a dict (with paths relative to the current folder), a folder with
    results, or files: what `touchstone run` takes. The results of bare files go to `touchstone-results` beside them.

    Does what `touchstone run` does, without Dagster and so without a run in its UI. Raises `TouchstoneError` for wrong
    input, or if a gate stops the run.

    >>> import tempfile, touchstone
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "m_fixes.csv").write_text("oid,iteration_id,passed\\na,1,true\\na,2,false\\n")
    ...     results = touchstone.evaluate(folder)
    ...     results.passed, results["pass_at_k"]["pass_at_k"].to_list()
    (True, [0.5, 1.0])
    """
    outcome = run(evaluation := _evaluation(config, Path(output_dir) if output_dir is not None else None, only))
    if outcome.failures:
        raise TouchstoneError("; ".join(outcome.failures))
    if outcome.stopped:
        failed = [f"{check.name}: {check.message}" for check in outcome.checks if check.error and not check.passed]
        raise TouchstoneError(f"nothing was published: {'; '.join(failed)}")
    return replace(load_results(evaluation.config.output_dir), checks=outcome.checks)


def _evaluation(
    config: PathLike | Sequence[PathLike] | Mapping[str, object], output_dir: Path | None, only: Sequence[str]
) -> Evaluation:
    from touchstone.ingest.implied_config import config_with_results, is_config_file, removed_on_error, with_fitting_k
    from touchstone.ingest.recognized import most_attempts, recognized_sources

    if isinstance(config, Mapping):
        return Evaluation.load(config, output_dir, only)
    paths = [Path(config)] if isinstance(config, str | Path) else [Path(path) for path in config]
    if len(paths) == 1 and (is_config_file(paths[0]) or not paths[0].exists()):
        return Evaluation.load(paths[0], output_dir, only)
    place, is_new = config_with_results(paths, output_dir)
    if not is_new:
        return Evaluation.load(place, only=only)
    with removed_on_error(place):
        evaluation = Evaluation.load(place, only=only)
        found = recognized_sources(evaluation.inputs.discovery, evaluation.config)
    evaluation.config = with_fitting_k(place, most_attempts(found, evaluation.inputs.discovery))
    return evaluation


def load_results(folder: PathLike) -> Results:
    """The published tables in an output folder, local or in object storage, or those of a snapshot.

    >>> import touchstone
    >>> touchstone.load_results("nowhere")
    Traceback (most recent call last):
    touchstone.errors.TouchstoneError: nowhere: no results here (no folder 'tables'); run `touchstone run` first
    """
    place = output_location(folder)
    if is_working_copy(place):
        from touchstone.storage.remote_store import View

        view = View(place)
        return Results(view.folder, fetch=view.fetch)
    found = Results(place)
    refuse_links_out(place, "tables")
    if not (found.folder / "tables").is_dir():
        raise TouchstoneError(f"{folder}: no results here (no folder 'tables'); run `touchstone run` first")
    return found


def compare(baseline: PathLike, current: PathLike, *, config: PathLike | None = None) -> "ComparisonResult":
    """Compare two evaluations, each an output folder, a snapshot's folder or a fixes file.

    `.verdicts` has the verdict per model and tier, `.report.cases` what became of every case as a Polars frame.

    >>> import tempfile, touchstone
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     old, new = (Path(folder) / name / "m_fixes.csv" for name in ("old", "new"))
    ...     for file, outcomes in ((old, ("true", "false")), (new, ("false", "false"))):
    ...         file.parent.mkdir()
    ...         _ = (file.parent / "problems.csv").write_text("oid,filename\\na,a.tf\\nb,b.tf\\n")
    ...         _ = file.write_text("oid,iteration_id,plausible_fix\\na,1,%s\\nb,1,%s\\n" % outcomes)
    ...     touchstone.compare(old, new).report.counts["regression"]
    1
    """
    from touchstone.comparison.compare import CompareOptions, configured_options
    from touchstone.comparison.compare import compare as compare_evaluations
    from touchstone.comparison.pairs import ComparisonSettings, comparison_settings

    options, settings = CompareOptions(), ComparisonSettings()
    if config is not None:
        loaded = load_config(Path(config))
        options, settings = configured_options(loaded), comparison_settings(loaded)
    return compare_evaluations(str(baseline), str(current), options, settings)
