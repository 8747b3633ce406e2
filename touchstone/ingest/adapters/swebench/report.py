"""Adapter for SWE-bench run reports, `<model>.<run>.json`: the ids of one run by what became of them.

The model and the run are only in the file's name, which the harness joins with a dot. Both may contain dots; the logs
beside the report tell where to cut, else it is the last dot. They also tell which errors are patches that do not apply.
Each submitted id is one attempt.
Ids in `incomplete_ids` were never submitted: they are not attempts, though the harness divides by them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter
from touchstone.ingest.adapters.folders import (
    as_given,
    bounded_document,
    is_file,
    is_folder,
    raw_from_elements,
    refuse,
    scalar_of,
)
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.json_values import identifier_of
from touchstone.ingest.adapters.swebench.logs import LOG, RUNS, TEST_OUTPUT, cause_of_error
from touchstone.ingest.adapters.swebench.statuses import (
    COLUMNS,
    EMPTY_PATCH,
    ERROR,
    RESOLVED,
    UNRESOLVED,
    attempt_cells,
    folder_of_model,
    model_of_folder,
    outcome_of,
    status_of_failure,
)
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Record,
    RefusedRecordError,
    ReportedFigure,
    table_from_records,
)
from touchstone.ingest.adapters.tool_figures import number_of
from touchstone.text import counted

FORMAT = "swebench-report"
_COUNTS = ("total_instances", "submitted_instances", "resolved_instances")
_LISTS = {"resolved_ids": RESOLVED, "unresolved_ids": UNRESOLVED, "empty_patch_ids": EMPTY_PATCH, "error_ids": ERROR}
_OTHER_LISTS = ("completed_ids", "submitted_ids", "incomplete_ids", "infra_failure_ids")
# Names that other programs give to a copy of the report, without the model.
_UNNAMED = ("report", "output.report", "results")

# The ids of each list in order, each once.
Ids = dict[str, dict[str, None]]


@dataclass(frozen=True)
class RunReport:
    """One run: its name, the status and error of every attempt, and what is wrong with the others."""

    model: str
    run: str | None
    attempts: dict[str, tuple[str, str | None]]
    refused: list[tuple[object, RefusedRecordError]]
    figures: list[ReportedFigure]
    notes: list[str]
    # The logs that were read.
    files: list[Path]


def is_run_report(head: Head) -> bool:
    """Whether a file has the counts at the start of a run report."""
    return head.has_keys(*_COUNTS)


def read_report(path: Path) -> AdapterTable:
    """Read a run report into rows of text cells."""
    report = parse_report(path)
    records = [
        Record(line, attempt_cells(oid, report.model, report.run, status, error))
        for line, (oid, (status, error)) in enumerate(report.attempts.items(), start=1)
    ]
    for line, (_, refusal) in enumerate(report.refused, start=len(records) + 1):
        records.append(refuse(Record(line, {"llm_name": report.model}), refusal))
    values: list[object] = [*report.attempts, *(value for value, _ in report.refused)]
    if not records:
        raise InputFileError(f"{path}: nothing was submitted in this run, so there is no attempt in it")
    raw = raw_from_elements(lambda _: enumerate(values, start=1))
    return table_from_records(
        path,
        FORMAT,
        COLUMNS,
        records,
        raw,
        files=[path, *report.files],
        figures=report.figures,
        notes=report.notes,
    )


ADAPTER = Adapter(FORMAT, "a SWE-bench run report", is_run_report, lambda path, _: read_report(path))


def parse_report(path: Path) -> RunReport:
    """The content of a run report."""
    document = bounded_document(path)
    if not isinstance(document, dict) or not isinstance(document.get("resolved_ids"), list):
        raise InputFileError(f"{path}: a SWE-bench run report has a list resolved_ids; this one has none")
    model, run, name_notes = _model_and_run(path)
    ids, refused = _listed_ids(document)
    statuses = _statuses(ids, "unresolved_ids" in document)
    reasons = document.get("failure_reasons")
    attempts = {oid: _attempt(oid, status, ids, reasons) for oid, status in statuses.items()}
    conflicts = [oid for oid in attempts if sum(oid in ids[name] for name in _LISTS) > 1]
    for oid in conflicts:
        lists = " and ".join(name for name in _LISTS if oid in ids[name])
        refused.append((oid, RefusedRecordError("contradiction", f"{oid} is in {lists}")))
        del attempts[oid]
    files = _decide_by_logs(path, model, run, attempts)
    notes = [*name_notes, *_notes(ids, attempts)]
    return RunReport(model, run, attempts, refused, _figures(model, document, ids, attempts), notes, files)


def _model_and_run(path: Path) -> tuple[str, str | None, list[str]]:
    stem = path.name.removesuffix(".json")
    if "." not in stem or stem in _UNNAMED:
        folder = path.absolute().parent.name
        return (
            folder,
            None,
            [f"the report is not named <model>.<run>.json; its folder '{folder}' is taken as the model"],
        )
    runs = path.absolute().parent / RUNS
    for place in (place for place, mark in enumerate(stem) if mark == "."):
        model, run = stem[:place], stem[place + 1 :]
        if model and run and is_folder(runs / run / model):
            return model_of_folder(model), run, []
    model, run = stem.rsplit(".", 1)
    return model_of_folder(model) or stem, run or None, []


def _listed_ids(document: Mapping[str, object]) -> tuple[Ids, list[tuple[object, RefusedRecordError]]]:
    """The ids of every list, each once, and the elements of the lists of outcomes that are none."""
    ids: Ids = {name: {} for name in (*_LISTS, *_OTHER_LISTS)}
    refused: list[tuple[object, RefusedRecordError]] = []
    for name, found in ids.items():
        values = document.get(name)
        for value in values if isinstance(values, list) else []:
            try:
                found[identifier_of({name: value}, name)] = None
            except RefusedRecordError as refusal:
                if name in _LISTS:
                    refused.append((value, refusal))
    return ids, refused


def _statuses(ids: Ids, unresolved_listed: bool) -> dict[str, str]:
    """The status of every attempt. Old reports list the ids that were completed and resolved, not the unresolved."""
    statuses = {oid: status for name, status in _LISTS.items() for oid in ids[name]}
    return dict.fromkeys(ids["completed_ids"], ERROR if unresolved_listed else UNRESOLVED) | statuses


def _attempt(oid: str, status: str, ids: Ids, reasons: object) -> tuple[str, str | None]:
    if status not in (UNRESOLVED, ERROR):
        return status, None
    reason = scalar_of(reasons.get(oid)) if isinstance(reasons, dict) else None
    return status_of_failure(status, oid in ids["infra_failure_ids"], reason), reason


def _decide_by_logs(path: Path, model: str, run: str | None, attempts: dict[str, tuple[str, str | None]]) -> list[Path]:
    """Replace errors by what the logs beside the report say; returns the logs that were read.

    Only they tell that a patch does not apply, which is a failure of the model.
    """
    folder = path.absolute().parent / RUNS / (run or "") / folder_of_model(model)
    read: list[Path] = []
    for oid, (status, _) in attempts.items():
        # An id that is no plain name leads out of the folder.
        is_name = Path(oid).name == oid and oid != ".."
        if status == ERROR and run and is_name and is_file(folder / oid / LOG):
            attempts[oid] = cause_of_error(folder / oid)
            read += [file for name in (LOG, TEST_OUTPUT) if is_file(file := folder / oid / name)]
    return as_given(path, read)


def _notes(ids: Ids, attempts: Mapping[str, tuple[str, str | None]]) -> list[str]:
    notes = []
    errors = sum(status == ERROR and cause is None for status, cause in attempts.values())
    if errors:
        which = counted(errors, "attempt", "attempts")
        notes.append(f"{which} undecided after an error; without its log, that may be a patch that does not apply")
    if ids["incomplete_ids"]:
        never = counted(len(ids["incomplete_ids"]), "problem was", "problems were")
        notes.append(f"{never} never submitted and no attempt (incomplete_ids)")
    others = [oid for oid in ids["submitted_ids"] if oid not in attempts and oid not in ids["incomplete_ids"]]
    if others:
        unknown = counted(len(others), "submitted id is", "submitted ids are")
        notes.append(f"{unknown} in no list of outcomes and no attempt (submitted_ids)")
    return notes


def _figures(
    model: str, document: Mapping[str, object], ids: Ids, attempts: Mapping[str, tuple[str, str | None]]
) -> list[ReportedFigure]:
    """The harness's count of resolved instances, and its rate over all instances of the dataset."""
    resolved = sum(status == RESOLVED for status, _ in attempts.values())
    stated = number_of(document.get("resolved_instances"))
    total = number_of(document.get("total_instances"))
    count = len(attempts) + len([oid for oid in ids["incomplete_ids"] if oid not in attempts])
    undecided = sum(outcome_of(status) is None for status, _ in attempts.values())
    return [
        ReportedFigure(model, "resolved_instances", stated, float(resolved)),
        ReportedFigure(
            model,
            "resolved_instances / total_instances",
            stated / total if stated is not None and total else None,
            resolved / count if count else None,
            note=_rate_note(len(ids["incomplete_ids"]), undecided),
        ),
    ]


def _rate_note(incomplete: int, undecided: int) -> str | None:
    reasons = [f"{counted(incomplete, 'problem')} never submitted"] if incomplete else []
    reasons += [f"{counted(undecided, 'attempt')} without a verdict (errors, infrastructure)"] if undecided else []
    if not reasons:
        return None
    return f"SWE-bench counts {' and '.join(reasons)} as not resolved; Touchstone leaves them out"
