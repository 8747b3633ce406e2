"""Reports of real test runners: outcomes by name, what is refused, and how expected names are matched."""

import json
from collections.abc import Callable

import pytest

from touchstone.validation.test_reports import FORMATS, go, jest, junit, libtest, named_as_expected, pytest_text, tap
from touchstone.validation.test_reports.results import ReportFormatError, SuiteResults
from touchstone.validation.test_reports.runners import runner_format

PYTEST = """\
============================= test session starts ==============================
collected 6 items

test_a.py .F.xs.E                                                        [100%]

=================================== FAILURES ===================================
----------------------------- Captured stdout call -----------------------------
PASSED test_a.py::test_printed_by_a_test
=========================== short test summary info ============================
PASSED test_a.py::test_p[a b]
PASSED test_a.py::test_ok
PASSED test_a.py::test_td
SKIPPED [1] test_a.py:7: unconditional skip
XFAIL test_a.py::test_x - known
ERROR test_a.py::test_td - ValueError: t
FAILED test_a.py::test_p[c - d] - AssertionError: assert 'c - d' == 'a b'
========== 1 failed, 3 passed, 1 skipped, 1 xfailed, 1 error in 0.17s ==========
"""
PYTEST_UNCOLLECTED = """\
=========================== short test summary info ============================
ERROR tests/test_b.py - ImportError: no module named shop
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
=============================== 1 error in 0.08s ===============================
"""
JUNIT = """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="1" failures="1" tests="6">
<testcase classname="test_a" name="test_p[a b]" time="0.001" />
<testcase classname="test_a" name="test_p[c - d]"><failure message="assert &apos;c&apos;">1 &lt; 2</failure></testcase>
<testcase classname="test_a.TestB" name="test_ok"><system-out>ok</system-out></testcase>
<testcase classname="test_a" name="test_x"><skipped type="pytest.xfail" message="" /></testcase>
<testcase classname="test_a" name="test_s"><skipped type="pytest.skip" message="no">why</skipped></testcase>
<testcase classname="" name="test_b"><error message="collection failure">ImportError</error></testcase>
<testcase classname="test_a" name="test_td"><error message="failed on teardown"/></testcase></testsuite></testsuites>"""
TAP = """\
TAP version 13
# Subtest: adds
ok 1 - adds
  ---
  duration_ms: 1.576099
  ...
# Subtest: cart
    # Subtest: is empty
    ok 1 - is empty
      ---
      duration_ms: 0.243914
      ...
    # Subtest: counts
    not ok 2 - counts
      ---
      error: |-
        one is not two
      not ok 9 - not a test line
      stack: |-
        TestContext.<anonymous> (a.test.js:3:101)
      ...
    1..2
not ok 2 - cart
  ---
  error: '1 subtest failed'
  ...
# Subtest: later
ok 3 - later # SKIP not yet
not ok 4 - someday # TODO
1..4
# tests 6
# pass 2
"""
GO = """\
=== RUN   TestAdd
--- PASS: TestAdd (0.00s)
=== RUN   TestCart
=== RUN   TestCart/empty_one
    cart_test.go:9: boom
=== RUN   TestCart/full
--- FAIL: TestCart (0.00s)
    --- FAIL: TestCart/empty_one (0.00s)
    --- PASS: TestCart/full (0.00s)
=== RUN   TestLater
--- SKIP: TestLater (0.00s)
FAIL
FAIL\texample.com/shop/cart\t0.002s
=== RUN   TestAdd
--- PASS: TestAdd (0.00s)
PASS
ok  \texample.com/shop/sum\t0.001s
?   \texample.com/shop/cmd\t[no test files]
FAIL
"""
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


CARGO = """
running 3 tests
test tests::slow ... ignored
test tests::adds ... ok
test tests::subtracts ... FAILED

failures:

---- tests::subtracts stdout ----

thread 'tests::subtracts' (32374) panicked at src/lib.rs:9:30:
assertion `left == right` failed
  left: 5
 right: 1

failures:
    tests::subtracts

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.13s


running 1 test
test src/lib.rs - add (line 1) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.18s
"""


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
    ("read", "text", "outcomes"),
    [
        (pytest_text.read, PYTEST, PYTEST_OUTCOMES),
        (junit.read, JUNIT, JUNIT_OUTCOMES),
        (tap.read, TAP, TAP_OUTCOMES),
        (go.read, GO, GO_OUTCOMES),
        (go.read, go_events(), GO_OUTCOMES),
        (libtest.read, CARGO, CARGO_OUTCOMES),
        (jest.read, jest_report(), JEST_OUTCOMES),
        (jest.read, "\n> shop@1.0.0 test\n> vitest run --reporter=json\n\n" + jest_report(), JEST_OUTCOMES),
    ],
    ids=["pytest", "junit", "tap", "go -v", "go -json", "cargo", "jest", "vitest"],
)
def test_outcomes_by_name(read: Callable[[str], SuiteResults], text: str, outcomes: dict[str, str]) -> None:
    coloured = text.replace("PASS", "\x1b[32mPASS\x1b[0m")
    assert read(text).outcomes == outcomes
    assert read(text.replace("\n", "\r\n")).outcomes == outcomes
    if read in (pytest_text.read, go.read) and not text.startswith("{"):
        assert read(coloured).outcomes == outcomes


