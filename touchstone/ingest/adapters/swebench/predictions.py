"""Adapter for SWE-bench predictions: patches without verdicts, as JSON Lines, a list, or an object by instance.

The patch is the fix (`model_patch`), to be validated where the problems are at hand. An empty patch is a failure, as in
the harness. The harness keeps one prediction per instance; here several of one model are its attempts, in their order.
Transcripts are left out.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter
from touchstone.ingest.adapters.folders import bounded_document, raw_from_elements, refuse
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.json_files import numbered_lines, parse_line, raw_lines
from touchstone.ingest.adapters.json_values import identifier_of, object_of, text_of, unmapped_cells
from touchstone.ingest.adapters.lossless_json import Number
from touchstone.ingest.adapters.swebench.statuses import COLUMNS, EMPTY_PATCH, NOT_RUN, attempt_cells
from touchstone.ingest.adapters.table import AdapterTable, Record, RefusedRecordError, table_from_records
from touchstone.ingest.fix_columns import NATIVE_COLUMNS
from touchstone.text import counted

FORMAT = "swebench-predictions"
_ID, _MODEL, _PATCH = "instance_id", "model_name_or_path", "model_patch"
# Predictions have no verdict, cost or tier: what looks like one is kept as `input_<key>`, and decides nothing.
_TAKEN = (*COLUMNS, *NATIVE_COLUMNS)
_LEFT_OUT = ("full_output", "text", "text_inputs", "messages", "trajectory", "traj", "history", "reasoning_trace")


def read_predictions(path: Path) -> AdapterTable:
    """Read predictions into rows of text cells."""
    by_line = _is_json_lines(Head(path))
    records: list[Record] = []
    left_out: dict[str, None] = {}
    for line, value in _lines(path) if by_line else _elements(path):
        record = Record(line)
        try:
            prediction = parse_line(value, "prediction") if isinstance(value, str) else object_of(value, "prediction")
            left_out |= dict.fromkeys(name for name in _LEFT_OUT if name in prediction)
            _fill(record, prediction)
        except RefusedRecordError as refusal:
            refuse(record, refusal)
        records.append(record)
    if not records:
        raise InputFileError(f"{path}: there is no prediction in the file")
    notes = [*_number(records), *([f"left out of every prediction: {', '.join(left_out)}"] if left_out else [])]
    raw = raw_lines if by_line else raw_from_elements(_elements)
    return table_from_records(path, FORMAT, (*COLUMNS, _PATCH), records, raw, notes=notes)


def _recognizes(head: Head) -> bool:
    if _is_json_lines(head):
        return True
    paths = head.key_paths
    parents = (path[0] for path in paths if len(path) == 2 and path[1] == _PATCH)
    return any((parent, _MODEL) in paths or (parent, _ID) in paths for parent in parents)


ADAPTER = Adapter(FORMAT, "SWE-bench predictions", _recognizes, lambda path, _: read_predictions(path))


def _is_json_lines(head: Head) -> bool:
    return _ID in head.first_record and _PATCH in head.first_record


def _lines(path: Path) -> Iterator[tuple[int, object]]:
    return iter(numbered_lines(path))


def _elements(path: Path) -> Iterator[tuple[int, object]]:
    """The predictions of a list, or of an object in which the key is the instance."""
    document = bounded_document(path)
    if isinstance(document, list):
        yield from enumerate(document, start=1)
    elif isinstance(document, dict):
        for place, (key, value) in enumerate(document.items(), start=1):
            yield place, {_ID: key} | value if isinstance(value, dict) else value


def _fill(record: Record, prediction: Mapping[str, object]) -> None:
    model = record.cells["llm_name"] = identifier_of(prediction, _MODEL)
    oid = identifier_of(prediction, _ID)
    patch = prediction.get(_PATCH)
    if patch is not None and (not isinstance(patch, str) or isinstance(patch, Number)):
        raise RefusedRecordError("ragged", "the model_patch is not a text")
    is_empty = patch is None or not patch.strip()
    record.cells |= attempt_cells(oid, model, None, EMPTY_PATCH if is_empty else NOT_RUN)
    record.cells[_PATCH] = None if is_empty else text_of(patch)
    record.cells |= unmapped_cells(prediction, (_ID, _MODEL, _PATCH, *_LEFT_OUT), {}, _TAKEN)


def _number(records: list[Record]) -> list[str]:
    """Number the predictions of a model at an instance from 1; says so if there are several."""
    counts: dict[tuple[str | None, str | None], int] = {}
    for record in records:
        if record.kind is None:
            key = (record.cells["llm_name"], record.cells["oid"])
            counts[key] = counts.get(key, 0) + 1
            record.cells["iteration_id"] = str(counts[key])
    several = sum(count > 1 for count in counts.values())
    if not several:
        return []
    which = counted(several, "instance has", "instances have")
    return [f"{which} several predictions, which are attempts; the harness uses the last one"]
