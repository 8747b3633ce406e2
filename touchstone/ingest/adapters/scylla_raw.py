"""Adapter for ProjectScylla's raw results: `<experiment>/<time>/<tier>/<subtest>/run_<n>/run_result.json`.

The judges' consensus on a run is in `run_result.json`, what each gave for a criterion in its `judgment.json`. As in the
export (`scylla`), a problem is (experiment, tier, subtest), belongs to that tier only, and has the experiment as its
cluster; of several starts of an experiment the latest counts; and `impl_rate` is the median over judges of the points
achieved of those possible, unless judgments state a `weighted_score`.

Nothing in a run's workspace is read, because the agent wrote it.
"""

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter
from touchstone.ingest.adapters.folders import (
    as_given,
    bounded_document,
    is_file,
    is_folder,
    object_in,
    raw_from_files,
    scalar_of,
    some_subfolders,
    subfolders,
    text_in,
)
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.json_values import section_of, text_of, unmapped_cells
from touchstone.ingest.adapters.lossless_json import Number
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RefusedRecordError,
    carried_name,
    filled_record,
    table_from_records,
)
from touchstone.text import counted, counted_of

FORMAT = "scylla_raw"
COLUMNS = (
    "oid",
    "iteration_id",
    "tier",
    "suite",
    "cluster",
    "llm_name",
    "subtest",
    "passed",
    "impl_rate",
    "score",
    "grade",
    "cost_usd",
    "duration_seconds",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
)
_RESULT, _JUDGMENT = "run_result.json", "judgment.json"
_EXPERIMENT, _MODEL_FILE = "config/experiment.json", "agent/MODEL.md"
_TOKENS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_tokens",
    "cache_creation_tokens": "cache_write_tokens",
}
_MAPPED = (
    "run_number",
    "judge_passed",
    "judge_score",
    "judge_grade",
    "cost_usd",
    "duration_seconds",
    "criteria_scores",
)
# Of the machine that ran it, or the sum of what `token_stats` has.
_UNUSED = ("workspace_path", "logs_path", "command_log_path", "tokens_input", "tokens_output")
_SECTIONS = {"token_stats": tuple(_TOKENS), "process_metrics": ()}
_TIER, _SUBTEST, _RUN = re.compile(r"T\d+"), re.compile(r"\d+"), re.compile(r"run_0*(\d+)")
_STARTED = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}.*")
_MODEL = re.compile(r"^\*\*Model\*\*:\s*(\S.*?)\s*$", re.MULTILINE)
_MODEL_BYTES = 1 << 16


@dataclass(frozen=True)
class _Run:
    """The folder of a run, and what the folders above it say."""

    folder: Path
    number: str
    subtest: str
    tier: str
    start: Path
    model: str | None

    @property
    def experiment(self) -> str:
        """The name of the experiment: the folder of its starts, else the folder itself."""
        return self.start.parent.name if _STARTED.fullmatch(self.start.name) else self.start.name


def read_scylla_raw(path: Path) -> AdapterTable:
    """Read the runs of an experiment, or a single one, into rows of text cells."""
    chosen, notes = _latest(path.absolute())
    every = list(_runs(chosen))
    runs = [run for run in every if is_file(run.folder / _RESULT)]
    unreadable: list[Path] = []
    records = [filled_record(place, {}, partial(_cells, run, unreadable)) for place, run in enumerate(runs, start=1)]
    if not records:
        raise InputFileError(f"{path}: no run has a {_RESULT}")
    if len(runs) < len(every):
        notes.append(f"not finished, and so left out: {counted_of(len(every) - len(runs), len(every), 'run')}")
    if unreadable:
        first = unreadable[0].relative_to(chosen if chosen.is_dir() else chosen.parent)
        notes.append(f"not readable, and so left out: {counted(len(unreadable), 'judgment')}, such as {first}")
    results = {place: run.folder / _RESULT for place, run in enumerate(runs, start=1)}
    # All that was read: a changed judgment changes the rows.
    files = as_given(path, dict.fromkeys(file for run in runs for file in _files(run)))
    table = table_from_records(path, FORMAT, COLUMNS, records, raw_from_files(results), files=files, notes=notes)
    return replace(table, tier_bound=True)


def _files(run: _Run) -> list[Path]:
    """The files that are read of a run, and of its experiment."""
    places = [run.folder / _RESULT, run.folder / _MODEL_FILE, run.start / _EXPERIMENT, *_judgment_files(run.folder)]
    return [place for place in places if is_file(place)]


def _recognizes(head: Head) -> bool:
    if not head.is_folder:
        return head.path.name == _RESULT and head.has_keys("run_number", "judge_passed")
    return _is_start(head.path) or any(_STARTED.fullmatch(name) and _is_start(head.path / name) for name in head.names)


ADAPTER = Adapter(FORMAT, "ProjectScylla's raw results", _recognizes, lambda path, _: read_scylla_raw(path))


def _is_start(folder: Path) -> bool:
    """Whether a folder has tiers of subtests of runs."""
    tiers = (each for each in some_subfolders(folder) if _TIER.fullmatch(each.name))
    subtests = (each for tier in tiers for each in some_subfolders(tier) if _SUBTEST.fullmatch(each.name))
    return any(is_file(run / _RESULT) for subtest in subtests for run in some_subfolders(subtest))


