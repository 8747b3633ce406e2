"""Adapters for SWE-bench: run reports, predictions, and the results of submissions; `swebench_logs` reads its logs.

`error` has no verdict: the container could not be made, or the harness failed. In a run report it also stands for a
patch that does not apply and for tests that time out, because only the logs tell them apart; with the logs, both are
failures. An empty patch is the model's failure, in the class `wrong_format`. From version 5 the harness marks likely
failures of the infrastructure, and leaves them among the unresolved. They are undecided here, except `out_of_memory`,
which a fix can cause. A failure that it calls ambiguous stays a failure.

A run report, `<model>.<run>.json`, has the ids of one run by their outcome; Multi-SWE-bench (`final_report.json`) and
SWE-bench-Live (`results.json`) write the same under some other keys. The model and the run are only in the
file's name, joined with a dot. Both may contain dots; the logs beside the report tell where to cut, else it is the last
dot that is not part of a version such as `4.5`. A name without a run is the model, unless it only says that this is a
report: then the folder is. `sb-cli` names a report after its run alone. Each submitted id is one attempt. Ids in
`incomplete_ids` were never submitted: they are not attempts, though the harness divides by them, as it does by problems
outside a subset, which it does not list.

Predictions are patches without verdicts (`resolved`), as JSON Lines, a list, or an object by instance. The patch is the
fix (`model_patch`), to be validated where the problems are at hand. The harness keeps one prediction per instance; here
several of one model are its attempts, in their order. An empty patch is a failure, as in the harness, once the others
are judged: alone, it would make a figure of 0 of what nobody has judged.

`results.json` of a submission to the leaderboard lists the ids that were resolved, not judged (`no_logs`) or never
generated (`no_generation`). Failures are the rest of the benchmark's problems, so the file is read only where these are
known: from the caller, or from the submission's predictions beside it. Otherwise its counts are said, and no attempt is
made of it. The submission's folder is the model. A file that lists what is `unresolved` needs nothing else.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head, ReadOptions
from touchstone.ingest.adapters.exported import KEY, exported_model, restore
from touchstone.ingest.adapters.folders import beside, bounded_document, is_file, is_folder, text_in
from touchstone.ingest.adapters.json_files import (
    Number,
    identifier_of,
    inside,
    line_records,
    list_elements,
    list_of,
    members_by_id,
    number_of,
    object_records,
    raw_lines,
    raw_values,
    scalar_of,
    shown_json,
    skim_document,
    stated_settings,
    text_of,
    unmapped_cells,
)
from touchstone.ingest.adapters.json_stream import Keep, Shape
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RawReader,
    Record,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    encodable,
    number_attempts_of_rows,
    refuse_repetition,
    settle,
    table_from_records,
    undecide_failures,
    words,
)
from touchstone.ingest.compressed import uncompressed_name
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH, ROW_ERROR_KIND
from touchstone.ingest.fix_columns import NATIVE_COLUMNS
from touchstone.text import counted
from touchstone.vocabulary import MAX_COUNT

COLUMNS = words("oid iteration_id llm_name cluster run_id passed classification swebench_status error sample_uuid")

RESOLVED = "resolved"
UNRESOLVED = "unresolved"
EMPTY_PATCH = "empty_patch"
PATCH_FAILED = "patch_failed"
TIMEOUT = "timeout"
OUT_OF_MEMORY = "out_of_memory"
ERROR = "error"
INFRA_FAILURE = "infra_failure"
STATUS = "swebench_status"
NO_LOGS = "no_logs"
NOT_RUN = "not_run"

_OUTCOMES: dict[str, tuple[str | None, str | None]] = {
    RESOLVED: ("true", "pass"),
    UNRESOLVED: ("false", "fail"),
    EMPTY_PATCH: ("false", "wrong_format"),
    PATCH_FAILED: ("false", "wrong_format"),
    TIMEOUT: ("false", "timeout"),
    OUT_OF_MEMORY: ("false", "crash"),
    ERROR: (None, None),
    INFRA_FAILURE: (None, None),
    NO_LOGS: (None, None),
    NOT_RUN: (None, None),
}
# What is known without running a patch.
_UNJUDGED = frozenset({NOT_RUN, EMPTY_PATCH, TIMEOUT, INFRA_FAILURE})
_TIMED_OUT = "tests_timed_out"
# The second form is that of SWE-smith: the commit, and what was done to it.
_ISSUE_ID = re.compile(r"(.+?)(?:(?::pr)?-\d+|\.[0-9a-f]{8}\..+)")

RUNS = Path("logs", "run_evaluation")
LOG, TEST_OUTPUT = "run_instance.log", "test_output.txt"
_PATCH_MARK = ">>>>> Patch Apply Failed"
_TIMEOUT = re.compile(r"Timeout error: \d+ seconds exceeded|Test timed out after \d+ seconds|>>>>> Tests Timed Out")
_ERROR_LENGTH = 300
# The end of a log tells why the harness gave up.
_LOG_BYTES = 1 << 20

REPORT_FORMAT = "swebench-report"
_COUNTS = ("total_instances", "submitted_instances", "resolved_instances")
_REPORT_LISTS = {
    "resolved_ids": RESOLVED,
    "unresolved_ids": UNRESOLVED,
    "empty_patch_ids": EMPTY_PATCH,
    "error_ids": ERROR,
}
_OTHER_LISTS = ("completed_ids", "submitted_ids", "incomplete_ids", "infra_failure_ids")
_UNNAMED = "the report is not named <model>.<run>.json"
# A name of such words does not name the model.
_NO_MODEL = frozenset({"report", "output", "result", "results", "final", "summary", "eval", "evaluation", "swebench"})
_SB_CLI = re.compile(r"(?:Subset\.)?swe[-_]bench[-_]\w+__(?:test|dev)__(.+)")
# Keys of SWE-bench-Live and SWE-smith, and of old submissions to Multi-SWE-bench (`resolved`, a count in SWE-smith).
_LIVE, _SMITH = ("submitted_ids", "success_ids", "failure_ids"), ("ids_resolved", "ids_unresolved")
_OTHER_KEYS = {
    "success_ids": "resolved_ids",
    "resolved": "resolved_ids",
    "ids_resolved": "resolved_ids",
    "failure_ids": "unresolved_ids",
    "ids_unresolved": "unresolved_ids",
    # Some have no patch and others an error: which of them is not said.
    "empty_error_patch_ids": "error_ids",
    "success": "resolved_instances",
    "submitted": "total_instances",
    "total": "total_instances",
}
_REPORT_SHAPE: Shape = dict.fromkeys((*_REPORT_LISTS, *_OTHER_LISTS, *_OTHER_KEYS, "failure_reasons", KEY), Keep())
# A dot before a longer number is followed by a date or another name of a run.
_VERSION_DOT = re.compile(r"(?<=\d)\.(?=\d{1,2}(?!\d))")
# The ids of each list in order, each once.
Ids = dict[str, dict[str, None]]

PREDICTIONS_FORMAT = "swebench-predictions"
_ID, _MODEL, _PATCH = "instance_id", "model_name_or_path", "model_patch"
# Predictions have no verdict, cost or tier: what looks like one is kept as `input_<key>`, and decides nothing.
_TAKEN = (*COLUMNS, *NATIVE_COLUMNS)
_LEFT_OUT = ("full_output", "text", "text_inputs", "messages", "trajectory", "traj", "history", "reasoning_trace")

SUBMISSION_FORMAT = "swebench-submission"
# How many problems the parts of the leaderboard have, by the folder of their submissions.
_PARTS = {"test": 2294, "verified": 500, "lite": 300, "bash-only": 500, "multimodal": 517}
_PREDICTIONS_FILES = ("all_preds.jsonl", "preds.json", "preds.jsonl", "all_preds.json")
_FAILED = "unresolved"
# The first list that has an id decides. Keys of old files overlap: `applied` is part of `with_logs`, and so on.
_STATUSES = {
    "resolved": RESOLVED,
    "no_generation": EMPTY_PATCH,
    "no_apply": PATCH_FAILED,
    "test_timeout": TIMEOUT,
    "no_logs": NO_LOGS,
    "install_fail": ERROR,
    "reset_failed": ERROR,
    "test_errored": UNRESOLVED,
    _FAILED: UNRESOLVED,
}


def attempt_cells(oid: str, model: str, run: str | None, status: str, error: str | None = None) -> Cells:
    """The cells of an attempt. The harness makes one attempt per instance and run."""
    passed, word = _OUTCOMES[status]
    return {
        "oid": oid,
        "iteration_id": "1",
        "llm_name": model,
        "cluster": repository_of(oid),
        "run_id": run,
        "passed": passed,
        "classification": word,
        "swebench_status": status,
        "error": error,
        # A run's report and its logs have the same attempts.
        "sample_uuid": None if run is None else f"{model}/{run}/{oid}",
    }


def outcome_of(status: str) -> bool | None:
    """Whether an instance of this status is solved; None if that was not judged."""
    passed, _ = _OUTCOMES[status]
    return None if passed is None else passed == "true"


def is_judged(status: str | None) -> bool:
    """Whether a patch was judged, rather than failed or left for what is known without running it."""
    return status not in _UNJUDGED


def undecide_unless_judged(table: AdapterTable) -> tuple[AdapterTable, list[str]]:
    """Leave attempts without a patch undecided where no patch of the model was judged; returns notes."""
    status = pl.col(STATUS)
    return undecide_failures(table, ~status.is_in(_UNJUDGED), waiting=status == NOT_RUN)


def status_of_failure(status: str, infra: bool, reason: str | None) -> str:
    """The status of an instance that is not resolved, given what the harness says about its infrastructure."""
    if reason == OUT_OF_MEMORY:
        return OUT_OF_MEMORY
    if infra:
        return INFRA_FAILURE
    if status == ERROR and reason is not None:
        return TIMEOUT if reason == _TIMED_OUT else UNRESOLVED
    return status


def repository_of(oid: str) -> str | None:
    """The repository of an instance, whose problems are not independent; None for ids of another form.

    >>> [repository_of(oid) for oid in ("django__django-11099", "pallets__jinja.ada0a9a6.lm_modify__x1", "own-problem")]
    ['django__django', 'pallets__jinja', None]
    """
    match = _ISSUE_ID.fullmatch(oid)
    return match[1] if match else None


def model_of_folder(name: str) -> str:
    """The model of a folder or file name, in which the harness replaces "/" with "__"."""
    return name.replace("__", "/")


def folder_of_model(model: str) -> str:
    """The name of the folder that the harness writes a model's logs to."""
    return model.replace("/", "__")


