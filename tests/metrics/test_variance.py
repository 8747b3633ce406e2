"""Parts of the variance of pass@1: by hand, against a plain reference, without bias in simulation, and at the edges."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.conftest import nightly_but
from tests.metrics.frames import problem_scores
from touchstone.config import IntervalSettings
from touchstone.metrics import variance as metric
from touchstone.tables import TABLES, conform, violations

SETTINGS = IntervalSettings(replicates=300)
RUNS = 500
# How many standard errors of the simulation a mean may lie off.
ERRORS = 4

Pair = tuple[int, int]
Row = dict[str, object]


def tables(
    pairs: Sequence[Pair], clusters: Sequence[str | None] | None = None, model: str = "m"
) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """problem_pass_at_k of one model with (n, c) per problem, without its figures, and the problems."""
    oids = [f"p{i:03}" for i in range(len(pairs))]
    rows = [(model, "T0", oid, 1, n, c) for oid, (n, c) in zip(oids, pairs, strict=True)]
    schema = {"model": pl.String, "tier": pl.String, "oid": pl.String} | dict.fromkeys(("k", "n", "c"), pl.Int64)
    problems = {"oid": oids, "cluster": clusters or [None] * len(pairs)}
    return (
        pl.LazyFrame(rows, schema=schema, orient="row"),
        pl.LazyFrame(problems, schema={"oid": pl.String, "cluster": pl.String}),
    )


def split(pairs: Sequence[Pair], clusters: Sequence[str | None] | None = None) -> Row:
    return metric.variance_split(*tables(pairs, clusters)).collect().row(0, named=True)


# Rates 1, 1/2, 1/4 and 0.
FOUR = [(4, 4), (4, 2), (4, 1), (4, 0)]


def test_four_problems_by_hand() -> None:
    row = split(FOUR)
    assert (row["problems"], row["repeated"], row["units"], row["attempts"], row["samples"]) == (4, 4, 4, 16, 4.0)
    assert row["pass_at_1"] == 7 / 16
    # Squared residuals 81/256, 1/256, 9/256 and 49/256 add up to 35/64; by 3 and by 4.
    assert row["variance_of_mean"] == pytest.approx(35 / 768)
    # s is 0, 1/3, 1/4 and 0; each by 4 attempts, and the sum by 4 squared.
    assert row["from_samples"] == pytest.approx(7 / 768)
    assert row["from_problems"] == pytest.approx(28 / 768)
    assert row["share_from_problems"] == pytest.approx(0.8)
    assert row["sampling_variance"] == pytest.approx(7 / 48)
    assert row["problem_variance"] == pytest.approx(35 / 192 - 7 / 192)
    assert row["standard_error"] == pytest.approx(math.sqrt(35 / 768))


def test_problems_that_share_a_cluster_are_one_unit() -> None:
    row = split(FOUR, ["x", "x", None, None])
    # Residuals 9/16 and 1/16 are one of 10/16, which keeps 1/2 of its variance; 3/16 and 7/16 keep 3/4.
    whole = (100 * 2 + (9 + 49) * 4 / 3) / 256 / 16
    assert (row["units"], row["variance_of_mean"]) == (3, pytest.approx(whole))
    # b is 4/2, 1/3 and 1/3: 16 / (4 + 1 + 1 + (8/3)^2 - 4 - 2/9).
    assert row["degrees_of_freedom"] == pytest.approx(16 / (6 + 64 / 9 - 38 / 9))
    assert row["from_samples"] == pytest.approx(7 / 768)
    assert row["problem_variance"] == pytest.approx(35 / 256 + whole - 7 / 192)


def test_a_single_attempt_borrows_the_mean_of_the_repeated_problems() -> None:
    row = split([(1, 1), (2, 1), (4, 0)])
    assert (row["repeated"], row["sampling_variance"], row["samples"]) == (2, 0.25, pytest.approx(12 / 7))
    assert row["from_samples"] == pytest.approx((0.25 / 1 + 0.5 / 2 + 0 / 4) / 9)


def test_less_scatter_than_luck_explains_is_a_negative_part_from_problems() -> None:
    row = split([(2, 1), (2, 1), (2, 1)])
    assert (row["variance_of_mean"], row["share_from_problems"]) == (0.0, None)
    assert row["from_problems"] == -row["from_samples"] == pytest.approx(-1 / 12)  # type: ignore[operator]
    assert split([(4, 2), (4, 2), (4, 3)])["share_from_problems"] == 0.0


def test_equal_rates_have_no_variance_whatever_rounding_says() -> None:
    assert split([(3, 1), (6, 2), (9, 3), (12, 4), (30, 10), (21, 7)])["variance_of_mean"] == 0.0


UNKNOWN = ["from_problems", "share_from_problems", "problem_variance"]


def test_one_attempt_each_tells_the_error_but_not_its_parts() -> None:
    row = split([(1, 1), (1, 0), (1, 0)])
    assert (row["repeated"], row["variance_of_mean"]) == (0, pytest.approx(1 / 9))
    assert [row[name] for name in [*UNKNOWN, "from_samples", "sampling_variance"]] == [None] * 5


@pytest.mark.parametrize("clusters", [None, ["x", "x"]])
def test_one_unit_has_no_error_to_tell(clusters: list[str | None] | None) -> None:
    row = split([(2, 1)] * (2 if clusters else 1), clusters)
    assert (row["units"], row["pass_at_1"], row["sampling_variance"]) == (1, 0.5, 0.5)
    assert [row[name] for name in ("variance_of_mean", "standard_error", *UNKNOWN)] == [None] * 5


@pytest.mark.parametrize("passes", [0, 3])
def test_all_pass_or_none(passes: int) -> None:
    row = split([(3, passes)] * 5)
    assert [row[name] for name in ("variance_of_mean", "from_samples", "problem_variance")] == [0.0, 0.0, 0.0]
    assert row["share_from_problems"] is None


def test_undecided_problems_do_not_count() -> None:
    assert split([*FOUR, (0, 0)]) == split(FOUR)
    row = split([(0, 0), (0, 0)])
    assert [row[name] for name in ("problems", "repeated", "units", "attempts")] == [0, 0, 0, 0]
    assert all(value is None for value in list(row.values())[6:])


def test_nothing_at_all_is_an_empty_table() -> None:
    nothing = metric.variance_split(*tables([]))
    assert nothing.collect().height == 0
    spent = pl.LazyFrame(schema=TABLES["problem_scores"].dtypes)
    assert metric.next_samples(nothing, spent, SETTINGS).collect().height == 0


def test_models_and_tiers_stand_apart() -> None:
    counts, problems = tables(FOUR)
    other, _ = tables([(2, 1)] * 4, model="a")
    second = counts.with_columns(tier=pl.lit("T1"))
    table = metric.variance_split(pl.concat([second, counts, other]), problems).collect()
    assert table.select("model", "tier").rows() == [("a", "T0"), ("m", "T0"), ("m", "T1")]
    assert table["variance_of_mean"].to_list() == [0.0, *[pytest.approx(35 / 768)] * 2]


pairs = st.integers(0, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
suites = st.lists(st.tuples(pairs, st.sampled_from([None, None, "x", "y", "z"])), min_size=1, max_size=12)
Suite = list[tuple[Pair, str | None]]


def reference(suite: Suite) -> dict[str, Fraction | None]:
    """Problem by problem, in fractions."""
    units: dict[object, Fraction] = {}
    held: dict[object, int] = {}
    decided = [(place, n, c, cluster) for place, ((n, c), cluster) in enumerate(suite) if n]
    mean = sum((Fraction(c, n) for _, n, c, _ in decided), Fraction()) / len(decided)
    for place, n, c, cluster in decided:
        units[cluster or place] = units.get(cluster or place, Fraction()) + Fraction(c, n) - mean
        held[cluster or place] = held.get(cluster or place, 0) + 1
    attempts = {place: Fraction(c * (n - c), n * (n - 1)) for place, n, c, _ in decided if n > 1}
    size, known = len(decided), len(units)
    parts = [r * r / (1 - Fraction(held[unit], size)) for unit, r in units.items()] if known > 1 else []
    whole = sum(parts, Fraction()) / size**2 if parts else None
    typical = sum(attempts.values(), Fraction()) / len(attempts) if attempts else None
    noise = None if typical is None else [attempts.get(place, typical) / n for place, n, _, _ in decided]
    samples = None if noise is None else sum(noise, Fraction()) / size**2
    squares = sum(((Fraction(c, n) - mean) ** 2 for _, n, c, _ in decided), Fraction())
    spread = None if whole is None else squares / size + whole
    return {
        "pass_at_1": mean,
        "variance_of_mean": whole,
        "from_samples": samples,
        "from_problems": None if whole is None or samples is None else whole - samples,
        "sampling_variance": typical,
        "problem_variance": None if samples is None or spread is None else spread - samples * size,
        "samples": size / sum((Fraction(1, n) for _, n, _, _ in decided), Fraction()),
    }


@given(suites.filter(lambda suite: any(n for (n, _), _ in suite)))
def test_the_histogram_gives_what_a_plain_reference_gives(suite: Suite) -> None:
    row = split(*zip(*suite, strict=True))
    for name, expected in reference(suite).items():
        assert row[name] == (None if expected is None else pytest.approx(float(expected), rel=1e-9, abs=1e-15)), name


@given(suites)
def test_parts_add_up_and_tables_keep_their_contracts(suite: Suite) -> None:
    outcomes, clusters = zip(*suite, strict=True)
    counts, problems = tables(outcomes, clusters)
    table = metric.variance_split(counts, problems)
    row = table.collect().row(0, named=True)
    if row["from_problems"] is not None:
        assert row["from_problems"] + row["from_samples"] == pytest.approx(row["variance_of_mean"], abs=1e-15)
    spent = problem_scores(pl.LazyFrame({"model": ["m"], "tier": ["T0"], "cost_usd": [0.1]}))
    for name, frame in {"variance_split": table, "next_samples": metric.next_samples(table, spent, SETTINGS)}.items():
        assert violations(conform(frame, TABLES[name]), TABLES[name]) == {}


@given(suites, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_show(suite: Suite, chance: object) -> None:
    outcomes, clusters = zip(*suite, strict=True)
    counts, problems = (frame.collect() for frame in tables(outcomes, clusters))
    seed = chance.randrange(2**32)  # type: ignore[attr-defined]
    shuffled = [frame.sample(fraction=1, shuffle=True, seed=seed).lazy() for frame in (counts, problems)]
    straight = metric.variance_split(counts.lazy(), problems.lazy()).collect()
    assert metric.variance_split(*shuffled).collect().equals(straight)


# Simulation: every data set is a model.


def simulated(
    chances: NDArray[np.float64], n: NDArray[np.int64], seed: int, per_cluster: int = 1
) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    runs, size = chances.shape
    passes = np.random.default_rng(seed).binomial(n, chances)
    oids = [str(oid) for oid in range(size)]
    counts = {
        "model": np.repeat([str(run) for run in range(runs)], size),
        "tier": ["T0"] * passes.size,
        "oid": oids * runs,
        "k": [1] * passes.size,
        "n": np.tile(n, runs),
        "c": passes.ravel(),
    }
    return pl.LazyFrame(counts), pl.LazyFrame({"oid": oids, "cluster": [str(i // per_cluster) for i in range(size)]})


def assert_without_bias(figures: pl.Series, truth: float) -> None:
    error = float(figures.std()) / math.sqrt(len(figures))  # type: ignore[arg-type]
    assert abs(float(figures.mean()) - truth) < ERRORS * error, (figures.mean(), truth, error)  # type: ignore[arg-type]


SIZE = 40


@pytest.mark.parametrize(
    ("attempts", "a", "b"),
    nightly_but(
        [(2, 2.0, 5.0), ("1 to 5", 0.5, 0.5)],
        [(2, 0.5, 0.5), (2, 2.0, 5.0), (3, 8.0, 1.0), (5, 0.5, 0.5), ("1 to 5", 0.5, 0.5), ("1 to 5", 2.0, 5.0)],
    ),
)
def test_estimates_are_without_bias(attempts: int | str, a: float, b: float) -> None:
    generator = np.random.default_rng(11)
    chances = generator.beta(a, b, (RUNS, SIZE))
    n = generator.integers(1, 6, SIZE) if isinstance(attempts, str) else np.full(SIZE, attempts)
    between = a * b / (a + b) ** 2 / (a + b + 1)
    within = a * b / (a + b) / (a + b + 1)
    table = metric.variance_split(*simulated(chances, n, seed=12)).collect()
    assert table.height == RUNS
    luck = within * float((1 / n).mean()) / SIZE
    assert_without_bias(table["problem_variance"], between)
    assert_without_bias(table["sampling_variance"], within)
    assert_without_bias(table["from_samples"], luck)
    assert_without_bias(table["from_problems"], between / SIZE)
    assert_without_bias(table["variance_of_mean"], between / SIZE + luck)


def test_estimates_are_without_bias_where_problems_share_clusters() -> None:
    a, b, per_cluster = 2.0, 2.0, 4
    # The problems of a cluster are all as hard, so there are only a quarter as many to learn from.
    chances = np.random.default_rng(13).beta(a, b, (RUNS, SIZE // per_cluster)).repeat(per_cluster, axis=1)
    table = metric.variance_split(*simulated(chances, np.full(SIZE, 3), 14, per_cluster)).collect()
    assert table["units"].unique().to_list() == [SIZE // per_cluster]
    assert_without_bias(table["problem_variance"], 0.05)
    assert_without_bias(table["from_problems"], 0.05 / (SIZE // per_cluster))
    assert_without_bias(table["from_samples"], 0.2 / 3 / SIZE)
    assert_without_bias((table["pass_at_1"] - 0.5) ** 2 - table["variance_of_mean"], 0.0)