def _latest(path: Path) -> tuple[Path, list[str]]:
    """The file or folder to read: of an experiment's starts, whose names are times, the latest."""
    if not path.is_dir() or _is_start(path):
        return path, []
    starts = [each for each in subfolders(path) if _STARTED.fullmatch(each.name) and _is_start(each)]
    older = f"{counted(len(starts) - 1, 'earlier start')} of the experiment left out; {starts[-1].name} counts"
    return starts[-1], [older] if len(starts) > 1 else []


def _runs(path: Path) -> Iterator[_Run]:
    if not path.is_dir():
        run = path.parent
        yield _run(run, run.parents[2], _model_of(run.parents[2]))
        return
    model = _model_of(path)
    for tier in (each for each in subfolders(path) if _TIER.fullmatch(each.name)):
        for subtest in (each for each in subfolders(tier) if _SUBTEST.fullmatch(each.name)):
            for run in subfolders(subtest):
                if _RUN.fullmatch(run.name):
                    yield _run(run, path, model)


def _run(folder: Path, start: Path, model: str | None) -> _Run:
    number = _RUN.fullmatch(folder.name)
    names = (folder.parent.name, folder.parent.parent.name)
    return _Run(folder, number[1] if number else folder.name, *names, start, model)


def _model_of(start: Path) -> str | None:
    """The model of an experiment that has only one; else each run says its own."""
    document = bounded_document(start / _EXPERIMENT) if is_file(start / _EXPERIMENT) else None
    models = document.get("models") if isinstance(document, dict) else None
    return scalar_of(models[0]) if isinstance(models, list) and len(models) == 1 else None


def _cells(run: _Run, unreadable: list[Path]) -> Cells:
    result = object_in(run.folder / _RESULT, "result")
    told = _MODEL.search(text_in(run.folder / _MODEL_FILE, _MODEL_BYTES) or "")
    model = run.model or (told[1] if told else None)
    if model is None:
        raise RefusedRecordError("bad_id", f"neither {_EXPERIMENT} nor {_MODEL_FILE} names the model")
    judgments = list(_judgments(run.folder, unreadable)) or [result]
    tokens = section_of(result, "token_stats") or {}
    cells: Cells = {
        "oid": "/".join((run.experiment, run.tier, run.subtest)),
        "iteration_id": run.number,
        "tier": run.tier,
        "suite": run.experiment,
        "cluster": run.experiment,
        "llm_name": model,
        "subtest": run.subtest,
        "passed": text_of(result.get("judge_passed")),
        "impl_rate": _text(_median([_impl_rate(judgment) for judgment in judgments])),
        "score": _known(result.get("judge_score")),
        "grade": scalar_of(result.get("judge_grade")),
        "cost_usd": _known(result.get("cost_usd")),
        "duration_seconds": _known(result.get("duration_seconds")),
        **{ours: _known(tokens.get(theirs)) for theirs, ours in _TOKENS.items()},
    }
    criteria = _criteria(judgments)
    others = {key: value for key, value in result.items() if key not in _UNUSED}
    return cells | criteria | unmapped_cells(others, _MAPPED, _SECTIONS, (*COLUMNS, *criteria))


def _judgments(run: Path, unreadable: list[Path]) -> Iterator[Mapping[str, object]]:
    """What each judge wrote, without judgments that it says are not valid."""
    for file in _judgment_files(run):
        try:
            judgment = object_in(file, "judgment")
        except RefusedRecordError:
            unreadable.append(file)
            continue
        if judgment.get("is_valid") is not False:
            yield judgment


def _judgment_files(run: Path) -> list[Path]:
    """The judgments of several judges, else that of the only one."""
    place = run / "judge"
    judges = [each for each in subfolders(place) if each.name.startswith("judge_")] if is_folder(place) else []
    return [each / _JUDGMENT for each in (judges or [place, run]) if is_file(each / _JUDGMENT)]


def _points(judgment: Mapping[str, object]) -> dict[str, tuple[float, float]]:
    """The points achieved and possible, by criterion; without criteria that do not apply (`N/A`)."""
    scores = judgment.get("criteria_scores")
    points: dict[str, tuple[float, float]] = {}
    for name, criterion in scores.items() if isinstance(scores, dict) else ():
        if isinstance(criterion, dict):
            achieved, possible = _number(criterion.get("achieved")), _number(criterion.get("max"))
            if achieved is not None and possible is not None and possible > 0:
                points[name] = achieved, possible
    return points


def _impl_rate(judgment: Mapping[str, object]) -> float | None:
    summary = judgment.get("summary")
    stated = _number(summary.get("weighted_score")) if isinstance(summary, dict) else None
    points = list(_points(judgment).values())
    total = sum(possible for _, possible in points)
    return stated if stated is not None or not total else sum(achieved for achieved, _ in points) / total


def _criteria(judgments: Sequence[Mapping[str, object]]) -> Cells:
    """The share of its points that each criterion got: the median over judges."""
    shares: dict[str, list[float | None]] = {}
    for judgment in judgments:
        for name, (achieved, possible) in _points(judgment).items():
            shares.setdefault(name, []).append(achieved / possible)
    return {carried_name(f"criterion_{name}", COLUMNS): _text(_median(values)) for name, values in shares.items()}


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _number(value: object) -> float | None:
    """A finite number, also one that was written as text."""
    try:
        number = float(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


def _text(number: float | None) -> str | None:
    return None if number is None else repr(number)


def _known(value: object) -> str | None:
    """The text of a value; NaN and infinity stand for an unknown number."""
    unknown = isinstance(value, Number) and not math.isfinite(float(value))
    return None if unknown else text_of(value)
