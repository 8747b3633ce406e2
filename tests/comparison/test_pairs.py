"""Comparisons: known values, brute force, and what must not matter."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from touchstone.comparison.pairs import ComparisonSettings, PairResult, compare_counts, compare_pairs, sentence
from touchstone.inference import paired_tests
from touchstone.inference.paired_tests import exact_permutation_p, monte_carlo_p
from touchstone.vocabulary import CI_METHODS, TESTS, VERDICTS

SETTINGS = ComparisonSettings(permutations=2000)
Counts = list[tuple[int, int, int, int]]

SCHEMA = dict.fromkeys(("n_a", "c_a", "n_b", "c_b"), pl.Int64)


def frame(counts: Counts, clusters: list[str | None] | None = None) -> pl.DataFrame:
    table = pl.DataFrame(counts, schema=SCHEMA, orient="row").with_row_index("oid").cast({"oid": pl.String})
    return table.with_columns(cluster=pl.Series(clusters or [None] * len(counts), dtype=pl.String))


def flips(wins: int, losses: int, both: int = 0, neither: int = 0) -> pl.DataFrame:
    return frame([(1, 0, 1, 1)] * wins + [(1, 1, 1, 0)] * losses + [(1, 1, 1, 1)] * both + [(1, 0, 1, 0)] * neither)


def swapped(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.select("oid", "cluster", n_a="n_b", c_a="c_b", n_b="n_a", c_b="c_a")


def compare_pair(counts: pl.DataFrame, settings: ComparisonSettings) -> PairResult:
    return compare_pairs([counts], settings)[0]


# Tests


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [(9, 1, 0.021484375), (1, 9, 0.021484375), (6, 0, 0.03125), (5, 0, 0.0625), (3, 3, 1.0), (0, 0, 1.0), (1, 0, 1.0)],
)
def test_mcnemar_known_values(wins: int, losses: int, p: float) -> None:
    result = compare_pair(flips(wins, losses, both=7, neither=4), SETTINGS)
    assert result.test == "mcnemar"
    assert result.p_value == p
    assert (result.wins, result.losses, result.ties) == (wins, losses, 11)


def brute_force(differences: list[float]) -> float:
    observed = abs(math.fsum(differences)) - 1e-9
    signs = list(product((1, -1), repeat=len(differences)))
    sums = (math.fsum(s * d for s, d in zip(way, differences, strict=True)) for way in signs)
    return sum(abs(total) >= observed for total in sums) / len(signs)


COUNTS = st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
ROWS = st.tuples(COUNTS, COUNTS).map(lambda sides: (*sides[0], *sides[1]))


EQUAL_ROWS = st.integers(1, 5).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.just(n), st.integers(0, n))
)


@given(st.lists(st.tuples(EQUAL_ROWS, st.sampled_from(["x", "y", "z", None])), min_size=1, max_size=9))
def test_permutation_is_brute_force_on_sums_over_clusters(
    rows: list[tuple[tuple[int, int, int, int], str | None]],
) -> None:
    result = compare_pair(frame([counts for counts, _ in rows], [cluster for _, cluster in rows]), SETTINGS)
    assert result.test in ("mcnemar", "permutation-exact")
    sums: dict[object, list[float]] = {}
    for place, ((n, b, m, d), cluster) in enumerate(rows):
        sums.setdefault(place if cluster is None else cluster, []).append(d / m - b / n)
    assert result.units == len(sums)
    assert result.p_value == pytest.approx(brute_force([math.fsum(part) for part in sums.values()]), rel=1e-12)


def test_twenty_attempts_at_164_problems_need_no_seed() -> None:
    generator = np.random.default_rng(3)
    c_a, c_b = generator.binomial(20, 0.5, 164), generator.binomial(20, 0.52, 164)
    counts = frame([(20, int(a), 20, int(b)) for a, b in zip(c_a, c_b, strict=True)])
    results = [compare_pair(counts, replace(SETTINGS, permutations=draws, seed=draws)) for draws in (100, 200)]
    assert results[0].test == "permutation-saddlepoint"
    assert results[0] == results[1]
    sizes, many = np.unique(np.abs(c_b - c_a), return_counts=True)
    observed = abs(int((c_b - c_a).sum()))
    near = monte_carlo_p(sizes, many, observed, 50_000, 1)
    assert 0.001 < near < 0.2
    assert results[0].p_value == pytest.approx(near, abs=4 * math.sqrt(near / 50_000))
    exact = exact_permutation_p(sizes[sizes > 0], many[sizes > 0], observed)
    assert results[0].p_value == pytest.approx(exact, rel=0.001)


def test_one_attempt_each_in_a_cluster_is_not_mcnemar() -> None:
    counts = flips(8, 0).with_columns(cluster=pl.Series(["x"] * 4 + ["y"] * 4))
    result = compare_pair(counts, SETTINGS)
    assert (result.test, result.p_value, result.units) == ("permutation-exact", 0.5, 2)
    assert result.verdict == "inconclusive"


def test_draws_in_proportion_to_the_pairs_so_that_holm_can_be_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_tests, "MAX_LATTICE_SUM", 0)
    monkeypatch.setattr(paired_tests, "_WORK", 0)
    counts = pl.concat(
        [
            pl.DataFrame({"model": f"m{place:02}", "oid": [str(i) for i in range(90)]}).with_columns(
                n=9, c=(pl.int_range(pl.len()) * 7 % 5 + (4 if place == 0 else 0)).cast(pl.Int64)
            )
            for place in range(8)
        ]
    ).with_columns(tier=pl.lit("T0"))
    problems = counts.select("oid", cluster=pl.lit(None, pl.String)).unique()
    table = compare_counts(counts.lazy(), problems.lazy(), replace(SETTINGS, permutations=10))
    apart = table.filter(model_a="m00")
    assert (set(apart["test"]), set(apart["verdict"])) == ({"permutation"}, {"worse"})


# Pairing


def test_pairing_sees_what_two_separate_rates_hide() -> None:
    result = compare_pair(flips(0, 11, both=84, neither=95), SETTINGS)
    passed_a, passed_b = 95, 84
    unpaired = scipy.stats.chi2_contingency([[passed_a, 190 - passed_a], [passed_b, 190 - passed_b]], correction=False)
    assert unpaired.pvalue == pytest.approx(0.26, abs=0.005)
    assert result.p_value == pytest.approx(0.001, abs=0.0001)
    assert result.verdict == "worse"


def test_problems_on_one_side_are_left_out_and_counted() -> None:
    shared = flips(9, 1, both=3)
    lone = pl.DataFrame(
        {
            "oid": ["p", "q", "r", "s", "t"],
            "n_a": [2, 1, None, 0, 0],
            "c_a": [2, 0, None, 0, 0],
            "n_b": [None, 0, 4, 3, 0],
            "c_b": [None, 0, 1, 3, 0],
            "cluster": [None, "x", "x", None, None],
        },
        schema_overrides=SCHEMA,
    )
    result = compare_pair(pl.concat([shared, lone.select(shared.columns)]), SETTINGS)
    assert (result.problems, result.problems_only_a, result.problems_only_b) == (13, 2, 2)
    assert replace(result, problems_only_a=0, problems_only_b=0) == compare_pair(shared, SETTINGS)


def test_nothing_decided_gives_nulls() -> None:
    for counts in (frame([]), frame([(0, 0, 0, 0), (3, 1, 0, 0)])):
        result = compare_pair(counts, SETTINGS)
        nulls = ("difference", "ci_low", "ci_high", "method", "test", "p_value", "effect_size", "rate_a", "rate_b")
        assert all(getattr(result, name) is None for name in (*nulls, "minimum_detectable_effect"))
        assert (result.problems, result.units, result.verdict) == (0, 0, "inconclusive")
        assert sentence(result, "atlas", "cedar").endswith("cannot be compared: no problem was decided for both")


@pytest.mark.parametrize(("problems", "words"), [(20, "inconclusive"), (400, "no relevant difference")])
@pytest.mark.parametrize("attempts", [1, 5])
def test_all_equal(problems: int, words: str, attempts: int) -> None:
    result = compare_pair(frame([(attempts, attempts, attempts, attempts)] * problems), SETTINGS)
    assert (result.difference, result.p_value, result.verdict) == (0.0, 1.0, words)
    assert result.method == "t-widened"
    assert result.ci_low is not None and result.ci_high is not None
    assert -result.ci_low == result.ci_high > 0
    assert result.effect_size is None
    assert result.detectable_method == ("t" if attempts == 1 else "wilson")


def test_all_differ_alike() -> None:
    result = compare_pair(flips(8, 0), SETTINGS)
    assert (result.difference, result.ci_high, result.method) == (1.0, 1.0, "t-widened")
    assert result.ci_low == pytest.approx(1 - 2 * 0.3244, abs=1e-3)
    assert result.verdict == "better"


def test_one_problem_says_nothing() -> None:
    result = compare_pair(frame([(5, 1, 5, 3)]), SETTINGS)
    assert (result.difference, result.p_value, result.units) == (0.4, 1.0, 1)
    assert (result.minimum_detectable_effect, result.verdict) == (None, "inconclusive")
    assert sentence(result, "atlas", "cedar").endswith("; 1 problem cannot reach p ≤ 0.05; at least 6 are needed")


@pytest.mark.parametrize("problems", [50, 600])
def test_interval_and_effect_size_are_those_of_a_paired_t_and_mirror(problems: int) -> None:
    generator = np.random.default_rng(6)
    c_a, c_b = generator.binomial(5, 0.5, problems), generator.binomial(5, 0.6, problems)
    counts = frame([(5, int(a), 5, int(b)) for a, b in zip(c_a, c_b, strict=True)])
    there, back = compare_pair(counts, SETTINGS), compare_pair(swapped(counts), SETTINGS)
    assert there.method == "t"
    assert back.ci_low is not None and back.ci_high is not None
    assert (there.ci_low, there.ci_high) == (-back.ci_high, -back.ci_low)
    d = (c_b - c_a) / 5
    ends = scipy.stats.ttest_1samp(d, 0).confidence_interval(0.95)
    assert (there.ci_low, there.ci_high) == pytest.approx((ends.low, ends.high), rel=1e-9)
    assert there.effect_size == pytest.approx(d.mean() / d.std(ddof=1), rel=1e-12)


def test_detectable_effect_grows_with_power_and_falls_with_alpha() -> None:
    counts = frame([(5, i % 5, 5, (3 * i + 1) % 6) for i in range(60)])
    effects = [
        compare_pair(counts, replace(SETTINGS, power=power)).minimum_detectable_effect or 0 for power in (0.3, 0.5, 0.8)
    ]
    assert effects == sorted(set(effects))
    strict = compare_pair(counts, replace(SETTINGS, alpha=0.01)).minimum_detectable_effect
    assert strict is not None and strict > effects[-1]


# The test decides


def test_a_widened_interval_does_not_veto_the_test() -> None:
    """All of 30 problems rise from 10 to 12 of 20: without any scatter the interval is widened, the test is certain."""
    result = compare_pair(frame([(20, 10, 20, 12)] * 30), SETTINGS)
    assert result.p_value == 2 / 2**30
    assert (result.verdict, result.method) == ("better", "t-widened")
    assert result.ci_low == result.adjusted_ci_low == 0.0
    assert sentence(result, "atlas", "cedar").startswith("cedar is better than atlas by 10.0 points (95% CI 0.0 to ")


def test_eight_clusters_that_all_lose_a_little_are_worse() -> None:
    clusters = [f"k{place // 20}" for place in range(160)]
    rows = [(5, 3, 5, 2 if place % 20 < 1 + place // 20 % 3 else 3) for place in range(160)]
    result = compare_pair(frame(rows, list(clusters)), SETTINGS)
    assert (result.p_value, result.verdict) == (2 / 256, "worse")
    assert "inconclusive" not in sentence(result, "atlas", "cedar")
    assert result.ci_high is not None and result.ci_high <= 0


# What must not matter


@given(st.lists(ROWS, max_size=40))
def test_clusters_of_one_are_no_clusters(counts: Counts) -> None:
    alone = compare_pair(frame(counts, [f"c{place}" for place in range(len(counts))]), SETTINGS)
    assert alone == compare_pair(frame(counts), SETTINGS)


CLUSTERED = st.lists(st.tuples(ROWS, st.sampled_from([None, "x", "y", "z", "w"])), max_size=40)


@given(CLUSTERED)
def test_swapping_sides_mirrors_everything(rows: list[tuple[tuple[int, int, int, int], str | None]]) -> None:
    counts = frame([row for row, _ in rows], [cluster for _, cluster in rows])
    there, back = compare_pair(counts, SETTINGS), compare_pair(swapped(counts), SETTINGS)

    def turned(value: float | None) -> float | None:
        return None if value is None else -value

    mirrored = replace(
        back,
        problems_only_a=back.problems_only_b,
        problems_only_b=back.problems_only_a,
        rate_a=back.rate_b,
        rate_b=back.rate_a,
        difference=turned(back.difference),
        ci_low=turned(back.ci_high),
        ci_high=turned(back.ci_low),
        adjusted_ci_low=turned(back.adjusted_ci_high),
        adjusted_ci_high=turned(back.adjusted_ci_low),
        wins=back.losses,
        losses=back.wins,
        fell=back.rose,
        rose=back.fell,
        effect_size=turned(back.effect_size),
        verdict={"better": "worse", "worse": "better"}.get(back.verdict, back.verdict),
    )
    assert there == mirrored


@given(CLUSTERED, st.randoms(use_true_random=False))
def test_order_of_rows_never_shows(rows: list[tuple[tuple[int, int, int, int], str | None]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    results = [
        compare_pair(frame([row for row, _ in some], [cluster for _, cluster in some]), SETTINGS)
        for some in (rows, shuffled)
    ]
    assert results[0] == results[1]


@given(CLUSTERED)
def test_every_result_is_sane(rows: list[tuple[tuple[int, int, int, int], str | None]]) -> None:
    result = compare_pair(frame([row for row, _ in rows], [cluster for _, cluster in rows]), SETTINGS)
    assert result.verdict in VERDICTS
    assert result.problems == len(rows) == result.wins + result.losses + result.ties
    assert sentence(result, "atlas", "cedar").count("\n") == 0
    if result.difference is None or result.p_value is None or result.ci_low is None or result.ci_high is None:
        assert not rows
        return
    assert result.rate_a is not None and result.rate_b is not None
    assert result.difference == pytest.approx(result.rate_b - result.rate_a, abs=1e-12)
    assert -1 <= result.ci_low <= result.difference <= result.ci_high <= 1
    assert 0 < result.p_value <= 1
    assert result.test in TESTS
    assert result.method in CI_METHODS
    assert result.minimum_detectable_effect is None or 0 < result.minimum_detectable_effect <= 1
    assert result.adjusted_ci_low is not None and result.adjusted_ci_high is not None
    assert -1 <= result.adjusted_ci_low <= result.difference <= result.adjusted_ci_high <= 1
    # A pair on its own: the test, both intervals and the verdict say the same of 0.
    rejected = result.p_value <= 0.05
    assert (result.verdict in ("better", "worse")) == rejected
    for low, high in ((result.ci_low, result.ci_high), (result.adjusted_ci_low, result.adjusted_ci_high)):
        assert (low >= 0 or high <= 0) if rejected else low <= 0 <= high
    assert (result.units_needed is None) == (result.units >= 6)
