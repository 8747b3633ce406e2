"""The output of `cargo test`: one harness after another, each from its announcement to its summary."""

from touchstone.validation.test_reports import libtest
from touchstone.validation.test_reports.results import Collected, Outcome, ReportFormatError, SuiteResults, lines_of

_OUTCOMES: dict[libtest.Outcome, Outcome] = {"passed": "passed", "failed": "failed", "ignored": "skipped"}


def read(text: str) -> SuiteResults:
    """The results of all harnesses. Without any, the build failed: cargo says why on standard error."""
    found = Collected()
    sessions = libtest.sessions(lines_of(text))
    for session in sessions:
        try:
            outcomes = libtest.read_session(session)
        except libtest.ContradictionError as error:
            raise ReportFormatError(f"cannot be trusted: {error}") from None
        for name, outcome in outcomes.items():
            found.add(name, _OUTCOMES[outcome])
    if not sessions:
        found.error("cargo ran no tests: the build failed")
    return found.results(compiled=bool(sessions))