def cause_of_error(folder: Path) -> tuple[str, str | None]:
    """The status of an instance without a report, and why there is none.

    The harness stops at a patch that does not apply and at tests that time out, as it does at errors of its own.
    """
    log = text_in(folder / LOG, _LOG_BYTES) or ""
    if _PATCH_MARK in log:
        return PATCH_FAILED, "the patch does not apply"
    if _TIMEOUT.search(text_in(folder / TEST_OUTPUT, _LOG_BYTES) or "") or _TIMEOUT.search(log):
        return TIMEOUT, "the tests timed out"
    lines = [line for line in log.splitlines() if "Error" in line]
    return ERROR, lines[-1][:_ERROR_LENGTH] if lines else "the harness wrote no report"


@dataclass(frozen=True)
class RunReport:
    """One run: its name, the status and error of every attempt, and what is wrong with the others."""

    model: str
    run: str | None
    attempts: dict[str, tuple[str, str | None]]
    refused: list[tuple[object, RefusedRecordError]]
    figures: list[ReportedFigure]
    notes: list[str]
    settings: list[StatedSetting]
    # The logs that were read.
    files: list[Path]
    # What Touchstone added to each attempt of a report that it wrote.
    exported: Mapping[str, object]


def is_run_report(head: Head) -> bool:
    """Whether a file has the counts at the start of a run report, or the lists of another tool."""
    return any(head.has_keys(*keys) for keys in (_COUNTS, _LIVE, _SMITH))


