"""Scores of one attempt: the seeds' worked examples, the edges, and properties."""

import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from touchstone.config import load_config
from touchstone.config.scoring import CodeWeights, CompositeWeights, Price, Scoring
from touchstone.errors import TouchstoneError
from touchstone.metrics import attempts as metric
from touchstone.metrics.attempts import cost_at, price_name
from touchstone.tables import TABLES

SCORING = Scoring()
EQUAL = CompositeWeights()
CODE = CodeWeights()

share = st.floats(0, 1)


def value(expression: pl.Expr, **columns: object) -> object:
    row = pl.LazyFrame({name: [cell] for name, cell in columns.items()} or {"_": [None]})
    return row.select(expression.alias("value")).collect()["value"].item()


def lit(number: float | None) -> pl.Expr:
    return pl.lit(number, pl.Float64)


def code(compiled: bool | None, passed: int | None, failed: int | None, warnings: int | None) -> object:
    integer = [pl.lit(number, pl.Int64) for number in (passed, failed, warnings)]
    tests = metric.test_score(integer[0], integer[1])
    lint = metric.lint_score(integer[2], CODE)
    return value(metric.code_score(pl.lit(compiled, pl.Boolean).cast(pl.Float64), tests, lint, lit(None), CODE))


@pytest.mark.parametrize(
    ("compiled", "structure", "expected"),
    [(1.0, 1.0, 0.3 + 0.45 * 0.6 + 0.15 + 0.1 * 0.7), (1.0, 0.5, 0.715), (1.0, None, None), (0.0, None, 0.0)],
)
def test_a_fourth_component_of_the_code_score(compiled: float, structure: float | None, expected: float | None) -> None:
    weights = CodeWeights(compilation=0.3, tests=0.45, lint=0.1, structure=0.15)
    found = value(metric.code_score(lit(compiled), lit(0.6), lit(0.7), lit(structure), weights))
    assert found == (None if expected is None else pytest.approx(expected))


def test_seed_example_single_run_composite_925_is_a_b() -> None:
    composite = metric.composite_score(lit(1.0), lit(0.85), EQUAL)
    assert value(composite) == pytest.approx(0.925)
    assert value(metric.grade(composite, SCORING)) == "B"
    assert value(metric.cost_of_pass(lit(0.5), lit(1.0))) == 0.5


def test_composite_with_other_weights() -> None:
    weights = CompositeWeights(pass_rate=2, impl_rate=1)
    assert value(metric.composite_score(lit(0.8), lit(0.6), weights)) == pytest.approx(0.73333, abs=5e-6)


def test_composite_without_an_impl_rate_is_null() -> None:
    assert value(metric.composite_score(lit(1.0), lit(None), EQUAL)) is None


def test_a_missing_judges_score_may_count_as_0() -> None:
    zero = CompositeWeights(missing="zero")
    assert value(metric.composite_score(lit(1.0), lit(None), zero)) == 0.5
    assert value(metric.composite_score(lit(0.0), lit(None), zero)) == 0.0
    assert value(metric.composite_score(lit(None), lit(0.9), zero)) is None, "nobody decided"
    assert value(metric.composite_score(lit(1.0), lit(0.8), zero)) == 0.9


def test_weights_that_are_both_zero_are_refused_in_the_config() -> None:
    with pytest.raises(ValidationError, match="cannot both be 0"):
        CompositeWeights(pass_rate=0, impl_rate=0)


def test_code_weights_must_add_up() -> None:
    with pytest.raises(ValidationError, match=r"must add up to 1, not 1\.1"):
        CodeWeights(compilation=0.5)


@pytest.mark.parametrize(
    ("score", "letter"),
    [
        (1.0, "A"), (0.95, "A"), (0.9499999, "B"), (0.85, "B"), (0.8499999, "C"), (0.75, "C"), (0.7499999, "D"),
        (0.65, "D"), (0.6499999, "F"), (0.0, "F"), (None, None),
    ],
)  # fmt: skip
def test_grades_at_and_just_below_each_threshold(score: float | None, letter: str | None) -> None:
    assert value(metric.grade(lit(score), SCORING)) == letter


