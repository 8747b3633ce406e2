"""Adapters for ProjectScylla: its export `runs.csv`, and the raw results that it was made of.

An experiment is one task; the subtests of a tier are configurations in which the model attempts it, and subtest 01 of
one tier is unrelated to subtest 01 of another. So a problem is (experiment, tier, subtest), belongs to that tier only,
and has the experiment as its cluster: runs of one task are not independent, and tiers are compared task by task.

Columns of the export are renamed to the native ones; only the columns that identify a run are checked here. Its own
grade and score are kept as text; its other tables (judges, criteria, subtests) are not read.

Raw results are in `<experiment>/<time>/<tier>/<subtest>/run_<n>/run_result.json`. The judges' consensus on a run is in
that file, the points that each gave for a criterion in its `judgment.json`. As in the export, of several starts of an
experiment the latest counts, and `impl_rate` is the median over judges of the points achieved of those possible, unless
judgments state a `weighted_score`. Nothing in a run's workspace is read, because the agent wrote it.
"""

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head
from touchstone.ingest.adapters.folders import (
    bounded_document,
    is_file,
    is_folder,
    object_in,
    raw_from_files,
    some_subfolders,
    subfolders,
    text_in,
)
from touchstone.ingest.adapters.json_files import (
    Number,
    inside,
    list_of,
    number_of,
    scalar_of,
    section_of,
    text_of,
    unmapped_cells,
)
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RefusedRecordError,
    adapter_table,
    carried_name,
    fill_records,
    table_from_records,
    words,
)
from touchstone.ingest.csv_rows import (
    LINE,
    ROW_ERROR,
    ROW_ERROR_KIND,
    TextTable,
    open_table,
    raw_rows,
    read_rows,
    require_columns,
)
from touchstone.text import counted, counted_of
from touchstone.vocabulary import DEFAULT_TIER

FORMAT = "scylla"
REQUIRED = ("experiment", "agent_model", "tier", "subtest", "run_number", "passed")

_NATIVE = {"oid", "iteration_id"}
_IDENTIFYING = ("experiment", "subtest", "agent_model", "run_number")
_MAPPED = ("experiment", "agent_model", "tier", "run_number")
_NUMERIC = ("score", "impl_rate", "cost_usd", "duration_seconds")
# How ProjectScylla writes an unknown number, which is null here.
_UNKNOWN = r"(?i)^\s*[+-]?(nan|inf|infinity)\s*$"

RAW_FORMAT = "scylla_raw"
COLUMNS = words(
    "oid iteration_id tier suite cluster llm_name subtest passed impl_rate score grade cost_usd duration_seconds "
    "input_tokens output_tokens cache_read_tokens cache_write_tokens"
)
_RESULT, _JUDGMENT = "run_result.json", "judgment.json"
_EXPERIMENT, _MODEL_FILE = "config/experiment.json", "agent/MODEL.md"
_TOKENS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_tokens",
    "cache_creation_tokens": "cache_write_tokens",
}
_RAW_MAPPED = words("run_number judge_passed judge_score judge_grade cost_usd duration_seconds criteria_scores")
# Of the machine that ran it, or the sum of what `token_stats` has.
_UNUSED = ("workspace_path", "logs_path", "command_log_path", "tokens_input", "tokens_output")
_SECTIONS = {"token_stats": tuple(_TOKENS), "process_metrics": ()}
_TIER, _SUBTEST, _RUN = re.compile(r"T\d+"), re.compile(r"\d+"), re.compile(r"run_0*(\d+)")
_STARTED = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}.*")
_MODEL = re.compile(r"^\*\*Model\*\*:\s*(\S.*?)\s*$", re.MULTILINE)
_MODEL_BYTES = 1 << 16


def read_scylla(path: Path) -> AdapterTable:
    """Read a runs file into rows of text cells."""
    table = open_table(path)
    require_columns(path, table.columns, *REQUIRED)
    cells = _cells(table)
    rows = read_rows(table, lambda rows: rows.collect()).with_columns(_oid().alias("__oid"))
    frame = rows.select(LINE, *_refusal(), **cells)
    return adapter_table(
        path, FORMAT, tuple(cells), frame, lambda path, lines: raw_rows(open_table(path), lines), tier_bound=True
    )


def _recognizes(head: Head) -> bool:
    # A file with native ids is native, whichever columns of another system it kept.
    return head.csv_header.issuperset(REQUIRED) and not head.csv_header.issuperset(_NATIVE)


ADAPTER = Adapter(FORMAT, "a ProjectScylla runs.csv", _recognizes, lambda path, _: read_scylla(path))


def _oid() -> pl.Expr:
    return pl.concat_str("experiment", pl.col("tier").fill_null(DEFAULT_TIER), "subtest", separator="/")


def _cells(table: TextTable) -> dict[str, pl.Expr]:
    cells = {
        "oid": _oid(),
        "iteration_id": pl.col("run_number"),
        "tier": pl.col("tier"),
        "suite": pl.col("experiment"),
        "cluster": pl.col("experiment"),
        "llm_name": pl.col("agent_model"),
    }
    if "cache_creation_tokens" in table.columns:
        cells["cache_write_tokens"] = _cell("cache_creation_tokens")
    taken = tuple(cells)
    others = [name for name in table.columns if name not in (*_MAPPED, "cache_creation_tokens")]
    return cells | {carried_name(name, taken): _cell(name) for name in others}