def read_report(path: Path) -> AdapterTable:
    """Read a run report into rows of text cells."""
    report = parse_report(path)
    records = [
        Record(line, attempt_cells(oid, report.model, report.run, status, error))
        for line, (oid, (status, error)) in enumerate(report.attempts.items(), start=1)
    ]
    for record in records:
        restore(record.cells, report.exported.get(record.cells["oid"] or ""))
    for line, (_, refusal) in enumerate(report.refused, start=len(records) + 1):
        records.append(Record(line, {"llm_name": report.model}, refusal.kind, refusal.reason))
    values: list[object] = [*report.attempts, *(value for value, _ in report.refused)]
    if not records:
        raise InputFileError(f"{path}: nothing was submitted in this run, so there is no attempt in it")
    raw = _raw_ids(values)
    table = table_from_records(path, REPORT_FORMAT, COLUMNS, records, raw, files=[path, *report.files])
    return table.stating(report.figures, report.settings, report.notes)


REPORT = Adapter(REPORT_FORMAT, "a SWE-bench run report", is_run_report, lambda path, _: read_report(path))


def _raw_ids(ids: Sequence[object]) -> RawReader:
    """Shows the ids of a list of which each is a record; an element that is not an id as JSON."""
    shown = [each if isinstance(each, str) else shown_json(each) for each in ids]
    return lambda _, lines: {line: encodable(shown[line - 1])[:MAX_RAW_LENGTH] for line in lines}


