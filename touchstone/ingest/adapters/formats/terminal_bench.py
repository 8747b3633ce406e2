"""Adapter for Terminal-Bench: the `results.json` of a run, or a folder with one or more runs.

A trial is an attempt, numbered as in its name (`task.2-of-5.run`); if a folder has several runs of a model, its trials
are numbered in the order of time. The model, agent, dataset and run are in `run_metadata.json` beside the results;
without it, the run is in the names of its trials, and the folder is the model: that of the run, or around it the one of
a submission to the leaderboard (`20250811_<agent>_<model>`). A task is unique within its dataset. Folders of trials
repeat the rows of the run, and add those of a run that was interrupted.

Terminal-Bench counts a trial without a verdict (`is_resolved` is null) as a failure. Here the failure mode decides:
timeouts and limits of the agent are failures, as are tests that time out, because they run what the agent left. A
trial that the harness or the installation of the agent ended, or whose test output could not be parsed, is undecided.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head
from touchstone.ingest.adapters.folders import (
    MAX_DOCUMENT_BYTES,
    bounded_document,
    is_file,
    is_folder,
    object_in,
    some_subfolders,
    subfolders,
    text_in,
)
from touchstone.ingest.adapters.json_files import (
    GENERATION,
    digest_of,
    identifier_of,
    inside,
    list_elements,
    number_of,
    object_records,
    raw_values,
    scalar_of,
    section_of,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.json_stream import Each, Keep
from touchstone.ingest.adapters.steps import Step, call_lines, typed_lines
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    settle,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import counts_of_table, pass_at_k, reported_pass_at_k
from touchstone.ingest.csv_rows import LINE, ROW_ERROR_KIND
from touchstone.text import counted

FORMAT = "terminal-bench"
COLUMNS = words(
    "oid iteration_id llm_name tier suite run_id passed classification failure_mode error tests_passed tests_failed "
    "input_tokens output_tokens started_at duration_seconds agent_seconds agent dataset_version trial_name sample_uuid"
)
_RESULTS, _METADATA = "results.json", "run_metadata.json"
_COMMANDS, _LOGS, _ANSWERS = "commands.txt", "agent-logs", ("response.json", "response.txt")
_NAME = re.compile(r".*\.(\d+)-of-\d+(?:\.(.*))?", re.DOTALL)
_SUBMISSION = re.compile(r"\d{8}_.+_.+")
# A folder of runs, a run, and a run inside it.
_MAX_NESTING = 3
_FAILURES = {
    "agent_timeout": "timeout",
    "test_timeout": "timeout",
    "context_length_exceeded": "error",
    "output_length_exceeded": "error",
    "fatal_llm_parse_error": "wrong_format",
    "unknown_agent_error": "crash",
}
# With these the trial was not judged, even if the tests of an untouched task failed.
_NEVER_RAN = ("agent_installation_failed",)
# A failure of the harness has the same mode as one of the agent; only the latter has a verdict.
_UNDECIDED_WITHOUT_VERDICT = ("unknown_agent_error",)
_NO_FAILURE = ("unset", "none")
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass
class _Run:
    """One run: what `run_metadata.json` and `results.json` say, and trials (or why one cannot be read) beside them.

    The rows of a file are read each time they are needed. `contradicted` are the names of trials that say something
    else than their row, `runs` those of the runs in the names of all trials.
    """

    folder: Path
    files: list[Path] = field(default_factory=list)
    metadata: Mapping[str, object] = field(default_factory=dict)
    results: Mapping[str, object] = field(default_factory=dict)
    source: Path | None = None
    others: list[object] = field(default_factory=list)
    contradicted: set[str | None] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    runs: set[str | None] = field(default_factory=set)
    # The first and the last line of the file's rows in the table.
    lines: tuple[int, int] = (1, 0)

    def rows(self) -> Iterator[object]:
        """The rows of the run's file, then those of trials that it lacks."""
        if self.source:
            yield from (row for _, row in list_elements(self.source, {"results": Each(Keep())}))
        yield from self.others

    @property
    def model(self) -> str:
        """The model, else the agent of a run without one, such as the oracle's, else the folder."""
        named = (scalar_of(self.metadata.get(name)) for name in ("model_name", "agent_name"))
        return next((name for name in named if name and name.strip()), self.model_folder)

    @property
    def model_folder(self) -> str:
        """The folder that is the model of a run without metadata."""
        above = self.folder.parent.name
        return above if _SUBMISSION.fullmatch(above) else self.folder.name

    @property
    def suite(self) -> str | None:
        name = scalar_of(self.metadata.get("dataset_name")) or scalar_of(self.metadata.get("dataset_path"))
        return name.rstrip("/").rpartition("/")[2] if name else None

    @cached_property
    def run_id(self) -> str:
        """The run in the metadata, else in the names of all trials, else the name of the file or its folder."""
        if named := scalar_of(self.metadata.get("run_id")):
            return named
        runs = self.runs | {_run_of_trial(row) for row in self.others if isinstance(row, dict)}
        run = runs.pop() if len(runs) == 1 else None
        file = next((file.stem for file in self.files if file.name not in (_RESULTS, _METADATA)), None)
        return run or file or self.folder.name


