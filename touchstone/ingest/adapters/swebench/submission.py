"""Adapter for `results.json` of a submission to SWE-bench's leaderboard: lists of ids, of which failures are none.

The file lists what was resolved, and what was not judged (`no_logs`) or never generated (`no_generation`). Failures
are what remains of the benchmark's problems, so the file is read only where the problems are known: from the caller,
or from the submission's predictions beside it. Otherwise it would look like a model that solves everything.

The submission's folder is the model.
"""

from collections.abc import Mapping
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.folders import as_given, bounded_document, is_file, raw_from_elements
from touchstone.ingest.adapters.head import LIST, Head
from touchstone.ingest.adapters.swebench.predictions import read_predictions
from touchstone.ingest.adapters.swebench.statuses import (
    COLUMNS,
    EMPTY_PATCH,
    ERROR,
    NO_LOGS,
    PATCH_FAILED,
    RESOLVED,
    TIMEOUT,
    UNRESOLVED,
    attempt_cells,
)
from touchstone.ingest.adapters.table import AdapterTable, Record, ReportedFigure, table_from_records
from touchstone.text import counted

FORMAT = "swebench-submission"
_PREDICTIONS = ("all_preds.jsonl", "preds.json", "preds.jsonl", "all_preds.json")
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
}


def read_submission(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the results of a submission into rows of text cells; refuses them where the problems are unknown."""
    document = bounded_document(path)
    lists = _lists(document)
    if "resolved" not in lists:
        raise InputFileError(f"{path}: the results of a SWE-bench submission have a list 'resolved'; these have none")
    folder = path.absolute().parent
    folder = folder.parent if folder.name == "results" else folder
    problems, known_from, files = _problems(path, folder, lists, options)
    statuses = {oid: status for name, status in reversed(_STATUSES.items()) for oid in lists.get(name, ())}
    attempts = [(oid, statuses.get(oid, UNRESOLVED)) for oid in sorted({*problems, *statuses})]
    records = [
        Record(line, attempt_cells(oid, folder.name, None, status))
        for line, (oid, status) in enumerate(attempts, start=1)
    ]
    raw = raw_from_elements(lambda _: enumerate((oid for oid, _ in attempts), start=1))
    resolved = sum(status == RESOLVED for _, status in attempts)
    figures = [ReportedFigure(folder.name, "resolved", float(len(lists["resolved"])), float(resolved))]
    notes = [f"the file does not list failures: they are the rest of the {len(problems)} problems in {known_from}"]
    return table_from_records(
        path, FORMAT, COLUMNS, records, raw, files=[path, *as_given(path, files)], figures=figures, notes=notes
    )


def _recognizes(head: Head) -> bool:
    paths = head.key_paths
    return ("resolved", LIST) in paths and any((name, LIST) in paths for name in ("no_generation", "no_logs"))


ADAPTER = Adapter(FORMAT, "results of a SWE-bench submission", _recognizes, read_submission)


def _lists(document: object) -> dict[str, set[str]]:
    """The lists of ids; an id may be repeated in the file."""
    if not isinstance(document, dict):
        return {}
    return {
        name: {str(oid) for oid in ids if isinstance(oid, str) and oid.strip()}
        for name, ids in document.items()
        if isinstance(ids, list)
    }


def _problems(
    path: Path, folder: Path, lists: Mapping[str, set[str]], options: ReadOptions
) -> tuple[set[str], str, list[Path]]:
    """The ids of all problems, where they are from, and the file that was read for it."""
    if options.problems:
        return set(options.problems), "the list of problems", []
    if lists.get("generated"):
        return lists["generated"] | lists.get("no_generation", set()), "its lists generated and no_generation", []
    beside = (folder / name for name in _PREDICTIONS if name != path.name)
    predictions = next((file for file in beside if is_file(file)), None)
    if predictions is not None:
        oids = read_predictions(predictions).frame["oid"].drop_nulls()
        return set(oids), predictions.name, [predictions]
    raise InputFileError(
        f"{path}: it lists {counted(len(lists['resolved']), 'resolved problem')} but not the failed ones; "
        f"put the submission's {_PREDICTIONS[0]} into {folder}, or give the list of problems"
    )
