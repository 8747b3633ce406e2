"""Reports of tests that are not read, recognized to say what the runner can write instead.

Those of XML and JSON are files that somebody may have meant to evaluate. What a runner prints may lie in any folder.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from touchstone.ingest.adapters.adapter import Adapter, Head, NotEvaluatedError, ReadOptions
from touchstone.ingest.adapters.marks import has_marks
from touchstone.vocabulary import FileStatus

# What it is, and how the same run writes JUnit XML, or what else is read.
_Found = tuple[str, str]
_ROOT = re.compile(r"(?:<\?xml[^>]*\?>|<!--.*?-->|\s)*<([\w:-]+)[\s>/]", re.DOTALL)
_XML: dict[str, _Found] = {
    "Site": ("CTest results for CDash", "JUnit XML (ctest --output-junit FILE)"),
    **dict.fromkeys(
        ("assemblies", "assembly"), ("xUnit.net results", "TRX (dotnet test --logger trx) or JUnit XML (-jUnit FILE)")
    ),
    **dict.fromkeys(("Catch2TestRun", "Catch"), ("Catch2 results", "JUnit XML (--reporter junit)")),
    "doctest": ("doctest results", "JUnit XML (--reporters=junit)"),
    **dict.fromkeys(("TestLog", "BoostTest"), ("Boost.Test results", "JUnit XML (--log_format=JUNIT --log_sink=FILE)")),
    "TestCase": ("Qt Test results", "JUnit XML (-o FILE,junitxml)"),
    "robot": ("Robot Framework results", "JUnit XML (robot --xunit FILE)"),
    **dict.fromkeys(
        ("e:events", "h:execution"),
        (
            "Open Test Reporting of JUnit",
            "JUnit XML (TEST-*.xml of Maven, Gradle or the console launcher's --reports-dir)",
        ),
    ),
    "testExecutions": ("SonarQube's test executions", "JUnit XML (of the test runner itself)"),
}
_JSON: dict[str, _Found] = {
    **dict.fromkeys(
        ("[].keyword, [].elements", "[].meta.protocolVersion, [].meta.implementation"),
        ("Cucumber or behave results", "JUnit XML (behave --junit, cucumber --format junit:FILE)"),
    ),
    "suites[], stats.expected, stats.unexpected": ("Playwright results", "JUnit XML (--reporter=junit)"),
    "tests[].nodeid, exitcode": ("a report of pytest-json-report", "JUnit XML (pytest --junitxml=FILE)"),
    '[]."$report_type"': ("a log of pytest-reportlog", "JUnit XML (pytest --junitxml=FILE)"),
    "[].test_count, [].event": (
        "results of Rust's libtest",
        "JUnit XML (cargo nextest, with junit.path in its profile)",
    ),
    "uuid, historyId, stage": (
        "Allure results",
        "JUnit XML (of the test runner itself, such as pytest --junitxml=FILE)",
    ),
    "fixtures[].tests, userAgents": ("TestCafe results", "JUnit XML (testcafe --reporter xunit:FILE)"),
    "collection, run.executions": ("Newman results", "JUnit XML (newman run -r junit)"),
    "result.tests[].ApexClass, result.summary": ("Apex results", "JUnit XML (sf apex run test --result-format junit)"),
    "__version__, tests[].code": ("lit results", "JUnit XML (lit --xunit-xml-output FILE)"),
    "[].returncode, [].starttime, [].result": ("Meson results", "JUnit XML (testlog.junit.xml, beside this file)"),
    "[].protocolVersion, [].runnerVersion": ("Dart test results", "JUnit XML (tojunit, of the package junitreport)"),
}
_PRINTED: dict[str, _Found] = {
    r"(?:#[^\n]*\n)*(?:TAP version \d+|1\.\.\d+|(?:not )?ok \d+)\s": (
        "TAP",
        "JUnit XML (bats --report-formatter junit, node --test-reporter=junit, prove with TAP::Formatter::JUnit)",
    ),
    r"={3,} test session starts ={3,}\n": ("what pytest prints", "JUnit XML (pytest --junitxml=FILE)"),
    r"(?:=== RUN|--- (?:PASS|FAIL)|ok  \t|FAIL\t)": ("what `go test` prints", "JSON (go test -json)"),
    r"(?:\s*Running [^\n]*\n)?\s*running \d+ tests?\ntest ": ("what `cargo test` prints", "JUnit XML (cargo nextest)"),
}


def _in_xml(head: Head) -> _Found | None:
    root = _ROOT.match(head.text) if head.text[:1] == "<" else None
    return _XML.get(root[1]) if root else None


def _in_json(head: Head) -> _Found | None:
    return next((found for marks, found in _JSON.items() if has_marks(head, marks)), None)


def _printed(head: Head) -> _Found | None:
    return next((found for start, found in _PRINTED.items() if re.match(start, head.text)), None)


def _adapter(name: str, title: str, find: Callable[[Head], _Found | None], status: FileStatus, marks: str) -> Adapter:
    def refuse(path: Path, _: ReadOptions) -> NoReturn:
        what, instead = find(Head(path)) or (title, "JUnit XML")
        raise NotEvaluatedError(f"{path}: {what}, which Touchstone does not read; write {instead} instead", status)

    return Adapter(name, title, lambda head: find(head) is not None, refuse, reads_utf_16=True, marks=marks)


XML = _adapter(
    "unread-xml", "XML of a test runner that is not read", _in_xml, "unknown", f"(XML with {', '.join(_XML)})"
)
JSON = _adapter(
    "unread-json", "JSON of a test runner that is not read", _in_json, "unknown", f"({'; or '.join(_JSON)})"
)
PRINTED = _adapter(
    "printed-tests", "what a test runner prints", _printed, "ignored", "(TAP, or the output of pytest, go or cargo)"
)