@pytest.mark.parametrize(
    ("read", "text", "summary", "compiled"),
    [
        (pytest_text.read, PYTEST_UNCOLLECTED, "cannot be collected: tests/test_b.py", None),
        (pytest_text.read, "2 failed in 0.01s\n", "tests failed that pytest did not name", None),
        (junit.read, JUNIT, "cannot be collected: test_b", None),
        (tap.read, "1..1\nnot ok 1 - a\nBail out! no database\n", "the test run was abandoned", None),
        (go.read, "# shop\n./a.go:4:2: undefined: x\nFAIL\tshop [build failed]\n", "package shop failed", False),
        (go.read, '{"Action":"fail","Package":"shop","Elapsed":0}\n', "package shop failed", None),
        (libtest.read, "", "cargo ran no tests: the build failed", False),
        (jest.read, jest_report(), "sum.test.js cannot be run", None),
    ],
)
def test_errors_that_belong_to_no_test(
    read: Callable[[str], SuiteResults], text: str, summary: str, compiled: bool | None
) -> None:
    results = read(text)
    assert ([error.summary for error in results.errors], results.compiled) == ([summary], compiled)
    assert results.failed


def test_only_failed_tests_have_messages() -> None:
    assert jest.read(jest_report()).messages == {"cart.test.js > cart > counts": "Error: expected 2"}


NESTED = '<testsuite><testcase name="a"><failure/><testcase name="b"/></testcase></testsuite>'
DOCTYPE = '<!DOCTYPE x [<!ENTITY a "1"><!ENTITY b "&a;&a;">]><testsuite/>'


@pytest.mark.parametrize(
    ("read", "text", "reason"),
    [
        (pytest_text.read, "", "lacks pytest's summary"),
        (pytest_text.read, "collected 6 items\n\ntest_a.py .F", "lacks pytest's summary"),
        (pytest_text.read, PYTEST.replace("PASSED test_a.py::test_ok\n", ""), "lists 2 passed tests, but"),
        (pytest_text.read, PYTEST.replace("1 failed, ", "").replace(", 1 error", ""), "its summary counts none"),
        (junit.read, "", "is not whole XML"),
        (junit.read, JUNIT[:-20], "is not whole XML"),
        (junit.read, "<html></html>", "has the root element <html>"),
        (junit.read, NESTED, "has a <testcase> inside another"),
        (junit.read, DOCTYPE, "has a document type declaration"),
        (tap.read, "ok 1 - a\n", "has 0 plans"),
        (tap.read, "1..2\nok 1 - a\n", "plans 2 tests and reports 1"),
        (tap.read, "1..1\nok 1 - a\n1..1\n", "has 2 plans"),
        (tap.read, f"1..{'9' * 5000}\n", "has the unreadable plan"),
        (go.read, "", "has no final result"),
        (go.read, "--- PASS: TestAdd (0.00s)\nPASS\n", "has no final result for the package of TestAdd"),
        (go.read, '{"Action":"pass","Package":"p","Test":"TestA"}\n', "has no final result for package p"),
        (go.read, '{"Action":"pass","Pack', "has a line that is not whole JSON"),
        (go.read, "--- FAIL: TestAdd (0.00s)\nok  \tp\t0.1s\n", "says that package p passed"),
        (libtest.read, CARGO[: CARGO.index("test result: FAILED")], "cannot be trusted"),
        (libtest.read, "running " + "9" * 5000 + " tests\n" + CARGO + "test extra ... ok\n", "cannot be trusted"),
        (jest.read, "", "is not whole JSON"),
        (jest.read, "[" * 100_000, "is not whole JSON"),
        (jest.read, jest_report()[:-5], "is not whole JSON"),
        (jest.read, jest_report(success=True), "does not say success: false"),
        (jest.read, '{"success": true, "testResults": 3}', "has no list of objects 'testResults'"),
    ],
)
def test_what_is_cut_off_or_contradicts_itself_is_refused(
    read: Callable[[str], SuiteResults], text: str, reason: str
) -> None:
    with pytest.raises(ReportFormatError, match=reason):
        read(text)


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
        (["/bin/sh", "-c", "cargo test --offline"], "cargo"),
        (["cargo", "build"], None),
        (["grep", "-r", "pytest", "."], None),
        (["/bin/sh", "-c", "echo 'pytest"], None),
        ([], None),
    ],
)
def test_runners_whose_exit_code_is_not_enough(arguments: list[str], report: str | None) -> None:
    assert runner_format(arguments) == report
