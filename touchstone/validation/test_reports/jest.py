"""The JSON report of Jest (`--json`) and Vitest (`--reporter=json`). A test is named `file > suite > title`."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from touchstone.validation.test_reports.results import Outcome, ReportFormatError, SuiteResults, json_object

_OUTCOMES: dict[str, Outcome] = {"passed": "passed", "failed": "failed"}
_MESSAGE_CHARACTERS = 500
_SEPARATOR = " > "


def read(text: str) -> SuiteResults:
    """The results of all files. A file that could not be run is an error."""
    report = _object(text)
    found = SuiteResults()
    for file in _objects(report, "testResults"):
        name = PurePosixPath(_text(file, "name")).name
        tests = _objects(file, "assertionResults")
        for test in tests:
            titles = [*_texts(test, "ancestorTitles"), _text(test, "title")]
            message = "\n".join(_texts(test, "failureMessages"))[:_MESSAGE_CHARACTERS]
            found.add(_SEPARATOR.join([name, *titles]), _OUTCOMES.get(_text(test, "status"), "skipped"), message)
        if file.get("status") == "failed" and not any(test.get("status") == "failed" for test in tests):
            found.error(f"{name} cannot be run", _text(file, "message")[:_MESSAGE_CHARACTERS])
    if report.get("success") is not (not found.failed):
        raise ReportFormatError(f"does not say success: {str(not found.failed).lower()}, as its tests do")
    return found


def spellings(name: str) -> Iterable[str]:
    """The names by which a test may be expected: with and without its file, and Jest's `fullName`.

    >>> list(spellings("cart.test.js > cart > adds"))
    ['cart.test.js > cart > adds', 'cart > adds', 'cart adds']
    """
    yield name
    titles = name.split(_SEPARATOR)[1:]
    yield _SEPARATOR.join(titles)
    yield " ".join(titles)


def _object(text: str) -> dict[str, Any]:
    """The report: the whole text, or its last line that starts an object, after what the tests printed."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        stripped = stripped[stripped.rfind("\n{") + 1 :]
    return json_object(stripped)


def _objects(entry: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    items = entry.get(key)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ReportFormatError(f"has no list of objects {key!r}")
    return items


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _texts(entry: Mapping[str, Any], key: str) -> list[str]:
    items = entry.get(key)
    return [item for item in items if isinstance(item, str)] if isinstance(items, list) else []
