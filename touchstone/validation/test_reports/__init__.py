"""The reports of other people's test runners: one module per format, each from text to `results.SuiteResults`.

The text comes from a process that ran a fix, so a parser takes time proportional to its length, and a report that is
cut off or contradicts itself is refused with a `ReportFormatError`. Comparing a report with the exit code, and with
the tests that a problem expects, belongs in `validators.command` and `expected_tests`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from touchstone.validation.test_reports import go, jest, junit, libtest, pytest_text, tap
from touchstone.validation.test_reports.results import Outcome, SuiteResults, worst


@dataclass(frozen=True)
class ReportFormat:
    """How a report is parsed and what makes the runner write it.

    `spellings` are the names by which a reported test may be expected; `normal` spells an expected name as reports do.
    """

    read: Callable[[str], SuiteResults]
    spellings: Callable[[str], Iterable[str]] = lambda name: (name,)
    normal: Callable[[str], str] = str
    environment: Mapping[str, str] = field(default_factory=dict)


FORMATS: dict[str, ReportFormat] = {
    "pytest": ReportFormat(pytest_text.read, pytest_text.spellings, environment={"PYTEST_ADDOPTS": "-rap"}),
    "junit": ReportFormat(junit.read, normal=junit.normal),
    "tap": ReportFormat(tap.read),
    "go": ReportFormat(go.read, go.spellings),
    "cargo": ReportFormat(libtest.read),
    "jest": ReportFormat(jest.read, jest.spellings),
}


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
