"""Comparisons as JSON, Markdown, JUnit and SARIF: what each says, and that no name can break it."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.comparison.regressions import CATEGORIES, KINDS
from touchstone.comparison.report import FORMATS, ComparisonReport, format_report
from touchstone.errors import TouchstoneError
from touchstone.tables import TABLES

SCHEMA = TABLES["regressions"].dtypes

Row = tuple[object, ...]
REGRESSION: Row = ("m", "T0", "worse", 1.0, 2 / 3, 2 / 3 - 1.0, "tests", "regression")
IMPROVEMENT: Row = ("m", "T0", "better", 0.0, 0.9, 0.9, "compilation", "improvement")
SAME: Row = ("m", "T0", "same", 1.0, 1.0, 0.0, None, "unchanged")
NEW: Row = ("m", "T0", "fresh", None, 0.9, None, None, "new")
REMOVED: Row = ("m", "T0", "gone", 0.8, None, None, None, "removed")
LOST: Row = ("m", "T0", "lost", 0.7, None, None, None, "lost")
UNSCORED: Row = ("m", "T0", "dark", None, 1.0, None, None, "unscored")


def comparison(*rows: Row, verdict: tuple[str, ...] = ("It got worse.",)) -> ComparisonReport:
    """Rows without their last three cells were compared by code score, and regress by chance one time in four."""
    whole = [(*row, "code_score", False, 0.25)[: len(SCHEMA)] for row in rows]
    return ComparisonReport("old", "new", 0.05, "best", pl.DataFrame(whole, SCHEMA, orient="row"), list(verdict))


EVERYTHING = comparison(REGRESSION, IMPROVEMENT, NEW, REMOVED, SAME, LOST, UNSCORED)


def test_markdown_in_full() -> None:
    assert format_report(EVERYTHING, "markdown") == (
        """It got worse.

**1 regression (1.8 expected by chance alone), 1 improvement, 1 unchanged, 1 new, 1 removed, 1 lost, 1 unscored** \
(old → new, best score, threshold 0.05)

1 case lost: judged in the baseline, no decided attempt now

<details><summary>The cases that changed</summary>

| change | case | model | before | after | delta |
| --- | --- | --- | ---: | ---: | ---: |
| regression | worse | m | 1.000 | 0.667 | -0.333 |
| lost | lost | m | 0.700 | - | - |
| improvement | better | m | 0.000 | 0.900 | +0.900 |
| new | fresh | m | - | 0.900 | - |
| removed | gone | m | 0.800 | - | - |