def parse_report(path: Path) -> RunReport:
    """The content of a run report."""
    *_, (_, stated) = skim_document(path, _REPORT_SHAPE)
    document = {_OTHER_KEYS.get(key, key): value for key, value in inside(stated).items()} | inside(stated)
    if not isinstance(document.get("resolved_ids"), list):
        raise InputFileError(f"{path}: a SWE-bench run report has a list resolved_ids; this one has none")
    model, run, name_notes = _model_and_run(path)
    # OpenHands' benchmarks call their reports output.report.json, and name the model inside.
    exported = exported_model(document)
    if named := exported or (name_notes and text_of(document.get(_MODEL))):
        model, name_notes = named, []
    ids, refused = _listed_ids(document)
    statuses = _reported_statuses(ids, "unresolved_ids" in document)
    reasons = document.get("failure_reasons")
    attempts = {oid: _attempt(oid, status, ids, reasons) for oid, status in statuses.items()}
    conflicts = [oid for oid in attempts if sum(oid in ids[name] for name in _REPORT_LISTS) > 1]
    for oid in conflicts:
        lists = " and ".join(name for name in _REPORT_LISTS if oid in ids[name])
        refused.append((oid, RefusedRecordError("contradiction", f"{oid} is in {lists}")))
        del attempts[oid]
    files = _decide_by_logs(path, model, run, attempts)
    notes = [*name_notes, *_report_notes(document, ids, attempts)]
    figures = _report_figures(model, document, ids, attempts)
    settings = stated_settings(model, "harness", {} if exported else document, "schema_version swebench_version")
    return RunReport(model, run, attempts, refused, figures, notes, settings, files, inside(document, KEY, "attempts"))


def _model_and_run(path: Path) -> tuple[str, str | None, list[str]]:
    stem = uncompressed_name(path).removesuffix(".json")
    if _NO_MODEL.issuperset(re.split(r"[._-]+", stem.lower())):
        model = _submission_of(path).name
        return model, None, [f"{_UNNAMED}; its folder '{model}' is taken as the model"]
    if found := _SB_CLI.fullmatch(stem):
        return found[1], None, [f"{_UNNAMED}; its run '{found[1]}' is taken as the model"]
    if "." not in stem:
        model = model_of_folder(stem)
        return model, None, [f"{_UNNAMED}; its name '{model}' is taken as the model"]
    runs = path.absolute().parent / RUNS
    for place in (place for place, mark in enumerate(stem) if mark == "."):
        model, run = stem[:place], stem[place + 1 :]
        if model and run and is_folder(runs / run / model):
            return model_of_folder(model), run, []
    versions = {match.start() for match in _VERSION_DOT.finditer(stem)}
    place = max((place for place, mark in enumerate(stem) if mark == "." and place not in versions), default=len(stem))
    return model_of_folder(stem[:place]) or stem, stem[place + 1 :] or None, []


def _submission_of(path: Path) -> Path:
    """The folder of a results file, which submissions put into `results`."""
    folder = path.absolute().parent
    return folder.parent if folder.name == "results" else folder


