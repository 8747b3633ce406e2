"""Adapter for LiveCodeBench's `_eval.json`: the metrics, the result of every test by question, and the metadata.

Questions are numbered, not named. `_eval_all.json` of the same run has their names, so this file is read only where
that one is missing, as the problems `<scenario>/#<number>`. A test passed if its result is true; other results are
false or an error code. A generation passes if all its tests do.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, NotEvaluatedError
from touchstone.ingest.adapters.head import LIST, Head
from touchstone.ingest.adapters.json_files import raw_values, read_document
from touchstone.ingest.adapters.json_values import text_of
from touchstone.ingest.adapters.livecodebench.results import KS, failure_cells, file_name
from touchstone.ingest.adapters.pass_at_k_figures import counts_by_problem, number_of, pass_at_k_figures
from touchstone.ingest.adapters.table import AdapterTable, Cells, RefusedRecordError, filled_record, table_from_records

FORMAT = "livecodebench-tests"
COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "suite",
    "passed",
    "classification",
    "error",
    "temperature",
    "error_code",
)
_NUMBERED = "the file numbers its questions: runs can be compared only if they were over the same release of them"

_Parts = tuple[dict[str, object], dict[str, object], list[object]]


def read_eval(path: Path) -> AdapterTable:
    """Read the test results of one file into rows of text cells."""
    named = path.with_name(path.name.removesuffix(".json") + "_all.json")
    if named.is_file():
        raise NotEvaluatedError(f"{path}: the same results are in {named.name}, which names the questions", "ignored")
    metrics, results, metadata = _parts(path)
    name = file_name(path)
    common: Cells = {"llm_name": name.model.name, "suite": name.scenario, "temperature": name.temperature}
    records = [
        filled_record(place, common, partial(_cells, name.scenario, number, attempt, tests, metadata))
        for place, (number, attempt, tests) in enumerate(_attempts(results), start=1)
    ]
    stated = {f"pass@{k}": number_of(metrics.get(f"pass@{k}")) for k in KS}
    figures = pass_at_k_figures(name.model.name, counts_by_problem(records), KS, stated, name.scenario)
    notes = [name.model.note, _NUMBERED]
    return table_from_records(path, FORMAT, COLUMNS, records, _raw, figures=figures, notes=notes)


def _recognizes(head: Head) -> bool:
    return {(LIST, "pass@1"), (LIST, "detail")} <= head.key_paths and (LIST, "question_id") not in head.key_paths


ADAPTER = Adapter(FORMAT, "LiveCodeBench test results", _recognizes, lambda path, _: read_eval(path))


def _parts(path: Path) -> _Parts:
    """Metrics, results by question, and metadata in the order of questions; none if it does not fit the results."""
    document = read_document(path, unique_keys=True)
    if isinstance(document, list) and len(document) in (2, 3):
        metrics, results, metadata = (*document, [])[:3]
        if isinstance(metrics, dict) and isinstance(results, dict):
            fits = isinstance(metadata, list) and len(metadata) == len(results)
            return metrics, results, metadata if fits else []
    raise InputFileError(f"{path}: LiveCodeBench test results are a list of metrics, results and metadata")


def _attempts(results: dict[str, object]) -> Iterator[tuple[str, int, object]]:
    """Question, attempt and test results of every generation; attempt 0 stands for a question that cannot be used."""
    for number, generations in results.items():
        if not isinstance(generations, list) or not generations:
            yield number, 0, generations
            continue
        for attempt, tests in enumerate(generations, start=1):
            yield number, attempt, tests


def _raw(path: Path, places: set[int]) -> dict[int, str]:
    return raw_values(
        ((place, tests) for place, (_, _, tests) in enumerate(_attempts(_parts(path)[1]), start=1)), places
    )


def _cells(suite: str | None, number: str, attempt: int, tests: object, metadata: list[object]) -> Cells:
    passed = _passed(number, attempt, tests)
    outcome = {"classification": "pass"} if passed else failure_cells(_of_attempt(metadata, number, attempt))
    return {
        "oid": f"{suite}/#{number}" if suite else f"#{number}",
        "iteration_id": str(attempt),
        "passed": text_of(passed),
        **outcome,
    }


def _passed(number: str, attempt: int, tests: object) -> bool:
    if attempt == 0:
        raise RefusedRecordError("ragged", f"question {number[:100]!r} has no list of generations")
    if not isinstance(tests, list) or not tests:
        raise RefusedRecordError("ragged", f"generation {attempt} of question {number[:100]!r} has no test results")
    # Error codes are negative.
    return all(result is True or (number_of(result) or 0) > 0 for result in tests)


def _of_attempt(metadata: list[object], number: str, attempt: int) -> object:
    place = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else len(metadata)
    of_question = metadata[place] if place < len(metadata) else None
    if not isinstance(of_question, list) or attempt > len(of_question):
        return None
    return of_question[attempt - 1]
