"""What the commands show on terminals of several widths and in a pipe, from real tables, and how a run ends."""

import math
import re
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command, Folder, nightly_but
from tests.publish.report.results import Row, figure, pair, reported
from touchstone.cli.run_tables import conclusion, validators_line
from touchstone.comparison.pairs import ComparisonSettings, compare_counts
from touchstone.publish import result_tables
from touchstone.publish.result_tables import tiers
from touchstone.tables.checks import CheckOutcome
from touchstone.vocabulary import STATIC_AGREEMENT

MODELS = ["claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929", "m" * 100]
P_VALUE = 1.0728836059570312e-06
QUERY = """
SELECT model_a, model_b, tier_a AS tier, difference, ci_low, ci_high, p_adjusted, verdict, minimum_detectable_effect
FROM model_comparison ORDER BY model_a, model_b
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with a table of compared models, one of which has a name of 100 characters."""
    root = tmp_path_factory.mktemp("results")
    pairs = pl.DataFrame(
        {
            "model_a": [MODELS[0], MODELS[0], MODELS[1]],
            "model_b": [MODELS[1], MODELS[2], MODELS[2]],
            "tier_a": "T0",
            "difference": [0.11533333333333329, -0.5, 1 / 3],
            "ci_low": [-0.1703333333333333, 0.25, 1 / 7],
            "ci_high": [-0.0593333333333333, 0.75, 2 / 7],
            "p_adjusted": [P_VALUE, 0.012345678901234, 1.0],
            "verdict": ["better", "inconclusive", "inconclusive"],
            "minimum_detectable_effect": [0.1234567890123, None, 0.5],
        }
    )
    (root / "tables" / "model_comparison").mkdir(parents=True)
    pairs.write_parquet(root / "tables" / "model_comparison" / "model_comparison.parquet")
    return root


def without_spaces(text: str) -> str:
    return re.sub(r"[\s│]", "", text)


def test_piped_results_are_rounded_and_never_cut(results: Path, touchstone: Command) -> None:
    seen = touchstone("sql", "--data", results, QUERY).stdout
    assert "…" not in seen and "not shown" not in seen
    lines = seen.splitlines()
    assert len(lines) == 8 and lines[-1] == "3 rows"
    assert [cell.strip() for cell in lines[3].strip("│").split("│")] == [
        MODELS[0], MODELS[1], "T0", "0.11533", "-0.17033", "-0.059333", "1.0729e-06", "better", "0.12346",
    ]  # fmt: skip
    assert MODELS[2] in lines[4]


@pytest.mark.parametrize(("columns",), nightly_but([(80,)], [(40,), (80,), (120,)]))
def test_on_a_terminal_names_and_figures_are_whole(results: Path, touchstone: Command, columns: int) -> None:
    asked = QUERY.replace("ORDER BY", f"WHERE model_b <> '{MODELS[2]}' ORDER BY")
    seen = touchstone("sql", "--data", results, asked, columns=columns, terminal=True).stdout
    assert "…" not in seen and max(map(len, seen.splitlines())) <= columns
    header = seen.split("\n┡")[0]
    told = re.search(r"not shown: (.*); use --format csv or a wider terminal", " ".join(seen.split()))
    hidden = told[1].split(", ") if told else []
    body = seen.split("┩\n")[1].split("└")[0]
    figures = {"difference": "0.11533", "ci_low": "-0.17033", "ci_high": "-0.059333", "p_adjusted": "1.0729e-06"}
    for column, shown in figures.items():
        assert (column in hidden) != (shown in body)
        assert (column in hidden) != (column in without_spaces(header) or column in header)
    assert "difference" not in hidden or columns == 40
    if columns >= 80:
        assert MODELS[0] in body and MODELS[1] in body
    assert seen.rstrip().endswith("1 row")


