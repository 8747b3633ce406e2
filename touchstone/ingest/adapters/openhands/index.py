"""Adapter for the OpenHands Index: `<model>/instance_results/<benchmark>.json`, by instance its cost and its outcome.

The model is in `metadata.json` above the file, else it is the folder's name; the score that the index shows is in
`scores.json`, in percent. The benchmark is the suite. Ids of SWE-bench stay as they are, so that its other files pair
with these; those of other benchmarks get the benchmark's name, because some have SWE-bench's ids for another task.
"""

from collections.abc import Iterator
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter
from touchstone.ingest.adapters.folders import as_given, bounded_document, is_file, raw_from_elements, refuse, scalar_of
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.json_values import identifier_of, object_of, text_of
from touchstone.ingest.adapters.swebench.statuses import COLUMNS, ERROR, RESOLVED, UNRESOLVED, attempt_cells
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    table_from_records,
)
from touchstone.ingest.adapters.tool_figures import number_of

FORMAT = "openhands-index"
_SWEBENCH = "swe-bench"


def read_index(path: Path) -> AdapterTable:
    """Read the instance results of the OpenHands Index into rows of text cells."""
    benchmark = path.name.removesuffix(".json")
    model, score, notes, files = _index_entry(path, benchmark)
    records = []
    for line, (oid, value) in _instances(path):
        record = Record(line, {"llm_name": model})
        try:
            record.cells |= _index_cells(oid, value, model, benchmark)
        except RefusedRecordError as refusal:
            refuse(record, refusal)
        records.append(record)
    resolved = sum(record.cells.get("passed") == "true" for record in records)
    share = 100 * resolved / len(records) if records else None
    note = "in percent, rounded to one decimal; instances without a result count as failures in the index"
    figures = [ReportedFigure(model, "accuracy", score, share, benchmark, note)]
    raw = raw_from_elements(_instances)
    return table_from_records(
        path,
        FORMAT,
        (*COLUMNS, "suite", "cost_usd"),
        records,
        raw,
        files=[path, *as_given(path, files)],
        figures=figures,
        notes=notes,
    )


def _recognizes(head: Head) -> bool:
    paths = head.key_paths
    return any(len(path) == 2 and path[1] == "resolved" and (path[0], "cost") in paths for path in paths)


ADAPTER = Adapter(FORMAT, "instance results of the OpenHands Index", _recognizes, lambda path, _: read_index(path))


def _instances(path: Path) -> Iterator[tuple[int, tuple[str, object]]]:
    document = bounded_document(path)
    if not isinstance(document, dict):
        raise InputFileError(f"{path}: the results of the OpenHands Index are an object by instance")
    yield from enumerate(document.items(), start=1)


def _index_entry(path: Path, benchmark: str) -> tuple[str, float | None, list[str], list[Path]]:
    """The model and the score of the benchmark, in the files above `instance_results`."""
    folder = path.absolute().parent
    folder = folder.parent if folder.name == "instance_results" else folder
    model, score, files = None, None, []
    if is_file(folder / "metadata.json"):
        document = bounded_document(folder / "metadata.json")
        model = scalar_of(document.get("model")) if isinstance(document, dict) else None
        files.append(folder / "metadata.json")
    if is_file(folder / "scores.json"):
        document = bounded_document(folder / "scores.json")
        entries = [each for each in document if isinstance(each, dict)] if isinstance(document, list) else []
        # Other metrics leave out instances that nobody can solve.
        stated = [each for each in entries if each.get("benchmark") == benchmark and each.get("metric") == "accuracy"]
        score = number_of(stated[0].get("score")) if stated else None
        files.append(folder / "scores.json")
    if model is not None and model.strip():
        return model, score, [], files
    return folder.name, score, [f"no metadata.json names the model; its folder '{folder.name}' is taken for it"], files


def _index_cells(oid: str, value: object, model: str, benchmark: str) -> Cells:
    result = object_of(value, "result")
    resolved = result.get("resolved")
    if resolved is not None and not isinstance(resolved, bool):
        raise RefusedRecordError("bad_boolean", "resolved is not true or false")
    status = ERROR if resolved is None else RESOLVED if resolved else UNRESOLVED
    name = identifier_of({"instance": oid}, "instance")
    unique = name if benchmark == _SWEBENCH else f"{benchmark}/{name}"
    return attempt_cells(unique, model, None, status) | {"suite": benchmark, "cost_usd": text_of(result.get("cost"))}
