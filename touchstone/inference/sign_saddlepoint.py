"""Saddlepoint approximation of the sign permutation test, for many pairs at once.

The sum of units' differences with random signs has the cumulant generating function K(t) = sum of log cosh(t s) over
the absolute differences s. With observed sum x on a lattice of span 2 g, Lugannani and Rice's formula with Daniels'
second continuity correction (1987, section 6) has the tail probability

    1 - Phi(w) + phi(w) (1 / u - 1 / w),   w = sqrt(2 (t y - K(t))),   u = sinh(g t) / g * sqrt(K''(t)),

where y = x - g and K'(t) = y; g = 0 if differences are rounded. From `SADDLEPOINT_FROM` units that differ, the relative
error is below 1%, and a few percent far out in the tail. It is larger if nearly all differences lie on a coarser
lattice than 2 g, which a bound on the characteristic function detects for small sizes; for larger ones it was up
to 8% at p above 1e-8 in simulation, and 17% below.

References: Lugannani and Rice (1980), "Saddle point approximation for the distribution of the sum of independent
random variables", Advances in Applied Probability 12(2). Robinson (1982), "Saddlepoint approximations for permutation
tests and confidence intervals", Journal of the Royal Statistical Society B 44(1). Daniels (1987), "Tail probability
approximations", International Statistical Review 55(1).
"""

import math
from functools import lru_cache

import numpy as np

from touchstone.inference.cumulant_tables import APART, MAX_KINDS, TILTS, CumulantTable, Variables, saddlepoints
from touchstone.inference.paired_moments import count_by_row
from touchstone.inference.paired_units import Booleans, Floats, Integers
from touchstone.inference.tails import SMALLEST_P, lugannani_rice

# Fewer differing units are tested exactly.
SADDLEPOINT_FROM = 100
# Up to this size, units are counted by size.
_MAX_COUNTED = 64
_NEWTON_STEPS = 60
# The tilted mean is this near to the observed sum, in standard deviations; the error of p is about its square.
_NEAR = 1e-7
# The largest absolute value of the characteristic function at the frequencies of coarser lattices.
_COARSER = 0.01
# No decision turns on p-values below this, however many pairs there are.
_FAR = 1e-12
# The hyperbolic cosine of more overflows, squared.
_LARGEST = 300


def sign_saddlepoint_p(differences: Integers, exact: Booleans) -> Floats:
    """Two-sided p-values of the sums of each row; NaN where the approximation is not to be trusted.

    `exact` is false for rows whose differences are rounded, which have no lattice.

    >>> differences = np.array([[1, 2, 3, 4] * 30 + [-1, -2, -3] * 30])
    >>> sign_saddlepoint_p(differences, np.array([True])).round(6)  # exactly 0.00099245
    array([0.000992])
    """
    sizes = np.abs(differences)
    observed, total = np.abs(differences.sum(axis=1)), sizes.sum(axis=1)
    units = np.count_nonzero(sizes, axis=1)
    p_values = np.where(units < SADDLEPOINT_FROM, np.nan, 1.0)
    # A sum of 0, or of a single step, is the least extreme.
    rows = np.flatnonzero((p_values == 1) & (observed > 0))
    if len(rows) < len(sizes):
        sizes, observed, total, units, exact = sizes[rows], observed[rows], total[rows], units[rows], exact[rows]
    largest = int(sizes.max(initial=0))
    approximate = _counted_p if largest <= _MAX_COUNTED else _tabulated_p if largest < MAX_KINDS else _p_of_units
    p = np.clip(approximate(sizes, observed, exact), SMALLEST_P, 1.0)
    # All signs agree: exact to the last digit.
    p_values[rows] = np.where(observed == total, np.maximum(np.ldexp(2.0, -units), SMALLEST_P), p)
    return p_values


def _counted_p(sizes: Integers, observed: Integers, exact: Booleans) -> Floats:
    """For small sizes: by the number of units of each size."""
    counts = count_by_row(sizes, int(sizes.max(initial=0)) + 1)[:, 1:]
    kinds = np.arange(1, counts.shape[1] + 1)
    spans = np.gcd.reduce(np.where(counts > 0, kinds, 0), axis=1)
    p, tilt = _newton_p(kinds[None], counts, observed, np.where(exact, spans, 0))
    return np.where((p > _FAR) & _on_coarser_lattice(counts, tilt[:, None] * kinds, spans), np.nan, p)


