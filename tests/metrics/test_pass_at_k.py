"""pass@k and pass^k: the seeds' worked examples, the edges, and properties that hold for every n, c and k."""

import math
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.config import IntervalSettings
from touchstone.metrics import pass_at_k as metric
from touchstone.metrics.pass_at_k import pass_at_k_of, pass_hat_k_of

SETTINGS = IntervalSettings(replicates=500)


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (10, 5, 1, 0.5),
        (10, 3, 5, 0.9166666667),
        (10, 1, 10, 1.0),
        (20, 1, 1, 0.05),
        (100, 50, 10, 0.9994065803),
        (200, 13, 100, 0.9999194972),
        (5, 0, 5, 0.0),
        (5, 5, 5, 1.0),
    ],
)
def test_worked_examples(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k_of(n, c, k) == pytest.approx(expected, abs=5e-11)


def test_fewer_attempts_than_k_is_undefined_and_never_one() -> None:
    assert pass_at_k_of(2, 0, 5) is None
    assert pass_at_k_of(2, 2, 5) is None
    assert pass_at_k_of(0, 0, 1) is None
    assert pass_hat_k_of(2, 2, 3) is None


def test_pass_hat_k_worked_example() -> None:
    assert pass_hat_k_of(4, 2, 2) == pytest.approx(1 / 6, abs=1e-15)


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_an_error(k: int) -> None:
    with pytest.raises(ValueError, match="k must be at least 1"):
        pass_at_k_of(5, 1, k)


def test_more_passes_than_attempts_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot be 6 passes among 5"):
        pass_at_k_of(5, 6, 1)


counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(counts)
def test_agrees_with_exact_fractions(nck: tuple[int, int, int]) -> None:
    n, c, k = nck
    exact = 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
    exact_hat = Fraction(math.comb(c, k), math.comb(n, k))
    assert pass_at_k_of(n, c, k) == pytest.approx(float(exact), abs=1e-14)
    assert pass_hat_k_of(n, c, k) == pytest.approx(float(exact_hat), abs=1e-14)


@pytest.mark.parametrize(
    ("n", "c", "k"), [(100_000, 1, 10), (100_000, 300, 400), (100_000, 50_000, 3), (99_999, 7, 99_000)]
)
def test_loses_no_digits_at_a_hundred_thousand_attempts(n: int, c: int, k: int) -> None:
    exact = 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
    assert pass_at_k_of(n, c, k) == pytest.approx(float(exact), abs=1e-12, rel=1e-12)


@given(counts)
def test_is_a_chance_and_pass_hat_is_not_above_it(nck: tuple[int, int, int]) -> None:
    at, hat = pass_at_k_of(*nck), pass_hat_k_of(*nck)
    assert at is not None and hat is not None
    assert 0 <= hat <= 1 and 0 <= at <= 1 and hat <= at + 1e-12


def outcomes(*attempts: tuple[str, bool | None]) -> pl.LazyFrame:
    rows = [("m", "T0", oid, str(place), passed) for place, (oid, passed) in enumerate(attempts)]
    schema = {"model": pl.String, "tier": pl.String, "oid": pl.String, "iteration_id": pl.String, "passed": pl.Boolean}
    return pl.LazyFrame(rows, schema=schema, orient="row")


def problems(*oids: str, cluster: str | None = None) -> pl.LazyFrame:
    return pl.LazyFrame(
        {"oid": oids, "cluster": [cluster] * len(oids), "only_tier": [None] * len(oids)},
        schema=dict.fromkeys(("oid", "cluster", "only_tier"), pl.String),
    )


def sources(*models: str) -> pl.LazyFrame:
    return pl.LazyFrame(
        {"model": models, "status": ["evaluated"] * len(models)}, schema={"model": pl.String, "status": pl.String}
    )


def figures(attempts: pl.LazyFrame, known: pl.LazyFrame, ks: list[int], *models: str) -> pl.DataFrame:
    per_problem = metric.problem_pass_at_k(attempts, ks)
    return metric.pass_at_k(per_problem, known, sources(*(models or ("m",))), ks, SETTINGS).collect()


def test_mean_over_problems_and_never_pooled_counts() -> None:
    # Pooled, 10 of 12 attempts pass; the mean over the two problems is one half.
    attempts = outcomes(*[("easy", True)] * 10, *[("hard", False)] * 2)
    row = figures(attempts, problems("easy", "hard"), [1]).row(0, named=True)
    assert row["pass_at_k"] == 0.5


def test_undecided_attempts_count_neither_way() -> None:
    row = figures(outcomes(("a", True), ("a", None), ("a", False)), problems("a"), [1]).row(0, named=True)
    assert row["pass_at_k"] == 0.5
    assert metric.count_outcomes(outcomes(("a", True), ("a", None))).collect().row(0)[3:] == (1, 1)


def test_unattempted_problems_are_left_out_and_counted_as_zero_beside() -> None:
    attempts = outcomes(("a", True), ("b", None))
    row = figures(attempts, problems("a", "b", "c", "d"), [1]).row(0, named=True)
    assert (row["problems"], row["attempted"], row["eligible"]) == (4, 1, 1)
    assert row["pass_at_k"] == 1.0
    assert row["pass_at_k_all"] == 0.25


def test_a_problem_with_fewer_attempts_than_k_is_not_eligible() -> None:
    attempts = outcomes(("a", True), ("a", False), ("b", True))
    by_k = {row["k"]: row for row in figures(attempts, problems("a", "b"), [1, 2, 3]).iter_rows(named=True)}
    assert (by_k[2]["attempted"], by_k[2]["eligible"], by_k[2]["pass_at_k"]) == (2, 1, 1.0)
    assert (by_k[3]["eligible"], by_k[3]["pass_at_k"], by_k[3]["pass_hat_k"], by_k[3]["ci_low"]) == (
        0,
        None,
        None,
        None,
    )


def test_a_model_without_attempts_has_a_row_without_a_figure() -> None:
    table = figures(outcomes(("a", True)), problems("a"), [1], "m", "silent")
    row = table.filter(pl.col("model") == "silent").row(0, named=True)
    assert (row["tier"], row["pass_at_k"], row["attempted"], row["pass_at_k_all"]) == ("T0", None, 0, 0.0)


attempt_lists = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from([True, False, None])), min_size=1, max_size=60
)