def _listed_ids(document: Mapping[str, object]) -> tuple[Ids, list[tuple[object, RefusedRecordError]]]:
    """The ids of every list, each once, and the elements of the lists of outcomes that are none."""
    ids: Ids = {name: {} for name in (*_REPORT_LISTS, *_OTHER_LISTS)}
    refused: list[tuple[object, RefusedRecordError]] = []
    for name, found in ids.items():
        for value in list_of(document.get(name)):
            try:
                found[identifier_of({name: value}, name)] = None
            except RefusedRecordError as refusal:
                if name in _REPORT_LISTS:
                    refused.append((value, refusal))
    return ids, refused


def _reported_statuses(ids: Ids, unresolved_listed: bool) -> dict[str, str]:
    """The status of every attempt. Old reports list the ids that were completed and resolved, not the unresolved."""
    statuses = {oid: status for name, status in _REPORT_LISTS.items() for oid in ids[name]}
    return dict.fromkeys(ids["completed_ids"], ERROR if unresolved_listed else UNRESOLVED) | statuses


def _attempt(oid: str, status: str, ids: Ids, reasons: object) -> tuple[str, str | None]:
    if status not in (UNRESOLVED, ERROR):
        return status, None
    reason = scalar_of(inside(reasons).get(oid))
    return status_of_failure(status, oid in ids["infra_failure_ids"], reason), reason


def _decide_by_logs(path: Path, model: str, run: str | None, attempts: dict[str, tuple[str, str | None]]) -> list[Path]:
    """Replace errors by what the logs beside the report say; returns the logs that were read.

    Only they tell that a patch does not apply, which is a failure of the model.
    """
    folder = path.absolute().parent / RUNS / (run or "") / folder_of_model(model)
    read: list[Path] = []
    for oid, (status, _) in attempts.items():
        # An id that is not a plain name leads out of the folder.
        is_name = Path(oid).name == oid and oid != ".."
        if status == ERROR and run and is_name and is_file(folder / oid / LOG):
            attempts[oid] = cause_of_error(folder / oid)
            read += [file for name in (LOG, TEST_OUTPUT) if is_file(file := folder / oid / name)]
    return read


def _unlisted(document: Mapping[str, object], ids: Ids, attempts: Collection[str]) -> int:
    """How many problems the report counts in its total and does not list: the run was on a part of the dataset."""
    total = number_of(document.get("total_instances")) or 0
    # An id that is refused is listed, too.
    listed = {*attempts, *ids["incomplete_ids"], *(oid for name in _REPORT_LISTS for oid in ids[name])}
    return int(total) - len(listed) if len(listed) < total <= MAX_COUNT else 0


def _never_submitted(ids: Ids, attempts: Collection[str]) -> int:
    """How many ids are only incomplete; Multi-SWE-bench lists its errors there, too."""
    return sum(oid not in attempts for oid in ids["incomplete_ids"])


def _report_notes(
    document: Mapping[str, object], ids: Ids, attempts: Mapping[str, tuple[str, str | None]]
) -> list[str]:
    notes = []
    errors = sum(status == ERROR and cause is None for status, cause in attempts.values())
    if errors:
        which = counted(errors, "attempt", "attempts")
        notes.append(f"{which} undecided after an error; without its log, that may be a patch that does not apply")
    if never := _never_submitted(ids, attempts):
        notes.append(
            f"{counted(never, 'problem was', 'problems were')} never submitted and no attempt (incomplete_ids)"
        )
    if unlisted := _unlisted(document, ids, attempts):
        parts = f"{counted(unlisted, 'problem')} of the {text_of(document['total_instances'])} that the report counts"
        notes.append(f"{parts} {'is' if unlisted == 1 else 'are'} not in it: the run was on a part of them")
    others = [oid for oid in ids["submitted_ids"] if oid not in attempts and oid not in ids["incomplete_ids"]]
    if others:
        unknown = counted(len(others), "submitted id is", "submitted ids are")
        notes.append(f"{unknown} in no list of outcomes and no attempt (submitted_ids)")
    return notes


