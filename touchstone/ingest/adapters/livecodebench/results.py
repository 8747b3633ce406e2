"""Adapter for LiveCodeBench's `_eval_all.json`: a list of questions, each with lists of one element per generation.

`graded_list` has the verdicts; the attempt is the position in it. A question is the problem `<scenario>/<question_id>`:
the scenario (`codegeneration`, `selfrepair`, …) is the suite and comes from the file's name, or from what the lists
are called. Test output prediction and code execution ask several things about one question, which is then their
cluster. `metadata` has why a generation failed: -2 a wrong answer, -3 the time limit, -4 an error while it ran, -1 and
-5 that its process died or never ended. A generation can cause all of these, so they are failures. The model is the
folder's name: `output/<model>/Scenario.codegeneration_10_0.2_eval_all.json`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, NotEvaluatedError
from touchstone.ingest.adapters.carried import Carried
from touchstone.ingest.adapters.file_names import NamedModel, model_of_name
from touchstone.ingest.adapters.head import LIST, Head
from touchstone.ingest.adapters.json_files import raw_values, read_document
from touchstone.ingest.adapters.json_values import identifier_of, object_of, text_of
from touchstone.ingest.adapters.lossless_json import DECODER
from touchstone.ingest.adapters.pass_at_k_figures import counts_by_problem, number_of, pass_at_k_figures
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    filled_record,
    table_from_records,
)

FORMAT = "livecodebench"
COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "suite",
    "cluster",
    "passed",
    "classification",
    "error",
    "fixed_code",
    "prediction",
    "question_id",
    "difficulty",
    "platform",
    "contest_date",
    "temperature",
    "error_code",
    "execution_time",
)
KS = (1, 5)
_LISTS = ("output_list", "code_list", "pred_list", "graded_list", "metadata")
_LONG = ("question_content", "starter_code", "code", "input", "output", "original_code_list")
_MAPPED = ("question_id", "difficulty", "platform", "contest_date", "pass@1", *_LISTS, *_LONG)
_NAME = re.compile(
    r"(?P<before>.*?)Scenario\.(?P<scenario>[a-z]+)_\d+_(?P<temperature>\d+(?:\.\d+)?)(?:_eval(?:_all)?)?\.json$"
)
_TIMEOUT, _WRONG = "-3", "-2"
_MAX_ERROR_LENGTH = 2000
_LEFT_OUT = "question texts, raw outputs and test inputs were left out"


@dataclass(frozen=True)
class FileName:
    """What the name of a results file tells."""

    model: NamedModel
    scenario: str | None
    temperature: str | None


def file_name(path: Path) -> FileName:
    """The model, scenario and temperature of a results file.

    >>> name = file_name(Path("output/GPT-4o/Scenario.codegeneration_10_0.2_eval_all.json"))
    >>> name.model.name, name.scenario, name.temperature
    ('GPT-4o', 'codegeneration', '0.2')
    """
    found = _NAME.fullmatch(path.name)
    if found is None:
        stem = re.sub(r"(?:_eval(?:_all)?)?\.json$", "", path.name)
        return FileName(model_of_name(path, stem), None, None)
    return FileName(model_of_name(path, found["before"]), found["scenario"], found["temperature"])


def read_eval_all(path: Path) -> AdapterTable:
    """Read the graded generations of one file into rows of text cells."""
    questions = _questions(path)
    name = file_name(path)
    scenario = name.scenario or _scenario_of(questions)
    common: Cells = {"llm_name": name.model.name, "suite": scenario, "temperature": name.temperature}
    carried = Carried(_MAPPED, COLUMNS)
    records: list[Record] = []
    for question in questions:
        records += _records(question, common, carried, len(records) + 1)
    stated = [number_of(question.get("pass@1")) if isinstance(question, dict) else None for question in questions]
    known = [value for value in stated if value is not None]
    mean = sum(known) / len(known) if known and len(known) == len(stated) else None
    figures = pass_at_k_figures(name.model.name, counts_by_problem(records), KS, {"pass@1": mean}, scenario)
    notes = [name.model.note, _LEFT_OUT, *carried.notes()]
    return table_from_records(path, FORMAT, COLUMNS, records, _raw, figures=figures, notes=notes)


def failure_cells(value: object) -> Cells:
    """The class, error and error code of a generation that failed, from its metadata."""
    metadata = _metadata(value)
    if metadata is None:
        return {"classification": "fail", "error": (text_of(value) or "")[:_MAX_ERROR_LENGTH] or None}
    code = text_of(metadata.get("error_code"))
    said = [text_of(metadata.get(key)) for key in ("error_message", "error")]
    return {
        "classification": {None: "fail", _WRONG: "fail", _TIMEOUT: "timeout"}.get(code, "error"),
        "error": ": ".join(text for text in said if text)[:_MAX_ERROR_LENGTH] or None,
        "error_code": code,
    }


def _metadata(value: object) -> dict[str, object] | None:
    """The metadata of a generation: an object, or one as JSON text. None for anything else."""
    if isinstance(value, str):
        try:
            value = DECODER.decode(value)
        except (json.JSONDecodeError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _recognizes(head: Head) -> bool:
    # Long outputs may leave no room for `graded_list` in the start of the file.
    graded = (LIST, "graded_list") in head.key_paths or head.path.name.endswith("_eval_all.json")
    return (LIST, "question_id") in head.key_paths and graded


ADAPTER = Adapter(FORMAT, "LiveCodeBench results", _recognizes, lambda path, _: read_eval_all(path))


def _recognizes_generations(head: Head) -> bool:
    return {(LIST, "question_id"), (LIST, "output_list")} <= head.key_paths


def _refuse_generations(path: Path) -> AdapterTable:
    what = "LiveCodeBench generations without verdicts"
    raise NotEvaluatedError(f"{path}: {what}; the file that ends in _eval_all.json has them (--evaluate)", "unknown")


# Its files lie beside those with the verdicts.
GENERATIONS = Adapter(
    "livecodebench-generations",
    "LiveCodeBench generations",
    _recognizes_generations,
    lambda path, _: _refuse_generations(path),
)


def _questions(path: Path) -> list[object]:
    document = read_document(path)
    if not isinstance(document, list):
        raise InputFileError(f"{path}: LiveCodeBench results are a list of questions")
    return document


def _scenario_of(questions: list[object]) -> str:
    """The scenario that the lists of the first question belong to."""
    first = next((question for question in questions if isinstance(question, dict)), {})
    if "pred_list" not in first:
        return "codegeneration"
    return "testoutputprediction" if "test_id" in first else "codeexecution"


def _raw(path: Path, places: set[int]) -> dict[int, str]:
    return raw_values(_places(_questions(path)), places)


def _places(questions: list[object]) -> Iterator[tuple[int, object]]:
    place = 0
    for question in questions:
        for _ in range(_attempts(question) or 1):
            place += 1
            yield place, question


def _attempts(question: object) -> int:
    graded = question.get("graded_list") if isinstance(question, dict) else None
    return len(graded) if isinstance(graded, list) else 0


def _records(value: object, common: Cells, carried: Carried, first: int) -> list[Record]:
    """The attempts at a question, numbered from `first`; one that is refused if the question cannot be used."""
    try:
        question = object_of(value, "question")
        cells = _question_cells(question, common["suite"]) | carried.cells(question)
        graded = question.get("graded_list")
        if not isinstance(graded, list) or not graded:
            raise RefusedRecordError("ragged", "the question has no list of verdicts (graded_list)")
    except RefusedRecordError as refusal:
        return [
            Record(first + place, dict(common), refusal.kind, refusal.reason) for place in range(_attempts(value) or 1)
        ]
    return [
        filled_record(first + place, common | cells, partial(_attempt_cells, question, place, passed, len(graded)))
        for place, passed in enumerate(graded)
    ]


def _question_cells(question: Mapping[str, object], scenario: str | None) -> Cells:
    question_id = identifier_of(question, "question_id")
    part = text_of(question.get("test_id") if "test_id" in question else question.get("id"))
    return {
        "oid": "/".join(text for text in (scenario, question_id, part) if text is not None),
        "cluster": None if part is None else question_id,
        "question_id": question_id,
        "difficulty": text_of(question.get("difficulty")),
        "platform": text_of(question.get("platform")),
        "contest_date": text_of(question.get("contest_date")),
    }


def _attempt_cells(question: Mapping[str, object], place: int, passed: object, attempts: int) -> Cells:
    def element(name: str) -> object:
        values = question.get(name)
        # With another length there is no telling which element belongs to which verdict.
        return values[place] if isinstance(values, list) and len(values) == attempts else None

    metadata = element("metadata")
    failure = failure_cells(metadata) if passed is False else {}
    return {
        "iteration_id": str(place + 1),
        "passed": text_of(passed),
        "classification": "pass" if passed is True else None,
        **failure,
        "fixed_code": text_of(element("code_list")),
        "prediction": text_of(element("pred_list")),
        "execution_time": text_of((_metadata(metadata) or {}).get("execution time")),
    }
