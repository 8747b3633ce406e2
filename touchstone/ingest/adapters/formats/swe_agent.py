"""Adapter for trajectories of SWE-agent (`.traj`) and mini-swe-agent (`.traj.json`): one file, or a run's folder.

A trajectory has a patch (`info.submission`) and no verdict. Without a patch it failed, unless the provider or the
environment ended it: then it is undecided. As long as no patch of the model is judged, all are undecided. One run
report of SWE-bench in the folder judges the patches, and adds the instances that left no trajectory. The instance
is the file's name. The model is in the configuration that the trajectory repeats, else it is the run's folder. The
steps themselves are read for the audit and not kept.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head
from touchstone.ingest.adapters.folders import files_in, is_file, object_in, raw_from_files, some_subfolders, subfolders
from touchstone.ingest.adapters.formats.swebench import (
    COLUMNS,
    EMPTY_PATCH,
    INFRA_FAILURE,
    NOT_RUN,
    RESOLVED,
    STATUS,
    TIMEOUT,
    UNRESOLVED,
    RunReport,
    attempt_cells,
    is_run_report,
    parse_report,
    undecide_unless_judged,
)
from touchstone.ingest.adapters.json_files import (
    GENERATION,
    inside,
    object_in_text,
    section_of,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.steps import Step, message_steps, trajectory_steps
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    fill_records,
    table_from_records,
    words,
)
from touchstone.ingest.compressed import uncompressed_name

FORMAT = "swe-agent"
_COLUMNS = (*COLUMNS, "cost_usd", "input_tokens", "output_tokens", "api_calls", "exit_status", "model_patch")
_SUFFIXES = (".traj", ".traj.json")
# How an agent ends by itself or at a limit of its own; anything else is an error of the provider or the environment.
_OWN_END = (
    *words("submitted exit_cost exit_context exit_format exit_forfeit exit_max_steps limitsexceeded"),
    "repeatedformaterror",
)
_TIMEOUTS = ("exit_total_execution_time", "exit_command_timeout", "exit_command", "timeexceeded")


def read_trajectories(path: Path) -> AdapterTable:
    """Read one trajectory, or those of a folder, into rows of text cells."""
    files = _trajectories(path) if path.is_dir() else [path]
    run = (path if path.is_dir() else _run_folder(path)).absolute().name
    numbered = dict(enumerate(files, start=1))
    settings: dict[StatedSetting, None] = {}
    records = list(fill_records(numbered.items(), partial(_fill, settings), {"llm_name": run}))
    if not records:
        raise InputFileError(f"{path}: there is no trajectory in this folder")
    models = {record.cells["llm_name"] for record in records if record.kind is None}
    if len(models) == 1:
        for broken in (record for record in records if record.kind is not None):
            broken.cells["llm_name"] = next(iter(models))
    notes = ["a trajectory has no verdict: its patch is an attempt to be validated; its steps are not kept"]
    reports = _run_reports(path) if path.is_dir() else []
    figures: list[ReportedFigure] = []
    if len(reports) == 1:
        (file,) = reports
        report = parse_report(file)
        _judge(records, report)
        numbered |= {record.line: file for record in records[len(files) :]}
        figures, settings = report.figures, settings | dict.fromkeys(report.settings)
        notes = [f"the verdicts are in {file.name}; steps are not kept", *report.notes]
    if any(record.cells["llm_name"] == run for record in records):
        notes.append(f"a trajectory without a configuration belongs to its folder '{run}', which is taken as the model")
    read = [*files, *(reports if len(reports) == 1 else [])]
    table = table_from_records(path, FORMAT, _COLUMNS, records, raw_from_files(numbered), files=read)
    table, undecided = undecide_unless_judged(table)
    return table.stating(figures, settings, [*undecided, *notes])


def _run_reports(folder: Path) -> list[Path]:
    """The reports of evaluating the patches in a folder, which mini-swe-agent's users run there."""
    files = (file for file in files_in(folder, ".json") if not file.name.endswith(_SUFFIXES))
    return [file for file in files if is_run_report(Head(file))]


def _judge(records: list[Record], report: RunReport) -> None:
    """Decide the attempts by a run report, and add those that only it has.

    That the provider or the environment ended an attempt is only in its trajectory: the report counts an empty patch.
    """
    known = {record.cells["oid"]: record for record in records if record.kind is None}
    models = {record.cells["llm_name"] for record in known.values()}
    model = str(models.pop()) if len(models) == 1 else report.model
    for oid, (status, error) in report.attempts.items():
        if oid not in known:
            known[oid] = Record(len(records) + 1, {"llm_name": model})
            records.append(known[oid])
        cells = known[oid].cells
        if cells.get(STATUS) == INFRA_FAILURE and status not in (RESOLVED, UNRESOLVED):
            status, error = INFRA_FAILURE, cells["error"]
        cells |= attempt_cells(oid, str(cells["llm_name"]), report.run, status, error)


