"""Reading LiveCodeBench's graded generations: questions, scenarios, error codes."""

import json
from pathlib import Path

import pytest

from tests.ingest.adapters.code_generation import LIVECODEBENCH_TESTS, refused, rows
from touchstone.ingest.adapters import detect_format, read_adapted
from touchstone.ingest.adapters.adapter import NotEvaluatedError
from touchstone.ingest.adapters.table import AdapterTable

NAME = "GPT-4o/Scenario.codegeneration_3_0.2_eval_all.json"


def question(**changes: object) -> dict[str, object]:
    graded = {"question_id": "abc301_a", "difficulty": "easy", "platform": "atcoder", "contest_date": "2025-01-04"}
    lists = {"output_list": ["o"], "code_list": ["c"], "graded_list": [True], "metadata": ["{}"], "pass@1": 1.0}
    return graded | lists | changes


def read(tmp_path: Path, *questions: object, name: str = NAME) -> AdapterTable:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(questions))
    assert detect_format(path) == "livecodebench"
    return read_adapted(path)


@pytest.mark.parametrize(
    ("metadata", "outcome", "error"),
    [
        ('{"error_code": -2, "error_message": "Wrong Answer"}', "fail", "Wrong Answer"),
        ('{"error_code": -3, "error_message": "Time Limit Exceeded"}', "timeout", "Time Limit Exceeded"),
        (
            '{"error_code": -4, "error_message": "Runtime Error", "error": "KeyError(1)"}',
            "error",
            "Runtime Error: KeyError(1)",
        ),
        # A generation that kills its own process leaves these.
        ('{"error_code": -5, "error_message": "TestRunnerError"}', "error", "TestRunnerError"),
        ({"error_code": -1}, "error", None),
        ("{}", "fail", None),
        ("not JSON", "fail", "not JSON"),
        (None, "fail", None),
    ],
)
def test_error_codes(tmp_path: Path, metadata: object, outcome: str, error: str | None) -> None:
    table = read(tmp_path, question(graded_list=[False], metadata=[metadata]))
    assert rows(table, "passed", "classification", "error") == [("false", outcome, error)]


def test_lists_of_another_length_are_not_matched(tmp_path: Path) -> None:
    table = read(tmp_path, question(graded_list=[False, None], code_list=["only one"], metadata=[]))
    assert rows(table, "passed", "classification", "fixed_code") == [("false", "fail", None), (None, None, None)]


@pytest.mark.parametrize(
    ("name", "parts", "oid", "cluster"),
    [
        (
            "m/Scenario.testoutputprediction_1_0.2_eval_all.json",
            {"test_id": 3},
            "testoutputprediction/abc301_a/3",
            "abc301_a",
        ),
        ("m/renamed.json", {"test_id": 3}, "testoutputprediction/abc301_a/3", "abc301_a"),
        ("m/renamed.json", {"id": "sample_7"}, "codeexecution/abc301_a/sample_7", "abc301_a"),
    ],
)
def test_several_tasks_about_one_question(
    tmp_path: Path, name: str, parts: dict[str, object], oid: str, cluster: str
) -> None:
    asked = {key: value for key, value in question(pred_list=["42"], **parts).items() if key != "code_list"}
    assert rows(read(tmp_path, asked, name=name), "oid", "cluster", "prediction") == [(oid, cluster, "42")]


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    broken = [question(question_id=None), question(graded_list=[]), question(graded_list="yes"), 7]
    table = read(tmp_path, question(), *broken)
    assert refused(table) == [
        (2, "bad_id", "the question_id is missing"),
        (3, "ragged", "the question has no list of verdicts (graded_list)"),
        (4, "ragged", "the question has no list of verdicts (graded_list)"),
        (5, "ragged", "the question is a number where an object belongs"),
    ]
    assert table.raw({5}) == {5: "7"}


def test_test_results_are_read_only_without_the_file_that_names_questions(tmp_path: Path) -> None:
    with pytest.raises(NotEvaluatedError, match="the same results are in handmade_Scenario") as raised:
        read_adapted(LIVECODEBENCH_TESTS)
    assert raised.value.status == "ignored"
    alone = tmp_path / LIVECODEBENCH_TESTS.name
    alone.write_bytes(LIVECODEBENCH_TESTS.read_bytes())
    assert read_adapted(alone).frame.height == 6


def test_test_results_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "m_eval.json"
    path.write_text(json.dumps([{"pass@1": 1, "detail": {}}, {"0": [[True, 1], []], "1": [], "x": [[False]]}, []]))
    table = read_adapted(path)
    assert [(line, kind) for line, kind, _ in refused(table)] == [(2, "ragged"), (3, "ragged")]
    assert rows(table, "oid", "passed")[0] == ("#0", "true")
    assert rows(table, "oid", "classification")[3] == ("#x", "fail")


@pytest.mark.parametrize("lists", [{"output_list": ["o"], "code_list": ["c"]}, {"code_list": ["c"]}])
def test_generations_without_verdicts_say_what_is_needed(tmp_path: Path, lists: dict[str, object]) -> None:
    path = tmp_path / "Scenario.codegeneration_3_0.2.json"
    path.write_text(json.dumps([{"question_id": "abc301_a", **lists}]))
    with pytest.raises(NotEvaluatedError, match=r"_eval_all\.json has them"):
        read_adapted(path)
