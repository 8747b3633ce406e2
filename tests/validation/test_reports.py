"""Reports of real test runners: outcomes by name, what is refused, and how expected names are matched."""

import json
from pathlib import Path

import pytest

from tests.validation.sections import sections
from touchstone.validation.command_files import runner_format
from touchstone.validation.test_reports import FORMATS, ReportFormatError, named_as_expected

SAID = sections(Path(__file__).with_suffix(".txt"))
PYTEST, PYTEST_UNCOLLECTED = SAID["pytest"], SAID["pytest: not collected"]
# The test of a class is listed as passed, whatever its subtests did.
PYTEST_SUBTESTS = SAID["pytest: subtests"]
JUNIT, TAP, GO, CARGO = (SAID[runner] for runner in ("junit", "tap", "go", "cargo"))
GO_OUTCOMES = {
    "example.com/shop/cart.TestAdd": "passed",
    "example.com/shop/cart.TestCart": "failed",
    "example.com/shop/cart.TestCart/empty_one": "failed",
    "example.com/shop/cart.TestCart/full": "passed",
    "example.com/shop/cart.TestLater": "skipped",
    "example.com/shop/sum.TestAdd": "passed",
}


def go_events() -> str:
    """The same run as `go test -json` prints it."""
    events: list[dict[str, object]] = []
    for name, outcome in GO_OUTCOMES.items():
        package, _, test = name.rpartition(".")
        about = {"Time": "2026-01-01T00:00:00Z", "Package": package, "Test": test}
        events.append({**about, "Action": "run"})
        events.append({**about, "Action": "output", "Output": "    cart_test.go:9: boom\n"})
        events.append({**about, "Action": outcome.removesuffix("ped").removesuffix("ed"), "Elapsed": 0})
    events.append({"Action": "output", "Package": "example.com/shop/cart", "Output": "FAIL\n"})
    events.append({"Action": "fail", "Package": "example.com/shop/cart", "Elapsed": 0.002})
    events.append({"Action": "pass", "Package": "example.com/shop/sum", "Elapsed": 0.001})
    events.append({"Action": "skip", "Package": "example.com/shop/cmd", "Elapsed": 0})
    return "".join(json.dumps(event) + "\n" for event in events)


def jest_report(**changes: object) -> str:
    def test(title: str, status: str, *messages: str) -> dict[str, object]:
        about = {"ancestorTitles": ["cart"], "fullName": f"cart {title}", "title": title}
        return {**about, "status": status, "failureMessages": list(messages)}

    tests = [test("adds", "passed"), test("counts", "failed", "Error: expected 2"), test("later", "pending")]
    files = [
        {"name": "/repo/src/cart.test.js", "status": "failed", "message": "", "assertionResults": tests},
        {"name": "/repo/src/sum.test.js", "status": "failed", "message": "boom at import", "assertionResults": []},
    ]
    return json.dumps({"numTotalTests": 3, "success": False, "testResults": files, **changes})


JEST_OUTCOMES = {
    "cart.test.js > cart > adds": "passed",
    "cart.test.js > cart > counts": "failed",
    "cart.test.js > cart > later": "skipped",
}
PYTEST_OUTCOMES = {
    **dict.fromkeys(("test_a.py::test_p[a b]", "test_a.py::test_ok", "test_a.py::test_x"), "passed"),
    **dict.fromkeys(("test_a.py::test_td", "test_a.py::test_p[c - d]"), "failed"),
}
PYTEST_SUBTESTS_OUTCOMES = {
    **dict.fromkeys(("test_s.py::test_c", "test_s.py::T::test_a", "test_s.py::T::test_e"), "failed"),
    "test_s.py::T::test_b": "passed",
}
JUNIT_OUTCOMES = {
    **dict.fromkeys(("test_a.test_p[a b]", "test_a.TestB.test_ok", "test_a.test_x"), "passed"),
    **dict.fromkeys(("test_a.test_p[c - d]", "test_a.test_td"), "failed"),
    "test_a.test_s": "skipped",
}
TAP_OUTCOMES = {
    **dict.fromkeys(("adds", "cart > is empty"), "passed"),
    **dict.fromkeys(("cart > counts", "cart"), "failed"),
    **dict.fromkeys(("later", "someday"), "skipped"),
}
CARGO_OUTCOMES = {
    **dict.fromkeys(("tests::adds", "src/lib.rs - add (line 1)"), "passed"),
    "tests::subtracts": "failed",
    "tests::slow": "skipped",
}