@given(attempt_lists, st.randoms(use_true_random=False))
def test_the_same_to_the_bit_whatever_the_order(attempts: list[tuple[str, bool | None]], random: object) -> None:
    shuffled = list(attempts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    known = problems(*"abcdef")
    assert figures(outcomes(*attempts), known, [1, 3]).equals(figures(outcomes(*shuffled), known, [1, 3]))


@given(attempt_lists, attempt_lists)
def test_counts_add_up_under_merge(left: list[tuple[str, bool | None]], right: list[tuple[str, bool | None]]) -> None:
    def count(attempts: list[tuple[str, bool | None]]) -> pl.DataFrame:
        return metric.count_outcomes(outcomes(*attempts)).collect()

    merged = pl.concat([count(left), count(right)]).group_by("oid").agg(pl.col("n", "c").sum()).sort("oid")
    assert merged.equals(count([*left, *right]).select("oid", "n", "c").sort("oid"))


@given(attempt_lists)
def test_table_agrees_with_a_plain_loop(attempts: list[tuple[str, bool | None]]) -> None:
    table = figures(outcomes(*attempts), problems(*"abcde"), [2])
    by_problem = {oid: [p for o, p in attempts if o == oid and p is not None] for oid in "abcde"}
    values = [pass_at_k_of(len(ps), sum(ps), 2) for ps in by_problem.values() if len(ps) >= 2]
    row = table.row(0, named=True)
    if values:
        assert row["pass_at_k"] == pytest.approx(sum(v for v in values if v is not None) / len(values), abs=1e-12)
        assert row["ci_low"] - 1e-12 <= row["pass_at_k"] <= row["ci_high"] + 1e-12
    else:
        assert row["pass_at_k"] is None
