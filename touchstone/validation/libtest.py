"""A strict parser for the output of Rust's test harness.

The code under test can print too, so no single line is trusted: the announcement, the test's result line, the summary
and the exit code must each be present exactly once and agree.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

Outcome = Literal["passed", "failed", "skipped"]

_ANNOUNCED = re.compile(r"running (\d{1,9}) tests?")
_TEST = re.compile(r"test (?P<name>.+?)(?: - should panic)? \.\.\. (?P<outcome>ok|FAILED|ignored)(?:, .*)?")
_SUMMARY = re.compile(
    r"test result: (?P<verdict>ok|FAILED)\. (?P<passed>\d{1,9}) passed; (?P<failed>\d{1,9}) failed; "
    r"(?P<skipped>\d{1,9}) ignored; (?P<measured>\d{1,9}) measured; \d{1,9} filtered out(?:; finished in [\d.]+m?s)?"
)
_OUTCOMES: dict[str, Outcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
_FAILED_EXIT_CODE = 101


class ContradictionError(Exception):
    """The output of a test program contradicts itself, its exit code or its list of tests."""


def read_single(name: str, exit_code: int, stdout: str) -> Outcome:
    """The outcome of a test that was run alone, by its exact name.

    >>> said = "running 1 test\\ntest a ... ok\\n\\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; "
    >>> read_single("a", 0, said + "3 filtered out; finished in 0.00s")
    'passed'
    """
    lines = stdout.splitlines()
    if not any(_SUMMARY.fullmatch(line) for line in lines):
        if exit_code == 0:
            raise ContradictionError("the test program ended with exit code 0 before the harness was done")
        return "failed"  # It aborted, overflowed its stack or exited with its own code: it claims no pass.
    outcomes = read_session(lines)
    _check_exit_code(outcomes, exit_code)
    if set(outcomes) != {name}:
        listed = ", ".join(sorted(outcomes))[:200] or "none"
        raise ContradictionError(f"test {name} was run, but the harness tells of {listed}")
    return outcomes[name]


def read_documentation(exit_code: int, stdout: str) -> dict[str, Outcome]:
    """The outcomes of documentation tests.

    From edition 2024 on, rustdoc first runs those that can share a program, then the others, each with its own harness.
    """
    outcomes: dict[str, Outcome] = {}
    for session in sessions(stdout.splitlines()):
        found = read_session(session)
        if found.keys() & outcomes.keys():
            raise ContradictionError("a documentation test reports twice")
        outcomes |= found
    _check_exit_code(outcomes, exit_code)
    return outcomes


def sessions(lines: Iterable[str]) -> list[list[str]]:
    """The lines of each harness, from its announcement on."""
    found: list[list[str]] = []
    for line in lines:
        if _ANNOUNCED.fullmatch(line):
            found.append([])
        if found:
            found[-1].append(line)
    return found


def read_session(lines: list[str]) -> dict[str, Outcome]:
    """Parse the output of one harness, from its announcement to its summary."""
    found = [match for line in lines if (match := _TEST.fullmatch(line))]
    outcomes = {match["name"]: _OUTCOMES[match["outcome"]] for match in found}
    summaries = [match for line in lines if (match := _SUMMARY.fullmatch(line))]
    announced = [int(match[1]) for line in lines if (match := _ANNOUNCED.fullmatch(line))]
    if len(outcomes) != len(found) or len(summaries) > 1 or len(announced) > 1:
        raise ContradictionError("the harness seems to speak twice, so something else printed its words")
    counts = Counter(outcomes.values())
    if (
        not summaries
        or announced != [len(outcomes)]
        or any(int(summaries[0][outcome]) != counts[outcome] for outcome in _OUTCOMES.values())
    ):
        raise ContradictionError("the harness's summary does not fit the tests that it tells of")
    if (summaries[0]["verdict"] == "ok") != ("failed" not in outcomes.values()):
        raise ContradictionError(f"the harness says {summaries[0]['verdict']}, which does not fit its tests")
    return outcomes


def _check_exit_code(outcomes: dict[str, Outcome], exit_code: int) -> None:
    if exit_code != (_FAILED_EXIT_CODE if "failed" in outcomes.values() else 0):
        raise ContradictionError(f"the harness's words do not fit its exit code {exit_code}")


def read_list(exit_code: int, stdout: str) -> list[str]:
    """The names of a program's tests, as `--list --format=terse` prints them.

    >>> read_list(0, "tests::adds: test\\nslow: benchmark\\n")
    ['tests::adds']
    """
    lines = [line for line in stdout.splitlines() if line]
    if exit_code != 0 or not all(line.endswith((": test", ": benchmark")) for line in lines):
        raise ContradictionError(f"the test program does not list its tests (exit code {exit_code})")
    names = [line.removesuffix(": test") for line in lines if line.endswith(": test")]
    if len(set(names)) != len(names):
        raise ContradictionError("the test program lists a test twice")
    return names
