"""Adapters for LiveCodeBench: `_eval_all.json`, a list of questions with the generations of each, and `_eval.json`.

`graded_list` has the verdicts; the attempt is the position in it. A question is the problem `<scenario>/<question_id>`:
the scenario (`codegeneration`, `selfrepair`, …) is the suite and comes from the file's name, or from what the lists
are called. Test output prediction and code execution ask several things about one question, which is then their
cluster. `metadata` has why a generation failed: -2 a wrong answer, -3 the time limit, -4 an error while it ran, -1 and
-5 that its process died or never ended. A generation can cause all of these, so they are failures. The model is the
folder's name: `output/<model>/Scenario.codegeneration_10_0.2_eval_all.json`.

`_eval.json` has the metrics, the result of every test by question, and the metadata. Questions are numbered there, not
named, so it is read only where `_eval_all.json` of the same run is missing, as the problems `<scenario>/#<number>`. A
test passed if its result is true; other results are false or an error code. A generation passes if all its tests do.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head, NotEvaluatedError, not_evaluated
from touchstone.ingest.adapters.folders import beside
from touchstone.ingest.adapters.json_files import (
    Carried,
    Number,
    identifier_of,
    inside,
    list_of,
    number_of,
    object_in_text,
    object_of,
    raw_values,
    read_document,
    skim_document,
    text_of,
)
from touchstone.ingest.adapters.json_stream import Each, Keep
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    NamedModel,
    Record,
    RefusedRecordError,
    fill_records,
    model_of_name,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import counts_of_table, pass_at_k_figures
from touchstone.ingest.compressed import uncompressed_name

FORMAT = "livecodebench"
COLUMNS = words(
    "oid iteration_id llm_name suite cluster passed classification error fixed_code prediction question_id difficulty "
    "platform contest_date temperature error_code execution_time"
)
KS = (1, 5)
_LISTS = ("output_list", "code_list", "pred_list", "graded_list", "metadata")
_LONG = ("question_content", "starter_code", "code", "input", "output", "original_code_list")
_MAPPED = ("question_id", "difficulty", "platform", "contest_date", "pass@1", *_LISTS, *_LONG)
# What follows `_eval_all`, such as `_v6`, tells files of a model apart.
_NAME = re.compile(
    r"(?P<before>.*?)Scenario\.(?P<scenario>[a-z]+)(?:_\d+_(?P<temperature>\d+(?:\.\d+)?))?"
    r"(?:_(?P=scenario)_output)?(?:_eval(?:_all)?)?(?P<rest>[-_].*)?\.json"
)
# As `custom_evaluator` calls the results of any file.
_CUSTOM = re.compile(
    r"(?P<before>.*?)(?:_(?P<scenario>codegeneration|selfrepair|testoutputprediction|codeexecution)_output)?"
    r"(?:_eval(?:_all)?)?(?:\.json)?",
    re.DOTALL,
)
_TIMEOUT, _WRONG = "-3", "-2"
_MAX_ERROR_LENGTH = 2000
_LEFT_OUT = "question texts, raw outputs and test inputs were left out"

TESTS_FORMAT = "livecodebench-tests"
_TESTS_COLUMNS = words("oid iteration_id llm_name suite passed classification error temperature error_code")
_NUMBERED = "the file numbers its questions: runs can be compared only if they were over the same release of them"
_Parts = tuple[dict[str, object], dict[str, object], list[object]]


@dataclass(frozen=True)
class FileName:
    """The parts of the name of a results file."""

    model: NamedModel
    scenario: str | None
    temperature: str | None


def file_name(path: Path) -> FileName:
    """The model, scenario and temperature of a results file.

    >>> name = file_name(Path("output/GPT-4o/Scenario.codegeneration_10_0.2_eval_all.json"))
    >>> name.model.name, name.scenario, name.temperature
    ('GPT-4o', 'codegeneration', '0.2')
    >>> file_name(Path("GPT-4o/Scenario.codegeneration_eval_all_v6.json")).model.name
    'GPT-4o_v6'
    >>> name = file_name(Path("output/fixer_selfrepair_output_eval_all.json"))
    >>> name.model.name, name.scenario
    ('fixer', 'selfrepair')
    """
    name = uncompressed_name(path)
    found = _NAME.fullmatch(name)
    if found is None:
        custom = _CUSTOM.fullmatch(name)
        assert custom is not None
        return FileName(model_of_name(path, custom["before"]), custom["scenario"], None)
    named = model_of_name(path, found["before"])
    named = NamedModel(named.name + (found["rest"] or ""), named.note)
    return FileName(named, found["scenario"], found["temperature"])


def read_eval_all(path: Path) -> AdapterTable:
    """Read the graded generations of one file into rows of text cells."""
    name = file_name(path)
    scenario = name.scenario or _scenario_of(_questions(path))
    common: Cells = {"llm_name": name.model.name, "suite": scenario, "temperature": name.temperature}
    carried = Carried(_MAPPED, COLUMNS)
    stated: list[float | None] = []
    records = _records(_questions(path), common, carried, stated)
    table = table_from_records(path, FORMAT, COLUMNS, records, raw_values(_places))
    known = [value for value in stated if value is not None]
    mean = sum(known) / len(known) if known and len(known) == len(stated) else None
    figures = pass_at_k_figures(name.model.name, counts_of_table(table), KS, {"pass@1": mean}, scenario)
    return table.stating(figures, notes=[name.model.note, _LEFT_OUT, *carried.notes()])


def failure_cells(value: object) -> Cells:
    """The class, error and error code of a generation that failed, from its metadata."""
    metadata = object_in_text(value)
    if metadata is None:
        return {"classification": "fail", "error": (text_of(value) or "")[:_MAX_ERROR_LENGTH] or None}
    code = text_of(metadata.get("error_code"))
    said = [text_of(metadata.get(key)) for key in ("error_message", "error")]
    return {
        "classification": {None: "fail", _WRONG: "fail", _TIMEOUT: "timeout"}.get(code, "error"),
        "error": ": ".join(text for text in said if text)[:_MAX_ERROR_LENGTH] or None,
        "error_code": code,
    }


def _recognizes(head: Head) -> bool:
    # Long outputs may leave no room for `graded_list` in the start of the file.
    graded = (LIST, "graded_list") in head.key_paths or head.name.endswith("_eval_all.json")
    return (LIST, "question_id") in head.key_paths and graded


ADAPTER = Adapter(FORMAT, "LiveCodeBench results", _recognizes, lambda path, _: read_eval_all(path))


# These files are beside those with the verdicts.
GENERATIONS = not_evaluated(
    "livecodebench-generations",
    "LiveCodeBench generations",
    lambda head: (LIST, "question_id") in head.key_paths and any((LIST, each) in head.key_paths for each in _LISTS[:2]),
    "LiveCodeBench generations without verdicts; the file that ends in _eval_all.json has them (--evaluate)",
)


def _questions(path: Path) -> Iterator[object]:
    for name, part in skim_document(path, Each(Keep())):
        if name is not None:
            yield part
        elif not isinstance(part, list):
            raise InputFileError(f"{path}: LiveCodeBench results are a list of questions")


def _scenario_of(questions: Iterable[object]) -> str:
    """The scenario that the lists of the first question belong to."""
    first = next((question for question in questions if isinstance(question, dict)), {})
    if "pred_list" not in first:
        return "codegeneration"
    return "testoutputprediction" if "test_id" in first else "codeexecution"


def _places(path: Path) -> Iterator[tuple[int, object]]:
    return enumerate((each for each in _questions(path) for _ in range(_attempts(each) or 1)), start=1)


def _attempts(question: object) -> int:
    return len(list_of(inside(question).get("graded_list")))


def _records(
    questions: Iterable[object], common: Cells, carried: Carried, stated: list[float | None]
) -> Iterator[Record]:
    """The attempts at all questions; those of one that cannot be used are refused. `stated` gets their pass@1."""
    first = 1
    for question in questions:
        stated.append(number_of(inside(question).get("pass@1")))
        found = _records_of_question(question, common, carried, first)
        first += len(found)
        yield from found


def _records_of_question(value: object, common: Cells, carried: Carried, first: int) -> list[Record]:
    try:
        question = object_of(value, "question")
        cells = _question_cells(question, common["suite"]) | carried.cells(question)
        graded = list_of(question.get("graded_list"))
        if not graded:
            raise RefusedRecordError("ragged", "the question has no list of verdicts (graded_list)")
    except RefusedRecordError as refusal:
        return [
            Record(first + place, dict(common), refusal.kind, refusal.reason) for place in range(_attempts(value) or 1)
        ]
    return [
        Record(first + place, common | cells | _attempt_cells(question, place, passed, len(graded)))
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
        values = list_of(question.get(name))
        # With another length it is unknown which element belongs to which verdict.
        return values[place] if len(values) == attempts else None

    metadata = element("metadata")
    failure = failure_cells(metadata) if passed is False else {}
    return {
        "iteration_id": str(place + 1),
        "passed": text_of(passed),
        "classification": "pass" if passed is True else None,
        **failure,
        "fixed_code": text_of(element("code_list")),
        "prediction": text_of(element("pred_list")),
        "execution_time": text_of((object_in_text(metadata) or {}).get("execution time")),
    }


def read_eval(path: Path) -> AdapterTable:
    """Read the test results of one file into rows of text cells."""
    named = beside(path, uncompressed_name(path).removesuffix(".json") + "_all.json")
    if named.is_file():
        raise NotEvaluatedError(f"{path}: the same results are in {named.name}, which names the questions", "ignored")
    metrics, results, metadata = _parts(path)
    name = file_name(path)
    common: Cells = {"llm_name": name.model.name, "suite": name.scenario, "temperature": name.temperature}
    attempts = enumerate(_test_attempts(results), start=1)
    records = fill_records(attempts, partial(_fill_tests, name.scenario, metadata), common)
    stated = {f"pass@{k}": number_of(metrics.get(f"pass@{k}")) for k in KS}
    table = table_from_records(path, TESTS_FORMAT, _TESTS_COLUMNS, records, raw_values(_tests))
    figures = pass_at_k_figures(name.model.name, counts_of_table(table), KS, stated, name.scenario)
    return table.stating(figures, notes=[name.model.note, _NUMBERED])


def _recognizes_tests(head: Head) -> bool:
    return {(LIST, "pass@1"), (LIST, "detail")} <= head.key_paths and (LIST, "question_id") not in head.key_paths


TESTS = Adapter(TESTS_FORMAT, "LiveCodeBench test results", _recognizes_tests, lambda path, _: read_eval(path))


def _parts(path: Path) -> _Parts:
    """Metrics, results by question, and metadata in the order of questions; none if it does not fit the results."""
    document = read_document(path, unique_keys=True)
    if isinstance(document, list) and len(document) in (2, 3):
        metrics, results, metadata = (*document, [])[:3]
        if isinstance(metrics, dict) and isinstance(results, dict):
            fits = isinstance(metadata, list) and len(metadata) == len(results)
            return metrics, results, metadata if fits else []
    raise InputFileError(f"{path}: LiveCodeBench test results are a list of metrics, results and metadata")


def _test_attempts(results: dict[str, object]) -> Iterator[tuple[str, int, object]]:
    """Question, attempt and test results of every generation; attempt 0 stands for a question that cannot be used."""
    for number, generations in results.items():
        if not isinstance(generations, list) or not generations:
            yield number, 0, generations
            continue
        for attempt, tests in enumerate(generations, start=1):
            yield number, attempt, tests


def _tests(path: Path) -> Iterator[tuple[int, object]]:
    return enumerate((tests for _, _, tests in _test_attempts(_parts(path)[1])), start=1)


def _fill_tests(suite: str | None, metadata: list[object], cells: Cells, generation: tuple[str, int, object]) -> None:
    number, attempt, tests = generation
    passed = _all_passed(number, attempt, tests)
    cells |= {
        "oid": f"{suite}/#{number}" if suite else f"#{number}",
        "iteration_id": str(attempt),
        "passed": text_of(passed),
        **({"classification": "pass"} if passed else failure_cells(_of_attempt(metadata, number, attempt))),
    }


def _all_passed(number: str, attempt: int, tests: object) -> bool:
    if attempt == 0:
        raise RefusedRecordError("ragged", f"question {number[:100]!r} has no list of generations")
    if not isinstance(tests, list) or not tests:
        raise RefusedRecordError("ragged", f"generation {attempt} of question {number[:100]!r} has no test results")
    # Error codes are negative.
    return all(result is True or (isinstance(result, Number) and (number_of(result) or 0) > 0) for result in tests)


def _of_attempt(metadata: list[object], number: str, attempt: int) -> object:
    place = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else len(metadata)
    of_question = list_of(metadata[place]) if place < len(metadata) else []
    return of_question[attempt - 1] if attempt <= len(of_question) else None