def test_exports_keep_every_digit(results: Path, touchstone: Command) -> None:
    query = "SELECT min(p_adjusted) AS p FROM model_comparison"
    for form in ("csv", "json"):
        assert repr(P_VALUE) in touchstone("sql", "--data", results, query, "--format", form).stdout


def test_a_grade_is_shown_with_its_range_and_how_many_attempts_were_scored(tmp_path: Path) -> None:
    figures = {
        "model": "m", "tier": "T5", "attempts": 135, "scored": 90, "composite_median": 0.925, "grade": "B",
        "grade_low": "F", "grade_high": "B", "uplift": 0.1, "uplift_ci_low": -0.5, "uplift_ci_high": math.inf,
    }  # fmt: skip
    sure = figures | {"tier": "T6", "grade_low": "B", "scored": 135}
    none = figures | {"tier": "T7", "grade": None, "grade_low": None, "grade_high": None, "composite_median": None}
    drawn = result_tables.tiers(reported(tmp_path, tiers=[figures, sure, none], cross_tier=[]))
    cells = [
        {column.header: cell.text for column, cell in zip(drawn.columns, row, strict=True)} for row in drawn.cells()
    ]
    assert [row["grade"] for row in cells] == ["B, F to B", "B", "-"]
    assert [row["scored"] for row in cells] == ["90 of 135", "135 of 135", "90 of 135"]
    assert cells[0]["uplift"] == "+10.0% [-50.0%, +∞]"


@pytest.fixture(scope="module")
def compared() -> list[Row]:
    """Three models at 6 clusters of 5 problems, of which one passes nothing and one everything."""
    names = [f"p{place:02}" for place in range(30)]
    counts = pl.concat(
        pl.DataFrame({"model": model, "tier": "T0", "oid": names, "n": 1, "c": c})
        for model, c in (("none", [0] * 30), ("all", [1] * 30), ("half", [0, 1] * 15))
    )
    problems = pl.DataFrame({"oid": names, "cluster": [f"k{place // 5}" for place in range(30)]})
    return compare_counts(counts.lazy(), problems.lazy(), ComparisonSettings()).to_dicts()


def test_compared_models_have_adjusted_figures_first_and_say_what_they_lack(
    tmp_path: Path, compared: list[Row]
) -> None:
    shown = result_tables.pairs(reported(tmp_path, model_comparison=compared))
    assert [column.header for column in shown.columns] == [
        "model", "baseline", "verdict", "difference", "adjusted 95% CI", "adjusted p", "min. detectable effect",
        "on few problems", "95% CI", "p", "wins", "losses", "problems",
    ]  # fmt: skip
    assert shown.notes == [
        "adjusted for 3 pairs (Holm)",
        "6 clusters cannot reach p ≤ 0.05 over 3 pairs; at least 7 are needed",
    ]
    (none,) = [row for row in ([cell.text for cell in row] for row in shown.cells()) if row[:2] == ["none", "all"]]
    assert none[2:6] == ["inconclusive", "-1.000", "[-1.000, +0.000]", "0.094"] and none[9] == "0.031"


def test_a_single_pair_needs_no_adjusted_figures(tmp_path: Path, compared: list[Row]) -> None:
    one = [compared[0] | {"pairs": 1, "units_needed": None}]
    level = [{"key": "intervals.confidence", "value": "0.9"}]
    shown = result_tables.pairs(reported(tmp_path, model_comparison=one, settings=level))
    assert [column.header for column in shown.columns][3:7] == ["difference", "90% CI", "p", "min. detectable effect"]
    assert shown.notes == []


