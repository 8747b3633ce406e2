"""Two-sided tests of "no difference" between two sides, on independent units.

- McNemar's exact test, for one attempt per problem and side: only problems that flipped count, and under the null
  hypothesis each flip is a fair coin.
- The sign permutation test, for equal attempts: under the null hypothesis a unit's difference is equally likely to have
  either sign, so all ways to sign the absolute differences are equally likely. They add up to the observed sum or
  further if the units of the other sign add up to at most `rest`, half of the distance from the observed to the largest
  sum. So p is twice the number of choices of such units over 2^units. Choices are counted size by size: the m units of
  size s multiply the generating function of the sums by (1 + x^s)^m, of which only the powers up to `rest` matter. All
  terms are positive, so no digits cancel, and a p-value of 1e-200 is as precise as one of 0.05. Up to 53 units, the
  counts are exact integers.
- If a problem has more attempts on one side, its difference is not symmetric under the null hypothesis, and the sign
  permutation test is no longer exact: for 1 attempt against 20 at an easy problem the difference is nearly always a
  small plus. So the p-value is the larger of two. The second comes from permuting attempts within each problem
  (`hypergeometric`).

Exactness. If both sides have the same pass rate on every problem (the sharp null hypothesis: a model against itself),
each of these tests keeps its level, whatever the rates, the numbers of attempts and the clusters. If the rates differ
from problem to problem and only their means are equal, the sign permutation test keeps its level if the units'
differences are symmetric, and approximately for many units otherwise; the hypergeometric test does not, which is why it
never decides alone.

References: McNemar (1947), "Note on the sampling error of the difference between correlated proportions or
percentages", Psychometrika 12(2). Pesarin and Salmaso (2010), "Permutation Tests for Complex Data". Phipson and Smyth
(2010), "Permutation p-values should never be zero", Statistical Applications in Genetics and Molecular Biology 9(1).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from touchstone.inference.arrays import Booleans, Floats, Integers, Texts
from touchstone.inference.hypergeometric import hypergeometric_test
from touchstone.inference.paired_moments import PairChunk, PairedUnits, count_by_row
from touchstone.inference.saddlepoints import AttemptKinds, hypergeometric_saddlepoint_p, sign_saddlepoint_p
from touchstone.inference.tails import MAX_LATTICE_SUM, SMALLEST_P, DiscreteTerms, lattice_tail, two_sided

# A rounded permutation test has a grid of this many steps per unit, and at least so many in all.
_STEPS, _MIN_STEPS = 32, 2**12
# With unequal attempts the sign permutation test is not exact in any case, so it is rounded sooner.
_UNEQUAL_LATTICE = 2**14
# More random sign flips than this take too long for one pair.
_MAX_DRAWS = 2**25
# Generous bounds on the relative error of approximate p-values: in general, and with unequal attempts of a small common
# denominator, where the continuity correction by half a pass may be too large.
_ERROR, _UNEQUAL_ERROR = 0.1, 0.25
_SMALL_DENOMINATOR = 64
# The number of choices must fit into a float.
_MAX_UNITS = 1000
# If the largest sum times the units exceeds this, the Fourier transform is faster.
_WORK = 2**20
# Numbers in a block of rows: as many as fit into the CPU cache.
_BLOCK = 2**14


@dataclass(frozen=True)
class PairedTests:
    """The name and the p-value of the test of each pair, and a bound on its relative distance from `exact_tests`."""

    names: Texts
    p_values: Floats
    error: Floats


def paired_tests(chunk: PairChunk, kinds: AttemptKinds | None, draws: int, seed: int) -> PairedTests:
    """The test that fits each pair: exact where few units differ, approximate where many do.

    `kinds` are those of problems with unequal attempts; without them, such pairs are tested one after the other.
    """
    equal, once = _attempts(chunk)
    names, p_values = np.full(len(equal), None, dtype=object), np.full(len(equal), np.nan)
    if once.any():
        names[once], p_values[once] = "mcnemar", _mcnemar_p(chunk, np.flatnonzero(once))
    signs, unequal = np.flatnonzero(equal & ~once), np.flatnonzero(~equal)
    p_values[~once] = sign_saddlepoint_p(chunk.differences[~once], chunk.exact[~once])
    names[signs] = "permutation-saddlepoint"
    if len(unequal):
        names[unequal] = "permutation-hypergeometric-saddlepoint"
        p_values[unequal] = _larger_p(chunk, unequal, p_values[unequal], kinds)
    error = np.where(equal | (chunk.denominator > _SMALL_DENOMINATOR), _ERROR, _UNEQUAL_ERROR)
    error[once | np.isnan(p_values)] = 0.0
    rest = np.flatnonzero(np.isnan(p_values))
    names[rest], p_values[rest] = exact_tests(chunk, rest, draws, seed)
    return PairedTests(names, p_values, error)


def _larger_p(chunk: PairChunk, rows: Integers, signs: Floats, kinds: AttemptKinds | None) -> Floats:
    """The larger p of the two tests for unequal attempts; NaN without an approximation of the second.

    The first is exact if few units differ.
    """
    if kinds is None:
        return np.full(len(rows), np.nan)
    attempts = hypergeometric_saddlepoint_p(kinds, chunk, rows)
    for place in np.flatnonzero(np.isnan(signs) & ~np.isnan(attempts)).tolist():
        signs[place] = sign_permutation_test(chunk.units(int(rows[place])), 0, 0, _UNEQUAL_LATTICE)[1]
    return np.maximum(signs, attempts)


def _attempts(chunk: PairChunk) -> tuple[Booleans, Booleans]:
    """Whether both sides have as many attempts at each problem, and whether McNemar's test applies."""
    distinct = chunk.matrix.distinct_attempts
    if len(distinct) == 1:
        return np.ones(len(chunk.first), dtype=bool), ~chunk.clustered & (distinct[0] == 1)
    first, second = (chunk.matrix.n[side] for side in (chunk.first, chunk.second))
    equal = ((first == second) | ~chunk.shared).all(axis=1)
    return equal, equal & ~chunk.clustered & (np.where(chunk.shared, first, 1).max(axis=1) == 1)


