"""The known report formats, and the test runners whose exit code alone is not enough."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from touchstone.validation.test_reports import cargo, go, jest, junit, pytest_text, tap
from touchstone.validation.test_reports.results import Outcome, SuiteResults, worst


def _only(name: str) -> Iterable[str]:
    return (name,)


@dataclass(frozen=True)
class ReportFormat:
    """How a report is parsed and what makes the runner write it.

    `spellings` are the names by which a reported test may be expected; `normal` spells an expected name as reports do.
    """

    read: Callable[[str], SuiteResults]
    spellings: Callable[[str], Iterable[str]] = _only
    normal: Callable[[str], str] = str
    environment: Mapping[str, str] = field(default_factory=dict)


FORMATS: dict[str, ReportFormat] = {
    "pytest": ReportFormat(pytest_text.read, pytest_text.spellings, environment={"PYTEST_ADDOPTS": "-rap"}),
    "junit": ReportFormat(junit.read, normal=junit.normal),
    "tap": ReportFormat(tap.read),
    "go": ReportFormat(go.read, go.spellings),
    "cargo": ReportFormat(cargo.read),
    "jest": ReportFormat(jest.read, jest.spellings),
}

# What may stand before a program's name in a shell command.
_BEFORE_PROGRAM = ("&&", "||", ";", "|", "(", "-m", "run", "exec", "time", "env", "--", "-c")


def runner_format(arguments: Sequence[str]) -> str | None:
    """The format of a test runner that runs the fix in its own process, so that the fix can end it with exit code 0.

    >>> runner_format(["/bin/sh", "-c", "cd shop && python -m pytest -q"]), runner_format(["cargo", "test"])
    ('pytest', 'cargo')
    >>> runner_format(["grep", "pytest", "notes.txt"])
    """
    for text in (arguments, *(_words(argument) for argument in arguments if " " in argument)):
        for before, word, after in zip(("&&", *text), text, (*text[1:], ""), strict=False):
            name = PurePosixPath(word).name
            if before not in _BEFORE_PROGRAM and "=" not in before:
                continue
            if name in ("pytest", "py.test"):
                return "pytest"
            if name == "cargo" and after == "test":
                return "cargo"
    return None


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # an unclosed quote
        return command.split()


def named_as_expected(results: SuiteResults, report: str, expected: Iterable[str]) -> dict[str, Outcome]:
    """The outcomes by reported name, and those of expected tests by the name under which they are expected."""
    found, spelled = dict(results.outcomes), FORMATS[report]
    alike: dict[str, list[Outcome]] = {}
    for name, outcome in results.outcomes.items():
        for spelling in spelled.spellings(name):
            alike.setdefault(spelling, []).append(outcome)
    for name in expected:
        if name not in found and (outcomes := alike.get(spelled.normal(name))):
            found[name] = worst(outcomes)
    return found
