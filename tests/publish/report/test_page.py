"""The page: it needs nothing else, runs nothing but its own scripts, and reads well whatever the results are."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from tests.publish.report.pages import Page
from tests.publish.report.results import Row, figure, outcome, pair, write_results
from touchstone.errors import TouchstoneError
from touchstone.publish.report import report_html

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "=cmd('calc')",
    "\u202egnp.exe",
    "\x1b[31mred\x1b[0m",
    "a\u2028b",
    "{{ 7 * 7 }}",
    "🦊 fox",
]


def page(root: Path, cases_kb: int = 500, **tables: Any) -> Page:
    return Page(report_html(write_results(root, **tables), cases_kb))


def problem(oid: str, model: str = "m", n: int = 4, c: int = 1) -> Row:
    return {"model": model, "tier": "T0", "oid": oid, "n": n, "c": c}


def test_the_page_asks_for_nothing_and_runs_only_its_own_scripts(tmp_path: Path) -> None:
    made = page(tmp_path, pass_at_k=[figure("m", 0.5)])
    addresses = [
        value
        for _, attributes in made.elements
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href", "action", "srcset", "data", "poster")
    ]
    assert addresses and all(str(value).startswith("#") for value in addresses)
    [policy] = [each["content"] for each in made.all("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    assert rules["default-src"] == "'none'" and "unsafe" not in rules["script-src"]
    run = made.scripts[-1]
    assert f"'sha256-{base64.b64encode(hashlib.sha256(run.encode()).digest()).decode()}'" in rules["script-src"]
    kinds = [each.get("type") for each in made.all("script")]
    assert kinds == ["application/json", "text/plain", None], "only the last one runs by itself"


def test_hostile_names_are_text(tmp_path: Path) -> None:
    statistics = [problem(oid, model=model) for model, oid in zip(HOSTILE, HOSTILE[::-1], strict=True)]
    html = report_html(
        write_results(
            tmp_path,
            pass_at_k=[figure(name, 0.5) for name in HOSTILE],
            problem_statistics=statistics,
            problem_frontier=[{"oid": name, "mean_pass_rate": 0.5} for name in HOSTILE],
            problems=[{"oid": name, "suite": name} for name in HOSTILE],
            attempts=[{**row, "iteration_id": name} for row, name in _keys(statistics)],
            outcomes=[
                outcome(row["model"], row["oid"], name, passed=False, diagnostics=name, fidelity=name)
                for row, name in _keys(statistics)
            ],
            quarantine=[{"source_file": name, "reason": name, "kind": name} for name in HOSTILE],
            regressions=[{"model": name, "tier": name, "oid": name, "kind": "new"} for name in HOSTILE],
            settings=[{"key": "x", "value": '"</script><script>alert(1)//"'}],
        )
    )
    made = Page(html)
    assert len(made.scripts) == 3 and not made.all("img")
    drawn = {tag for tag, _ in made.elements if tag in SVG}
    assert "svg" in drawn, "the names are in charts, too"
    assert not any(name.startswith("on") for _, attributes in made.elements for name in attributes)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b\u2028]", html)
    assert {row[0] for row in made.rows("leaderboard-table")} >= {*HOSTILE[:4], "\\u202egnp.exe", "🦊 fox"}
    assert "{{ 7 * 7 }}" in made.cells and "</script><img src=x onerror=alert(1)>" in made.text


# Elements that a chart may have; whatever else is in the page is HTML of its own.
SVG = ("svg", "g", "path", "line", "text", "tspan", "rect", "clippath", "defs", "lineargradient", "stop")


def test_charts_are_in_the_page_itself_and_large_ones_show_the_best_models(tmp_path: Path) -> None:
    models = [f"model-{place:02}" for place in range(40)]
    pairs = [pair("model-00", other, "worse") for other in models[1:]]
    figures = [figure(model, 1 - place / 100) for place, model in enumerate(models)]
    made = page(tmp_path, pass_at_k=figures, model_comparison=pairs)
    assert [each["aria-label"] for each in made.all("svg")] and len(made.scripts) == 3
    assert "Shown: the first 30 of 40 models; the other 10 are in the table model_comparison." in made.text
    ids = [attributes["id"] for _, attributes in made.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    results = write_results(tmp_path, pass_at_k=[figure("a", 0.5), figure("b", 0.4)], settings=[])
    assert report_html(results) == report_html(results)


@pytest.mark.parametrize(
    ("folder", "settings", "name"),
    [
        ("repairs/touchstone-results", [], "repairs"),
        ("output/sample", [], "sample"),
        ("repairs", [{"key": "name", "value": '"Terraform <repairs>"'}], "Terraform <repairs>"),
    ],
)
def test_the_title_is_the_name_of_the_evaluation(tmp_path: Path, folder: str, settings: list[Row], name: str) -> None:
    made = page(tmp_path / folder, pass_at_k=[figure("m", 0.5)], settings=settings)
    assert f"\n{name}\n1 model, 0 problems." in made.text


def _keys(rows: list[Row]) -> list[tuple[Row, str]]:
    return [({name: row[name] for name in ("model", "tier", "oid")}, row["oid"]) for row in rows]


@pytest.mark.parametrize("count", [1, 134])
def test_one_model_or_many(tmp_path: Path, count: int) -> None:
    models = [f"model-{place:03}" for place in range(count)]
    made = page(tmp_path, pass_at_k=[figure(model, 1 - place / 200) for place, model in enumerate(models)])
    assert [row[0] for row in made.rows("leaderboard-table")] == models
    assert made.rows("leaderboard-table")[0][1] == "1.000 [0.900, 1.000]"
    assert ("1 model," if count == 1 else "134 models,") in made.text
    assert sum(cell.startswith("model-0") for cell in made.cells) <= 30, (
        "the page itself has the first rows, the script the others"
    )


@pytest.mark.nightly
def test_ten_thousand_problems_are_all_there_once_and_the_hardest_come_first(tmp_path: Path) -> None:
    oids = [f"problem-{place:05}" for place in range(10_000)]
    html = report_html(
        write_results(
            tmp_path,
            pass_at_k=[figure("m", 0.5, problems=10_000)],
            problem_frontier=[{"oid": oid, "mean_pass_rate": place / 10_000} for place, oid in enumerate(oids)],
            problem_statistics=[problem(oid) for oid in oids],
        )
    )
    assert len(html) < 2_500_000
    made = Page(html)
    assert [row[0] for row in made.rows("problems-table")] == oids
    matrix = made.data["models"]
    assert matrix["problems"] == oids and matrix["n"] == [4] and matrix["c"] == [[1] * 10_000]
    assert "the others need scripts" in made.text


def test_more_cells_than_fit_leave_out_the_easiest_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("touchstone.publish.report.page._MAX_CELLS", 2)
    rows = [problem("easy"), problem("hard", n=3, c=0), problem("middle", n=2)]
    frontier = [{"oid": oid, "mean_pass_rate": rate} for oid, rate in (("easy", 1.0), ("hard", 0.0), ("middle", 0.5))]
    made = page(tmp_path, pass_at_k=[figure("m", 0.5)], problem_statistics=rows, problem_frontier=frontier)
    matrix = made.data["models"]
    assert (matrix["problems"], matrix["n"], matrix["c"]) == (["hard", "middle"], [[3, 2]], [[0, 1]])
    assert matrix["left_out"] == 1


def test_long_names_stay_whole(tmp_path: Path) -> None:
    made = page(tmp_path, pass_at_k=[figure("m" * 100, 0.5)], problem_frontier=[{"oid": "p" * 100}])
    assert "m" * 100 in made.cells and "p" * 100 in made.cells


def test_undefined_and_infinite_figures_have_words(tmp_path: Path) -> None:
    rows = [figure("m", 0.5, ci_low=None, ci_high=None, ci_method=None), figure("n", None)]
    economics = [
        {"model": "m", "tier": "T0", "cost_per_attempt": 0.01, "cost_of_pass": 0.02, "ci_low": 0.01, "ci_high": INF},
        {"model": "n", "tier": "T0", "cost_per_attempt": 0.01, "cost_of_pass": INF, "ci_low": INF, "ci_high": INF},
        {"model": "o", "tier": "T0"},
    ]
    made = page(tmp_path, pass_at_k=rows, economics=economics)
    assert [row[1] for row in made.rows("leaderboard-table")] == ["0.500", "-"]
    assert [row[1] for row in made.rows("costs-table")] == ["$0.0200 [$0.0100, ∞]", "never passes"]
    assert made.data["grids"]["costs-table"]["rows"][1][1] == ["never passes", 1e300], "infinity sorts last"
    assert "Infinity" not in made.scripts[0] and "NaN" not in made.scripts[0] and "nan" not in made.text.split()


INF = float("inf")


@pytest.mark.parametrize("tables", [{}, {"pass_at_k": [], "outcomes": [], "problems": [], "model_comparison": []}])
def test_no_data_at_all_is_a_page_that_says_so(tmp_path: Path, tables: dict[str, Any]) -> None:
    made = page(tmp_path, **tables)
    assert "There are no figures: no attempt was evaluated." in made.text
    assert "0 models, 0 problems" in made.text and "Leaderboard" not in made.text


def test_a_run_that_a_gate_stopped_shows_why(tmp_path: Path) -> None:
    failed = {"passed": False, "message": "half of the attempts are undecided", "error": True, "figures": {}}
    made = page(tmp_path, checks={"outcomes.undecided_share": failed}, outcomes=[outcome(passed=None)])
    assert "1 check failed (outcomes.undecided_share)" in made.text
    assert made.rows("checks-table") == [["outcomes.undecided_share", "failed", "half of the attempts are undecided"]]


def test_no_folder_of_results_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="no results here; give the output folder of a run"):
        report_html(tmp_path / "nowhere")


def test_rows_that_do_not_fit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("touchstone.tables.presentation.MAX_ROWS", 2)
    pairs = [pair("a", name, "better") for name in "bcd"]
    made = page(tmp_path, pass_at_k=[figure("a", 0.5)], model_comparison=pairs)
    assert "The first 2 of 3 rows; 1 more row is in the table model_comparison." in made.text


# From a model to an attempt


def cases_tables() -> dict[str, list[Row]]:
    keys = [{"model": "m", "tier": "T0", "oid": oid, "iteration_id": str(place)} for oid in "ab" for place in (1, 2)]
    return {
        "pass_at_k": [figure("m", 0.5)],
        "problem_statistics": [problem("a", n=2), problem("b", n=2, c=0)],
        "problem_frontier": [{"oid": "a", "mean_pass_rate": 0.5}, {"oid": "b", "mean_pass_rate": 0.0}],
        "regressions": [
            {"model": "m", "tier": "T0", "oid": "b", "kind": "regression", "baseline_score": 1.0, "current_score": 0.0}
        ],
        "attempts": [key | {"input_tokens": 1234, "fix_sha": "f" * 64} for key in keys],
        "outcomes": [
            outcome(oid=key["oid"], iteration=key["iteration_id"], passed=key["oid"] == "a", diagnostics="<b>why</b>")
            for key in keys
        ],
        "attempt_scores": [key | {"cost_usd": 0.002, "duration_seconds": 3.0} for key in keys],
    }


def test_cases_lead_from_the_tables_to_every_attempt(tmp_path: Path) -> None:
    made = page(tmp_path, **cases_tables())
    cases = [each["id"] for each in made.all("details") if each.get("class") == "case"]
    assert cases == ["case-0", "case-1"]
    assert "b · m · T0 regressed: 1.000 to 0.000" in made.text
    links = {each["href"] for each in made.all("a")}
    assert {"#model-0", "#case-0", "#case-1"} <= links
    assert made.data["models"]["links"] == [[0, 0, "#case-0"], [0, 1, "#case-1"]]
    assert {"1,234", "$0.00200", "3.0 s"} <= set(made.cells)
    assert "<b>why</b>" in made.text, "diagnostics are text"


def test_the_budget_of_cases_is_kept_and_stated(tmp_path: Path) -> None:
    tables = cases_tables()
    whole = page(tmp_path / "whole", **tables)
    assert "2 cases are shown within 500 kB (publish.report_cases_kb)." in whole.text
    none = page(tmp_path / "none", cases_kb=0, **tables)
    assert "0 cases are shown within 0 kB (publish.report_cases_kb); 2 more did not fit." in none.text
    one = page(tmp_path / "one", cases_kb=2, **tables)
    assert "1 case is shown within 2 kB (publish.report_cases_kb); 1 more did not fit." in one.text


# For every reader


def test_landmarks_headings_captions_and_scopes(tmp_path: Path) -> None:
    made = page(tmp_path, **cases_tables(), model_comparison=[pair("m", "n", "better")])
    assert [len(made.all(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1, 1, 1, 1, 1]
    levels = [int(tag[1]) for tag, _ in made.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and set(levels) == {1, 2, 3}
    assert all(each.get("scope") in ("col", "row") for each in made.all("th"))
    assert len(made.all("caption")) >= len(made.all("table")) - 1
    regions = [each for each in made.all("div") if each.get("class") == "scroll"]
    assert all(each.get("tabindex") == "0" and each.get("aria-label") for each in regions)
    named = {each.get("id") for _, each in made.elements}
    missing = [each["href"] for each in made.all("a") if str(each["href"])[1:] not in named]
    assert [link for link in missing if not str(link).startswith("#model-")] == []