def exact_tests(chunk: PairChunk, rows: Integers, draws: int, seed: int) -> tuple[Texts, Floats]:
    """The names and the two-sided p-values of the most precise tests of these pairs."""
    names, p_values = np.full(len(rows), "permutation-exact", dtype=object), np.full(len(rows), np.nan)
    signs = np.flatnonzero(_attempts(chunk)[0][rows] & chunk.exact[rows])
    differences = chunk.differences[rows[signs]]
    p_values[signs] = sign_exact_p(np.abs(differences), np.abs(differences.sum(axis=1)))
    for place in np.flatnonzero(np.isnan(p_values)).tolist():
        names[place], p_values[place] = _exact_test(chunk, int(rows[place]), draws, seed)
    return names, p_values


def _exact_test(chunk: PairChunk, row: int, draws: int, seed: int) -> tuple[str, float]:
    units = chunk.units(row)
    table = chunk.matrix.pair(int(chunk.first[row]), int(chunk.second[row]))
    if np.array_equal(table.n_a, table.n_b):
        return sign_permutation_test(units, draws, seed)
    signs, p_signs = sign_permutation_test(units, 0, 0, _UNEQUAL_LATTICE)
    towards_b = int((units.sums * units.counts).sum()) >= 0
    computed, p_attempts = hypergeometric_test(table if towards_b else table.swapped())
    if computed == "exact" and "rounded" in signs:
        computed = "rounded"
    name = "permutation-hypergeometric" + ("" if computed == "exact" else f"-{computed}")
    return name, max(p_signs, p_attempts)


def _mcnemar_p(chunk: PairChunk, rows: Integers) -> Floats:
    differences = chunk.differences[rows]
    return mcnemar(*(np.count_nonzero(signed > 0, axis=1) for signed in (differences, -differences)))


def mcnemar(wins: Integers, losses: Integers) -> Floats:
    """Exact two-sided p-values of McNemar's test (1947).

    >>> mcnemar(np.array([9]), np.array([1]))
    array([0.02148438])
    """
    # Imported here because it takes longer than the rest of a comparison.
    from scipy.special import bdtr  # type: ignore[import-untyped]

    return np.asarray(np.clip(2 * bdtr(np.minimum(wins, losses), wins + losses, 0.5), SMALLEST_P, 1.0))