@pytest.mark.parametrize(
    ("report", "text", "outcomes"),
    [
        ("pytest", PYTEST, PYTEST_OUTCOMES),
        ("pytest", PYTEST_SUBTESTS, PYTEST_SUBTESTS_OUTCOMES),
        ("junit", JUNIT, JUNIT_OUTCOMES),
        ("tap", TAP, TAP_OUTCOMES),
        ("go", GO, GO_OUTCOMES),
        ("go", go_events(), GO_OUTCOMES),
        ("cargo", CARGO, CARGO_OUTCOMES),
        ("jest", jest_report(), JEST_OUTCOMES),
        ("jest", "\n> shop@1.0.0 test\n> vitest run --reporter=json\n\n" + jest_report(), JEST_OUTCOMES),
    ],
    ids=["pytest", "subtests", "junit", "tap", "go -v", "go -json", "cargo", "jest", "vitest"],
)
def test_outcomes_by_name(report: str, text: str, outcomes: dict[str, str]) -> None:
    variants = [text, text.replace("\n", "\r\n")]
    if report in ("pytest", "go") and not text.startswith("{"):
        variants.append(text.replace("PASS", "\x1b[32mPASS\x1b[0m"))
    assert all(FORMATS[report].read(variant).outcomes == outcomes for variant in variants)


@pytest.mark.parametrize(
    ("report", "text", "summary", "compiled"),
    [
        ("pytest", PYTEST_UNCOLLECTED, "cannot be collected: tests/test_b.py", None),
        ("pytest", "2 failed in 0.01s\n", "tests failed that pytest did not name", None),
        ("junit", JUNIT, "cannot be collected: test_b", None),
        ("tap", "1..1\nnot ok 1 - a\nBail out! no database\n", "the test run was abandoned", None),
        ("go", "# shop\n./a.go:4:2: undefined: x\nFAIL\tshop [build failed]\n", "package shop failed", False),
        ("go", '{"Action":"fail","Package":"shop","Elapsed":0}\n', "package shop failed", None),
        ("cargo", "", "cargo ran no tests: the build failed", False),
        ("jest", jest_report(), "sum.test.js cannot be run", None),
    ],
)
def test_errors_that_belong_to_no_test(report: str, text: str, summary: str, compiled: bool | None) -> None:
    results = FORMATS[report].read(text)
    assert ([error.summary for error in results.errors], results.compiled) == ([summary], compiled)
    assert results.failed


def test_only_failed_tests_have_messages() -> None:
    assert FORMATS["jest"].read(jest_report()).messages == {"cart.test.js > cart > counts": "Error: expected 2"}


NESTED = '<testsuite><testcase name="a"><failure/><testcase name="b"/></testcase></testsuite>'
DOCTYPE = '<!DOCTYPE x [<!ENTITY a "1"><!ENTITY b "&a;&a;">]><testsuite/>'


