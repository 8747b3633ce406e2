"""The known report formats, and the test runners whose exit code alone is not enough."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from touchstone.validation.test_reports import cargo, go, jest, junit, pytest_text, tap
from touchstone.validation.test_reports.results import Outcome, SuiteResults, lines_of, worst


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
    programs = list(_programs(arguments))
    if any(name in ("pytest", "py.test") for name, _ in programs):
        return "pytest"
    return "cargo" if ("cargo", "test") in programs else None


def left_early(arguments: Sequence[str], output: str) -> bool:
    """Whether a runner without a known report lacks the line with which it ends a successful run.

    >>> [left_early(["python", "-m", "unittest"], text) for text in ("Ran 1 test\\n\\nOK (skipped=1)", "")]
    [False, True]
    """
    runs = any(name == "unittest" for name, _ in _programs(arguments))
    return runs and not any(line == "OK" or line.startswith("OK (") for line in lines_of(output))


def _programs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The programs that a command line starts, as far as it shows, each with the word after it."""
    for words in (arguments, *(_words(argument) for argument in arguments if " " in argument)):
        for before, word, after in zip(("&&", *words), words, (*words[1:], ""), strict=False):
            if before in _BEFORE_PROGRAM or "=" in before:
                yield PurePosixPath(word).name, after


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