@pytest.mark.parametrize(
    ("compiled", "passed", "failed", "warnings", "expected"),
    [
        (True, 3, 0, 0, 1.0),
        (True, 3, 0, 10, 0.9),
        (True, 3, 0, 25, 0.9),
        (False, 3, 0, 0, 0.0),
        (True, 1, 2, 0, 0.6667),
        (True, 0, 3, 0, 0.5),
        (True, 9, 1, 0, 0.95),
        (True, 0, 0, 0, 0.5),
        (True, None, None, None, 0.5),
        (True, 3, 0, None, 1.0),
        (None, 3, 0, 0, None),
    ],
)
def test_code_score(
    compiled: bool | None, passed: int | None, failed: int | None, warnings: int | None, expected: float | None
) -> None:
    assert code(compiled, passed, failed, warnings) == (None if expected is None else pytest.approx(expected, abs=5e-5))


def test_seed_example_perfect_code_scores_1_and_every_lint_warning_takes_off_a_hundredth() -> None:
    assert code(True, 5, 0, 0) == pytest.approx(1.0)
    assert [code(True, 5, 0, warnings) for warnings in (1, 2, 3)] == pytest.approx([0.99, 0.98, 0.97])
    assert code(False, 5, 0, 0) == 0.0


@pytest.mark.parametrize(
    ("cost", "rate", "expected"),
    [
        (0.5, 1.0, 0.5),
        (0.5, 0.0, math.inf),
        (0.0, 1.0, 0.0),
        (0.0, 0.0, math.inf),
        (None, 1.0, None),
        (None, 0.0, None),
        (0.5, None, None),
        (-0.5, 1.0, None),
        (-0.5, 0.0, None),
    ],
)
def test_cost_of_pass(cost: float | None, rate: float | None, expected: float | None) -> None:
    assert value(metric.cost_of_pass(lit(cost), lit(rate))) == expected


@pytest.mark.parametrize(("given_score", "expected"), [(1.028, 1.0), (-0.2, 0.0), (0.4, 0.4), (None, None)])
def test_impl_rate_is_clamped(given_score: float | None, expected: float | None) -> None:
    assert value(metric.impl_rate(lit(given_score))) == expected


@pytest.mark.parametrize(
    ("name", "rate", "expected"),
    [("pass", 0.0, 1.0), ("refusal", 1.0, 0.0), ("timeout", None, 0.0), (None, 1.0, 1.0), (None, None, None)],
)
def test_accuracy(name: str | None, rate: float | None, expected: float | None) -> None:
    assert value(metric.accuracy(pl.lit(name, pl.String), lit(rate))) == expected


@pytest.mark.parametrize(
    ("recorded", "passed", "status", "expected"),
    [
        ("refusal", False, "failed", "refusal"),
        ("hallucination", False, "failed", "hallucination"),
        ("pass", True, "passed", "pass"),
        ("pass", False, "failed", "fail"),
        ("pass", False, "timeout", "timeout"),
        ("refusal", True, "passed", "pass"),
        ("pass", None, "sandbox_error", None),
        (None, True, "passed", None),
    ],
)
def test_the_class_of_an_attempt_agrees_with_its_outcome(
    recorded: str | None, passed: bool | None, status: str, expected: str | None
) -> None:
    outcome = pl.lit(passed, pl.Boolean)
    assert value(metric.agreed_class(pl.lit(recorded, pl.String), outcome, pl.lit(status))) == expected


def test_a_validator_here_overrules_the_class_in_the_file() -> None:
    attempts = pl.LazyFrame({name: [None] for name in TABLES["attempts"].dtypes}, schema=TABLES["attempts"].dtypes)
    outcomes = pl.LazyFrame({name: [None] for name in TABLES["outcomes"].dtypes}, schema=TABLES["outcomes"].dtypes)
    key = {name: pl.lit(name) for name in metric.ATTEMPT_KEY}
    recorded = attempts.with_columns(**key, suite=pl.lit("s"), classification=pl.lit("pass"), passed=pl.lit(True))
    for status, passed, expected in [("failed", False, ("fail", 0.0)), ("sandbox_error", None, (None, None))]:
        validated = outcomes.with_columns(**key, status=pl.lit(status), passed=pl.lit(passed, pl.Boolean))
        row = metric.attempt_scores(recorded, validated, SCORING).collect().row(0, named=True)
        assert (row["classification"], row["accuracy"]) == expected
        assert row["accuracy"] == row["pass_rate"]