def read_terminal_bench(path: Path) -> AdapterTable:
    """Read a run, or every run in a folder, into rows of text cells."""
    folder = path.absolute() if path.is_dir() else path.absolute().parent
    runs = list(_runs_in(folder)) if path.is_dir() else [_run_of_file(path)]
    logs: list[Path] = []

    def records() -> Iterator[Record]:
        line = 0
        for run in runs:
            start = line + 1
            rows = _with_logs(run, logs, start)
            for record in object_records(rows, "trial", partial(_fill, run), {"llm_name": run.model}):
                line = record.line
                yield record
            run.lines = (start, line - len(run.others))
        if line == 0:
            raise InputFileError(f"{path}: there is no trial in it")

    def raw(_: Path) -> Iterator[tuple[int, object]]:
        return enumerate((row for run in runs for row in run.rows()), start=1)

    table = table_from_records(path, FORMAT, COLUMNS, records(), raw_values(raw))
    table, several = separate_agents(table)
    figures = [each for run in runs for each in _figures(run, table)]
    table, copies = without_copies(table)
    notes = [*(note for run in runs for note in run.notes), *several, *copies, "instructions are left out"]
    if len(runs) > 1:
        table = number_by_time(table)
        notes.append(f"{counted(len(runs), 'run')}: the trials of a model at a task are numbered in the order of time")
    files = [file.absolute() for run in runs for file in run.files]
    settings = [each for run in runs for each in _settings(run)]
    table = replace(table, files=(*files, *logs))
    return table.stating(figures, settings, dict.fromkeys(notes))


def _with_logs(run: _Run, logs: list[Path], start: int) -> Iterator[tuple[int, object]]:
    """The numbered rows of a run; the logs of their trials are added to `logs`."""
    for place, row in enumerate(run.rows(), start=start):
        logs += _logs_of_trial(run, row)
        yield place, row


def _settings(run: _Run) -> list[StatedSetting]:
    limits = "global_timeout_multiplier global_agent_timeout_sec global_test_timeout_sec"
    return [
        *stated_settings(run.model, "generation", inside(run.metadata, "agent_kwargs"), GENERATION, run.suite),
        *stated_settings(run.model, "limits", run.metadata, limits, run.suite),
    ]


def _recognizes(head: Head) -> bool:
    if head.is_folder:
        return _is_run(head.path) or any(_is_run(folder) for folder in some_subfolders(head.path))
    return _is_run_results(head) or head.has_keys("trial_name", "is_resolved", "task_id")


def _transcripts(table: AdapterTable) -> Iterator[tuple[int, Iterable[Step]]]:
    """The commands typed in each trial: from its key log, else from the model's answers."""
    by_name = dict(table.rows.select("trial_name", LINE).drop_nulls().collect().iter_rows())
    typed: dict[str, list[Path]] = {}
    for file in table.files:
        parts = file.parts
        name = next((parts[-depth] for depth in (2, 4) if len(parts) >= depth and parts[-depth] in by_name), None)
        if name is not None and file.name in (_COMMANDS, *_ANSWERS):
            typed.setdefault(name, []).append(file)
    for name, files in typed.items():
        keys = [file for file in files if file.name == _COMMANDS]
        yield (
            by_name[name],
            _typed_steps(keys or sorted(files, key=lambda file: (len(file.parent.name), file.parent.name))),
        )