def smallest_p(units: int) -> float:
    """The smallest two-sided p-value possible with this many units: all differ in the same direction.

    >>> smallest_p(6)
    0.03125
    """
    return max(math.ldexp(2.0, -units), SMALLEST_P) if units > 0 else 1.0


def sign_permutation_test(units: PairedUnits, draws: int, seed: int, lattice: int | None = None) -> tuple[str, float]:
    """The name and the p-value of the sign permutation test that fits the units. `draws=0` excludes random signs.

    - `permutation-exact` if the differences, as integers, add up to at most `lattice` (default `MAX_LATTICE_SUM`).
    - `permutation` beyond that: random signs, p = (as extreme + 1) / (draws + 1) (Phipson and Smyth 2010).
    - `permutation-rounded` if that many draws would take too long: the exact test of the differences rounded to a
      coarser grid. This costs almost no power and the level stays exact, because a rounded difference is symmetric if
      the difference is.

    >>> ones = np.ones(3, dtype=np.int64)
    >>> units = PairedUnits(np.array([3, 6, 6]), ones, 3, exact=True)
    >>> sign_permutation_test(units, 100, 7)
    ('permutation-exact', 0.25)
    """
    sums, counts = units.sums, units.counts
    sums = sums // max(1, int(np.gcd.reduce(sums)))
    observed = abs(int((sums * counts).sum()))
    sizes, size_counts = _distinct(sums, counts)
    total = int((sizes * size_counts).sum())
    if units.exact and total <= (MAX_LATTICE_SUM if lattice is None else lattice):
        return "permutation-exact", exact_permutation_p(sizes, size_counts, observed)
    if 0 < len(sizes) * draws <= _MAX_DRAWS:
        # Rounded rates may break ties, by a step or two for each problem.
        slack = 0 if units.exact else 2 * units.problems
        return "permutation", monte_carlo_p(sizes, size_counts, observed - slack, draws, seed)
    steps = min(MAX_LATTICE_SUM, max(_MIN_STEPS, _STEPS * int(size_counts.sum())))
    rounded = np.rint(sums * (steps / total)).astype(np.int64)
    sizes, size_counts = _distinct(rounded, counts)
    observed = abs(int((rounded * counts).sum()))
    return "permutation-rounded", exact_permutation_p(sizes, size_counts, observed)


def exact_permutation_p(sizes: Integers, counts: Integers, observed: int) -> float:
    """Probability that `counts` of each of the positive `sizes`, with random signs, add up to `observed` or further.

    >>> exact_permutation_p(np.array([1, 2]), np.array([1, 2]), 5)
    0.25
    """
    total = int((sizes * counts).sum())
    if observed == 0:
        return 1.0
    if observed == total:
        # All signs agree: this is faster and exact to the last digit.
        return smallest_p(int(counts.sum()))
    p_value = float(sign_exact_p(np.repeat(sizes, counts)[None], np.array([observed]))[0])
    if not math.isnan(p_value):
        return p_value
    coins = DiscreteTerms(sizes, np.full((len(sizes), 2), 0.5), counts)
    return two_sided(lattice_tail(coins, (total + observed) // 2))


def monte_carlo_p(sizes: Integers, counts: Integers, observed: int, draws: int, seed: int) -> float:
    """The same from random signs: one binomial draw per size, so that the cost does not grow with the units."""
    generator = np.random.default_rng(seed)
    totals = np.zeros(draws, dtype=np.int64)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        totals += size * (2 * generator.binomial(count, 0.5, draws) - count)
    return (int(np.count_nonzero(np.abs(totals) >= observed)) + 1) / (draws + 1)


def _distinct(sums: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """The distinct nonzero absolute sums, and how many units have each."""
    sizes, rows = np.unique(np.abs(sums), return_inverse=True)
    size_counts = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(size_counts, rows, counts)
    return sizes[sizes > 0], size_counts[sizes > 0]


# Counting the choices of signs


def sign_exact_p(sizes: Integers, observed: Integers) -> Floats:
    """Two-sided p-values of each row's sum of absolute differences with signs; NaN where this takes too long.

    A row's result depends on its own differences alone, to the last digit: other rows add only zeros to its sums.

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