def test_outcomes_may_come_in_any_order_and_models_together_or_alone() -> None:
    models, oids, iterations = ("gpt-4o", "unpriced", "mine"), ("b", "a"), ("10", "9", "x")
    keys = [
        {"model": model, "tier": "T0", "oid": oid, "iteration_id": iteration}
        for model in models
        for oid in oids
        for iteration in iterations
    ]
    given = [
        {**key, "suite": "s", "input_tokens": 10 * place, "output_tokens": 3, "classification": "pass"}
        for place, key in enumerate(keys)
    ]
    judged = [{**key, "status": "failed", "passed": place % 3 == 0} for place, key in enumerate(keys)]
    attempts = pl.LazyFrame(given, schema=TABLES["attempts"].dtypes)
    outcomes = pl.LazyFrame(judged, schema=TABLES["outcomes"].dtypes)
    scoring = Scoring(prices={"mine": Price(input=2, output=4)})

    scores = metric.attempt_scores(attempts, outcomes, scoring).collect()
    assert scores.select(metric.ATTEMPT_KEY).rows(named=True) == keys
    joined = scores.join(outcomes.collect(), on=metric.ATTEMPT_KEY)
    assert joined["pass_rate"].to_list() == joined["passed"].cast(pl.Float64).to_list()
    assert dict(scores.select("model", "priced_as").unique().iter_rows()) == {
        "gpt-4o": "gpt-4o", "unpriced": None, "mine": "mine",
    }  # fmt: skip
    for verdicts in (outcomes.sort("iteration_id"), outcomes.sort(metric.ATTEMPT_KEY)):
        assert metric.attempt_scores(attempts, verdicts, scoring).collect().equals(scores)
    alone = [
        metric.attempt_scores(
            *(frame.filter(pl.col("model") == model) for frame in (attempts, outcomes)), scoring
        ).collect()
        for model in models
    ]
    assert pl.concat(alone).equals(scores)


def test_an_attempt_without_an_outcome_is_undecided() -> None:
    keys = [{"model": "m", "tier": "T0", "oid": oid, "iteration_id": "1"} for oid in ("a", "b")]
    attempts = pl.LazyFrame([{**key, "suite": "s"} for key in keys], schema=TABLES["attempts"].dtypes)
    judged = [{**keys[1], "status": "passed", "passed": True}]
    outcomes = pl.LazyFrame(judged, schema=TABLES["outcomes"].dtypes)
    assert metric.attempt_scores(attempts, outcomes, Scoring()).collect()["pass_rate"].to_list() == [None, 1.0]


def tokens(
    model: str, given_in: int | None, out: int | None, read: int | None = None, write: int | None = None
) -> object:
    row = {
        "model": model, "input_tokens": given_in, "output_tokens": out, "cache_read_tokens": read,
        "cache_write_tokens": write,
    }  # fmt: skip
    frame = pl.LazyFrame(
        {name: [cell] for name, cell in row.items()}, schema_overrides=dict.fromkeys(list(row)[1:], pl.Int64)
    )
    scoring = Scoring(prices={"mine": Price(input=2, output=4)})
    return frame.select(cost_at(price_name(pl.col("model"), scoring), scoring.all_prices)).collect().item()


@pytest.mark.parametrize(
    ("model", "expected"), [("Claude Opus 4.5", 90.0), ("claude_sonnet_4", 18.0), ("GPT-4o", 20.0), ("mine", 6.0)]
)
def test_seed_prices_per_million_tokens(model: str, expected: float) -> None:
    assert tokens(model, 1_000_000, 1_000_000) == pytest.approx(expected)


def test_an_unpriced_model_has_no_cost_and_never_zero() -> None:
    assert tokens("who-knows", 1000, 1000) is None
    assert tokens("claude", 1000, 1000) is None
    assert tokens("gpt-4o", None, 1000) is None


def test_cache_tokens() -> None:
    assert tokens("claude-sonnet-4", 0, 0, write=1_000_000) == pytest.approx(3.75)
    assert tokens("claude-sonnet-4", 0, 0, read=1_000_000) == pytest.approx(0.3)
    assert tokens("mine", 1_000_000, 0, read=5) is None, "a cache read without a price is unknown"
    assert tokens("mine", 1_000_000, 0, read=0) == pytest.approx(2.0)