def _typed_steps(files: Iterable[Path]) -> Iterator[Step]:
    texts = ((file.name, text_in(file, MAX_DOCUMENT_BYTES) or "") for file in files)
    lines = (
        line
        for name, text in texts
        for line in (typed_lines(text) if name == _COMMANDS else call_lines("terminal", text[text.find("{") :]))
    )
    return (Step(number, (line,)) for number, line in enumerate(lines, start=1))


def _logs_of_trial(run: _Run, row: object) -> Iterator[Path]:
    """The logs of what was typed, in the folder of a trial."""
    task, name = (scalar_of(inside(row).get(key)) for key in ("task_id", "trial_name"))
    if not task or not name or "/" in task + name or ".." in (task, name):
        return
    trial = run.folder / task / name
    if is_file(trial / _COMMANDS):
        yield trial / _COMMANDS
    elif is_folder(trial / _LOGS):
        answers = (folder / file for folder in subfolders(trial / _LOGS) for file in _ANSWERS)
        yield from (file for file in answers if is_file(file))


ADAPTER = Adapter(
    FORMAT, "Terminal-Bench results", _recognizes, lambda path, _: read_terminal_bench(path), transcripts=_transcripts
)


def _is_run_results(head: Head) -> bool:
    paths = head.key_paths
    if ("results", LIST, "trial_name") in paths:
        return ("results", LIST, "is_resolved") in paths
    return ("results", LIST) in paths and head.has_keys("n_resolved", "n_unresolved", "accuracy")


def _is_run(folder: Path) -> bool:
    if is_file(folder / _RESULTS) and _is_run_results(Head(folder / _RESULTS)):
        return True
    return is_file(folder / _METADATA) and Head(folder / _METADATA).has_keys("run_id", "agent_name", "n_attempts")


def _runs_in(folder: Path, nesting: int = 1) -> Iterator[_Run]:
    """The run of a folder, and those of the folders in it."""
    inner = [each for each in subfolders(folder) if _is_run(each)]
    if _is_run(folder):
        yield _run(folder, [each for each in subfolders(folder) if each not in inner])
    if nesting < _MAX_NESTING:
        for each in inner:
            yield from _runs_in(each, nesting + 1)
    elif inner:
        raise InputFileError(f"{inner[0]}: a run inside {_MAX_NESTING} others is not read; name its folder")


def _run(folder: Path, tasks: Iterable[Path]) -> _Run:
    run = _Run(folder)
    _read_metadata(run)
    known = _read_results(run, folder / _RESULTS) if is_file(folder / _RESULTS) else {}
    _add_trials(run, tasks, known)
    return run


def _run_of_file(path: Path) -> _Run:
    """The run of a single file; a file of one trial belongs to the run two folders above it."""
    if _is_run_results(Head(path)):
        run = _Run(path.absolute().parent)
        _read_metadata(run)
        _read_results(run, path)
        return run
    above = path.absolute().parents
    run = _Run(above[2] if len(above) > 2 and is_file(above[2] / _METADATA) else above[0])
    _read_metadata(run)
    run.files.append(path)
    run.others.append(bounded_document(path))
    return run


def _read_metadata(run: _Run) -> None:
    file = run.folder / _METADATA
    if not is_file(file):
        run.notes.append(f"there is no {_METADATA}; the folder '{run.model_folder}' is taken as the model")
        return
    metadata = bounded_document(file)
    if not isinstance(metadata, dict):
        raise InputFileError(f"{file}: the metadata of a run is an object")
    run.metadata = metadata
    run.files.append(file)


