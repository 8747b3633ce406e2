"""Bootstrap means that share their resamples: the right distribution, whatever else is computed from the same draws."""

import numpy as np
import pytest

from tests.conftest import nightly_but
from touchstone.config import IntervalSettings
from touchstone.inference.bootstrap import bootstrap_counts, resampled_means

SETTINGS = IntervalSettings(replicates=4_000)


@pytest.mark.parametrize("units", nightly_but([1_000, 1_001], [200, 1_000, 1_001, 5_000]))
@pytest.mark.parametrize("values", [[0.0, 1.0], [0.0, 0.1, 0.7, 1.0]])
def test_the_means_are_distributed_as_those_of_a_multinomial(units: int, values: list[float]) -> None:
    numbers = np.array(values)
    counts = np.full(len(values), units // len(values))
    counts[0] += units - counts.sum()
    means = resampled_means(numbers, counts, SETTINGS)
    rivals = np.random.default_rng(1).multinomial(units, counts / units, size=20_000) @ numbers / units
    assert means.mean() == pytest.approx(rivals.mean(), abs=4 * rivals.std() / 4_000**0.5)
    assert means.std() == pytest.approx(rivals.std(), rel=0.05)
    quantiles = [0.025, 0.5, 0.975]
    assert np.quantile(means, quantiles) == pytest.approx(np.quantile(rivals, quantiles), abs=0.15 * rivals.std())


def test_a_replicate_is_the_mean_of_the_units_that_it_draws() -> None:
    """With as many values as need several pieces of work."""
    values = np.sort(np.random.default_rng(2).random(400))
    counts = np.arange(400) % 3 + 1
    drawn = bootstrap_counts(int(counts.sum()), SETTINGS.replicates, SETTINGS.seed)
    expected = drawn @ np.repeat(values, counts) / counts.sum()
    assert resampled_means(values, counts, SETTINGS) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("units", [400, pytest.param(4_000, marks=pytest.mark.nightly)])
def test_values_told_apart_or_not_make_the_same_means(units: int) -> None:
    """So a curve over k does not jump where two counts come to have the same value."""
    counts = np.array([units // 4, units // 4, units // 2])
    apart = resampled_means(np.array([0.25, 0.25, 1.0]), counts, SETTINGS)
    merged = resampled_means(np.array([0.25, 1.0]), np.array([units // 2, units // 2]), SETTINGS)
    assert apart == pytest.approx(merged, abs=1e-12)


def test_a_figure_that_is_never_lower_never_has_a_lower_replicate() -> None:
    counts = np.array([100, 150, 50])
    lower = resampled_means(np.array([0.0, 0.2, 0.9]), counts, SETTINGS)
    higher = resampled_means(np.array([0.0, 0.5, 1.0]), counts, SETTINGS)
    assert (lower <= higher).all()