def _report_figures(
    model: str, document: Mapping[str, object], ids: Ids, attempts: Mapping[str, tuple[str, str | None]]
) -> list[ReportedFigure]:
    """The harness's count of resolved instances, and its rate over all instances of the dataset."""
    resolved = sum(status == RESOLVED for status, _ in attempts.values())
    stated = number_of(document.get("resolved_instances", document.get("resolved")))
    total = number_of(document.get("total_instances"))
    unlisted = _unlisted(document, ids, attempts)
    absent = _never_submitted(ids, attempts) + unlisted
    count = len(attempts) + absent
    undecided = sum(outcome_of(status) is None for status, _ in attempts.values())
    of_live = "success" if "success_ids" in document else None
    return [
        ReportedFigure(model, of_live or "resolved_instances", stated, float(resolved)),
        ReportedFigure(
            model,
            f"{of_live} / submitted" if of_live else "resolved_instances / total_instances",
            stated / total if stated is not None and total else None,
            resolved / count if count else None,
            note=_rate_note(absent, undecided),
        ),
    ]


def _rate_note(incomplete: int, undecided: int) -> str | None:
    reasons = [f"{counted(incomplete, 'problem')} never submitted"] if incomplete else []
    reasons += [f"{counted(undecided, 'attempt')} without a verdict (errors, infrastructure)"] if undecided else []
    if not reasons:
        return None
    return f"SWE-bench counts {' and '.join(reasons)} as not resolved; Touchstone leaves them out"


def read_predictions(path: Path) -> AdapterTable:
    """Read predictions into rows of text cells."""
    left_out: dict[str, None] = {}
    fill = partial(_fill, left_out)
    by_line = _is_json_lines(Head(path))
    records = line_records(path, "prediction", fill) if by_line else object_records(_elements(path), "prediction", fill)
    raw = raw_lines if by_line else raw_values(_elements)
    table = table_from_records(path, PREDICTIONS_FORMAT, (*COLUMNS, _PATCH), records, raw)
    table = settle(refuse_repetition(table, _PATCH), ("llm_name", "oid", "iteration_id"), number_attempts_of_rows)
    several = _instances_with_several(table)
    which = counted(several, "instance has", "instances have")
    table, notes = undecide_unless_judged(table)
    notes += [f"{which} several predictions, which are attempts; the harness uses the last one"] if several else []
    notes += [f"left out of every prediction: {', '.join(left_out)}"] if left_out else []
    return table.stating([], notes=notes)


def _instances_with_several(table: AdapterTable) -> int:
    second = table.rows.filter(pl.col(ROW_ERROR_KIND).is_null(), pl.col("iteration_id") == "2")
    with table.reading():
        return int(second.select(pl.len()).collect(engine="streaming").item())


def _recognizes_predictions(head: Head) -> bool:
    paths = head.key_paths
    # With a verdict they are a table of attempts.
    if "resolved" in head.first_record or (LIST, "resolved") in paths:
        return False
    if _is_json_lines(head):
        return True
    parents = (path[0] for path in paths if len(path) == 2 and path[1] == _PATCH)
    return any((parent, _MODEL) in paths or (parent, _ID) in paths for parent in parents)


PREDICTIONS = Adapter(
    PREDICTIONS_FORMAT, "SWE-bench predictions", _recognizes_predictions, lambda path, _: read_predictions(path)
)


def _is_json_lines(head: Head) -> bool:
    return _ID in head.first_record and _PATCH in head.first_record


def _elements(path: Path) -> Iterator[tuple[int, object]]:
    """The predictions of a list, or of an object in which the key is the instance."""
    return list_elements(path) if Head(path).text.startswith("[") else members_by_id(path, _ID)


def _fill(left_out: dict[str, None], cells: Cells, prediction: Mapping[str, object]) -> None:
    left_out |= dict.fromkeys(name for name in _LEFT_OUT if name in prediction)
    cells["llm_name"] = model = identifier_of(prediction, _MODEL)
    oid = identifier_of(prediction, _ID)
    patch = prediction.get(_PATCH)
    if patch is not None and (not isinstance(patch, str) or isinstance(patch, Number)):
        raise RefusedRecordError("ragged", "the model_patch is not a text")
    is_empty = patch is None or not patch.strip()
    cells |= attempt_cells(oid, model, None, EMPTY_PATCH if is_empty else NOT_RUN)
    cells |= {"iteration_id": None, _PATCH: None if is_empty else text_of(patch)}
    cells |= unmapped_cells(prediction, (_ID, _MODEL, _PATCH, *_LEFT_OUT), {}, _TAKEN)