def _tabulated_p(sizes: Integers, observed: Integers, exact: Booleans) -> Floats:
    """For larger sizes: each size is a kind of its own in a table of cumulants."""
    # A table of a few widths serves all chunks.
    table = _sign_table(1 << int(sizes.max()).bit_length())
    steps = np.where(exact, np.gcd.reduce(sizes, axis=1), 0).astype(np.float64)
    sums = observed - steps
    point = saddlepoints(table, Variables.of(sizes, table.mean.shape[1]), sums)
    tail = lugannani_rice(2 * (point.tilt * sums - point.cumulant), _width(point.tilt, steps) * np.sqrt(point.variance))
    return np.where(point.found, 2 * tail, np.nan)


@lru_cache(maxsize=1)
def _sign_table(width: int) -> CumulantTable:
    kinds, apart = np.arange(width, dtype=np.float64), APART / width
    products = apart * np.arange(TILTS)[:, None] * kinds
    return CumulantTable(_log_cosh(products), kinds * np.tanh(products), (kinds / np.cosh(products)) ** 2, apart)


def _p_of_units(sizes: Integers, observed: Integers, exact: Booleans) -> Floats:
    """For any sizes: unit by unit."""
    return _newton_p(sizes, (sizes > 0).astype(np.int64), observed, np.zeros_like(observed))[0]


def _newton_p(kinds: Integers, counts: Integers, observed: Integers, spans: Integers) -> tuple[Floats, Floats]:
    """The p-values, NaN where Newton's method does not converge, and the tilts."""
    scale = np.sqrt((counts * kinds.astype(np.float64) ** 2).sum(axis=1))
    values, step = kinds / scale[:, None], spans / scale
    sums = observed / scale - step
    tilt, found = _tilted(values, counts, sums)
    products = tilt[:, None] * values
    cumulant = (counts * _log_cosh(products)).sum(axis=1)
    variance = (counts * (values / np.cosh(np.minimum(products, _LARGEST))) ** 2).sum(axis=1)
    p = 2 * lugannani_rice(2 * (tilt * sums - cumulant), _width(tilt, step) * np.sqrt(variance))
    return np.where(sums <= 0, 1.0, np.where(found, p, np.nan)), tilt / scale


def _width(tilt: Floats, step: Floats) -> Floats:
    """What u is in multiples of the standard deviation: the tilt, corrected for the lattice."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(step > 0, np.sinh(step * tilt) / step, tilt)


def _log_cosh(x: Floats) -> Floats:
    """Without cancellation near 0, and without overflow."""
    return np.asarray(x + np.log1p(np.expm1(-2 * x) / 2))


def _tilted(values: Floats, counts: Integers, sums: Floats) -> tuple[Floats, Booleans]:
    """The t with K'(t) = sums for values of total square 1, and where it was found.

    K' is concave, so Newton's method from the left never passes the solution.
    """
    tilt, found = sums.copy(), sums <= 0
    rows = np.flatnonzero(~found)
    for _ in range(_NEWTON_STEPS):
        if len(rows) == 0:
            break
        some, many = values[rows], counts[rows]
        decay = np.exp(-2 * tilt[rows, None] * some)
        mean = (many * some * ((1 - decay) / (1 + decay))).sum(axis=1)
        variance = (many * some**2 * (4 * decay / (1 + decay) ** 2)).sum(axis=1)
        missing = sums[rows] - mean
        done = np.abs(missing) <= _NEAR * np.sqrt(variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            tilt[rows] += np.where(done, 0.0, missing / variance)
        found[rows] = done
        rows = rows[~done & np.isfinite(tilt[rows])]
    return tilt, found


def _on_coarser_lattice(counts: Integers, products: Floats, spans: Integers) -> Booleans:
    """Whether nearly all differences are multiples of something larger than their common divisor.

    Then the characteristic function, the product of cos(f s) over units, is nearly 1 somewhere. Tilted, its absolute
    value is at most exp(-1/2 * sum of sin(f s)^2 / cosh(t s)^2). `products` are t s.
    """
    kinds = np.arange(1, counts.shape[1] + 1)
    fractions = [(k, q) for q in kinds[1:].tolist() for k in range(1, q // 2 + 1) if math.gcd(k, q) == 1]
    if not fractions:
        return np.zeros(len(counts), dtype=bool)
    k, q = np.array(fractions).T
    waves = np.sin(np.pi * kinds[:, None] * k / q) ** 2
    weights = counts / np.cosh(np.minimum(products, _LARGEST)) ** 2
    exponents = weights @ waves / 2
    own = spans[:, None] * k % q == 0
    return np.asarray((np.where(own, np.inf, exponents) < -math.log(_COARSER)).any(axis=1))