@given(share, share, st.floats(0.01, 10), st.floats(0, 10))
def test_composite_lies_between_its_parts(rate: float, impl: float, first: float, second: float) -> None:
    weights = CompositeWeights(pass_rate=first, impl_rate=second)
    composite = value(metric.composite_score(lit(rate), lit(impl), weights))
    assert min(rate, impl) - 1e-12 <= composite <= max(rate, impl) + 1e-12  # type: ignore[operator]


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_code_score_is_a_share_and_falls_with_warnings(passed: int, failed: int, warnings: int) -> None:
    here, worse = code(True, passed, failed, warnings), code(True, passed, failed, warnings + 1)
    assert 0.4 - 1e-12 <= here <= 1 + 1e-12  # type: ignore[operator]
    assert worse <= here + 1e-12  # type: ignore[operator]


@given(share, share)
def test_a_better_score_never_has_a_worse_grade(one: float, other: float) -> None:
    letters = [value(metric.grade(lit(score), SCORING)) for score in sorted((one, other))]
    assert str(letters[1]) <= str(letters[0])


@given(st.floats(0, 100), st.floats(0.001, 1), st.floats(0.1, 10))
def test_cost_of_pass_grows_with_the_cost_and_never_undercuts_it(cost: float, rate: float, factor: float) -> None:
    here = value(metric.cost_of_pass(lit(cost), lit(rate)))
    assert here >= cost  # type: ignore[operator]
    assert value(metric.cost_of_pass(lit(cost * factor), lit(rate))) == pytest.approx(here * factor)  # type: ignore[operator]


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_token_cost_adds_up(first: int, second: int, out: int) -> None:
    parts = [tokens("gpt-4o", first, out), tokens("gpt-4o", second, 0)]
    assert tokens("gpt-4o", first + second, out) == pytest.approx(sum(parts), abs=1e-9)  # type: ignore[arg-type]


# Prices

PRICES = Scoring(
    prices={
        "gpt-4o-mini": Price(input=0.15, output=0.6),
        "claude-opus-4-1": Price(input=15, output=75),
        "claude-opus-4-1-20250805": Price(input=14, output=70),
        "GPT 4.1": Price(input=2, output=8),
    }
)


def priced_as(model: str, scoring: Scoring = PRICES) -> str | None:
    return pl.select(price_name(pl.lit(model), scoring)).item()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-4.5", "claude-opus-4.5"),
        ("claude-opus-4-5", "claude-opus-4.5"),
        ("Claude Opus 4.5", "claude-opus-4.5"),
        ("claude-opus-4-5-20251101", "claude-opus-4.5"),
        ("claude-opus-4-5_20251101", "claude-opus-4.5"),
        ("claude-opus-4.5-latest", "claude-opus-4.5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4-1-2025-04-14", "GPT 4.1"),
        ("claude-opus-4-1-20250805", "claude-opus-4-1-20250805"),
        ("claude-opus-4-1-20250806", "claude-opus-4-1"),
    ],
)
def test_a_price_is_found_by_the_name_or_by_the_name_before_a_date(model: str, name: str) -> None:
    assert priced_as(model) == name


@pytest.mark.parametrize(
    "model",
    [
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4.5",
        "gpt-4o-mini",
        "gpt-4o-audio-preview",
        "gpt-4o-2024",
        "gpt-4o-20241399",
        "gpt-4",
        "gpt-4oo",
        "my-gpt-4o",
        "gpt-4o-",
    ],
)
def test_a_model_never_gets_the_price_of_another_whose_name_it_starts_with(model: str) -> None:
    assert priced_as(model, Scoring()) is None


def test_a_configured_price_replaces_the_default_one_however_it_is_written() -> None:
    mine = Scoring(prices={"claude-opus-4-5": Price(input=1, output=1)})
    assert priced_as("claude-opus-4.5", mine) == "claude-opus-4-5"


def test_two_prices_for_one_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    prices = '[scoring.prices]\n"my-1.5" = {input = 1, output = 1}\n"My 1-5" = {input = 2, output = 2}\n'
    path.write_text('fixes_dir = "f"\noutput_dir = "o"\n' + prices)
    with pytest.raises(TouchstoneError, match=r"scoring\.prices: 'my-1\.5' and 'My 1-5' are the same model"):
        load_config(path)