def read_submission(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the results of a submission into rows of text cells; refuses them where the problems are unknown."""
    document = bounded_document(path)
    lists = _lists(document)
    if "resolved" not in lists:
        raise InputFileError(f"{path}: the results of a SWE-bench submission have a list 'resolved'; these have none")
    folder = _submission_of(path)
    problems, known_from, files = _problems(path, folder, lists, options)
    statuses = {oid: status for name, status in reversed(_STATUSES.items()) for oid in lists.get(name, ())}
    attempts = [(oid, statuses.get(oid, UNRESOLVED)) for oid in sorted({*problems, *statuses})]
    records = [
        Record(line, attempt_cells(oid, folder.name, None, status))
        for line, (oid, status) in enumerate(attempts, start=1)
    ]
    raw = _raw_ids([oid for oid, _ in attempts])
    resolved = sum(status == RESOLVED for _, status in attempts)
    figures = [ReportedFigure(folder.name, "resolved", float(len(lists["resolved"])), float(resolved))]
    if both := lists["resolved"] & lists.get(_FAILED, set()):
        raise InputFileError(f"{path}: {min(both)} is both resolved and unresolved")
    rest = f"the file does not list failures: they are the rest of the {len(problems)} problems in {known_from}"
    notes = [] if _FAILED in lists else [rest]
    table = table_from_records(path, SUBMISSION_FORMAT, COLUMNS, records, raw, files=[path, *files])
    return table.stating(figures, notes=notes)


def _recognizes_submission(head: Head) -> bool:
    # Programs other than benchmarks resolve things, too.
    names = ("no_generation", "no_logs", *([_FAILED] if head.name == "results.json" else []))
    return ("resolved", LIST) in head.key_paths and any((name, LIST) in head.key_paths for name in names)


SUBMISSION = Adapter(SUBMISSION_FORMAT, "results of a SWE-bench submission", _recognizes_submission, read_submission)


def _lists(document: object) -> dict[str, set[str]]:
    """The lists of ids; an id may be repeated in the file."""
    return {
        name: {str(oid) for oid in ids if isinstance(oid, str) and oid.strip()}
        for name, ids in inside(document).items()
        if isinstance(ids, list)
    }


def _problems(
    path: Path, folder: Path, lists: Mapping[str, set[str]], options: ReadOptions
) -> tuple[set[str], str, list[Path]]:
    """The ids of all problems, where they are from, and the file that was read for it."""
    if options.problems:
        return set(options.problems), "the list of problems", []
    if _FAILED in lists:
        return set().union(*lists.values()), "its lists", []
    if lists.get("generated"):
        return lists["generated"] | lists.get("no_generation", set()), "its lists generated and no_generation", []
    near = (beside(folder / name, name) for name in _PREDICTIONS_FILES if name != uncompressed_name(path))
    predictions = next((file for file in near if is_file(file)), None)
    if predictions is not None:
        oids = read_predictions(predictions).frame["oid"].drop_nulls()
        return set(oids), predictions.name, [predictions]
    raise InputFileError(
        f"{path}: {_known_counts(folder, lists)}, but not which problems failed; "
        f"put the submission's {_PREDICTIONS_FILES[0]} into {folder}, or give the list of problems"
    )


def _known_counts(folder: Path, lists: Mapping[str, set[str]]) -> str:
    """The counts that a submission's results state without a list of problems."""
    resolved, size = len(lists["resolved"]), _PARTS.get(folder.parent.name)
    rate = f" of {size:,} ({resolved / size:.1%} of SWE-bench {folder.parent.name})" if size else ""
    others = [f"{len(lists[name]):,} {name}" for name in ("no_generation", "no_logs") if lists.get(name)]
    return f"it says {', '.join([f'{resolved:,} resolved{rate}', *others])}"