</details>
"""
    )


@pytest.mark.parametrize("format", FORMATS)
def test_the_best_of_unequal_numbers_of_attempts_comes_with_a_warning(format: str) -> None:
    numbers = {"baseline_attempts": pl.lit(1), "current_attempts": pl.lit(5)}
    unequal = replace(EVERYTHING, cases=EVERYTHING.cases.with_columns(**numbers))
    warning = (
        "unequal attempts: the best of more attempts is higher by chance, for 7 of 7 cases; compare by the score mean"
    )
    text = format_report(unequal, format)
    assert warning in text and warning not in format_report(EVERYTHING, format)
    assert format != "markdown" or text.startswith(warning)
    fair = format_report(replace(unequal, score="auto"), format)
    assert warning not in fair
    assert "7 cases have different numbers of attempts on the two sides and are compared by their means" in fair


def model_row(model: str = "m", verdict: str = "worse", tier: str = "T0", **more: object) -> dict[str, object]:
    """A model before and after, as the table baseline_verdicts has it."""
    rates = {"rate_baseline": 0.78, "rate_baseline_ci_low": 0.69, "rate_baseline_ci_high": 0.85}
    rates |= {"rate_current": 0.6, "rate_current_ci_low": None, "rate_current_ci_high": None, "difference": -0.18}
    ends = {"adjusted_ci_low": -0.25, "adjusted_ci_high": -0.11, "wins": 1, "losses": 9, "ties": 30, "problems": 40}
    return {"model": model, "tier": tier, "verdict": verdict, **rates, **ends, **more}


def test_markdown_has_one_table_of_models_before_and_after_the_worst_first() -> None:
    same = model_row("a|b", "inconclusive", wins=0, losses=0)
    report = replace(EVERYTHING, models=[same, model_row()], verdict_lines=["m: worse", "a: the same"])
    told = format_report(report, "markdown").split("\n\n")
    assert told[0] == "m: worse"
    assert told[1].splitlines() == [
        "| model | verdict | pass@1 before | pass@1 after | difference | problems | cases worse | cases better |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        r"| m | worse | 0.780 \[0.690, 0.850\] | 0.600 | -0.180 \[-0.250, -0.110\] | 40 | 2 | 1 |",
        r"| a\|b | equal on every problem | 0.780 \[0.690, 0.850\] | 0.600 | -0.180 \[-0.250, -0.110\] | 40 | 0 | 0 |",
    ]
    assert "with 95% confidence intervals" in told[2]
    assert told[-3:] == ["<details><summary>The other verdicts</summary>", "a: the same", "</details>\n"]


def test_json_holds_all_of_it_with_floats_as_they_are() -> None:
    told = json.loads(format_report(EVERYTHING, "json"))
    assert told["cases"] == EVERYTHING.cases.to_dicts()
    assert told["counts"] == dict.fromkeys(KINDS, 1)
    assert (told["baseline"], told["current"], told["score"], told["threshold"]) == ("old", "new", "best", 0.05)
    assert told["verdict"] == ["It got worse."]
    assert told["expected_by_chance"] == pytest.approx(7 * 0.25) and told["compared_by_pass_rate"] == 0
    assert told["notes"] == ["1 case lost: judged in the baseline, no decided attempt now"]
    assert json.loads(format_report(comparison(), "json"))["cases"] == []


def test_junit_has_a_testcase_per_compared_case_and_a_failure_per_regression() -> None:
    root = ET.fromstring(format_report(EVERYTHING, "junit"))
    suite = root[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "1", "1"]
    found = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert found == {"worse": ["failure"], "better": [], "same": [], "lost": ["error"], "dark": ["skipped"]}
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "regression/tests"
    assert failure.get("message") == "worse of m at T0: the score fell from 1.000 to 0.667 (-0.333); tests got worse"


def test_sarif_has_a_result_per_regression_and_lost_case() -> None:
    report = json.loads(format_report(EVERYTHING, "sarif"))
    assert report["version"] == "2.1.0"
    run = report["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == [*(f"regression/{name}" for name in CATEGORIES), "lost"]
    found, lost = run["results"]
    assert lost["ruleId"] == rules[lost["ruleIndex"]] == "lost"
    assert lost["message"]["text"] == "lost of m at T0: scored 0.700 in the baseline, no decided attempt now"
    assert (found["ruleId"], found["level"]) == ("regression/tests", "error")
    assert run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == found["ruleId"]
    assert found["message"]["text"].startswith("worse of m at T0: the score fell from 1.000")
    assert found["locations"] == [{"logicalLocations": [{"name": "worse", "fullyQualifiedName": "m/T0/worse"}]}]


def test_the_tier_is_shown_only_where_there_is_more_than_one() -> None:
    two = comparison(REGRESSION, ("m", "T1", "worse", 1.0, 0.0, -1.0, "tests", "regression"))
    assert "tier" in format_report(two, "markdown")
    assert "tier" not in format_report(comparison(REGRESSION), "markdown")
    assert 'classname="m.T1"' in format_report(two, "junit")


def test_fifty_rows_of_each_and_then_how_many_more() -> None:
    fell: list[Row] = [("m", "T0", f"c{place:03}", 1.0, 0.0, -1.0, "tests", "regression") for place in range(53)]
    rose: list[Row] = [
        ("m", "T0", f"d{place:03}", 0.0, place / 100, place / 100, "tests", "improvement") for place in range(10, 61)
    ]
    told = format_report(comparison(*fell, *rose), "markdown")
    assert "53 regressions (26.0 expected by chance alone), 51 improvements, 0 unchanged" in told
    assert "c049" in told and "c050" not in told
    assert "… and 4 more" in told
    # The largest rise is what people want to see, so the smallest is left out.
    assert "d060" in told and "d010" not in told


def test_cases_compared_by_pass_rate_are_marked_and_counted() -> None:
    fell: Row = ("m", "T0", "fell", 1.0, 0.0, -1.0, "outcome", "regression", "pass_rate", True, 0.5)
    told = format_report(comparison(REGRESSION, fell), "markdown")
    assert "1 case was compared by pass rate, because attempts on at least one side lack the score" in told
    assert "| change | case | model | compared by | before | after | delta |" in told
    assert "| regression | fell | m | pass rate | 1.000 | 0.000 | -1.000 |" in told
    assert "| regression | worse | m | code | 1.000 | 0.667 | -0.333 |" in told
    assert "compared by" not in format_report(comparison(REGRESSION), "markdown")


def test_nothing_changed() -> None:
    told = format_report(comparison(SAME, verdict=()), "markdown")
    assert "0 regressions, 0 improvements, 1 unchanged" in told
    assert "The cases that changed" not in told


def test_markdown_escapes_bars_backticks_and_tags() -> None:
    told = format_report(
        comparison(("m", "T0", "a|b`c`\\<img>\n_d_", 1.0, 0.0, -1.0, "tests", "regression")), "markdown"
    )
    assert r"| a\|b\`c\`\\\<img\>\\n_d\_ | m | 1.000 | 0.000 | -1.000 |" in told
    assert format_report(comparison(verdict=("- no | list",)), "markdown").startswith("\\- no \\| list\n\n")


def test_sarif_doubles_braces_and_makes_no_links_in_messages() -> None:
    told = json.loads(
        format_report(comparison(("m", "T0", "a{0} [b](http://c)", 1.0, 0.0, -1.0, "tests", "regression")), "sarif")
    )
    assert told["runs"][0]["results"][0]["message"]["text"].startswith(r"a{{0}} \[b\](http://c) of m")


def test_a_path_that_is_no_utf8_can_be_printed() -> None:
    odd = ComparisonReport("old\udcff", "new", 0.05, "best", EVERYTHING.cases, [])
    for format in FORMATS:
        assert format_report(odd, format).encode()


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="unknown format 'html'; choose one of json, markdown"):
        format_report(EVERYTHING, "html")


name = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
number = st.none() | st.floats()
chance = st.none() | st.floats(0, 1)
case = (name, name, name, number, number, number, st.sampled_from(CATEGORIES), st.sampled_from(KINDS))
row = st.tuples(*case, st.sampled_from([None, "code_score", "pass_rate"]), st.booleans(), chance)


@given(st.lists(row, max_size=8), st.lists(name, max_size=3), name)
def test_any_names_give_valid_files_and_the_same_bytes_each_time(rows: list[Row], lines: list[str], label: str) -> None:
    cases = pl.DataFrame(rows, SCHEMA, orient="row")
    told = ComparisonReport(label, label[::-1], 0.05, "mean", cases, lines)
    made = {format: format_report(told, format) for format in FORMATS}
    assert {format: format_report(told, format) for format in FORMATS} == made
    report = json.loads(made["json"])
    finite = cases.with_columns(pl.when(pl.col(pl.Float64).is_finite()).then(pl.col(pl.Float64)))
    assert report["cases"] == finite.to_dicts()
    assert sum(report["counts"].values()) == cases.height
    fell, lost = (cases.filter(pl.col("kind") == kind).height for kind in ("regression", "lost"))
    assert len(json.loads(made["sarif"])["runs"][0]["results"]) == fell + lost
    assert len(ET.fromstring(made["junit"].encode()).findall("testsuite/testcase/failure")) == fell