def _recognizes(head: Head) -> bool:
    if head.is_folder:
        beside = [name for name in head.names if name.endswith(_SUFFIXES)]
        below = (folder for folder in some_subfolders(head.path) if not beside)
        return bool(beside) or any(_own_trajectory(folder) is not None for folder in below)
    if not head.name.endswith(_SUFFIXES):
        return head.has_keys("info", "trajectory") and ("info", "exit_status") in head.key_paths
    return head.text[:1] == "{"


def _transcripts(table: AdapterTable) -> Iterator[tuple[int, Iterable[Step]]]:
    files = (file for file in table.files if uncompressed_name(file).endswith(_SUFFIXES))
    for line, file in enumerate(files, start=1):
        document = object_in(file, "trajectory")
        steps = document.get("trajectory")
        yield line, trajectory_steps(steps) if steps else message_steps(document.get("messages"), fenced=True)


ADAPTER = Adapter(
    FORMAT, "SWE-agent trajectories", _recognizes, lambda path, _: read_trajectories(path), transcripts=_transcripts
)


def _trajectories(folder: Path) -> list[Path]:
    """The trajectories directly in the folder, and those in a folder of their instance's name."""
    below = (_own_trajectory(each) for each in subfolders(folder))
    return sorted([*files_in(folder, *_SUFFIXES), *(file for file in below if file is not None)])


def _own_trajectory(folder: Path) -> Path | None:
    return next((file for suffix in _SUFFIXES if is_file(file := folder / f"{folder.name}{suffix}")), None)


def _run_folder(file: Path) -> Path:
    folder = file.absolute().parent
    return folder.parent if folder.name == _instance_of(file) else folder


def _instance_of(file: Path) -> str:
    name = uncompressed_name(file)
    return next((name.removesuffix(suffix) for suffix in reversed(_SUFFIXES) if name.endswith(suffix)), "")


def _fill(settings: dict[StatedSetting, None], cells: Cells, file: Path) -> None:
    oid = _instance_of(file) or Path(uncompressed_name(file)).stem
    trajectory = object_in(file, "trajectory")
    info = section_of(trajectory, "info")
    if info is None:
        raise RefusedRecordError("ragged", f"{file.name}: it has no info, so it is not a trajectory")
    cells["llm_name"] = model = _model_of(trajectory, info) or cells["llm_name"] or ""
    stats = section_of(info, "model_stats") or {}
    # With a traceback, mini-swe-agent 1 writes the error's message there.
    patch = None if "traceback" in info else text_of(info.get("submission"))
    exit_status = text_of(info.get("exit_status"))
    status = _status(patch, exit_status)
    error = None if status == NOT_RUN else exit_status or "the trajectory has no exit status"
    cells |= attempt_cells(oid, model, None, status, error)
    cells |= {
        "cost_usd": text_of(stats.get("instance_cost")),
        "input_tokens": text_of(stats.get("tokens_sent")),
        "output_tokens": text_of(stats.get("tokens_received")),
        "api_calls": text_of(stats.get("api_calls")),
        "exit_status": exit_status,
        "model_patch": patch if status == NOT_RUN else None,
    }
    settings |= dict.fromkeys(_settings(model, trajectory, info))


def _settings(model: str, trajectory: Mapping[str, object], info: Mapping[str, object]) -> list[StatedSetting]:
    """How SWE-agent or mini-swe-agent was run."""
    replayed = inside(object_in_text(trajectory.get("replay_config")), "agent", "model")
    own = inside(info.get("config"))
    generation = {**inside(own, "model", "model_kwargs"), **replayed}
    limits = {**inside(own, "agent"), **replayed}
    names = "step_limit cost_limit per_instance_cost_limit per_instance_call_limit"
    return [
        *stated_settings(model, "generation", generation, GENERATION),
        *stated_settings(model, "limits", limits, names),
        *stated_settings(model, "agent", info, "swe_agent_version mini_version"),
    ]


def _status(patch: str | None, exit_status: str | None) -> str:
    if patch is not None and patch.strip():
        return NOT_RUN
    word = (exit_status or "").lower()
    if any(word.startswith(each) for each in _TIMEOUTS) or any(f"({each})" in word for each in _TIMEOUTS):
        return TIMEOUT
    return EMPTY_PATCH if word.startswith(_OWN_END) else INFRA_FAILURE


def _model_of(trajectory: Mapping[str, object], info: Mapping[str, object]) -> str | None:
    """The model in the configuration: `replay_config` of SWE-agent, `info.config` of mini-swe-agent."""
    replayed, own = object_in_text(trajectory.get("replay_config")), info.get("config")
    names = (inside(replayed, "agent", "model").get("name"), inside(own, "model").get("model_name"))
    return next((text_of(name) for name in names if isinstance(name, str) and name.strip()), None)
