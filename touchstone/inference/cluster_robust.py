"""Cluster-robust standard error of a mean: CR2 variance with Bell-McCaffrey degrees of freedom, in closed form.

A cluster's residual is the sum of its values minus the mean times their number. Residuals are too small because the
mean was fitted to them, more so for larger clusters: for independent values of equal variance, the residual of a
cluster with s of N values keeps the share 1 - s / N of its variance. CR2 divides by the root of that share, which makes
the variance estimate unbiased under that model for any cluster sizes. The degrees of freedom follow from
Satterthwaite's approximation under the same model:

    variance of the mean = sum over g of (e_g / sqrt(1 - s_g / N))^2 / N^2
    degrees of freedom   = N^2 / (sum s^2 + (sum b)^2 - sum b^2),  b = s^2 / (N - s)

For G clusters of equal size these are the classic factor G / (G - 1) and G - 1 degrees of freedom. A single cluster
with most of the values leaves little more than 1 degree of freedom, but never less.

References: Bell and McCaffrey (2002), "Bias reduction in standard errors for linear regression with multi-stage
samples", Survey Methodology 28(2). Pustejovsky and Tipton (2018), "Small-sample methods for cluster-robust variance
estimation and hypothesis testing in fixed effects models", Journal of Business & Economic Statistics 36(4).
"""

import math
from dataclasses import dataclass

import numpy as np

from touchstone.inference.arrays import Floats, Integers


@dataclass(frozen=True)
class ClusterRobustSE:
    """Standard error of a mean and its degrees of freedom, which may be fractional."""

    standard_error: float
    degrees_of_freedom: float


def cluster_robust_se(sums: Floats, sizes: Integers, counts: Integers) -> ClusterRobustSE | None:
    """CR2 standard error of the mean over all values, from the sum and the size of each cluster.

    There are `counts` clusters of each kind. None for fewer than two clusters, because one shows no variation.
    Independent of the order of rows.

    >>> cluster_robust_se(np.array([1.0, 2.0, 3.0]), np.array([4, 4, 4]), np.array([1, 1, 1]))
    ClusterRobustSE(standard_error=0.14433756729740643, degrees_of_freedom=2)
    >>> unequal = cluster_robust_se(np.array([40.0, 1.0, 0.0]), np.array([80, 2, 2]), np.array([1, 4, 6]))
    >>> round(unequal.degrees_of_freedom, 2)
    1.49
    """
    if int(counts[sizes > 0].sum()) < 2:
        return None
    variance = math.fsum(counts * adjusted_residuals(sums, sizes, counts) ** 2)
    return ClusterRobustSE(math.sqrt(variance), degrees_of_freedom(sizes, counts))


def adjusted_residuals(sums: Floats, sizes: Integers, counts: Integers | int = 1) -> Floats:
    """CR2 residuals of two or more clusters, divided by the number of values: their squares add up to the variance."""
    total = int((sizes * counts).sum())
    mean = math.fsum(sums * counts) / total
    residuals: Floats = (sums - mean * sizes) / np.sqrt(1 - sizes / total) / total
    return residuals


def degrees_of_freedom(sizes: Integers, counts: Integers) -> float:
    """Bell-McCaffrey degrees of freedom of the mean over G >= 2 clusters; G - 1 if they are of equal size.

    >>> degrees_of_freedom(np.array([7]), np.array([30]))
    29
    >>> swe_bench_verified = np.array([231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1])
    >>> round(degrees_of_freedom(swe_bench_verified, np.ones(12, dtype=np.int64)), 2)
    3.33
    """
    if sizes[0] and (sizes == sizes[0]).all():
        return int(counts.sum()) - 1
    total = int((sizes * counts).sum())
    b = sizes.astype(np.float64) ** 2 / (total - sizes)
    spread = math.fsum(counts * sizes.astype(np.float64) ** 2) + math.fsum(counts * b) ** 2 - math.fsum(counts * b**2)
    degrees = total**2 / spread
    whole = round(degrees)
    # Undo rounding errors where the result is a whole number.
    return whole if math.isclose(degrees, whole, rel_tol=1e-12) else degrees
