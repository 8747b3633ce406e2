"""The gate in simulation, night after night against one baseline: silent if nothing changed, loud if problems broke."""

import math

import numpy as np
import polars as pl
import pytest

from touchstone.comparison.compare import changed_cases, compare_models, verdict_row
from touchstone.comparison.gate import counts_by_model, judge_changes
from touchstone.comparison.inputs import ComparisonInput
from touchstone.comparison.pairs import ComparisonSettings, sentence
from touchstone.comparison.regressions import SCORE_COLUMNS
from touchstone.config import ComparisonConfig
from touchstone.tables import TABLES

RUNS = 200
SCHEMA = TABLES["attempt_scores"].dtypes


def night(rates: np.ndarray, attempts: int, generator: np.random.Generator) -> ComparisonInput:
    """New attempts of one model at problems with these true pass rates."""
    passed = generator.random((len(rates), attempts)) < rates[:, None]
    scores = pl.select(
        model=pl.lit("m"),
        tier=pl.lit("T0"),
        oid=pl.Series(np.repeat(np.arange(len(rates)), attempts)).cast(pl.String),
        iteration_id=pl.Series(np.tile(np.arange(attempts), len(rates))).cast(pl.String),
        **{name: pl.lit(None, SCHEMA[name]) for name in SCORE_COLUMNS if name != "pass_rate"},
        pass_rate=pl.Series(passed.ravel().astype(float)),
    )
    return ComparisonInput("night", scores.lazy())


def judged(before: ComparisonInput, after: ComparisonInput) -> tuple[str, bool, bool]:
    """The verdict, and whether the gate passes or fails with the settings that nobody touched."""
    ((key, result),) = compare_models(before, after, ComparisonSettings(same_model=True)).items()
    verdicts = pl.DataFrame([verdict_row(*key, result) | {"sentence": sentence(result, "baseline", "current")}])
    cases = changed_cases(before, after)
    found = judge_changes(verdicts, cases, counts_by_model(cases), ComparisonConfig())
    return result.verdict, found.passed, found.error


def difficulties(kind: str, problems: int, generator: np.random.Generator) -> np.ndarray:
    return {
        "mixed": generator.beta(0.8, 0.6, problems),
        "polar": generator.beta(0.2, 0.2, problems),
        "middling": generator.uniform(0.3, 0.7, problems),
    }[kind]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["mixed", "polar", "middling"])
@pytest.mark.parametrize(("problems", "attempts"), [(300, 5), (60, 5), (100, 20), (300, 1)])
def test_unchanged_nights_are_silent(kind: str, problems: int, attempts: int) -> None:
    generator = np.random.default_rng([problems, attempts, len(kind)])
    loud, worse = 0, 0
    for _ in range(RUNS):
        rates = difficulties(kind, problems, generator)
        before, after = (night(rates, attempts, generator) for _ in range(2))
        verdict, passed, _ = judged(before, after)
        loud, worse = loud + (not passed), worse + (verdict == "worse")
    print(f"{kind} {problems} x {attempts}: loud {loud / RUNS:.3f}, worse {worse / RUNS:.3f}")
    assert loud / RUNS <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / RUNS)
    assert worse / RUNS <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / RUNS)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["mixed", "polar", "middling"])
@pytest.mark.parametrize("attempts", [5, 20])
def test_ten_broken_problems_of_three_hundred_fail_the_gate(kind: str, attempts: int) -> None:
    """Always passing before and never now: 3.3 points, which the mean alone finds in two of five to five of six."""
    generator = np.random.default_rng([len(kind), attempts])
    failed = 0
    for _ in range(RUNS):
        rates = difficulties(kind, 300, generator)
        rates[:10] = 1.0
        now = np.where(np.arange(300) < 10, 0.0, rates)
        verdict, _, error = judged(night(rates, attempts, generator), night(now, attempts, generator))
        failed += error and verdict == "worse"
    print(f"{kind} x {attempts}: failed {failed / RUNS:.3f}")
    assert failed / RUNS >= 0.97
