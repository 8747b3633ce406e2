"""Test results of runners other than JUnit: the rules of each tool. The samples have the rest (`formats`)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.adapters.test_junit import counts
from touchstone.config import InputLimits
from touchstone.errors import InputFileError
from touchstone.ingest import limits
from touchstone.ingest.adapters import AdapterTable, ReadOptions, detect_format, read_adapted

PACKAGE = "acme.com/cart"


def read(tmp_path: Path, content: object, name: str = "m.json") -> AdapterTable:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_adapted(path)


def verdicts(table: AdapterTable) -> dict[str, str | None]:
    return dict(table.frame.filter(table.frame["__kind"].is_null()).select("oid", "passed").iter_rows())


def ctrf(*tests: dict[str, Any], **summary: int) -> dict[str, Any]:
    return {"results": {"tool": {"name": "t"}, "summary": {"tests": len(tests)} | summary, "tests": list(tests)}}


@pytest.mark.parametrize(
    ("test", "oid", "seconds"),
    [
        ({"name": "adds", "duration": 1500}, "adds", "1.5"),
        ({"name": "adds", "suite": ["Cart"]}, "Cart > adds", None),
        ({"name": "Cart adds", "suite": "cart.test.js > Cart", "filePath": "/app/cart.test.js"}, "Cart adds", None),
        (
            {
                "name": "tests/test_a.py::test_b",
                "file_path": "tests/test_a.py",
                "start": 1764545435.6,
                "duration": 0.25,
            },
            "tests/test_a.py::test_b",
            "0.25",
        ),
    ],
)
def test_names_and_times_of_ctrf(tmp_path: Path, test: dict[str, Any], oid: str, seconds: str | None) -> None:
    table = read(tmp_path, ctrf(test | {"status": "passed"}))
    assert table.format == "ctrf"
    assert table.frame.select("oid", "duration_seconds").rows() == [(oid, seconds)]


def test_a_status_that_is_not_known_is_refused(tmp_path: Path) -> None:
    table = read(
        tmp_path, ctrf({"name": "a", "status": "passed"}, {"name": "b", "status": "maybe"}, {"status": "failed"})
    )
    assert table.frame.select("__line", "__kind").rows() == [(1, None), (2, "bad_boolean"), (3, "bad_id")]
    assert counts(table)["tests"] == (3, 1)


def event(action: str, test: str | None = None, package: str = PACKAGE, **more: Any) -> str:
    return json.dumps({"Action": action, "Package": package} | ({"Test": test} if test else {}) | more)


def go(tmp_path: Path, *lines: str) -> AdapterTable:
    table = read(tmp_path, "\n".join(lines), "m.out")
    assert table.format == "go-test"
    return table


@pytest.mark.parametrize(
    ("results", "passed", "flaky"),
    [
        (["pass", "fail", "pass"], "false", "true"),
        (["fail", "package", "pass"], "true", "true"),
        (["pass", "package", "fail", "pass"], "false", "true"),
        (["skip"], None, None),
        (["skip", "pass"], "true", None),
    ],
)
def test_results_of_one_run_count_as_the_worst_and_a_later_run_replaces_them(
    tmp_path: Path, results: list[str], passed: str | None, flaky: str | None
) -> None:
    events = [event("fail") if each == "package" else event(each, "TestAdd") for each in results]
    table = go(tmp_path, event("run", "TestAdd"), *events, event("pass"))
    assert table.frame.select("passed", "flaky").rows() == [(passed, flaky)]


@pytest.mark.parametrize(
    ("around", "package", "inner"), [("fail", "fail", "false"), ("pass", "fail", None), ("pass", "pass", None)]
)
def test_a_test_without_a_result(tmp_path: Path, around: str, package: str, inner: str | None) -> None:
    """As after a panic; Go also leaves out results of subtests whose test passed."""
    table = go(tmp_path, event("run", "TestAdd/one"), event(around, "TestAdd"), event(package))
    assert verdicts(table)[f"{PACKAGE}.TestAdd/one"] == inner


def test_what_failed_without_a_test_is_a_problem(tmp_path: Path) -> None:
    table = go(
        tmp_path,
        event("pass", "TestAdd"),
        event("pass"),
        "# acme.com/old",
        "FAIL\tacme.com/old [build failed]",
        event("fail", package="acme.com/main"),
        event("skip", package="acme.com/docs"),
    )
    assert verdicts(table) == {f"{PACKAGE}.TestAdd": "true", "acme.com/old": "false", "acme.com/main": "false"}
    assert counts(table) == {"failed packages": (2, 2)}


def test_events_that_end_early(tmp_path: Path) -> None:
    table = go(tmp_path, event("pass", "TestAdd"), event("run", "TestRemove"), '{"Action": "out')
    assert table.frame.select("passed", "__kind").rows() == [("true", None), (None, None), (None, "ragged")]
    assert "1 package has no result: the file was cut off" in table.notes


@pytest.mark.parametrize(
    "above", ["go: downloading gopkg.in/yaml.v3 v3.0.0", "# acme.com/old\n./a.go:3:2: undefined: z"]
)
def test_what_go_writes_above_the_events(tmp_path: Path, above: str) -> None:
    table = go(tmp_path, above, event("pass", "TestAdd"), event("pass"))
    assert table.frame.select("__line", "passed").rows() == [(above.count("\n") + 2, "true")]


def test_a_benchmark_is_not_a_test(tmp_path: Path) -> None:
    table = go(tmp_path, event("bench", "BenchmarkAdd"), event("pass", "TestAdd"), event("pass"))
    assert verdicts(table) == {f"{PACKAGE}.TestAdd": "true"}


def test_mochawesome(tmp_path: Path) -> None:
    """A tree of suites; a hook that failed is a problem, and the tests after it were not run."""
    states = {"pass": False, "fail": False, "pending": False, "isHook": False}
    tests = [
        {"fullTitle": f"Cart {each}", "duration": 20} | states | {each: True}
        for each in ("pass", "fail", "pending", "skipped")
    ]
    tests[1]["err"] = {"message": "1 != 2"}
    hooks = [{"fullTitle": f"{each} hook", **states, "isHook": True, each: True} for each in ("pass", "fail")]
    inner = {"fullFile": "/app/cart.spec.js", "tests": tests, "suites": [], "beforeHooks": hooks, "afterHooks": []}
    stats = {"tests": 3, "passes": 1, "failures": 2, "pending": 1, "skipped": 1}
    root = {"fullFile": "", "tests": [], "suites": [{"tests": [], "suites": [inner]}]}
    table = read(tmp_path, {"stats": stats, "results": [root], "meta": {"mochawesome": {"version": "7.1.3"}}})
    assert table.format == "mocha"
    assert verdicts(table) == {
        "fail hook": "false",
        "Cart pass": "true",
        "Cart fail": "false",
        "Cart pending": None,
        "Cart skipped": None,
    }
    assert table.frame["error"].to_list() == [None, None, "1 != 2", None, None]
    assert counts(table) == {name: (stats[name], stats[name]) for name in ("tests", "passes", "failures", "pending")}


def test_tests_of_googletest_have_the_same_names_in_json_and_xml(tmp_path: Path) -> None:
    test = {"name": "Adds", "status": "RUN", "result": "COMPLETED", "classname": "Cart"}
    outside = test | {"name": "", "classname": "", "failures": [{"failure": "x"}]}
    suite = {"name": "Cart", "testsuite": [test | {"file": "cart_test.cpp"}, outside]}
    in_json = read(tmp_path, {"tests": 1, "failures": 0, "disabled": 0, "testsuites": [suite]})
    cases = """<testcase name="Adds" classname="Cart" file="cart_test.cpp" status="run" result="completed"/>
        <testcase name="" classname="" status="run" result="completed"><failure message="x"/></testcase>"""
    in_xml = read(tmp_path, f'<testsuite name="Cart" tests="1">{cases}</testsuite>', "m.xml")
    assert verdicts(in_json) == verdicts(in_xml) == {"cart_test.cpp::Cart.Adds": "true", "Cart": "false"}
    assert counts(in_json) == {"tests": (1, 1), "failures": (0, 0), "disabled": (0, 0)}


def test_a_list_of_the_tests_of_googletest_is_no_report(tmp_path: Path) -> None:
    """`--gtest_list_tests` writes it: without verdicts, nothing has passed."""
    suite = {"name": "Cart", "tests": 1, "testsuite": [{"name": "Adds", "file": "cart_test.cpp", "line": 3}]}
    (tmp_path / "m.json").write_text(json.dumps({"tests": 1, "name": "AllTests", "testsuites": [suite]}))
    assert detect_format(tmp_path / "m.json") is None


@pytest.mark.parametrize(
    ("name", "content", "instead"),
    [
        ("behave.json", '[{"keyword": "Feature", "elements": [{"steps": []}]}]', "JUnit XML (behave --junit, cucumber"),
        ("c.ndjson", '{"meta": {"protocolVersion": "22", "implementation": {"name": "c"}}}\n', "JUnit XML (behave"),
        ("e.xml", '<e:events xmlns:e="e"><e:started id="1"/></e:events>', "JUnit XML (TEST-*.xml of Maven"),
        ("s.xml", '<testExecutions version="1"><file path="a"/></testExecutions>', "JUnit XML (of the test runner"),
        (
            "3-result.json",
            '{"uuid": "3", "historyId": "a", "status": "passed", "stage": "finished"}',
            "JUnit XML (of the",
        ),
        (
            "t.json",
            '{"userAgents": ["C"], "fixtures": [{"name": "f", "tests": [{"name": "a"}]}]}',
            "JUnit XML (testcafe",
        ),
        ("n.json", '{"collection": {}, "run": {"executions": [{"assertions": []}]}}', "JUnit XML (newman run -r"),
        (
            "a.json",
            '{"result": {"summary": {}, "tests": [{"ApexClass": {}, "Outcome": "Pass"}]}}',
            "JUnit XML (sf apex",
        ),
        ("l.json", '{"__version__": [20, 1, 0], "tests": [{"name": "a", "code": "PASS"}]}', "JUnit XML (lit --xunit"),
        ("m.json", '{"name": "a", "result": "OK", "starttime": 1, "returncode": 0}\n', "JUnit XML (testlog.junit.xml"),
        ("Test.xml", '<?xml version="1.0"?><Site Name="s"><Testing/></Site>', "JUnit XML (ctest --output-junit FILE)"),
        ("x.xml", "<!-- x --><assemblies><assembly/></assemblies>", "TRX (dotnet test --logger trx)"),
        ("p.json", '{"suites": [{}], "stats": {"expected": 1, "unexpected": 0}}', "JUnit XML (--reporter=junit)"),
        ("p.json", '{"exitcode": 1, "tests": [{"nodeid": "a"}]}', "JUnit XML (pytest --junitxml=FILE)"),
        ("log.jsonl", '{"pytest_version": "8", "$report_type": "SessionStart"}\n', "JUnit XML (pytest"),
        ("rust.json", '{"type": "suite", "event": "started", "test_count": 1}\n{"type": "test"}\n', "JUnit XML (cargo"),
        ("a.tap", "TAP version 13\n1..1\nok 1 - adds\n", "JUnit XML (bats --report-formatter junit"),
        ("a.txt", "# Subtest: cart\nnot ok 1 - adds\n1..1\n", "JUnit XML (bats --report-formatter junit"),
        ("a.log", "=== RUN   TestAdds\n--- PASS: TestAdds (0.00s)\n", "JSON (go test -json)"),
        ("a.log", "\nrunning 1 test\ntest tests::adds ... ok\n", "JUnit XML (cargo nextest)"),
        ("a.log", "===== test session starts =====\ncollected 1 item\n", "JUnit XML (pytest --junitxml=FILE)"),
    ],
)
def test_a_report_that_is_not_read_says_what_to_write_instead(
    tmp_path: Path, name: str, content: str, instead: str
) -> None:
    with pytest.raises(InputFileError, match=re.escape(f"which Touchstone does not read; write {instead}")):
        read(tmp_path, content, name)


@pytest.mark.parametrize(
    ("tests", "status", "message", "failed_suites", "found"),
    [
        (["passed", "skipped"], "failed", "", 0, {"t0": "true", "t1": None}),  # of 2022
        ([], "passed", "Failed to resolve import", 1, {"cart.test.ts": "false"}),  # of 2023
        ([], "failed", "Failed to resolve import", 1, {"cart.test.ts": "false"}),
        (["skipped"], "failed", "", 1, {"t0": None, "cart.test.ts": "false"}),  # a setup failed
        (["failed"], "failed", "", 1, {"t0": "false"}),
    ],
)
def test_files_that_vitest_could_not_run(
    tmp_path: Path, tests: list[str], status: str, message: str, failed_suites: int, found: dict[str, str | None]
) -> None:
    """A file with a skipped test failed in older versions, and one that cannot be loaded passed."""
    cases = [{"ancestorTitles": [""], "title": f"t{place}", "status": word} for place, word in enumerate(tests)]
    file = {"assertionResults": cases, "status": status, "message": message, "name": "/app/cart.test.ts"}
    numbers = {"numTotalTests": len(tests), "numPendingTests": 0, "numFailedTestSuites": failed_suites}
    assert verdicts(read(tmp_path, numbers | {"testResults": [file]})) == found


@pytest.mark.parametrize(
    ("full", "own", "oid"),
    [
        ("User is valid", "is valid", "spec/user_spec.rb::User is valid"),
        ("User ", "example at ./spec/user_spec.rb:9", "User example at ./spec/user_spec.rb:9"),
        ("User ", "should respond to #name", "spec/user_spec.rb::User should respond to #name"),
    ],
)
def test_examples_of_rspec_without_a_text_have_their_description(tmp_path: Path, full: str, own: str, oid: str) -> None:
    """`it { … }` that fails before its matcher is known, and any such in RSpec 2, which also has other times."""
    example = {"description": own, "full_description": full, "status": "failed", "file_path": "./spec/user_spec.rb"}
    table = read(tmp_path, {"examples": [example | {"duration": 0.5}], "summary_line": "1 example, 1 failure"})
    assert table.frame.select("oid", "duration_seconds").rows() == [(oid, "0.5")]


def trx(*results: str, counters: str = "", definitions: str = "") -> str:
    space = "http://microsoft.com/schemas/VisualStudio/TeamTest/2010"
    parts = f"<Results>{''.join(results)}</Results>{definitions}<ResultSummary>{counters}</ResultSummary>"
    return f'<TestRun id="1" xmlns="{space}">{parts}</TestRun>'


@pytest.mark.parametrize(
    ("attributes", "passed", "outcome"),
    [
        ('outcome="Passed"', "true", "passed"),
        ('outcome="Timeout"', "false", "error"),
        ("", "false", "error"),
        ('outcome="Inconclusive"', None, "skipped"),
        ('outcome="PassedButRunAborted"', None, "skipped"),
    ],
)
def test_outcomes_of_trx(tmp_path: Path, attributes: str, passed: str | None, outcome: str) -> None:
    table = read(tmp_path, trx(f'<UnitTestResult testName="a" {attributes}/>'), "m.trx")
    assert table.frame.select("passed", "outcome").rows() == [(passed, outcome)]


def test_a_test_that_only_starts_like_its_class(tmp_path: Path) -> None:
    method = '<TestMethod className="Cart" name="CartAdds"/>'
    definitions = f'<TestDefinitions><UnitTest id="a">{method}</UnitTest></TestDefinitions>'
    result = '<UnitTestResult testId="a" testName="CartAdds" outcome="Passed"/>'
    assert verdicts(read(tmp_path, trx(result, definitions=definitions), "m.trx")) == {"Cart.CartAdds": "true"}


@pytest.mark.parametrize("total", ["2", "1"])
def test_nested_results_are_counted_as_the_file_does(tmp_path: Path, total: str) -> None:
    inner = '<InnerResults><UnitTestResult testName="a (1)" outcome="Passed"/></InnerResults>'
    counters = f'<Counters total="{total}" passed="{total}" failed="0" notExecuted="0"/>'
    result = f'<UnitTestResult testName="a" outcome="Passed">{inner}</UnitTestResult>'
    table = read(tmp_path, trx(result, counters=counters), "m.trx")
    assert verdicts(table) == {"a": "true", "a (1)": "true"}
    assert counts(table) == {"total": (int(total),) * 2, "passed": (int(total),) * 2, "failed": (0, 0)}


def test_tests_of_two_assemblies(tmp_path: Path) -> None:
    case = '<test-case fullname="Shop.Adds" result="{}"/>'
    suites = [
        f'<test-suite type="Assembly" name="{name}.dll">{case.format(word)}</test-suite>'
        for name, word in (("a", "Passed"), ("b", "Failed"))
    ]
    table = read(tmp_path, f'<test-run total="2" passed="1" failed="1">{"".join(suites)}</test-run>', "m.xml")
    assert verdicts(table) == {"a.dll::Shop.Adds": "true", "b.dll::Shop.Adds": "false"}


@pytest.mark.parametrize(
    ("suite", "found"),
    [
        ('result="Failed" site="SetUp"', {"F": "false"}),
        ('result="Failed" label="Invalid"', {"F": "false"}),
        ('result="Skipped" label="Ignored"', {}),
        ('result="Failed" site="Child"', {}),
    ],
)
def test_a_fixture_without_tests(tmp_path: Path, suite: str, found: dict[str, str]) -> None:
    document = f'<test-run total="1"><test-suite fullname="F" {suite}/><test-case name="a" result="Passed"/></test-run>'
    assert verdicts(read(tmp_path, document, "m.xml")) == {"a": "true"} | found


@pytest.mark.parametrize(
    "content",
    [
        '<TestRun id="1"><Results/></TestRun>',
        '<test-results-of-others total="1"><test-suite/></test-results-of-others>',
        '<test-results total="1"><case/></test-results>',
        '{"results": {"tests": [], "summary": {}}}',
        '{"stats": {"passes": 1, "failures": 0, "pending": 0}, "results": []}',
        '{"testResults": []}',
        '{"examples": [{"text": 1}], "summary": {}}',
        '{"Action": "deploy", "Package": "a"}',
        '{"Action": ["run"], "Package": "a"}',
    ],
)
def test_what_only_looks_like_a_report_is_not_recognized(tmp_path: Path, content: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(content)
    assert detect_format(path) is None


def test_retries_and_setups_of_testng(tmp_path: Path) -> None:
    """A retry that fails is no flaky test; a setup that fails before each test is one problem; odd words are none."""

    def method(name: str, status: str, more: str = "") -> str:
        return f'<test-method name="{name}" signature="{name}()" status="{status}" duration-ms="x" {more}/>'

    tried = method("t", "SKIP", 'retried="true"')
    setups = method("up", "FAIL", 'is-config="true"') * 2
    within = method("w", "SUCCESS_PERCENTAGE_FAILURE") + method("odd", "MAYBE")
    suite = f'<suite name="s"><class name="C">{tried * 2}{method("t", "FAIL")}{setups}{within}</class></suite>'
    table = read(tmp_path, f'<testng-results total="3" failed="1" retried="2">{suite}</testng-results>', "m.xml")
    assert verdicts(table) == {"C.t": "false", "C.up": "false", "C.w": None}
    assert table.frame["flaky"].drop_nulls().is_empty()
    assert counts(table) == {"total": (3, 3), "failed": (1, 1), "retried": (2, 2)}


def test_the_path_names_model_and_attempt_of_any_report(tmp_path: Path) -> None:
    path = tmp_path / "gpt" / "2.json"
    path.parent.mkdir()
    path.write_text(json.dumps(ctrf({"name": "a", "status": "passed"})))
    table = read_adapted(path, ReadOptions(junit_pattern="{model}/{attempt}.json"))
    assert table.frame.select("llm_name", "iteration_id").rows() == [("gpt", "2")]


def test_an_element_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_in_use", InputLimits(row_mb=1))
    with pytest.raises(InputFileError, match="an element is longer than 1 MiB"):
        read(tmp_path, f'<testsuite><testcase name="{"x" * (4 << 20)}"/></testsuite>', "m.xml")


@given(tests=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "f", "g"]), st.booleans()), min_size=1))
def test_no_test_is_lost_and_each_has_a_name_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, tests: list[tuple[str, str, bool]]
) -> None:
    entries = [
        {"name": name, "filePath": file and f"/app/{file}", "status": "passed" if ok else "failed"}
        for name, file, ok in tests
    ]
    passed = sum(ok for _, _, ok in tests)
    table = read(tmp_path_factory.getbasetemp(), ctrf(*entries, passed=passed, failed=len(tests) - passed))
    assert table.frame["oid"].n_unique() == len(tests)
    assert [verdict == "true" for verdict in table.frame["passed"]] == [ok for _, _, ok in tests]
    assert all(reported == recomputed for reported, recomputed in counts(table).values())
