"""Descriptive statistics of a metric over attempts: median, mean, mode, min, max, standard deviation, variance, count.

They describe the attempts at hand, so standard deviation and variance are those of a population (divided by n). Without
values they are null and the count is 0. With an infinite value the mean is infinite and the variance is null. All are
computed from the histogram of values, which is small if values repeat and the same in any order of rows.
"""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from touchstone.inference.units import arrays_by_group
from touchstone.tables import TABLES

MODE_DECIMALS = 6
STATISTICS = {
    name: dtype for name, dtype in TABLES["tier_statistics"].dtypes.items() if name not in TABLES["tier_statistics"].key
}

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def statistics(frame: pl.LazyFrame, group: Sequence[str], metrics: Sequence[str]) -> pl.DataFrame:
    """One row per group and metric, sorted.

    >>> runs = pl.LazyFrame({"tier": ["T0"] * 4, "cost": [1.0, 1.0, 2.0, 2.0]})
    >>> statistics(runs, ["tier"], ["cost"]).select("median", "mode", "std_dev").row(0)
    (1.5, 1.0, 0.5)
    """
    counts = frame.select(pl.col(metrics).count()).collect(engine="streaming").row(0, named=True)
    # What nobody recorded need not be read again; but one histogram is needed for the groups.
    read = [metric for metric in metrics if counts[metric]] or metrics[:1]
    described = {}
    for metric in read:
        histogram = _histogram(frame, group, metric)
        for key, (values, times) in arrays_by_group(histogram.drop_nulls(metric), group):
            described[metric, key] = describe(values, times)
    # Any of them has all groups, those without a value too.
    groups = histogram.select(group).unique()
    nothing = describe(np.zeros(0), np.zeros(0, dtype=np.int64))
    keys = groups.join(pl.DataFrame({"metric": metrics}), how="cross").sort(*group, "metric")
    rows = [described.get((metric, tuple(key)), nothing) for *key, metric in keys.iter_rows()]
    return keys.hstack(pl.DataFrame(rows, schema=STATISTICS))


def describe(values: Floats, counts: Integers) -> dict[str, float | int | None]:
    """The statistics of distinct, sorted values that occur `counts` times each."""
    total = int(counts.sum())
    if total == 0:
        return dict.fromkeys(STATISTICS) | {"count": 0}
    variance = population_variance(values, counts)
    up_to = np.cumsum(counts)
    middle = values[np.searchsorted(up_to, [(total - 1) // 2, total // 2], side="right")]
    return {
        "median": float(middle[0]) if middle[0] == middle[1] else float(middle.sum() / 2),
        "mean": math.fsum(values * counts) / total if np.isfinite(values).all() else math.inf,
        "mode": _mode(values, counts),
        "min": float(values[0]),
        "max": float(values[-1]),
        "std_dev": None if variance is None else math.sqrt(variance),
        "variance": variance,
        "count": total,
    }


def population_variance(values: Floats, counts: Integers | None = None) -> float | None:
    """The mean squared deviation from the mean; None without values or with an infinite one.

    >>> round(population_variance(np.array([0.70, 0.80, 0.85, 0.90])), 5)
    0.00547
    """
    times = np.ones(len(values), dtype=np.int64) if counts is None else counts
    total = int(times.sum())
    if total == 0 or not np.isfinite(values).all():
        return None
    mean = math.fsum(values * times) / total
    return math.fsum(times * (values - mean) ** 2) / total


def _mode(values: Floats, counts: Integers) -> float:
    """The most frequent rounded value; the smallest of them on a tie."""
    rounded, codes = np.unique(values.round(MODE_DECIMALS), return_inverse=True)
    return float(rounded[np.argmax(np.bincount(codes, weights=counts))])


def _histogram(frame: pl.LazyFrame, group: Sequence[str], metric: str) -> pl.DataFrame:
    """How often each value occurs in each group; null is one of them."""
    counted = frame.group_by(*group, metric).agg(pl.len().cast(pl.Int64).alias("__count"))
    return counted.collect(engine="streaming").sort(*group, metric)
