"""`touchstone plan` as a user calls it: from assumptions, from results, and where nothing can be planned."""

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.conftest import PROJECT, Command, Folder, made_once
from tests.pipelines.test_run import evaluate
from touchstone.comparison.planning import paired_data, single_data
from touchstone.inference.planning import Goal

ASSUMED = ("plan", "--detect", "0.03", "--rate", "0.6", "--icc", "0.4")
PAIR = ("--model", "atlas-large", "--against", "cedar-coder", "--tier", "T0")


@pytest.fixture(scope="session")
def three_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a run of three models and two tiers, with costs: to be read only."""

    def make(root: Path) -> None:
        folder, generator = Folder(root), np.random.default_rng(3)
        folder.problems("oid,filename\n" + "".join(f"p{place:02},a.tf\n" for place in range(40)))
        for model, cost in (("atlas-large", 0.02), ("boreal-mini", 0.01), ("cedar-coder", 0.01)):
            passed = generator.random((5, 40)) < generator.beta(1, 1, 40)
            rows = [
                f"p{p:02},{i},T{tier},{passed[i, p]},{cost}" for tier in (0, 1) for i in range(5) for p in range(40)
            ]
            folder.fixes(model, "\n".join(["oid,iteration_id,tier,passed,cost_usd", *rows]) + "\n")
        folder.configure(k_values=[1])
        assert evaluate(folder).exit_code == 0

    return made_once(tmp_path_factory, "three_models", make) / "out"


def test_the_example_of_the_page_is_what_it_prints(touchstone: Command) -> None:
    page = (PROJECT / "docs" / "planning.md").read_text()
    command, _, shown = page.split("```console\n$ touchstone ")[1].split("```")[0].partition("\n")
    assert touchstone(*shlex.split(command)).stdout.strip() == shown.strip()


def test_what_is_assumed_is_said(touchstone: Command) -> None:
    seen = touchstone(*ASSUMED, "--clusters", 40).stdout
    assert "assumed: correlation 0.5 of the two models' pass rates over problems; the default" in seen
    assert "assumed: 40 clusters, which hold 20% (the default) of the variance between problems" in seen
    assert "assumed: a standard deviation of their sizes of 1.5 (the default) times the mean (--cluster-cv)" in seen
    assert "costs are not known" in seen


@pytest.mark.services
def test_a_plan_from_data_agrees_with_what_the_data_finds_today(touchstone: Command, three_models: Path) -> None:
    done = touchstone("plan", "--detect", 0.05, "--data", three_models, *PAIR, "--problems", 40, "--json")
    plan = json.loads(done.stdout)
    today, (last,) = plan["today"], [mix for mix in plan["mixes"] if mix["attempts_per_problem"] == 5]
    compared = pl.read_parquet(three_models / "tables" / "model_comparison" / "*.parquet")
    (pairs,) = compared["pairs"].unique().to_list()
    (stored,) = compared.filter(
        pl.col("model_a") == "atlas-large", pl.col("model_b") == "cedar-coder", pl.col("tier_a") == "T0"
    )["minimum_detectable_effect"]
    assert today["detectable"] == pytest.approx(last["detectable"], rel=0.03)
    corrected = touchstone("plan", "--detect", 0.05, "--pairs", pairs, "--data", three_models, *PAIR, "--json")
    assert json.loads(corrected.stdout)["today"]["detectable"] == pytest.approx(stored, rel=1e-9)
    assert "more attempts alone never find less than" in " ".join(plan["conclusions"])
    economics = pl.read_parquet(three_models / "tables" / "economics" / "*.parquet").filter(pl.col("tier") == "T0")
    both = economics.filter(pl.col("model").is_in(["atlas-large", "cedar-coder"]))["cost_per_attempt"].sum()
    assert last["cost_usd"] == pytest.approx(40 * 5 * both)


def test_the_cheapest_mix_is_marked(touchstone: Command) -> None:
    costs = ("--cost-per-attempt", 0.02, "--cost-per-problem", 0.5)
    plan = json.loads(touchstone(*ASSUMED, *costs, "--json").stdout)
    assert plan["cheapest"]["cost_usd"] == min(mix["cost_usd"] for mix in plan["mixes"])
    assert [mix["cheapest"] for mix in plan["mixes"]].count(True) == 1


@pytest.mark.parametrize("columns", [pytest.param(40, marks=pytest.mark.nightly), 80])
def test_it_fits_the_terminal_and_marks_the_cheapest(touchstone: Command, columns: int) -> None:
    seen = touchstone(*ASSUMED, "--cost-per-attempt", 0.02, columns=columns, terminal=True).stdout
    assert max(map(len, seen.splitlines())) <= columns and "3,504" in seen
    assert seen.count(" *") == 1 or columns == 40


def counts(attempts: int) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    names = [f"p{place}" for place in range(20)]
    rows = [
        {"model": model, "tier": "T0", "oid": name, "k": 1, "n": attempts, "c": (place + shift) % (attempts + 1)}
        for shift, model in enumerate("ab")
        for place, name in enumerate(names)
    ]
    clusters = pl.Series("cluster", [None] * 20, pl.String)
    return pl.LazyFrame(rows), pl.DataFrame({"oid": names}).with_columns(clusters).lazy()


def test_single_attempts_do_not_tell_what_more_would_bring() -> None:
    once = paired_data(*counts(1), ("a", "T0"), ("b", "T0"), Goal(0.1))
    assert once.population.attempt_variance is None and once.correlation is None
    often = paired_data(*counts(4), ("a", "T0"), ("b", "T0"), Goal(0.1))
    assert often.population.attempt_variance is not None and often.attempts == 4


def test_one_model_needs_a_correlation_and_the_rest_is_estimated() -> None:
    alone, alike = (single_data(*counts(4), ("a", "T0"), correlation) for correlation in (0.0, 1.0))
    assert alike.population.between == 0 and alone.population.between > 0
    assert alone.population.rate == alike.population.rate == pytest.approx(0.5)


WRONG = [
    (("--detect", "0"), "a difference of 0 cannot be planned for"),
    (("--detect", "0.8"), "a difference of 0.8 is not possible"),
    (("--power", "1"), "a power of 1 is not possible"),
    (("--rate", "1"), "a pass rate of 1 leaves nothing to vary"),
    (("--rate", "0"), "a pass rate of 0 leaves nothing to vary"),
    (("--attempts-per-problem", "0"), "must be at least 1"),
    (("--model", "m"), "name what is in --data"),
    (("--cluster-share", "0.1"), "goes with --clusters"),
    (("--cluster-cv", "1"), "--cluster-cv goes with --clusters"),
    (("--clusters", "5", "--cluster-cv", "2"), "cannot vary by 2 (cv); below 2"),
    (("--cost-per-attempt", "-1"), "cannot be negative"),
    (("--save-to", "plan.pdf"), "a plan ends in .json, a chart of it in .svg, .png, .html"),
    (("--data", "nowhere"), "leave out --rate"),
]


@pytest.mark.parametrize(
    ("options", "words"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_what_cannot_be_planned_is_one_line_and_exit_2(
    touchstone: Command, options: tuple[str, ...], words: str
) -> None:
    done = touchstone(*ASSUMED, *options)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""


def test_the_models_in_the_data_must_be_named(touchstone: Command, three_models: Path) -> None:
    start = ("plan", "--detect", 0.05, "--data", three_models)
    assert "add --tier, one of T0, T1" in touchstone(*start).stderr
    assert "name the two models: --model A --against B" in touchstone(*start, "--tier", "T0").stderr
    assert "there is no model 'x'" in touchstone(*start, "--tier", "T0", "--model", "x").stderr
    assert "say what to plan from" in touchstone("plan", "--detect", 0.05).stderr
    assert "no results here" in touchstone("plan", "--detect", 0.05, "--data", three_models / "none").stderr
    single = touchstone(*start, "--tier", "T0", "--model", "atlas-large")
    assert single.returncode == 0 and "assumed: correlation 0.5" in single.stdout


@pytest.mark.services
def test_the_trade_off_as_a_chart(touchstone: Command, tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    done = touchstone(*ASSUMED, "--cost-per-attempt", 0.02, "--save-to", file, "--quiet")
    assert done.returncode == 0 and done.stdout == ""
    text = file.read_text()
    assert text.startswith("<svg") and "3,504" in text and "cheapest" in text
