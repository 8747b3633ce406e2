"""pass@k and verdicts if outcomes are read otherwise: worked examples, and what the bounds promise."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import more_examples
from touchstone.audit.readings import pass_at_k_readings, verdict_readings
from touchstone.comparison.families import ComparisonSettings
from touchstone.comparison.pairs import compare_counts
from touchstone.metrics.pass_at_k import outcome_histogram, pass_at_k_of, summarise
from touchstone.tables import TABLES

# Decided attempts, passes and undecided attempts of a problem.
Counts = tuple[int, int, int]
KEY = ["model", "tier", "oid"]
NO_OUTCOMES, NO_FLAGS = (pl.LazyFrame(schema=TABLES[name].dtypes) for name in ("outcomes", "audit_flags"))


def scores(**models: list[Counts]) -> pl.DataFrame:
    rows = [
        {"model": model, "tier": "T0", "oid": f"p{place}", "attempts": n + u, "decided": n, "passes": float(c)}
        for model, counts in models.items()
        for place, (n, c, u) in enumerate(counts)
    ]
    return pl.DataFrame(rows)


def problems_of(rows: pl.DataFrame) -> pl.LazyFrame:
    none = pl.lit(None, pl.String)
    return rows.lazy().select("oid").unique().with_columns(cluster=none, only_tier=none, excluded=False)


def readings_of(rows: pl.DataFrame, ks: list[int], outcomes: pl.LazyFrame = NO_OUTCOMES) -> pl.DataFrame:
    problems = problems_of(rows)
    counts = rows.lazy().select(*KEY, n="decided", c=pl.col("passes").cast(pl.Int64))
    groups = sorted(set(rows.select("model", "tier").iter_rows()))
    published = summarise(outcome_histogram(counts, problems).collect(), groups, 0, ks, None)
    return pass_at_k_readings(published.lazy(), rows.lazy(), outcomes, problems, NO_FLAGS, ks).collect()


def test_undecided_attempts_count_as_failed_and_as_passed() -> None:
    # 1 of 2 passed and two undecided; 1 of 1; a problem whose attempts are all undecided.
    row = readings_of(scores(m=[(2, 1, 2), (1, 1, 0), (0, 0, 3)]), [1]).row(0, named=True)
    assert row["pass_at_k"] == pytest.approx((1 / 2 + 1) / 2)
    assert row["pass_at_k_low"] == pytest.approx((1 / 4 + 1 + 0) / 3)
    assert row["pass_at_k_high"] == pytest.approx((3 / 4 + 1 + 1) / 3)
    assert row["pass_at_k_measured"] == row["pass_at_k"]


def test_without_undecided_attempts_every_reading_is_the_published_figure() -> None:
    rows = readings_of(scores(m=[(3, 1, 0), (7, 2, 0)], n=[(3, 3, 0)]), [1, 5])
    for name in ("pass_at_k_low", "pass_at_k_high", "pass_at_k_measured"):
        assert rows[name].equals(rows["pass_at_k"].alias(name), null_equal=True)


def test_a_figure_may_exist_only_with_the_undecided_attempts() -> None:
    row = readings_of(scores(m=[(1, 1, 4)]), [5]).row(0, named=True)
    assert (row["pass_at_k"], row["pass_at_k_low"], row["pass_at_k_high"]) == (None, 1.0, 1.0)


def test_beyond_k_1_even_the_low_figure_may_be_above_the_published_one() -> None:
    """The second problem has five attempts only with its undecided ones; that it was left out lowered the figure."""
    row = readings_of(scores(m=[(5, 0, 0), (1, 1, 4)]), [5]).row(0, named=True)
    assert (row["pass_at_k"], row["pass_at_k_low"], row["pass_at_k_high"]) == (0.0, 0.5, 0.5)


counted = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 4)).map(lambda t: (t[0], min(t[:2]), t[2]))


@more_examples
@given(st.lists(st.tuples(counted, st.integers(0, 4)), min_size=1, max_size=6), st.integers(1, 7))
def test_whatever_the_undecided_attempts_are_the_figure_is_within_the_bounds(
    problems: list[tuple[Counts, int]], k: int
) -> None:
    rows = readings_of(scores(m=[counts for counts, _ in problems]), [k])
    published, low, high = rows.select("pass_at_k", "pass_at_k_low", "pass_at_k_high").row(0)
    # Some of the undecided attempts of each problem passed after all.
    resolved = [pass_at_k_of(n + u, c + min(some, u), k) for (n, c, u), some in problems if n + u >= k]
    if not resolved:
        assert (published, low, high) == (None, None, None)
        return
    mean = sum(figure for figure in resolved if figure is not None) / len(resolved)
    assert low - 1e-12 <= mean <= high + 1e-12
    if published is None:
        return
    # Problems that get k attempts only with undecided ones never lower the upper bound.
    assert published <= high + 1e-12
    joins_with_a_pass = any(c > 0 and n < k <= n + u for (n, c, u), _ in problems)
    if k == 1 or not joins_with_a_pass:
        assert low - 1e-12 <= published


def outcome(model: str, oid: str, passed: bool | None, measured: bool | None, ruling: str | None) -> dict[str, object]:
    row = {"model": model, "tier": "T0", "oid": oid, "iteration_id": "1", "status": "passed", "cached": False}
    return row | {"passed": passed, "measured": measured, "ruling": ruling}


def test_the_measured_reading_takes_rulings_back() -> None:
    outcomes = pl.LazyFrame(
        [
            outcome("m", "p0", False, True, "failed"),
            outcome("m", "p1", None, False, "exclude"),
            outcome("m", "p2", None, True, "undecided"),
            outcome("m", "p3", True, None, "passed"),
        ],
        schema=TABLES["outcomes"].dtypes,
    )
    # What counts: p0 failed, p2 undecided, p3 passed; p1 is left out. Measured: 1, 0, 1, and p3 undecided.
    rows = scores(m=[(1, 0, 0), (0, 0, 0), (0, 0, 1), (1, 1, 0)])
    row = readings_of(rows, [1], outcomes).row(0, named=True)
    assert row["pass_at_k"] == 0.5
    assert row["pass_at_k_measured"] == pytest.approx(2 / 3)
    assert (row["pass_at_k_low"], row["pass_at_k_high"]) == pytest.approx((1 / 3, 2 / 3))


# Verdicts


def verdicts_of(rows: pl.DataFrame, outcomes: pl.LazyFrame = NO_OUTCOMES) -> pl.DataFrame:
    problems = problems_of(rows)
    counts = rows.lazy().select(*KEY, n="decided", c=pl.col("passes").cast(pl.Int64))
    published = compare_counts(counts, problems, ComparisonSettings()).lazy()
    return verdict_readings(published, rows.lazy(), outcomes, problems, NO_FLAGS).collect()


def test_a_verdict_depends_on_undecided_attempts() -> None:
    """b is better by 12 of 30 problems; 10 further ones, which only a left undecided, could turn it."""
    rows = scores(a=[(1, 0, 0)] * 12 + [(1, 1, 0)] * 18 + [(0, 0, 1)] * 10, b=[(1, 1, 0)] * 30 + [(1, 0, 0)] * 10)
    found = {row["reading"]: row for row in verdicts_of(rows).iter_rows(named=True)}
    assert {name: row["holds"] for name, row in found.items()} == {
        "undecided_favour_b": True,
        "undecided_favour_a": False,
    }
    assert found["undecided_favour_b"]["difference"] == pytest.approx(12 / 40)
    assert found["undecided_favour_a"]["difference"] == pytest.approx((12 - 10) / 40)
    assert found["undecided_favour_a"]["verdict"] == "better"


def test_no_evidence_and_too_little_data_conclude_the_same() -> None:
    rows = scores(a=[(1, 0, 0), (1, 1, 0), (1, 0, 1)], b=[(1, 1, 0)] * 3)
    assert verdicts_of(rows)["holds"].all()


def test_without_undecided_attempts_and_rulings_there_is_nothing_to_read_otherwise() -> None:
    assert verdicts_of(scores(a=[(1, 0, 0)] * 9, b=[(1, 1, 0)] * 9)).is_empty()
