"""The shape of a report, checked where it comes from a sandbox.

What runs in a sandbox may be the fix, so nothing about its report is taken for granted: every type, length and count.
What the contents mean belongs in `judging`.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from touchstone.validation.protocol import Diagnostic, Report, Severity, TestControl
from touchstone.vocabulary import STATUSES

# Far more than any validator reports, and few enough to be kept and compared.
_MAX_DIAGNOSTICS = 50_000
_MAX_TESTS = 50_000
_MAX_TEXT = 1_000_000
_MAX_TOTAL_TEXT = 16_000_000
_MAX_NUMBER = 2**31
_NUMBERS = ("line", "end_line", "column", "end_column")


def well_formed(report: Report) -> Report:
    """The report itself; or `no_report`, which is a failure, if a field has another type or size than it should.

    >>> well_formed(Report("failed", "full", (Diagnostic("error", "x", line="3"),))).note  # type: ignore[arg-type]
    "the report is malformed: a diagnostic's line"
    """
    fault = next(_faults(report), None)
    if fault is None:
        return report
    return Report(
        "no_report", report.fidelity if _is_text(report.fidelity) else "", note=f"the report is malformed: {fault}"
    )


def _faults(report: Report) -> Iterator[str]:
    """The fields with the wrong type or size."""
    rules = {
        "status": isinstance(report.status, str) and report.status in STATUSES,
        "fidelity": _is_text(report.fidelity),
        "compiled": report.compiled is None or isinstance(report.compiled, bool),
        "lint_warnings": report.lint_warnings is None or _is_number(report.lint_warnings),
        "consistent": isinstance(report.consistent, bool),
        "note": _is_text(report.note),
        "duration": isinstance(report.duration_seconds, int | float) and math.isfinite(report.duration_seconds),
        "starved": isinstance(report.starved, bool),
        "cpu_used": isinstance(report.cpu_used, bool),
        "declared": report.declared is None or _are_tuples_of_texts(report.declared),
        "doubts": _are_tuples_of_texts(report.doubts),
        "skipped": _are_texts(report.skipped),
        "control": report.control is None or _are_controls(report.control),
    }
    yield from (name for name, holds in rules.items() if not holds)
    if not isinstance(report.diagnostics, tuple) or len(report.diagnostics) > _MAX_DIAGNOSTICS:
        yield f"more than {_MAX_DIAGNOSTICS:,} diagnostics, or no tuple of them"
        return
    yield from (fault for found in report.diagnostics for fault in _diagnostic_faults(found))
    yield from _test_faults(report.tests)
    if sum(len(found.summary) + len(found.detail) for found in report.diagnostics) > _MAX_TOTAL_TEXT:
        yield f"diagnostics of more than {_MAX_TOTAL_TEXT:,} characters"


def _are_controls(controls: object) -> bool:
    return isinstance(controls, Mapping) and all(
        _is_text(name)
        and isinstance(one, TestControl)
        and isinstance(one.ended, bool)
        and isinstance(one.passed, bool)
        and _are_texts(one.held)
        and _are_tuples_of_texts(one.doubts)
        for name, one in controls.items()
    )


def _diagnostic_faults(found: Diagnostic) -> Iterator[str]:
    if not isinstance(found, Diagnostic) or found.severity not in get_args(Severity):
        yield "a diagnostic's severity"
        return
    for name, value in vars(found).items():
        if name in _NUMBERS:
            holds = value is None or _is_number(value)
        else:
            holds = _is_text(value) or (value is None and name in ("file", "test"))
        if not holds:
            yield f"a diagnostic's {name}"


def _test_faults(tests: Mapping[str, bool]) -> Iterator[str]:
    if not isinstance(tests, Mapping) or len(tests) > _MAX_TESTS:
        yield f"more than {_MAX_TESTS:,} tests, or no mapping of them"
    elif not all(_is_text(name) and isinstance(passed, bool) for name, passed in tests.items()):
        yield "a test's name or result"


def _are_texts(value: Any) -> bool:
    """Whether it is a tuple of texts, with a bounded number of entries."""
    return _is_tuple(value) and _fit(value)


def _are_tuples_of_texts(value: Any) -> bool:
    return _is_tuple(value) and all(map(_is_tuple, value)) and _fit(tuple(itertools.chain.from_iterable(value)))


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) <= _MAX_TESTS


def _fit(values: tuple[Any, ...]) -> bool:
    # Not text by text: a module declares dozens, and a cached run reads thousands of reports.
    return set(map(type, values)) <= {str} and max(map(len, values), default=0) <= _MAX_TEXT


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT


def _is_number(value: Any) -> bool:
    """Whether it is a line, a column or a count. Parsers number lines from -1, 0 or 1."""
    return isinstance(value, int) and not isinstance(value, bool) and -1 <= value <= _MAX_NUMBER
