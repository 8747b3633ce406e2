"""Parsing the output of Rust's test harness: the regular output, and every way in which it can be inconsistent."""

import pytest

from touchstone.validation.libtest import ContradictionError, read_documentation, read_list, read_single


def summary(passed: int = 0, failed: int = 0, ignored: int = 0, verdict: str | None = None) -> str:
    counts = f"{passed} passed; {failed} failed; {ignored} ignored; 0 measured; 5 filtered out; finished in 0.00s"
    return f"test result: {verdict or ('FAILED' if failed else 'ok')}. {counts}\n"


PASSED = "\nrunning 1 test\ntest m::a ... ok\n\n" + summary(passed=1)
FAILED = "\nrunning 1 test\ntest m::a ... FAILED\n\nfailures:\n\n---- m::a stdout ----\nboom\n\n" + summary(failed=1)


def test_passed_failed_ignored() -> None:
    assert read_single("m::a", 0, PASSED) == "passed"
    assert read_single("m::a", 101, FAILED) == "failed"
    assert read_single("a", 0, "running 1 test\ntest a ... ignored, too slow\n\n" + summary(ignored=1)) == "skipped"
    assert read_single("a", 0, "running 1 test\ntest a - should panic ... ok\n\n" + summary(passed=1)) == "passed"


def test_other_output_does_not_matter() -> None:
    assert read_single("m::a", 0, "hello\n" + PASSED.replace("test m::a", "from a child\ntest m::a")) == "passed"


@pytest.mark.parametrize("exit_code", [-6, -11, 3, 134])
def test_breaking_off_is_a_failure(exit_code: int) -> None:
    assert read_single("m::a", exit_code, "\nrunning 1 test\n") == "failed"
    assert read_single("m::a", exit_code, "\nrunning 2 tests\ntest m::a ... ok\n") == "failed"


@pytest.mark.parametrize(
    ("exit_code", "stdout"),
    [
        (0, ""),
        (0, "\nrunning 1 test\n"),
        (0, "\nrunning 1 test\ntest m::a ... ok\n"),
        (0, FAILED),
        (101, PASSED),
        (0, PASSED + PASSED),
        (101, PASSED + FAILED),
        (0, PASSED + "test m::a ... ok\n"),
        (0, PASSED + summary(passed=1)),
        (0, "running 1 test\n" + PASSED),
        (0, PASSED.replace("m::a", "m::b")),
        (0, PASSED.replace("test m::a ... ok\n", "")),
        (0, PASSED.replace("running 1 test", "running 2 tests")),
        (0, PASSED.replace("1 passed", "2 passed")),
        (0, "\nrunning 0 tests\n\n" + summary()),
        (0, "running 1 test\ntest m::a ... ok\n" + summary(passed=1, verdict="FAILED")),
        (0, "running 2 tests\ntest m::a ... ok\ntest m::b ... ok\n" + summary(passed=2)),
    ],
)
def test_contradictions(exit_code: int, stdout: str) -> None:
    with pytest.raises(ContradictionError):
        read_single("m::a", exit_code, stdout)


def test_lists() -> None:
    assert read_list(0, "") == []
    assert read_list(0, "a: test\nb::c: test\n") == ["a", "b::c"]
    for exit_code, stdout in ((101, "a: test\n"), (0, "a: test\na: test\n"), (0, "hello\na: test\n")):
        with pytest.raises(ContradictionError):
            read_list(exit_code, stdout)


def test_documentation_comes_in_two_sessions() -> None:
    first = "\nrunning 1 test\ntest src/lib.rs - add (line 2) ... ok\n\n" + summary(passed=1)
    second = "\nrunning 1 test\ntest src/lib.rs - sub (line 9) - compile ... FAILED\n\n" + summary(failed=1)
    outcomes = {"src/lib.rs - add (line 2)": "passed", "src/lib.rs - sub (line 9) - compile": "failed"}
    assert read_documentation(101, first + second) == outcomes
    assert read_documentation(0, "\nrunning 0 tests\n\n" + summary()) == {}
    for exit_code, stdout in ((0, first + second), (0, first + first), (101, first)):
        with pytest.raises(ContradictionError):
            read_documentation(exit_code, stdout)
