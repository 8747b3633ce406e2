"""The bootstrap over independent units, for intervals and probabilities that have no closed form.

The unit is the problem, or the cluster where problems share one (the cluster bootstrap of Field and Welsh 2007). All
models and tiers share the same resamples, so that a problem's difficulty cancels out of their differences. With more
than `MAX_GROUPS` units, random groups of units are resampled instead of units, so that the cost does not grow with the
number of problems. Every draw is seeded and independent of the order of rows.

References: Efron and Tibshirani (1993), "An Introduction to the Bootstrap". Field and Welsh (2007), "Bootstrapping
clustered data", Journal of the Royal Statistical Society B 69(3). Hesterberg (2015), "What teachers should know about
the bootstrap", The American Statistician 69(4).
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.quantiles import t_critical

MAX_GROUPS = 1_000
# Fewer units have too few distinct resamples for their percentiles to mean anything.
MIN_UNITS = 6
# Numbers per chunk of work: 8 MB each of counts and results.
_CHUNK = 1_000_000
# Numbers per product of a vector and a matrix: 2 MB fit into a cache, and BLAS uses several threads only for more.
_PIECE = 250_000
# Each kind of draw has a random stream of its own.
_GROUP_STREAM, _RESAMPLE_STREAM, _FACTOR_STREAM = 0, 1, 2


def unit_ids(clusters: pl.Series) -> Integers:
    """The independent unit of every problem, numbered from 0: its cluster, or the problem itself if it has none.

    >>> unit_ids(pl.Series([None, "x", "y", "x", None, "y"])).tolist()
    [0, 1, 2, 1, 3, 2]
    """
    if clusters.null_count() == len(clusters):
        return np.arange(len(clusters))
    first = pl.when(pl.col("cluster").is_null()).then("row").otherwise(pl.col("row").min().over("cluster"))
    rows = clusters.alias("cluster").to_frame().with_row_index("row")
    return rows.select(first.rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()


def resampling_groups(units: Integers, settings: IntervalSettings) -> Integers:
    """The group that each unit is resampled with: the unit itself, or a random group of units.

    >>> resampling_groups(np.arange(3), IntervalSettings()).tolist()
    [0, 1, 2]
    >>> sizes = np.bincount(resampling_groups(np.arange(2_500), IntervalSettings()))
    >>> len(sizes), int(sizes.min()), int(sizes.max())
    (1000, 2, 3)
    """
    count = int(units.max(initial=-1)) + 1
    if count <= MAX_GROUPS:
        return units
    shuffled = np.random.default_rng([settings.seed, _GROUP_STREAM]).permutation(count)
    return (shuffled % MAX_GROUPS)[units]


def bootstrap_sums(sums: Floats, settings: IntervalSettings) -> Iterator[Floats]:
    """The column sums of every bootstrap replicate, in chunks of replicates, from one row of sums per group.

    >>> chunks = list(bootstrap_sums(np.array([[1.0, 2.0], [1.0, 4.0]]), IntervalSettings(replicates=100)))
    >>> sorted({tuple(row) for chunk in chunks for row in chunk.tolist()})
    [(2.0, 4.0), (2.0, 6.0), (2.0, 8.0)]
    """
    groups, columns = sums.shape
    if groups == 0:
        return
    counts = bootstrap_counts(groups, settings.replicates, settings.seed)
    rows = max(1, _CHUNK // max(groups, columns))
    for start in range(0, settings.replicates, rows):
        yield counts[start : start + rows].astype(np.float64) @ sums


@lru_cache(maxsize=2)
def bootstrap_counts(groups: int, replicates: int, seed: int) -> NDArray[np.uint8]:
    """How often each group (column) is in each replicate (row).

    Cached, because most suites and tables resample the same number of groups.
    """
    generator = np.random.default_rng([seed, _RESAMPLE_STREAM])
    # Counting draws is a multinomial in a quarter of the time of numpy's. A byte is enough: the probability that one
    # of a thousand groups is drawn more than 255 times is below 1e-500.
    counts = np.empty((replicates, groups), dtype=np.uint8)
    rows = max(1, _CHUNK // groups)
    for start in range(0, replicates, rows):
        size = min(rows, replicates - start)
        drawn = generator.integers(0, groups, size=(size, groups)) + np.arange(size)[:, None] * groups
        counts[start : start + size] = np.bincount(drawn.ravel(), minlength=size * groups).reshape(size, groups)
    return counts


def resampled_means(values: Floats, counts: Integers, settings: IntervalSettings) -> Floats:
    """The mean of every bootstrap replicate of sorted distinct values that occur `counts` times each.

    All calls with as many units share the same resamples: a replicate says how often the first unit in order of value
    is drawn, the second, and so on. So only the number of draws up to the last unit of each value is needed, and the
    mean follows by summation by parts. More than `MAX_GROUPS` units are resampled in as many strata of neighbouring
    values, whose missing inner variance is restored.

    >>> means = resampled_means(np.array([0.0, 1.0]), np.array([300, 100]), IntervalSettings())
    >>> round(float(means.mean()), 2), round(float(means.std()) / (0.1875 / 400) ** 0.5, 2)
    (0.25, 1.0)
    """
    units = int(counts.sum())
    drawn = cumulative_draws(units, settings.replicates, settings.seed)
    strata = len(drawn) - 1
    places = np.cumsum(counts)[:-1] * (strata / units)
    below = places.astype(np.int64)
    # Draws up to a place between two strata are interpolated, so each step in value has a weight at both.
    steps, rest = np.diff(values), places - below
    weights = np.bincount(below, steps * (1 - rest), strata + 1)
    weights += np.bincount(below + 1, steps * rest, strata + 1)
    used = np.flatnonzero(weights)
    means: Floats = values[-1] - _weighted_sums(weights[used], drawn, used) / units
    if strata == units:
        return means
    mean = math.fsum(values * counts) / units
    return mean + (means - mean) * math.sqrt(_inner_variance_factor(values, counts, strata))


def _weighted_sums(weights: NDArray[Any], drawn: NDArray[np.int32], rows: NDArray[np.intp]) -> Floats:
    """The sum of those rows, each times its weight, in pieces: a fifth of the time."""
    sums = np.empty(drawn.shape[1])
    width = max(1, _PIECE // max(1, len(rows)))
    for start in range(0, len(sums), width):
        sums[start : start + width] = weights @ drawn[rows, start : start + width].astype(np.float64)
    return sums


def _inner_variance_factor(values: Floats, counts: Integers, strata: int) -> float:
    """The variance of the values over the variance of the means of equally large strata of them."""
    ends = np.append(0, np.cumsum(counts))
    sums = np.append(0.0, np.cumsum(values * counts))
    size = int(ends[-1]) / strata
    strata_means = np.diff(np.interp(np.arange(strata + 1) * size, ends, sums)) / size
    mean = sums[-1] / ends[-1]
    full = math.fsum(counts * (values - mean) ** 2) / int(ends[-1])
    return full * strata / math.fsum((strata_means - mean) ** 2)


@lru_cache(maxsize=2)
def cumulative_draws(units: int, replicates: int, seed: int) -> NDArray[np.int32]:
    """How many draws of each replicate (column) are among the first strata (row, from none to all).

    A stratum is a unit, or an equal share of the units if there are more than `MAX_GROUPS`.
    """
    drawn: NDArray[np.integer[Any]]
    if units <= MAX_GROUPS:
        drawn = bootstrap_counts(units, replicates, seed)
    else:
        generator = np.random.default_rng([seed, _RESAMPLE_STREAM])
        drawn = generator.multinomial(units, np.full(MAX_GROUPS, 1 / MAX_GROUPS), size=replicates)
    up_to = np.zeros((drawn.shape[1] + 1, replicates), dtype=np.int32)
    for stratum, times in enumerate(np.ascontiguousarray(drawn.T)):
        np.add(up_to[stratum], times, out=up_to[stratum + 1])
    return up_to


def student_t_factors(units: Integers, settings: IntervalSettings) -> Floats:
    """Factors that scale the deviation of each replicate (row) of each entry (column) from its estimate.

    Bootstrap replicates are roughly normal, with a variance that is too small by (G - 1) / G for G units. The factor
    sqrt(G / (G - 1)) corrects the variance, and sqrt(df / chi-squared) with df = G - 1 turns the normal distribution
    into Student's t. Entries with equally many units get the same factors, so that ties remain ties.

    >>> factors = student_t_factors(np.array([6, 6, 1000]), IntervalSettings(replicates=1000))
    >>> bool((factors[:, 0] == factors[:, 1]).all()), factors[:, [0, 2]].std(axis=0).round(1).tolist()
    (True, [0.5, 0.0])
    """
    distinct, columns = np.unique(np.maximum(2, units), return_inverse=True)
    factors = np.empty((settings.replicates, len(distinct)))
    for column, count in enumerate(distinct.tolist()):
        drawn = np.random.default_rng([settings.seed, _FACTOR_STREAM]).chisquare(count - 1, settings.replicates)
        factors[:, column] = np.sqrt(count / drawn)
    return factors[:, columns]


def expanded_percentiles(replicates: Floats, units: int, confidence: float) -> tuple[float, float]:
    """Expanded percentile interval (Hesterberg 2015): percentiles moved out as far as Student's t exceeds the normal.

    Plain percentiles are too narrow for few units: in simulation they covered the truth in 82% to 95% of cases with 6
    to 20 units, these in 90% to 98%, and in 92% to 97% for clusters of unequal size. Limits may be infinite; they are
    always replicates, never interpolated, because there is nothing between a number and infinity.

    >>> replicates = np.arange(1001.0)
    >>> expanded_percentiles(replicates, 6, 0.95), expanded_percentiles(replicates, 1_000, 0.95)
    ((2.0, 998.0), (24.0, 976.0))
    """
    ordered = np.sort(replicates)
    beyond = math.floor((len(ordered) - 1) * _expanded_tail(units, confidence))
    return float(ordered[beyond]), float(ordered[len(ordered) - 1 - beyond])


@lru_cache(maxsize=256)
def _expanded_tail(units: int, confidence: float) -> float:
    # The bootstrap variance is too small by (units - 1) / units.
    return NormalDist().cdf(-math.sqrt(units / (units - 1)) * t_critical(units - 1, confidence))
