"""The exact sign permutation test, for many pairs at once.

Under the null hypothesis all ways to sign the absolute differences are equally likely. They add up to the observed sum
or further if the units of the other sign add up to at most `rest`, half of the distance from the observed to the
largest sum. So p is twice the number of choices of such units over 2^units. Choices are counted size by size: the m
units of size s multiply the generating function of the sums by (1 + x^s)^m, of which only the powers up to `rest`
matter. All terms are positive, so no digits cancel, and a p-value of 1e-200 is as precise as one of 0.05. Up to 53
units, the counts are exact integers.

A row's result depends on its own differences alone, to the last digit: zeros are all that other rows add to its sums.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from touchstone.inference.paired_moments import count_by_row
from touchstone.inference.paired_units import Floats, Integers
from touchstone.inference.tails import SMALLEST_P

# The number of choices must fit into a float.
_MAX_UNITS = 1000
# If the largest sum times the units exceeds this, the Fourier transform is faster.
_WORK = 2**20
# Numbers in a block of rows: as many as fit into the CPU cache.
_BLOCK = 2**14


def sign_exact_p(sizes: Integers, observed: Integers) -> Floats:
    """Two-sided p-values of each row's sum of absolute differences with signs; NaN where this takes too long.

    >>> sign_exact_p(np.array([[1, 2, 2], [1, 2, 2], [0, 0, 0]]), np.array([5, 3, 0]))
    array([0.25, 0.5 , 1.  ])
    """
    divisors = np.maximum(np.gcd.reduce(sizes, axis=1), 1)
    if (divisors > 1).any():
        sizes, observed = sizes // divisors[:, None], observed // divisors
    units = np.count_nonzero(sizes, axis=1)
    rest = (sizes.sum(axis=1) - observed) // 2
    p_values = np.full(len(sizes), np.nan)
    for rows in _blocks(rest, np.flatnonzero((units <= _MAX_UNITS) & (rest < _WORK // np.maximum(units, 1)))):
        ways = _choices(sizes[rows], rest[rows])
        p_values[rows] = np.clip(np.ldexp(2 * ways, -units[rows]), SMALLEST_P, 1.0)
    return p_values


def _blocks(rest: Integers, rows: Integers) -> Iterator[Integers]:
    """These rows in blocks of bounded memory, those with a similar `rest` together."""
    rows = rows[np.argsort(rest[rows], kind="stable")]
    while len(rows):
        numbers = np.arange(1, len(rows) + 1) * (rest[rows] + 1)
        some = max(1, int(np.searchsorted(numbers, _BLOCK, side="right")))
        yield rows[:some]
        rows = rows[some:]


def _choices(sizes: Integers, rest: Integers) -> Floats:
    """How many choices of units in each row add up to at most `rest`."""
    most = int(rest.max())
    # A larger unit is never chosen.
    counts = count_by_row(np.where(sizes > rest[:, None], 0, sizes), max(3, most + 1))
    counts[:, 0] = 0
    binomials, cumulated = _binomials(1 << int(counts.max()).bit_length())
    # A row per sum. The units of size 2 come from the table, and those of size 1 at the end.
    ways = np.zeros((most + 1, len(rest)))
    twos = min(binomials.shape[1], most // 2 + 1)
    ways[: 2 * twos : 2] = binomials[counts[:, 2], :twos].T
    product = np.empty_like(ways)
    for size in (3 + np.flatnonzero(counts[:, 3:].any(axis=0))).tolist():
        before = ways.copy()
        for chosen in range(1, min(int(counts[:, size].max()), most // size) + 1):
            lower = most + 1 - chosen * size
            np.multiply(before[:lower], binomials[counts[:, size], chosen], out=product[:lower])
            ways[most + 1 - lower :] += product[:lower]
    ones = np.clip(rest - np.arange(most + 1)[:, None], -1, binomials.shape[1] - 1)
    # Added one after the other: the order of a plain sum depends on the number of rows.
    return np.asarray(np.cumsum(ways * cumulated[counts[:, 1], ones], axis=0)[-1])


@lru_cache(maxsize=4)
def _binomials(most: int) -> tuple[Floats, Floats]:
    """How many choices there are of exactly k and of at most k of n < `most` units; the last column, or -1, is none."""
    exactly = np.zeros((most, most + 1))
    exactly[:, 0] = 1.0
    for n in range(1, most):
        exactly[n, 1:] = exactly[n - 1, 1:] + exactly[n - 1, :-1]
    at_most = np.cumsum(exactly, axis=1)
    at_most[:, -1] = 0.0
    return exactly[:, :-1], at_most
