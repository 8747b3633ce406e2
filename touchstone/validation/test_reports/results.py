"""The result of every parser: the outcome of each test by name, and the errors that belong to no test."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["passed", "failed", "skipped"]

# Several results of one name count as the worst of them; a skipped repetition does not matter.
_WORST_FIRST: tuple[Outcome, ...] = ("failed", "passed", "skipped")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class ReportFormatError(ValueError):
    """A program's report is malformed. The message completes the sentence "the report ..."."""


@dataclass(frozen=True)
class SuiteError:
    """An error that belongs to no test: a file that cannot be imported, or a failed build."""

    summary: str
    output: str = ""


@dataclass
class SuiteResults:
    """The outcomes by test name, and why tests failed. `compiled` is None if the format does not say.

    `unnamed` counts passed tests that the report does not name.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    errors: list[SuiteError] = field(default_factory=list)
    compiled: bool | None = None
    unnamed: int = 0

    @property
    def failed(self) -> bool:
        """Whether a test failed, or something else went wrong."""
        return bool(self.errors) or "failed" in self.outcomes.values()

    def add(self, name: str, outcome: Outcome, message: str = "") -> None:
        """Add a test's result."""
        self.outcomes[name] = worst((outcome, self.outcomes.get(name, outcome)))
        if outcome == "failed" and message:
            self.messages.setdefault(name, message)

    def error(self, summary: str, output: str = "") -> None:
        """Add an error that belongs to no test."""
        self.errors.append(SuiteError(summary, output))


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of a test that reported several times.

    >>> worst(["passed", "failed", "passed"]), worst(["skipped", "passed"])
    ('failed', 'passed')
    """
    return min(outcomes, key=_WORST_FIRST.index)


def merged(parts: Iterable[SuiteResults]) -> SuiteResults:
    """The results of several reports on one run."""
    found = SuiteResults()
    for part in parts:
        for name, outcome in part.outcomes.items():
            found.add(name, outcome, part.messages.get(name, ""))
        found.errors += part.errors
        found.unnamed += part.unnamed
        if part.compiled is False:
            found.compiled = False
    return found


def json_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that a report is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReportFormatError(f"is not whole JSON ({str(error)[:200]})") from None
    if not isinstance(value, dict):
        raise ReportFormatError("is not a JSON object")
    return value


def lines_of(text: str) -> list[str]:
    r"""The lines of a report without colours and trailing blanks.

    >>> lines_of("\x1b[32mok\x1b[0m 1 \r\n1..1")
    ['ok 1', '1..1']
    """
    return [line.rstrip() for line in _COLOUR.sub("", text).split("\n")]