@pytest.mark.parametrize(
    ("report", "text", "reason"),
    [
        ("pytest", "", "lacks pytest's summary"),
        ("pytest", "collected 6 items\n\ntest_a.py .F", "lacks pytest's summary"),
        ("pytest", PYTEST.replace("PASSED test_a.py::test_ok\n", ""), "lists 2 passed tests, but"),
        ("pytest", PYTEST.replace("1 failed, ", "").replace(", 1 error", ""), "its summary counts none"),
        ("junit", "", "is not whole XML"),
        ("junit", JUNIT[:-20], "is not whole XML"),
        ("junit", "<html></html>", "has the root element <html>"),
        ("junit", NESTED, "has a <testcase> inside another"),
        ("junit", DOCTYPE, "has a document type declaration"),
        ("tap", "ok 1 - a\n", "has 0 plans"),
        ("tap", "1..2\nok 1 - a\n", "plans 2 tests and reports 1"),
        ("tap", "1..1\nok 1 - a\n1..1\n", "has 2 plans"),
        ("tap", f"1..{'9' * 5000}\n", "has the unreadable plan"),
        ("go", "", "has no final result"),
        ("go", "--- PASS: TestAdd (0.00s)\nPASS\n", "has no final result for the package of TestAdd"),
        ("go", '{"Action":"pass","Package":"p","Test":"TestA"}\n', "has no final result for package p"),
        ("go", '{"Action":"pass","Pack', "has a line that is not whole JSON"),
        ("go", "--- FAIL: TestAdd (0.00s)\nok  \tp\t0.1s\n", "says that package p passed"),
        ("cargo", CARGO[: CARGO.index("test result: FAILED")], "cannot be trusted"),
        ("cargo", "running " + "9" * 5000 + " tests\n" + CARGO + "test extra ... ok\n", "cannot be trusted"),
        ("jest", "", "is not whole JSON"),
        ("jest", "[" * 100_000, "is not whole JSON"),
        ("jest", jest_report()[:-5], "is not whole JSON"),
        ("jest", jest_report(success=True), "does not say success: false"),
        ("jest", '{"success": true, "testResults": 3}', "has no list of objects 'testResults'"),
    ],
)
def test_what_is_cut_off_or_contradicts_itself_is_refused(report: str, text: str, reason: str) -> None:
    with pytest.raises(ReportFormatError, match=reason):
        FORMATS[report].read(text)


@pytest.mark.parametrize(
    ("report", "text", "expected", "outcome"),
    [
        ("pytest", PYTEST, "test_a.py::test_ok", "passed"),
        ("pytest", PYTEST, "test_a.py::test_p[a", "passed"),
        ("pytest", PYTEST, "test_a.py::test_p", None),
        ("junit", JUNIT, "test_a.py::TestB::test_ok", "passed"),
        ("junit", JUNIT, "test_a.TestB#test_ok", "passed"),
        ("junit", JUNIT, "test_a.py::test_p[c - d]", "failed"),
        ("tap", TAP, "cart > is empty", "passed"),
        ("go", GO, "TestCart/full", "passed"),
        ("go", GO, "example.com/shop/sum.TestAdd", "passed"),
        ("go", GO, "example.com/shop/cmd.TestAdd", None),
        ("go", GO.replace("PASS: TestAdd", "FAIL: TestAdd", 1), "TestAdd", "failed"),
        ("jest", jest_report(), "cart adds", "passed"),
        ("jest", jest_report(), "cart > counts", "failed"),
    ],
)
def test_an_expected_test_is_found_under_its_usual_names(
    report: str, text: str, expected: str, outcome: str | None
) -> None:
    results = FORMATS[report].read(text)
    assert named_as_expected(results, report, [expected]).get(expected) == outcome


@pytest.mark.parametrize(
    ("arguments", "report"),
    [
        (["pytest", "-q"], "pytest"),
        (["/usr/bin/python3", "-m", "pytest"], "pytest"),
        (["/bin/sh", "-c", "cd app;PYTHONPATH=. /venv/bin/py.test -x | tail"], "pytest"),
        (["uv", "run", "pytest"], "pytest"),
        (["timeout", "60", "pytest"], "pytest"),
        (["/bin/sh", "-c", "cd app\ntimeout -k 5 60 python3 -W ignore -m pytest -q"], "pytest"),
        (["/bin/sh", "-c", "if ! env -u CI bash -lc 'pytest -q'; then exit 1; fi"], "pytest"),
        (["/bin/sh", "-c", "cargo test --offline"], "cargo"),
        (["/bin/sh", "-c", "nice cargo +nightly --locked test"], "cargo"),
        (["cargo", "build"], None),
        (["uv", "run", "--with", "pytest", "python", "check.py"], None),
        (["grep", "-r", "pytest", "."], None),
        (["/bin/sh", "-c", "echo 'pytest"], None),
        ([], None),
    ],
)
def test_runners_whose_exit_code_is_not_enough(arguments: list[str], report: str | None) -> None:
    assert runner_format(arguments) == report