def _read_results(run: _Run, file: Path) -> dict[str | None, object]:
    """Read what stands around the rows of a run; returns the outcome of each of its trials by name."""
    outcomes: dict[str | None, object] = {}
    run.results = around = dict[str, object]()
    for _, part in list_elements(file, {"results": Each({}), "pass_at_k": Keep()}, around):
        if isinstance(part, dict):
            run.runs.add(_run_of_trial(part))
            outcomes[scalar_of(part.get("trial_name"))] = part.get("is_resolved")
    if not isinstance(around.get("results"), list):
        raise InputFileError(f"{file}: the results of a run are an object with a list 'results'")
    run.source = file
    run.files.append(file)
    return outcomes


def _run_of_trial(row: Mapping[str, object]) -> str | None:
    found = _NAME.fullmatch(scalar_of(row.get("trial_name")) or "")
    return found[2] if found else None


def _add_trials(run: _Run, tasks: Iterable[Path], known: Mapping[str | None, object]) -> None:
    """Add the trials that only their own folder has; the others are in the run's file, and must agree with it."""
    for file in (trial / _RESULTS for task in tasks for trial in subfolders(task)):
        if not is_file(file):
            continue
        try:
            trial = object_in(file, "trial")
        except RefusedRecordError as refusal:
            if file.parent.name not in known:
                run.others.append(refusal)
            continue
        name = scalar_of(trial.get("trial_name"))
        if name not in known:
            run.others.append(trial)
            run.files.append(file)
        elif known[name] != trial.get("is_resolved"):
            run.contradicted.add(name)


def _fill(run: _Run, cells: Cells, trial: Mapping[str, object]) -> None:
    task, name = identifier_of(trial, "task_id"), identifier_of(trial, "trial_name")
    mode, instruction = text_of(trial.get("failure_mode")), trial.get("instruction")
    passed, word = _outcome(trial.get("is_resolved"), mode)
    number = _NAME.fullmatch(name)
    cells |= {
        "oid": f"{run.suite}/{task}" if run.suite else task,
        "iteration_id": number[1].lstrip("0") or "0" if number else "1",
        "suite": run.suite,
        "run_id": run.run_id,
        "passed": passed,
        "classification": word,
        "failure_mode": mode,
        "error": None if passed == "true" or mode in _NO_FAILURE else mode,
        **_test_counts(section_of(trial, "parser_results")),
        **_token_cells(trial),
        "started_at": text_of(trial.get("trial_started_at")),
        "duration_seconds": seconds_between(trial.get("trial_started_at"), trial.get("trial_ended_at")),
        "agent_seconds": seconds_between(trial.get("agent_started_at"), trial.get("agent_ended_at")),
        "agent": agent_with_options(run.metadata.get("agent_name"), inside(run.metadata, "agent_kwargs")),
        "asked_sha": digest_of(instruction) if isinstance(instruction, str) else None,
        "dataset_version": text_of(run.metadata.get("dataset_version")),
        "trial_name": name,
        "sample_uuid": text_of(trial.get("id")),
    }
    if name in run.contradicted:
        reason = f"{name}: {_RESULTS} of the run and of the trial differ in is_resolved"
        raise RefusedRecordError("contradiction", reason)


def _outcome(resolved: object, mode: str | None) -> tuple[str | None, str | None]:
    if resolved is True:
        return "true", "pass"
    if resolved is not None and resolved is not False:
        raise RefusedRecordError("bad_boolean", "is_resolved is not true, false or null")
    word = _FAILURES.get(mode or "")
    undecided = word is None or mode in _UNDECIDED_WITHOUT_VERDICT
    if mode in _NEVER_RAN or (resolved is None and undecided):
        return None, None
    return "false", word or "fail"


def _test_counts(tests: Mapping[str, object] | None) -> Cells:
    if tests is None:
        return {}
    outcomes = list(tests.values())
    return {"tests_passed": str(outcomes.count("passed")), "tests_failed": str(outcomes.count("failed"))}


def _token_cells(trial: Mapping[str, object]) -> Cells:
    """The tokens; agents that do not count them report none, or zero of both kinds."""
    tokens = {name: text_of(trial.get(f"total_{name}")) for name in ("input_tokens", "output_tokens")}
    return dict(tokens) if any(number_of(count) != 0 for count in tokens.values() if count is not None) else {}


