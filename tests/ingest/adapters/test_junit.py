"""Reading JUnit XML: what passes, fails and is undecided, and whose attempt a file is."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters import AdapterTable, ReadOptions, detect_format, read_adapted
from touchstone.ingest.adapters.formats.xml_reports import JUNIT

FILES = Path(__file__).parent / "files" / "junit"


def read(tmp_path: Path, *cases: str, pattern: str | None = None) -> AdapterTable:
    path = tmp_path / "report.xml"
    path.write_text(f"<testsuite name='s'>{''.join(cases)}</testsuite>")
    assert detect_format(path) == "junit"
    return read_adapted(path, ReadOptions(junit_pattern=pattern))


def case(inside: str = "", name: str = "t", **attributes: str) -> str:
    given = "".join(f' {key}="{value}"' for key, value in ({"classname": "c", "name": name} | attributes).items())
    return f"<testcase{given}>{inside}</testcase>"


def verdicts(table: AdapterTable) -> dict[str, str | None]:
    return dict(table.frame.select("oid", "passed").iter_rows())


def test_a_file_that_cannot_be_collected_is_a_failed_problem() -> None:
    table = read_adapted(FILES / "pytest_collect_error.xml")
    assert table.frame.select("oid", "passed", "classification").rows() == [("test_bad", "false", "error")]
    assert any("1 file or suite could not be run" in note for note in table.notes)
    assert counts(table) == {"tests": (1, 1), "failures": (0, 0), "errors": (1, 1), "skipped": (0, 0)}


# What is in the element of a test, its attributes, whether the test passed, and its outcome.
OUTCOMES: list[tuple[str, dict[str, str], str | None, str]] = [
    ("", {}, "true", "passed"),
    ("<failure/>", {}, "false", "failed"),
    ("<error/>", {}, "false", "error"),
    ("<error/><failure/>", {}, "false", "failed"),
    ("<skipped/>", {}, None, "skipped"),
    ("<skipped/><failure/>", {}, "false", "failed"),
    ("<failure/><skipped/>", {}, "false", "failed"),
    ("<failure/><skipped type='todo'/>", {}, None, "skipped"),
    ("<skipped type='todo'/><failure/>", {}, None, "skipped"),
    ("", {"status": "notrun"}, None, "skipped"),
    ("", {"status": "run", "result": "suppressed"}, None, "skipped"),
    ("", {"status": "pending"}, None, "skipped"),
    ("", {"status": "failed"}, "false", "failed"),
    ("<error/>", {"status": "failed"}, "false", "error"),
    ("", {"disabled": "true"}, None, "skipped"),
    ("", {"enabled": "false"}, None, "skipped"),
    ("<disabled/>", {}, None, "skipped"),
    ("<ignored message='later'/>", {}, None, "skipped"),
    ("<rerunFailure/><failure/>", {}, "false", "failed"),
    ("<skipped message='TEST_CASE tagged with !mayfail'/><failure/>", {}, None, "skipped"),
    ("<flakyFailure/><system-out>failure</system-out>", {}, "true", "passed"),
]


def test_the_outcome_of_a_test(tmp_path: Path) -> None:
    cases = [case(inside, f"t{place:02}", **more) for place, (inside, more, *_) in enumerate(OUTCOMES)]
    frame = read(tmp_path, *cases).frame
    assert frame.select("passed", "outcome").rows() == [(passed, outcome) for *_, passed, outcome in OUTCOMES]
    assert frame["flaky"].eq_missing("true").to_list() == ["flaky" in inside for inside, *_ in OUTCOMES]


@pytest.mark.parametrize(
    ("results", "passed", "flaky"),
    [
        (["<failure/>", ""], "false", "true"),
        (["", "<failure/>"], "false", "true"),
        (["<skipped/>", ""], "true", None),
        (["<skipped/>", "<skipped/>"], None, None),
    ],
)
def test_reruns_count_as_the_worst_of_them(
    tmp_path: Path, results: list[str], passed: str | None, flaky: str | None
) -> None:
    table = read(tmp_path, *map(case, results))
    assert table.frame.select("passed", "flaky", "results").rows() == [(passed, flaky, "2")]


def document(tmp_path: Path, text: str) -> AdapterTable:
    path = tmp_path / "report.xml"
    path.write_text(text)
    return read_adapted(path)


def counts(table: AdapterTable) -> dict[str, tuple[float | None, float | None]]:
    return {figure.name: (figure.reported, figure.recomputed) for figure in table.figures}


JEST = """<testsuites name="jest tests" tests="4" failures="2" errors="0">
 <testsuite name="Button" errors="0" failures="1" skipped="0" tests="2">
  <testcase classname="Button renders" name="Button renders" file="{root}/src/a/Button.test.tsx"><failure/></testcase>
  <testcase classname="Button clicks" name="Button clicks" file="{root}/src/a/Button.test.tsx"/>
 </testsuite>
 <testsuite name="Button" errors="0" failures="1" skipped="0" tests="2">
  <testcase classname="Button renders" name="Button renders" file="{root}/src/b/Button.test.tsx"><failure/></testcase>
  <testcase classname="Button hides" name="Button hides" file="{root}/src/b/Button.test.tsx"/>
 </testsuite>