def _cell(name: str) -> pl.Expr:
    cell = pl.col(name)
    if name in _NUMERIC or name.endswith("_tokens"):
        return pl.when(~cell.str.contains(_UNKNOWN)).then(cell)
    return cell


def _refusal() -> list[pl.Expr]:
    """Why a row is refused: it is ragged, or does not identify its run."""
    missing = [
        pl.when(pl.col(name).is_null() | (pl.col(name).str.strip_chars() == "")).then(pl.lit(f"the {name} is missing"))
        for name in _IDENTIFYING
    ]
    # Experiment "a/b" with subtest "c" and "a" with "b/c" would become the same problem.
    parts = pl.struct("experiment", pl.col("tier").fill_null(DEFAULT_TIER), "subtest")
    ambiguous = (parts.n_unique().over("__oid") > 1) & pl.col("__oid").is_not_null()
    two = pl.format("the oid '{}' stands for different experiments, tiers and subtests", "__oid")
    reason = pl.coalesce(ROW_ERROR, *missing, pl.when(ambiguous).then(two))
    kind = (
        pl.when(pl.col(ROW_ERROR).is_not_null()).then(ROW_ERROR_KIND).when(reason.is_not_null()).then(pl.lit("bad_id"))
    )
    return [kind.alias(ROW_ERROR_KIND), reason.alias(ROW_ERROR)]


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
    records = list(fill_records(enumerate(runs, start=1), partial(_fill, unreadable)))
    if not records:
        raise InputFileError(f"{path}: no run has a {_RESULT}")
    if len(runs) < len(every):
        notes.append(f"not finished, and so left out: {counted_of(len(every) - len(runs), len(every), 'run')}")
    if unreadable:
        first = unreadable[0].relative_to(chosen if chosen.is_dir() else chosen.parent)
        notes.append(f"not readable, and so left out: {counted(len(unreadable), 'judgment')}, such as {first}")
    results = {place: run.folder / _RESULT for place, run in enumerate(runs, start=1)}
    # All that was read: a changed judgment changes the rows.
    files = list(dict.fromkeys(file for run in runs for file in _files_of_run(run)))
    table = table_from_records(path, RAW_FORMAT, COLUMNS, records, raw_from_files(results), files=files, notes=notes)
    return replace(table, tier_bound=True)


def _files_of_run(run: _Run) -> list[Path]:
    """The files that are read of a run, and of its experiment."""
    places = [run.folder / _RESULT, run.folder / _MODEL_FILE, run.start / _EXPERIMENT, *_judgment_files(run.folder)]
    return [place for place in places if is_file(place)]


def _recognizes_raw(head: Head) -> bool:
    if not head.is_folder:
        return head.name == _RESULT and head.has_keys("run_number", "judge_passed")
    return _is_start(head.path) or any(_STARTED.fullmatch(name) and _is_start(head.path / name) for name in head.names)


RAW = Adapter(RAW_FORMAT, "ProjectScylla's raw results", _recognizes_raw, lambda path, _: read_scylla_raw(path))


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
    models = list_of(inside(document).get("models"))
    return scalar_of(models[0]) if len(models) == 1 else None


def _fill(unreadable: list[Path], cells: Cells, run: _Run) -> None:
    result = object_in(run.folder / _RESULT, "result")
    named = _MODEL.search(text_in(run.folder / _MODEL_FILE, _MODEL_BYTES) or "")
    model = run.model or (named[1] if named else None)
    if model is None:
        raise RefusedRecordError("bad_id", f"neither {_EXPERIMENT} nor {_MODEL_FILE} names the model")
    judgments = list(_judgments(run.folder, unreadable)) or [result]
    tokens = section_of(result, "token_stats") or {}
    cells |= {
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
    cells |= criteria | unmapped_cells(others, _RAW_MAPPED, _SECTIONS, (*COLUMNS, *criteria))


def _judgments(run: Path, unreadable: list[Path]) -> Iterator[Mapping[str, object]]:
    """The judgment of each judge, without those marked as not valid."""
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
    points: dict[str, tuple[float, float]] = {}
    for name, criterion in inside(judgment, "criteria_scores").items():
        if isinstance(criterion, dict):
            achieved, possible = number_of(criterion.get("achieved")), number_of(criterion.get("max"))
            if achieved is not None and possible is not None and possible > 0:
                points[name] = achieved, possible
    return points


def _impl_rate(judgment: Mapping[str, object]) -> float | None:
    stated = number_of(inside(judgment, "summary").get("weighted_score"))
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


def _text(number: float | None) -> str | None:
    return None if number is None else repr(number)


def _known(value: object) -> str | None:
    """The text of a value; NaN and infinity stand for an unknown number."""
    unknown = isinstance(value, Number) and not math.isfinite(float(value))
    return None if unknown else text_of(value)
