"""The outcome of an attempt: stated, named by its class, or implied by compiling and tests; never contradictory."""

from pathlib import Path

import pytest

from tests.ingest.test_attempts import accepted, read, refused


def test_a_class_that_is_not_known_keeps_its_name_and_its_row(tmp_path: Path) -> None:
    result = read(tmp_path, "oid,iteration_id,passed,classification\na,1,1,PASS\na,2,0,Refusal\nb,1,0, Oops \n")
    assert result.attempts.collect()["classification"].to_list() == ["pass", "refusal", "oops"]
    assert refused(result) == []


@pytest.mark.parametrize("stated", ["passed", "plausible_fix"])
def test_an_outcome_that_contradicts_its_class_is_refused(tmp_path: Path, stated: str) -> None:
    rows = "a,1,true,fail\na,2,false,pass\na,3,true,oops\nb,1,true,Pass\nb,2,false,timeout\nb,3,true,\n"
    result = read(tmp_path, f"oid,iteration_id,{stated},classification\n" + rows)
    assert refused(result) == [(2, "contradiction"), (3, "contradiction"), (4, "contradiction")]
    assert result.quarantine["reason"][0] == (
        f"classification is 'fail' but {stated} says the opposite; only the class 'pass' is a pass"
    )
    assert accepted(result) == [("b", "1", True), ("b", "2", False), ("b", "3", True)]


def test_is_fixed_is_the_outcome_of_a_file_without_another(tmp_path: Path) -> None:
    alone = read(tmp_path, "oid,iteration_id,is_fixed\na,1,True\na,2,False\nb,1,\nb,2,maybe\n")
    assert accepted(alone) == [("a", "1", True), ("a", "2", False), ("b", "1", None)]
    assert refused(alone) == [(5, "bad_boolean")]
    beside = read(tmp_path, "oid,iteration_id,plausible_fix,is_fixed\na,1,False,True\n")
    assert accepted(beside) == [("a", "1", False)]
    assert beside.attempts.collect()["is_fixed"].to_list() == ["True"]


def test_a_class_is_the_outcome_where_none_is_stated(tmp_path: Path) -> None:
    stated = read(tmp_path, "oid,iteration_id,passed,classification\na,1,,pass\na,2,,refusal\nb,1,,\n")
    assert accepted(stated) == [("a", "1", True), ("a", "2", False), ("b", "1", None)]
    alone = read(tmp_path, "oid,iteration_id,classification\na,1,pass\na,2,hallucination\nb,1,\n")
    assert accepted(alone) == [("a", "1", True), ("a", "2", False), ("b", "1", None)]
    assert refused(alone) == []


@pytest.mark.parametrize("quote", ['""', "'"])
def test_a_class_may_be_the_primary_of_an_object(tmp_path: Path, quote: str) -> None:
    cells = [f"{{{quote}primary{quote}: {quote}{word}{quote}, {quote}x{quote}: 1}}" for word in ("pass", "Refusal")]
    rows = "".join(f'a,{place},"{cell}"\n' for place, cell in enumerate(cells, start=1))
    result = read(tmp_path, "oid,iteration_id,classification\n" + rows)
    assert accepted(result) == [("a", "1", True), ("a", "2", False)]
    assert result.attempts.collect()["classification"].to_list() == ["pass", "refusal"]


def test_a_class_wins_over_an_outcome_that_compile_and_tests_imply(tmp_path: Path) -> None:
    header = "oid,iteration_id,compiled,tests_passed,tests_failed,classification\n"
    assert accepted(read(tmp_path, header + "a,1,1,3,0,policy_violation\na,2,1,3,0,\n")) == [
        ("a", "1", False),
        ("a", "2", True),
    ]


@pytest.mark.parametrize(
    ("compiled", "passed", "failed", "expected"),
    [
        ("1", "3", "0", True),
        ("1", "2", "1", False),
        ("1", "0", "0", False),
        ("0", "", "", False),
        ("1", "", "", None),
        ("", "3", "0", None),
    ],
)
def test_outcome_that_follows_from_compile_and_tests(
    tmp_path: Path, compiled: str, passed: str, failed: str, expected: bool | None
) -> None:
    header = "oid,iteration_id,compiled,tests_passed,tests_failed\n"
    assert accepted(read(tmp_path, header + f"a,1,{compiled},{passed},{failed}\n")) == [("a", "1", expected)]


def test_a_stated_outcome_wins_over_an_implied_one(tmp_path: Path) -> None:
    header = "oid,iteration_id,plausible_fix,compiled,tests_passed,tests_failed\n"
    assert accepted(read(tmp_path, header + "a,1,false,1,3,0\na,2,,1,3,0\n")) == [("a", "1", False), ("a", "2", True)]


def test_two_outcomes_that_contradict_each_other(tmp_path: Path) -> None:
    result = read(tmp_path, "oid,iteration_id,plausible_fix,passed\na,1,true,false\na,2,,true\nb,1,no,0\n")
    assert accepted(result) == [("a", "2", True), ("b", "1", False)]
    assert refused(result) == [(2, "contradiction")]


def test_a_fix_without_an_outcome_is_undecided(tmp_path: Path) -> None:
    attempts = read(tmp_path, "oid,iteration_id,fixed_code\na,1,x = 1\na,2,x = 1\nb,1,\n").attempts.collect()
    assert attempts["passed"].to_list() == [None, None, None]
    first, same, empty = attempts["fix_sha"].to_list()
    assert first == same and len(first) == 64 and empty is None