def test_of_many_pairs_a_page_shows_those_that_matter(tmp_path: Path, compared: list[Row]) -> None:
    names = [f"m{place:02}" for place in range(50)]
    found = [compared[0] | {"model_a": a, "model_b": b} for a, b in combinations(names, 2)]
    scores = [{"model": name, "tier": "T0", "k": 1, "pass_at_k": 1 - place / 50} for place, name in enumerate(names)]
    shown = result_tables.pairs(reported(tmp_path, model_comparison=found, pass_at_k=scores))
    rows = [[cell.text for cell in row[:2]] for row in shown.cells()]
    assert rows == [[b, a] for a, b in combinations(names, 2) if b < "m30" or int(b[1:]) - int(a[1:]) == 1]
    assert shown.notes[-1] == "shown: pairs of the 30 best models, and every model with the next in rank"
    assert shown.rest == "The first 455 of 1,225 rows; 770 more rows are in the table model_comparison."


def test_the_run_names_the_validators_and_the_static_checker_as_such() -> None:
    rows = [("hcl", "static", "bubblewrap"), ("python", "full", "bubblewrap"), ("recorded", "recorded", None)]
    outcomes = pl.LazyFrame(
        [
            {"model": "m", "tier": "T0", "validator_version": "1", "passed": True}
            | dict(zip(("validator", "fidelity", "sandbox"), row, strict=True))
            for row in rows
        ]
    )
    assert validators_line(outcomes) == (
        "validated by hcl, the static checker and not Terraform itself (fidelity static); python (fidelity full); "
        f"{STATIC_AGREEMENT}"
    )
    assert "static:" not in validators_line(outcomes.filter(pl.col("validator") != "hcl"))
    assert validators_line(outcomes.filter(pl.col("sandbox").is_null())) == ""


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"x": 0.5}, "x is the only model: pass@1 0.500 (95% CI 0.400 to 0.600, 40 problems)"),
        ({"x": None}, "No model has a pass@1: no problem has 1 decided attempt"),
        (
            {"x": 0.8, "y": 0.5},
            "x is best: pass@1 0.800 (95% CI 0.700 to 0.900, 40 problems); "
            "it is better than y (pass@1 paired by problem)",
        ),
    ],
)
def test_the_sentence_of_the_report_what_was_refused_and_what_failed(
    tmp_path: Path, rates: dict[str, float | None], sentence: str
) -> None:
    figures = [figure(model, rate) for model, rate in rates.items()]
    pairs = [pair("y", "x", "better", pairs=1)]
    run = reported(tmp_path, pass_at_k=figures, model_comparison=pairs, quarantine=[{"reason": "r"}] * 2)
    assert conclusion(run, []) == f"{sentence}; 2 rows were refused"
    checks = [CheckOutcome("a.good", True, True, ""), CheckOutcome("b.bad", False, True, "")]
    assert conclusion(run, checks).endswith("; 2 rows were refused; 1 of 2 checks passed (failed: b.bad)")


def test_what_says_nothing_is_not_shown(touchstone: Command, evaluated: Folder) -> None:
    """Recorded outcomes only: no grade, no cost, one suite, and folders beside the files."""
    (evaluated.root / "fixes" / "clones").mkdir()
    shown = touchstone("run", "--config", evaluated.config).stdout
    assert "pass@1" in shown
    for words in ("tiers:", "suites:", "not read", "parts", "default", "0 of 0"):
        assert words not in shown


def test_a_run_that_fails_at_once_counts_no_checks(touchstone: Command, folder: Folder) -> None:
    folder.problems("x,y\n1,2\n")
    done = touchstone("run", "--config", folder.config)
    assert done.returncode and "checks" not in done.stdout + done.stderr


def test_columns_without_figures_are_left_out(tmp_path: Path) -> None:
    row = {"model": "m", "tier": "T0", "attempts": 4, "pass_rate": 0.5, "cost_of_pass": 0.25}
    shown = tiers(reported(tmp_path / "one", tiers=[row], cross_tier=[]))
    assert [column.header for column in shown.columns] == ["model", "tier", "passed attempts", "cost of pass"]
    two = [row | {"tier": tier, "composite_median": 0.5} for tier in ("T0", "T1")]
    shown = tiers(reported(tmp_path / "two", tiers=two, cross_tier=[]))
    assert any("uplift: change of the composite from T0" in note for note in shown.notes)
