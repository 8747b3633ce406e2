"""pytest's short test summary, as `-rA` or `-rap` prints it, and the closing line with the counts.

Only what follows the last heading counts: tests and fixes can print above it.
"""

from collections.abc import Iterable, Sequence

from touchstone.validation.test_reports.results import Outcome, ReportFormatError, SuiteResults, lines_of

_HEADING = "short test summary info"
# An expected failure is what its test demands, and SWE-bench counts it as passed too.
_OUTCOMES: dict[str, Outcome] = {
    "PASSED": "passed",
    "XFAIL": "passed",
    "XPASS": "passed",
    "FAILED": "failed",
    "ERROR": "failed",
}
_MAX_DIGITS = 9


def read(text: str) -> SuiteResults:
    r"""The results of one pytest run.

    >>> heading = "=== short test summary info ===\n"
    >>> read(heading + "PASSED a.py::test_a\nFAILED a.py::test_b - assert 0\n1 failed, 1 passed in 0.01s").outcomes
    {'a.py::test_a': 'passed', 'a.py::test_b': 'failed'}
    """
    lines = lines_of(text)
    headings = [number for number, line in enumerate(lines) if line.startswith("=") and line.strip("= ") == _HEADING]
    counts, end = _closing(lines, headings[-1] if headings else None)
    if not headings and counts is None:
        raise ReportFormatError("lacks pytest's summary, so pytest did not finish")
    found, listed = SuiteResults(), 0
    for line in lines[headings[-1] + 1 : end] if headings else []:
        word, _, rest = line.partition(" ")
        listed += word == "PASSED"
        if word in _OUTCOMES and rest:
            _add(found, _OUTCOMES[word], rest, whole=word == "PASSED")
    if counts is not None:
        found.unnamed = _compare(found, listed, counts)
    return found


def spellings(name: str) -> Iterable[str]:
    """The names by which a test may be expected: SWE-bench cuts parameters off at the first blank.

    >>> list(spellings("a.py::test_b[1 2]"))
    ['a.py::test_b[1 2]', 'a.py::test_b[1']
    """
    yield name
    if " " in name:
        yield name.partition(" ")[0]


def _closing(lines: Sequence[str], heading: int | None) -> tuple[dict[str, int] | None, int]:
    """The counts of the closing line, which `-qq` leaves out, and where the summary ends."""
    if heading is None:
        last = next((counts for line in reversed(lines) if (counts := _counts(line)) is not None), None)
        return last, len(lines)
    for number in range(heading + 1, len(lines)):
        if (counts := _counts(lines[number])) is not None:
            return counts, number
    return None, len(lines)


def _counts(line: str) -> dict[str, int] | None:
    words, separator, seconds = line.strip("= ").rpartition(" in ")
    if not separator or not seconds[:1].isdigit():
        return None
    if words == "no tests ran":
        return {}
    counts = {}
    for part in words.split(", "):
        number, _, word = part.partition(" ")
        if not (number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS and word):
            return None
        counts[word] = int(number)
    return counts


def _add(found: SuiteResults, outcome: Outcome, rest: str, *, whole: bool) -> None:
    """Add a line of the summary. `whole`: the rest of the line is the name, without a message after it."""
    name, message = (rest, "") if whole else _name_and_message(rest)
    if "::" in name:
        found.add(name, outcome, message)
    elif outcome == "failed":
        found.error(f"cannot be collected: {name}", message)


def _name_and_message(rest: str) -> tuple[str, str]:
    """Split `name - message`. Parameters, in brackets, may contain the separator too."""
    bracket, dash = rest.find("["), rest.find(" - ")
    if 0 <= bracket < dash:
        name, closing, message = rest.partition("] - ")
        return (f"{name}]", message) if closing else (rest, "")
    name, _, message = rest.partition(" - ")
    return name, message


def _compare(found: SuiteResults, listed: int, counts: dict[str, int]) -> int:
    """Check the names against the counts. Returns how many tests passed unnamed: `-r` without `p` or `A` lists none."""
    passed = counts.get("passed", 0)
    if listed and listed != passed:
        raise ReportFormatError(f"lists {listed:,} passed tests, but its summary says {passed:,}")
    bad = sum(counts.get(word, 0) for word in ("failed", "error", "errors"))
    if bad and not found.failed:
        found.error("tests failed that pytest did not name")
    if not bad and found.failed:
        raise ReportFormatError("lists a failed test, but its summary counts none")
    return 0 if listed else passed