</testsuites>"""


@pytest.mark.parametrize("root", ["/home/me/app", "/builds/app"])
def test_tests_of_one_name_in_different_files_are_different_tests(tmp_path: Path, root: str) -> None:
    """As jest-junit writes them; the folder in which the tests ran is no part of their names."""
    table = document(tmp_path, JEST.replace("{root}", root))
    assert verdicts(table) == {
        "a/Button.test.tsx::Button renders.Button renders": "false",
        "Button clicks.Button clicks": "true",
        "b/Button.test.tsx::Button renders.Button renders": "false",
        "Button hides.Button hides": "true",
    }
    assert counts(table) == {"tests": (4, 4), "failures": (2, 2), "errors": (0, 0), "skipped": (0, 0)}
    assert "2 tests have the name of another one: the file, the suite or their order tells them apart" in table.notes


@pytest.mark.parametrize(
    ("attributes", "oid"),
    [
        ({"classname": "Cart", "file": "./src/cart.test.js"}, "src/cart.test.js::Cart.adds"),
        ({"classname": "tests.test_cart.TestCart", "file": "tests/test_cart.py"}, "tests.test_cart.TestCart.adds"),
        ({"classname": "spec.cart_spec", "file": "./spec/cart_spec.rb"}, "spec.cart_spec.adds"),
        ({"classname": "Cart", "file": "/home/me/cart.test.js"}, "Cart.adds"),
        ({"classname": "", "class": "Tests\\CartTest", "file": "/home/me/CartTest.php"}, "Tests.CartTest.adds"),
        ({"classname": "/home/me/Cart.Tests.ps1"}, "adds"),
        ({"classname": "/cart/items"}, "/cart/items.adds"),
    ],
)
def test_the_file_is_part_of_the_name_unless_the_class_is_named_after_it(
    tmp_path: Path, attributes: dict[str, str], oid: str
) -> None:
    """Whether or not another test has that name, so that an attempt that lacks the other one has the same problem."""
    assert read(tmp_path, case(name="adds", **attributes)).frame["oid"].to_list() == [oid]


def test_tests_of_one_name_in_different_files_are_no_reruns(tmp_path: Path) -> None:
    cases = case(file="/app/a.test.js") + case("<failure/>", file="/app/b.test.js")
    for root in ("testsuites", "testsuite"):
        found = verdicts(document(tmp_path, f"<{root}>{cases}</{root}>"))
        assert found == {"a.test.js::c.t": "true", "b.test.js::c.t": "false"}


def test_without_a_suite_nothing_is_a_rerun(tmp_path: Path) -> None:
    """Node puts the tests of all files beside each other, and older versions do not say of which file they are."""
    cases = case(classname="test") + case("<failure/>", classname="test")
    assert verdicts(document(tmp_path, f"<testsuites>{cases}</testsuites>")) == {"test.t": "true", "test.t #2": "false"}


def test_without_files_suites_and_then_their_order_tell_tests_apart(tmp_path: Path) -> None:
    suite = '<testsuite name="{}"><testcase classname="c" name="t"/></testsuite>'
    table = document(tmp_path, f"<testsuites>{''.join(map(suite.format, 'aab'))}</testsuites>")
    assert table.frame["oid"].to_list() == ["a::c.t", "a::c.t #2", "b::c.t"]


_HOOK = case("<failure/>", name="&quot;before all&quot; hook")


@pytest.mark.parametrize(
    ("suite", "results", "found"),
    [
        # TestNG's data providers, in contrast to reruns, which are counted once.
        (
            'tests="3" failures="2"',
            ["", "<failure/>", "<failure/>"],
            {"c.t": "true", "c.t #2": "false", "c.t #3": "false"},
        ),
        ('tests="1" failures="1"', ["", "<failure/>", "<failure/>"], {"c.t": "false"}),
        # jest-junit does not count todos, nor mocha hooks; mocha-junit-reporter counts pending ones, unlisted.
        (
            'tests="3"',
            ["", "<failure/>", "", case(name="u")],
            {"c.t": "true", "c.t #2": "false", "c.t #3": "true", "c.u": "true"},
        ),
        ('tests="2"', ["", "<failure/>", _HOOK], {"c.t": "true", "c.t #2": "false", 'c."before all" hook': "false"}),
        ('tests="9"', ["", "<failure/>"], {"c.t": "true", "c.t #2": "false"}),
        # pytest counts a pass and the error of its teardown twice; a failure and such an error are two results.
        (
            'name="pytest" tests="3"',
            ["<failure/>", "<error/>", case("<error/>", name="u")],
            {"c.t": "false", "c.u": "false"},
        ),
        # trainer, of tests that Xcode repeats.
        (
            'tests="2" failures="1"',
            ["<failure/>", "", *[case("<failure/>", name="u")] * 2],
            {"c.t": "true", "c.u": "false"},
        ),
        (
            'tests="2" failures="2"',
            ["<failure/>", "", *[case("<failure/>", name="u")] * 2],
            {"c.t": "false", "c.u": "false"},
        ),
    ],
)
def test_what_the_suite_counts_tells_reruns_from_tests_of_one_name(
    tmp_path: Path, suite: str, results: list[str], found: dict[str, str]
) -> None:
    cases = "".join(each if each.startswith("<testcase") else case(each) for each in results)
    assert verdicts(document(tmp_path, f"<testsuite {suite}>{cases}</testsuite>")) == found


def test_disabled_tests_are_undecided_and_counted(tmp_path: Path) -> None:
    """As GoogleTest and CTest write them: `disabled` is a count of its own."""
    cases = "".join(f'<testcase name="d{place}" classname="c" status="notrun"/>' for place in range(3))
    for tests in ("4", "1"):
        suite = f'<testsuite name="s" tests="{tests}" failures="0" disabled="3" skipped="0">{cases}{case()}</testsuite>'
        table = document(tmp_path, suite)
        assert list(verdicts(table).values()) == [None, None, None, "true"]
        assert counts(table) == {"tests": (int(tests),) * 2, "failures": (0, 0), "skipped and disabled": (3, 3)}


@pytest.mark.parametrize(
    ("message", "passed"),
    [
        *(
            (message, "false")
            for message in ("Unable to find executable", "Required Files Missing", "Fixture dependency failed")
        ),
        ("SKIP_RETURN_CODE=77", None),
        ("later", None),
    ],
)
def test_what_ctest_could_not_start_is_a_failure(tmp_path: Path, message: str, passed: str | None) -> None:
    """As after a fix that does not compile. CTest says that the tests failed, but its file counts them as skipped."""
    cases = case(f'<skipped message="{message}"/><properties/>', status="notrun") + case(name="u", status="run")
    table = document(tmp_path, f'<testsuite name="(empty)" tests="2" failures="0" skipped="1">{cases}</testsuite>')
    assert verdicts(table) == {"c.t": passed, "c.u": "true"}
    assert message in (table.frame["error"][0] or "")
    assert counts(table) == {"tests": (2, 2), "failures": (0, 0), "skipped": (1, 1)}


def test_disabled_tests_that_are_not_listed_are_named(tmp_path: Path) -> None:
    table = document(tmp_path, f'<testsuite name="s" tests="31" failures="0" disabled="30">{case()}</testsuite>')
    assert verdicts(table) == {"c.t": "true"}
    assert (
        "30 of the 31 tests that the file counts are disabled or skipped and not listed: they are missing"
        in table.notes
    )
    assert counts(table)["tests"] == (31, None)


@pytest.mark.parametrize("failures", [0, 1])
def test_mocha_counts_its_failures_as_errors_too(tmp_path: Path, failures: int) -> None:
    """As errors only, since version 6."""
    text = f'<testsuite tests="2" failures="{failures}" errors="1">{case("<failure/>")}{case(name="u")}</testsuite>'
    assert counts(document(tmp_path, text)) == {"tests": (2, 2), "failures": (failures,) * 2, "errors": (1, 1)}


@pytest.mark.parametrize(
    ("root", "suite", "tests"),
    [
        ("", 'tests="9" failures="3" errors="1"', 9),  # doctest and Catch2 count assertions
        ('tests="2" failures="1" errors="1"', "", 2),
        ('tests="3" failures="3" errors="1"', "", 3),
    ],
)
def test_tools_count_tests_or_each_of_their_failures(tmp_path: Path, root: str, suite: str, tests: int) -> None:
    cases = case("<failure/><failure/><failure/>") + case("<error/>", name="u")
    table = document(tmp_path, f"<testsuites {root}><testsuite name='s' {suite}>{cases}</testsuite></testsuites>")
    assert counts(table) == {"tests": (tests, 2), "failures": (1 if tests == 2 else 3,) * 2, "errors": (1, 1)}
    note = f"the file counts {tests} tests and lists 2: others are missing, or it counts assertions"
    assert (note in table.notes) == (tests > 2)


_SKIPPED, _FAILED = case("<skipped/>", name="s"), case("<failure/>", name="f")
_TWICE = "<flakyFailure/><flakyFailure/>"
_MAY_FAIL = '<skipped message="TEST_CASE tagged with !mayfail"/>'


@pytest.mark.parametrize(
    ("cases", "stated", "figures"),
    [
        # Ginkgo 1 lists what it does not run; Ginkgo 2 calls an aborted test a failure, and counts an error.
        (case() + _SKIPPED, 'tests="1" failures="0"', {"tests": (1, 1), "failures": (0, 0)}),
        (
            _FAILED + case("<failure type='aborted'/>"),
            'failures="1" errors="1"',
            {"failures": (1, 1), "errors": (1, 1)},
        ),
        (_FAILED + case("<error/>"), 'failures="0" errors="1"', {"failures": (0, 1), "errors": (1, 1)}),
        # Pester 5 counts what is inconclusive apart, and does not list what was not run.
        (
            _SKIPPED + case("<skipped/>", status="Inconclusive"),
            'tests="2" skipped="1"',
            {"tests": (2, 2), "skipped": (1, 1)},
        ),
        (_SKIPPED + case("<skipped/>", status="Inconclusive"), 'skipped="2"', {"skipped": (2, 2)}),
        (
            _SKIPPED + case("<skipped/>", status="Inconclusive"),
            'tests="5" skipped="1" disabled="3"',
            {"tests": (5, None), "skipped and disabled": (4, None)},
        ),
        # Surefire counts each run of a test, or only the tests of the last rerun.
        (
            case(_TWICE) + case("<failure/><rerunFailure/><rerunError/>", name="u"),
            'tests="6" failures="4" errors="1"',
            {"tests": (6, 6), "failures": (4, 4), "errors": (1, 1)},
        ),
        (case(_TWICE), 'tests="1" failures="0"', {"tests": (1, 1), "failures": (0, 0)}),
        (case() + case(_TWICE, name="u"), 'tests="1" failures="0"', {"tests": (1, None), "failures": (0, 0)}),
        # TAP::Formatter::JUnit lists times beside the tests.
        (
            case() + case(name="(init)", classname="") + case(name="(teardown)", classname=""),
            'tests="1"',
            {"tests": (1, 1)},
        ),
        # Catch2 counts assertions, of which there may be none; gotestsum and GoogleTest, what fails outside of tests.
        (_FAILED, 'tests="0" failures="0"', {"tests": (0, 0), "failures": (0, 0)}),
        (case(_MAY_FAIL), 'tests="1" skipped="0"', {"tests": (1, 1), "skipped": (0, 0)}),
        # mocha's xunit counts as skipped what did not pass or fail, hooks included.
        (
            _SKIPPED + _HOOK,
            'tests="1" failures="0" errors="1" skipped="0"',
            {"tests": (1, 1), "failures": (0, 0), "errors": (1, 1), "skipped": (0, 0)},
        ),
        # pytest counts subtests, and tests whose teardown fails twice.
        (case(), 'name="pytest" tests="2"', {"tests": (2, None)}),
    ],
)
def test_tools_count_in_their_own_ways(
    tmp_path: Path, cases: str, stated: str, figures: dict[str, tuple[int, int | None]]
) -> None:
    assert counts(document(tmp_path, f"<testsuite {stated}>{cases}</testsuite>")) == figures


@pytest.mark.parametrize("folder", ["C:\\repo\\tests", "/repo/tests"])
def test_a_class_that_is_a_file_in_some_folder_is_no_part_of_the_name(tmp_path: Path, folder: str) -> None:
    """As Pester writes it; the next run may be in another folder. What cannot be loaded is named by its path."""
    separator = folder[-6]
    file, other = f"{folder}{separator}Cart.Tests.ps1", f"{folder}{separator}User.Tests.ps1"
    cases = [case(name="Cart.adds", classname=file), case(name="is loaded", classname=file)]
    cases += [case("<failure/>", name="is loaded", classname=other), case("<error/>", name=other, classname=other)]
    table = read(tmp_path, *cases)
    assert verdicts(table) == {
        "Cart.adds": "true",
        "Cart.Tests.ps1::is loaded": "true",
        "User.Tests.ps1::is loaded": "false",
        "User.Tests.ps1": "false",
    }
    assert any("1 file or suite could not be run" in note for note in table.notes)


@pytest.mark.parametrize(
    ("attributes", "whole"),
    [("name='t' classname=''", True), ("name='s'", True), ("name='t'", False), ("name='t' classname='c'", False)],
)
def test_which_errors_are_of_a_whole_file(tmp_path: Path, attributes: str, whole: bool) -> None:
    table = read(tmp_path, f"<testcase {attributes}><error/></testcase>")
    assert any("could not be run" in note for note in table.notes) == whole


def test_skipped_tests_that_only_the_outermost_element_counts(tmp_path: Path) -> None:
    """As mocha-junit-reporter does for Cypress, which also gives the number of failures below zero."""
    suite = f'<testsuite name="s" tests="5" failures="0">{case()}</testsuite>'
    table = document(tmp_path, f'<testsuites tests="5" failures="-3" skipped="4">{suite}</testsuites>')
    assert counts(table) == {"tests": (5, None), "failures": (0, 0), "skipped": (4, None)}


@pytest.mark.parametrize("suites", ["", '<testsuite name="s"/>'])
def test_a_file_that_only_counts_errors_is_a_failed_problem(tmp_path: Path, suites: str) -> None:
    assert verdicts(document(tmp_path, f'<testsuites tests="1" errors="1">{suites}</testsuites>')) == {
        "report": "false"
    }


def test_errors_that_only_the_outermost_element_counts_are_a_failed_problem(tmp_path: Path) -> None:
    """As gotestsum counts packages that cannot be built, without which all tests passed."""
    suite = f'<testsuite tests="2" failures="1">{case()}{_FAILED}</testsuite>'
    table = document(tmp_path, f'<testsuites tests="2" failures="1" errors="1">{suite}</testsuites>')
    assert verdicts(table) == {"c.t": "true", "c.f": "false", "report": "false"}
    assert counts(table) == {"tests": (2, 2), "failures": (1, 1), "errors": (1, 1)}


def test_an_error_of_a_suite_is_a_failed_problem(tmp_path: Path) -> None:
    table = read(tmp_path, "<testsuite name='CartTest'><error message='the VM crashed'/></testsuite>", case())
    assert verdicts(table) == {"s/CartTest": "false", "c.t": "true"}


@pytest.mark.parametrize(
    ("suite", "failed", "figures"),
    [
        ('<testsuite name="a" errors="1"/>', "a", {"errors": (1, 1)}),
        ('<testsuite name="a" tests="0" errors="1"><error/></testsuite>', "a", {"tests": (1, 1), "errors": (1, 1)}),
        (
            # As jest-junit reports a file that cannot be run.
            '<testsuite name="f" tests="0" errors="1"><testcase name="a"><error/></testcase></testsuite>',
            "a",
            {"tests": (1, 1), "errors": (1, 1)},
        ),
        ('<testsuite name="a" tests="1" failures="1"/>', "a", {"tests": (2, 2), "failures": (1, 1)}),
        ('<testsuite name="o" errors="1"><testsuite name="i" errors="1"/></testsuite>', "o/i", {"errors": (1, 1)}),
        ('<testsuite name="a" tests="2" errors="1"/>', None, {"tests": (3, 1), "errors": (1, 0)}),
    ],
)
def test_a_suite_that_counts_errors_without_a_test(
    tmp_path: Path, suite: str, failed: str | None, figures: dict[str, tuple[int, int]]
) -> None:
    """It would count as if all had passed, if it were left out. Of two tests, one may have passed."""
    other = '<testsuite name="b" tests="1" errors="0" failures="0"><testcase name="t"/></testsuite>'
    table = document(tmp_path, f"<testsuites>{suite}{other}</testsuites>")
    assert verdicts(table) == {**({failed: "false"} if failed else {}), "t": "true"}
    assert counts(table) == figures


@pytest.mark.parametrize(
    ("time", "seconds"),
    [("1,234.5", "1234.5"), ("1.234,5", "1234.5"), ("2,536", "2.536"), ("-1", None), ("NaN", None), ("", None)],
)
def test_times(tmp_path: Path, time: str, seconds: str | None) -> None:
    assert read(tmp_path, case(time=time)).frame["duration_seconds"].to_list() == [seconds]


def test_long_names_stay_different(tmp_path: Path) -> None:
    names = [f"c.{'x' * 300}{place}" for place in (1, 2)]
    oids = read(tmp_path, *(case(name=name) for name in names)).frame["oid"].to_list()
    assert len(set(oids)) == 2 and all(len(oid) <= 200 for oid in oids)


def test_a_case_without_a_name_is_refused(tmp_path: Path) -> None:
    table = read(tmp_path, case(), case(name=""), case(name=""))
    assert table.frame["__kind"].to_list() == [None, "bad_id", "bad_id"]


def test_a_failure_without_a_name_is_one_of_its_suite(tmp_path: Path) -> None:
    """As GoogleTest writes those outside of tests: of an environment, a setup of a suite or after the last test."""
    outside = case('<failure message="x.cc:1"/>', name="", classname="", status="run", result="completed")
    suites = (
        f'<testsuite name="Cart" tests="1" failures="0" disabled="0" skipped="0">{case()}{outside}</testsuite>',
        f'<testsuite name="NonTestSuiteFailure" tests="1" failures="1" disabled="0" skipped="0">{outside}</testsuite>',
    )
    table = document(tmp_path, f'<testsuites tests="1" failures="0" name="AllTests">{"".join(suites)}</testsuites>')
    assert verdicts(table) == {"c.t": "true", "Cart": "false", "NonTestSuiteFailure": "false"}


@pytest.mark.parametrize(
    ("file", "pattern", "expected"),
    [
        ("runs/gpt/hard/2.xml", "{model}/{tier}/{attempt}.xml", ("gpt", "hard", "2")),
        ("gpt_4_007.xml", "{model}_{attempt}.xml", ("gpt_4", None, "7")),
        ("gpt/1/TEST-a.b.xml", "{model}/{attempt}/TEST-*.xml", ("gpt", None, "1")),
        ("openai%2Fgpt-4o.xml", "{model}.xml", ("openai/gpt-4o", None, "1")),
    ],
)
def test_a_pattern_finds_model_tier_and_attempt(
    tmp_path: Path, file: str, pattern: str, expected: tuple[str, str | None, str]
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(FILES / "node.xml", path)
    table = read_adapted(path, ReadOptions(junit_pattern=pattern))
    assert table.frame.select("llm_name", "tier", "iteration_id").unique().rows() == [expected]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("{model}/{attempt}.xml", "its path does not end like junit_pattern"),
        ("{model}{tier}.xml", "fits its path in more than one way"),
        ("{tier}.xml", r"it must have \{model\}"),
        ("{model}/{model}.xml", "at most once"),
        ("{name}.xml", r"'\{name\}' is not one of \{model\}, \{tier\}, \{attempt\}"),
    ],
)
def test_a_pattern_that_does_not_fit_is_refused(tmp_path: Path, pattern: str, reason: str) -> None:
    with pytest.raises(TouchstoneError, match=reason):
        read(tmp_path, case(), pattern=pattern)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<testsuite>", "not whole XML"),
        ("<testsuites/>", "the file holds no results"),
        ("<testsuite><testcase name='\udce9'/>", "save it as UTF-8"),
        ("<testsuite/>\n<testsuite/>", "line 2, column 0.; put each report into a file of its own"),
        ("<testsuite><testcase name='a'><testcase name='b'/></testcase></testsuite>", "inside another one"),
        ("<testsuite>" * 300, "nested more than 200 levels"),
        *(
            (f"<?xml version='1.0' encoding='{name}'?><testsuite/>", "its encoding is not supported .*; save it as UTF")
            for name in ("x", "gbk", "utf-7", "hex", "idna", "punycode")
        ),
        ("<!DOCTYPE a [<!ENTITY b 'b'>]><testsuite><testcase name='&b;'/></testsuite>", "document type declaration"),
        ("<html/>", "the root is <html> instead of"),
        ("", "not whole XML"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "report.xml"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(InputFileError, match=reason) as error:
        JUNIT.read(path, ReadOptions())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("encoding", "declared", "above"),
    [("utf-16", "utf-16", ""), ("utf-16", "utf-8", ""), ("utf-8-sig", "utf-8", ""), ("latin-1", "ISO-8859-1", "\n  ")],
)
def test_other_encodings(tmp_path: Path, encoding: str, declared: str, above: str) -> None:
    """PowerShell redirects what a tool prints as UTF-16, whatever the tool declared."""
    path = tmp_path / "report.xml"
    path.write_text(
        f"{above}<?xml version='1.0' encoding='{declared}'?><testsuite>{case(name='é')}</testsuite>", encoding
    )
    assert detect_format(path) == "junit"
    assert verdicts(read_adapted(path)) == {"c.é": "true"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_control_characters_are_no_part_of_a_message(tmp_path: Path, encoding: str) -> None:
    """They are no XML, but tools write what a test printed; UTF-16 is full of such bytes."""
    path, red = tmp_path / "report.xml", "\x1b" if encoding == "utf-8" else "?"
    path.write_text("<testsuite>" + case(f"<failure message='{red}[31mno'/>") + "</testsuite>", encoding)
    assert read_adapted(path).frame["error"].to_list() == ["?[31mno"]


PYTEST_FILE = """
import pytest
def test_ok(): pass
def test_bad(): assert 1 == 2, "é<&>"
def test_skipped(): pytest.skip("no network")
@pytest.mark.xfail
def test_known(): assert False
@pytest.fixture
def broken(): raise RuntimeError("no database")
def test_setup(broken): pass
"""
NODE_FILE = """
const {describe, it} = require('node:test');
describe('cart', () => { it('adds', () => {}); it('removes', () => { throw new Error('x') }); it.skip('later') });
"""


@pytest.mark.nightly
def test_a_fresh_file_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_fix.py").write_text(PYTEST_FILE)
    (tmp_path / "test_gone.py").write_text("import nothing_like_it\n")
    options = ["--junitxml=report.xml", "-p", "no:cacheprovider", "--continue-on-collection-errors", "-c", "/dev/null"]
    subprocess.run([sys.executable, "-m", "pytest", "--rootdir=.", *options], cwd=tmp_path, check=False)
    table = read_adapted(tmp_path / "report.xml")
    assert verdicts(table) == {
        "test_gone": "false",
        "test_fix.test_ok": "true",
        "test_fix.test_bad": "false",
        "test_fix.test_skipped": None,
        "test_fix.test_known": None,
        "test_fix.test_setup": "false",
    }
    assert [figure.reported for figure in table.figures] == [figure.recomputed for figure in table.figures]


@pytest.mark.nightly
def test_a_fresh_file_of_node(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (tmp_path / "cart.test.js").write_text(NODE_FILE)
    report = subprocess.run(
        [node, "--test", "--test-reporter=junit", "cart.test.js"], cwd=tmp_path, capture_output=True, check=False
    )
    (tmp_path / "report.xml").write_bytes(report.stdout)
    found = verdicts(read_adapted(tmp_path / "report.xml"))
    assert {name.rpartition("/")[2]: passed for name, passed in found.items()} == {
        "adds": "true",
        "removes": "false",
        "later": None,
    }