def _figures(run: _Run, table: AdapterTable) -> list[ReportedFigure]:
    """The figures at the end of the run's file, which count a trial without a verdict as a failure."""
    rows = table.rows.filter(pl.col(LINE).is_between(*run.lines), pl.col(ROW_ERROR_KIND).is_null())
    counts = counts_of_table(replace(table, rows=rows))
    accepted = sum(attempts for attempts, _ in counts)
    if not run.results or not accepted:
        return []
    undecided = rows.select(pl.col("passed").null_count()).collect(engine="streaming").item()
    count = sum(passed for _, passed in counts)
    left_out = counted(undecided, "trial without a verdict", "trials without a verdict")
    note = f"Terminal-Bench counts {left_out} as failed; Touchstone leaves them out" if undecided else None
    figures = [
        ReportedFigure(run.model, "n_resolved", number_of(run.results.get("n_resolved")), float(count), run.suite),
        ReportedFigure(
            run.model, "accuracy", number_of(run.results.get("accuracy")), count / accepted, run.suite, note
        ),
    ]
    stated = reported_pass_at_k(run.results.get("pass_at_k"))
    return figures + [
        ReportedFigure(run.model, f"pass_at_{k}", reported, pass_at_k(counts, k), run.suite, note)
        for k, reported in stated.items()
    ]


def time_of(value: object) -> datetime | None:
    """An ISO 8601 time, taken as UTC without an offset; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def seconds_between(start: object, end: object) -> str | None:
    """The seconds from one time to another; None if one is unknown or the clock went back.

    >>> seconds_between("2026-05-01T09:00:00Z", "2026-05-01T09:01:30.5Z"), seconds_between("2026-05-01", None)
    ('90.5', None)
    """
    first, last = time_of(start), time_of(end)
    if first is None or last is None or last < first:
        return None
    return str((last - first).total_seconds())


def number_by_time(table: AdapterTable) -> AdapterTable:
    """Number the trials of a model at a task from 1 by their start, then by name; those without a time come last."""

    def number(rows: pl.DataFrame) -> pl.DataFrame:
        times = pl.Series("time", [time_of(text) or _LATEST for text in rows["started_at"]])
        accepted = pl.col(ROW_ERROR_KIND).is_null()
        place = accepted.cum_sum().over("llm_name", "tier", "oid", order_by=["time", "trial_name"]).cast(pl.String)
        numbered = pl.when(accepted).then(place).otherwise("iteration_id").alias("iteration_id")
        return rows.with_columns(times).select(LINE, numbered)

    return settle(table, words("llm_name tier oid iteration_id started_at trial_name"), number)


def without_copies(table: AdapterTable) -> tuple[AdapterTable, list[str]]:
    """Leave out trials that equal an earlier one, with its identifier, as where a run was copied; returns notes."""
    is_first = pl.col("sample_uuid").is_null() | pl.struct(pl.exclude(LINE, "iteration_id")).is_first_distinct()
    with table.reading():
        count = table.rows.select((~is_first).sum()).collect().item()
    which = counted(count, "trial is a copy", "trials are copies")
    notes = [f"{which} of another, with its identifier, and so left out"]
    return (replace(table, rows=table.rows.filter(is_first)), notes) if count else (table, [])


def agent_with_options(name: object, options: Mapping[str, object]) -> str | None:
    """An agent, and how its model generates: another effort or temperature makes another system."""
    given = stated_settings("", "generation", options, GENERATION)
    agent = text_of(name)
    return agent and ", ".join([agent, *(f"{each.name} {each.value}" for each in given)])


def separate_agents(table: AdapterTable) -> tuple[AdapterTable, list[str]]:
    """Make the agent, with its options, the tier of a model that several drive: trials of different systems."""
    accepted = pl.col(ROW_ERROR_KIND).is_null()
    with table.reading():
        agents = table.rows.filter(accepted).group_by("llm_name").agg(pl.col("agent").n_unique()).collect()
    several = agents.filter(pl.col("agent") > 1)["llm_name"].drop_nulls().sort().to_list()
    tier = pl.when(accepted & pl.col("llm_name").is_in(several)).then("agent").otherwise("tier").alias("tier")
    notes = [f"several agents drive {model}; each is a tier" for model in several]
    return replace(table, rows=table.rows.with_columns(tier)), notes
