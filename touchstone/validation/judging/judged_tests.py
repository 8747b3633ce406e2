"""Problems that name their tests, as SWE-bench does: `fail_to_pass` and `pass_to_pass`, and nothing else, decide.

A fix passes if all of these tests pass. A test that did not report, or was skipped, did not pass.
"""

import ast
import json
from dataclasses import replace

from touchstone.validation.protocol import Diagnostic, Problem, Report


def read_names(text: str | None) -> tuple[str, ...]:
    """Test names from a cell: a JSON or Python list, else one per line, else separated by commas outside brackets.

    >>> read_names('["test_a[1, 2]", "test_b"]') == read_names("test_a[1, 2], test_b")
    True
    """
    text = (text or "").strip()
    if not text.startswith("["):
        names = text.split("\n") if "\n" in text else _split_at_commas(text)
        return tuple(dict.fromkeys(name for name in map(str.strip, names) if name))
    listed = _list(text)
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ValueError(f"is not a list of test names: {text[:80]}")
    return tuple(dict.fromkeys(listed))


def _list(text: str) -> object:
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def _split_at_commas(text: str) -> list[str]:
    names, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in ")]")
        if character == "," and depth <= 0:
            names.append("")
        else:
            names[-1] += character
    return names


def only_judged(report: Report, problem: Problem) -> Report:
    """A finished report reduced to the tests that the problem names, if any; any other report stays as it is.

    >>> from pathlib import Path
    >>> problem = Problem("a", "shop.py", Path("clones"), fail_to_pass=("test_a",), pass_to_pass=("test_b",))
    >>> report = only_judged(Report("failed", "full", tests={"test_a": True, "test_c": False}), problem)
    >>> report.status, report.tests, [str(found) for found in report.diagnostics]
    ('failed', {'test_a': True, 'test_b': False}, ['error: test did not report: test_b'])
    """
    if not problem.judged_tests or report.status not in ("passed", "failed") or not report.consistent:
        return report
    tests = {name: report.tests.get(name, False) for name in problem.judged_tests}
    known = {found.test: found for found in report.diagnostics if found.test is not None}
    failures = [known.get(name, _missing(name, report)) for name, passed in tests.items() if not passed]
    # Errors outside tests, such as a file that cannot be imported, explain failures; alone they decide nothing.
    others = [found for found in report.diagnostics if found.test is None and (failures or found.severity == "warning")]
    status = "failed" if failures else "passed"
    # What the tests need was compiled, whatever else was not.
    compiled = True if not failures and report.compiled is False else report.compiled
    return replace(report, status=status, tests=tests, diagnostics=(*failures, *others), compiled=compiled)


def _missing(name: str, report: Report) -> Diagnostic:
    verb = "failed" if name in report.tests else "did not report"
    return Diagnostic("error", f"test {verb}: {name}", test=name)


def unlike_recorded(baseline: Report, problem: Problem) -> str:
    """Which test contradicts the problem's lists in a finished report on the unmodified problem; empty if none does."""
    for name in problem.fail_to_pass:
        if baseline.tests.get(name, False):
            return f"the unmodified problem passes {name}, which is in fail_to_pass"
    for name in problem.pass_to_pass:
        if not baseline.tests.get(name, False):
            return f"the unmodified problem does not pass {name}, which is in pass_to_pass"
    return ""
