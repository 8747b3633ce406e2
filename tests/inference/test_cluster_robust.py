"""The closed form against the matrix formulas, and against the classic result for equal sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from touchstone.inference.uncertainty import cluster_robust_se, degrees_of_freedom

SWE_BENCH_VERIFIED = np.array([231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1])


def once(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.ones(len(sizes), dtype=np.int64)


def by_matrices(values: NDArray[np.float64], clusters: NDArray[np.int64]) -> tuple[float, float]:
    """CR2 and Satterthwaite as Pustejovsky and Tipton write them, for a regression on a constant."""
    count = len(values)
    residuals_of = np.eye(count) - 1 / count
    scores = []
    for cluster in np.unique(clusters):
        inside = clusters == cluster
        size = int(inside.sum())
        roots, vectors = np.linalg.eigh(np.eye(size) - np.ones((size, size)) / count)
        adjustment = vectors @ np.diag(roots**-0.5) @ vectors.T
        scores.append(np.ones(size) @ adjustment @ residuals_of[inside] / count)
    variance = sum(float(score @ values) ** 2 for score in scores)
    gram = np.array(scores) @ np.array(scores).T
    return variance**0.5, float(np.trace(gram) ** 2 / np.sum(gram**2))


@pytest.mark.parametrize(
    "sizes", [[3, 3, 3, 3], [1, 2, 9], [40, 1, 1, 1, 1], [5, 1], SWE_BENCH_VERIFIED.tolist()], ids=str
)
def test_the_closed_form_is_cr2_with_satterthwaites_degrees_of_freedom(sizes: list[int]) -> None:
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    values = np.random.default_rng(sizes).normal(size=len(clusters))
    error, degrees = by_matrices(values, clusters)
    found = cluster_robust_se(np.bincount(clusters, weights=values), np.array(sizes), once(np.array(sizes)))
    assert found is not None
    assert (found.standard_error, found.degrees_of_freedom) == pytest.approx((error, degrees), rel=1e-9)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.integers(1, 50))
def test_equal_sizes_give_the_classic_standard_error(means: list[float], size: int) -> None:
    sizes = np.full(len(means), size)
    found = cluster_robust_se(np.array(means) * size, sizes, once(sizes))
    assert found is not None
    assert found.standard_error == pytest.approx(np.std(means, ddof=1) / len(means) ** 0.5, abs=1e-12)
    assert found.degrees_of_freedom == len(means) - 1


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=40))
def test_degrees_of_freedom_lie_between_one_and_those_of_equal_sizes(sizes: list[int]) -> None:
    found = degrees_of_freedom(np.array(sizes), once(np.array(sizes)))
    assert 1 - 1e-9 <= found <= len(sizes) - 1 + 1e-9


def test_rows_may_be_counted_and_in_any_order() -> None:
    sums, sizes = np.array([0.3, 4.0, 0.3, 0.7]), np.array([1, 9, 1, 2])
    apart = cluster_robust_se(sums, sizes, once(sizes))
    assert cluster_robust_se(sums[::-1], sizes[::-1], once(sizes)) == apart
    assert cluster_robust_se(np.array([0.7, 0.3, 4.0]), np.array([2, 1, 9]), np.array([1, 2, 1])) == apart


def test_one_big_cluster_leaves_hardly_more_than_one_degree_of_freedom() -> None:
    sizes = np.array([1000] + [1] * 50)
    assert 1 < degrees_of_freedom(sizes, once(sizes)) < 1.2


@pytest.mark.parametrize("counts", [[], [0], [1], [1, 0]])
def test_one_cluster_has_no_error(counts: list[int]) -> None:
    kinds = np.arange(1, len(counts) + 1)
    assert cluster_robust_se(kinds * 0.5, kinds, np.array(counts, dtype=np.int64)) is None


def test_empty_clusters_do_not_count() -> None:
    assert cluster_robust_se(np.array([1.0, 0.0]), np.array([2, 0]), np.array([1, 5])) is None
