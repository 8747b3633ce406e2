"""Tests of "no difference" between two sides, always two-sided and on independent units.

- McNemar's exact test, for one attempt per problem and side: only problems that flipped count, and under the null each
  flip is a fair coin.
- The permutation of signs, for everything else: under the null a unit's difference is as likely to be turned round.
  How far the sum of differences may come by such turns has an exact distribution. On whole numbers it is got from its
  characteristic function by one Fourier transform (Pagano and Tritchler 1983), at a cost that grows with the sum of
  the differences and not with the 2^units ways to turn them. It is first tilted so that it peaks at the observed sum
  (Esscher's transform), which makes a p of 1e-50 as precise as one of 0.05.

Flipping signs is exact where both sides have as many attempts at a problem. Where they do not, differences under the
null have mean zero but are not symmetric, and it holds for many units only.
"""

import math
import sys
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from touchstone.inference.paired_units import Floats, Integers, Units

LATTICE = 2**20

# Random flips beyond this take longer than anyone waits for one pair.
_MOST_DRAWN = 2**25
# What is rounded has a grid of so many steps for the typical difference, and in all no less than the other.
_STEPS, _LEAST_STEPS = 32, 2**12
# Below this a frequency's share is lost in the roundings of the others.
_NOTHING = 1e-16
_TILTS = 100
# The chance is never 0, even where no float is small enough to hold it.
_LEAST = sys.float_info.min


def mcnemar(wins: int, losses: int) -> float:
    """Exact p of so many flips for and against.

    >>> mcnemar(9, 1)
    0.021484375
    """
    # Imported here: it takes longer than all else that a comparison does.
    from scipy.special import bdtr  # type: ignore[import-untyped]

    return min(1.0, max(2 * float(bdtr(min(wins, losses), wins + losses, 0.5)), _LEAST))


def permutation(units: Units, draws: int, seed: int) -> tuple[str, float]:
    """Which permutation test fits the units, and its p.

    - `permutation-exact` where the differences, as whole numbers, add up to at most `LATTICE`.
    - `permutation` beyond it: random flips, p = (as extreme + 1) / (draws + 1).
    - `permutation-rounded` where so many draws would take too long: the differences are rounded to a coarser grid and
      the exact test is made of those. That costs next to no power, and the level stays exact: a rounded difference is
      as likely to be turned round as the difference itself.

    >>> ones = np.ones(3, dtype=np.int64)
    >>> permutation(Units(0 * ones, np.array([3, 6, 6]), 9, ones, ones, clustered=False, exact=True), 100, 7)
    ('permutation-exact', 0.25)
    """
    sums, counts = units.sums, units.counts
    sums = sums // max(1, int(np.gcd.reduce(sums)))
    reach = abs(int((sums * counts).sum()))
    sizes, many = _distinct(sums, counts)
    total = int((sizes * many).sum())
    if units.exact and total <= LATTICE:
        return units.named("permutation-exact"), exact_p(sizes, many, reach)
    if len(sizes) * draws <= _MOST_DRAWN:
        # Rates that were rounded may part what are ties, by a step or two for each problem.
        slack = 0 if units.exact else 2 * units.problems
        return units.named("permutation"), drawn_p(sizes, many, reach - slack, draws, seed)
    steps = min(LATTICE, max(_LEAST_STEPS, _STEPS * int(many.sum())))
    rounded = np.rint(sums * (steps / total)).astype(np.int64)
    sizes, many = _distinct(rounded, counts)
    return units.named("permutation-rounded"), exact_p(sizes, many, abs(int((rounded * counts).sum())))


def exact_p(sizes: Integers, counts: Integers, reach: int) -> float:
    """Chance that the sum of distinct positive `sizes`, `counts` of each, gets `reach` from zero by fair signs.

    >>> exact_p(np.array([1, 2]), np.array([1, 2]), 5)
    0.25
    """
    total = int((sizes * counts).sum())
    if reach == 0:
        return 1.0
    if reach == total:
        # At once, and to the last digit: all signs agree.
        return max(math.ldexp(2.0, -int(counts.sum())), _LEAST)
    tilt = _tilt(sizes, counts, reach)
    chances = _tilted_chances(sizes, counts, tilt, total)[(total + reach) // 2 : total + 1]
    weights = np.exp(-tilt * np.arange(len(chances)))
    scale = math.fsum(counts * (np.logaddexp(tilt * sizes / 2, -tilt * sizes / 2) - math.log(2))) - tilt * reach / 2
    return min(1.0, max(2 * math.exp(scale) * math.fsum(chances * weights), _LEAST))


def drawn_p(sizes: Integers, counts: Integers, reach: int, draws: int, seed: int) -> float:
    """The same from random flips: a binomial draw for each size, so that a million units cost what a thousand do."""
    generator = np.random.default_rng(seed)
    totals = np.zeros(draws, dtype=np.int64)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        totals += size * (2 * generator.binomial(count, 0.5, draws) - count)
    return (int(np.count_nonzero(np.abs(totals) >= reach)) + 1) / (draws + 1)


def _distinct(sums: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """The distinct absolute sums other than zero, and how many units have each."""
    sizes, places = np.unique(np.abs(sums), return_inverse=True)
    many = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(many, places, counts)
    return sizes[sizes > 0], many[sizes > 0]


def _tilt(sizes: Integers, counts: Integers, reach: int) -> float:
    """The tilt under which the sum is expected to be about `reach`: Newton's steps, which only ever fall short."""
    tilt = 0.0
    for _ in range(_TILTS):
        lean = np.tanh(tilt * sizes / 2)
        missing = reach - float((counts * sizes * lean).sum())
        slope = float((counts * sizes**2 * (1 - lean**2)).sum()) / 2
        if missing**2 < slope / 4:
            break
        tilt += missing / slope
    return tilt


def _tilted_chances(sizes: Integers, counts: Integers, tilt: float, total: int) -> Floats:
    """Chances of the plus signs adding up to 0, 1, … `total`, where a plus has the odds exp(tilt * size)."""
    points = 1 << total.bit_length()
    places, turns = np.arange(points // 2 + 1), _turns(points)
    values = np.ones(len(places), dtype=np.complex128)
    # The commonest first: they leave the fewest frequencies to go on with.
    for row, place in enumerate(np.argsort(-counts, kind="stable").tolist()):
        size, count = int(sizes[place]), int(counts[place])
        plus = (1 + math.tanh(tilt * size / 2)) / 2
        # The remainder by a power of two, at a fifth of the price of a division.
        factors = plus * turns[(places * size) & (points - 1)] + (1 - plus)
        values *= factors**count if count > 1 else factors
        if row % 4 == 0:
            kept = np.abs(values) > _NOTHING
            places, values = places[kept], values[kept]
    spectrum = np.zeros(points // 2 + 1, dtype=np.complex128)
    spectrum[places] = np.conj(values)
    return np.maximum(np.fft.irfft(spectrum, points), 0.0)


@lru_cache(maxsize=4)
def _turns(points: int) -> NDArray[np.complex128]:
    turns: NDArray[np.complex128] = np.exp(2j * np.pi * np.arange(points) / points)
    return turns
