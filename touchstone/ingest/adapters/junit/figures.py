"""The numbers of tests, failures, errors and skipped tests that a JUnit file states, beside those that were counted."""

import re
from collections.abc import Mapping, Sequence

from touchstone.ingest.adapters.table import ReportedFigure

_NAMES = {"tests": None, "failures": "failed", "errors": "error", "skipped": "skipped"}
_COUNT = re.compile(r"[0-9]{1,9}")


def figures_of(model: str, suites: Sequence[Mapping[str, str]], outcomes: Sequence[str]) -> list[ReportedFigure]:
    """Sums over the attributes of the outermost suites, and the same of the tests in them."""
    figures = []
    for name, outcome in _NAMES.items():
        values = [suite.get(name, "") for suite in suites]
        if values and all(map(_COUNT.fullmatch, values)):
            found = len(outcomes) if outcome is None else outcomes.count(outcome)
            figures.append(ReportedFigure(model, name, sum(map(int, values)), found))
    return figures
