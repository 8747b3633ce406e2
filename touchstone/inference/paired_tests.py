"""Tests of "no difference" between two sides, always two-sided and on independent units.

- McNemar's exact test, for one attempt per problem and side: only problems that flipped count, and under the null each
  flip is a fair coin.
- The permutation of signs, for equal attempts: under the null a unit's difference is as likely to have the other sign.
- Where a problem has more attempts on one side, its difference is not symmetric under the null, and the permutation of
  signs is exact no longer: of 1 attempt against 20 at an easy problem the difference is nearly always a small plus. So
  the p-value is the larger of two. The second is the within-problem permutation of attempts: given how many attempts at
  a problem passed on both sides together, those of one side are hypergeometric.

What is exact. If both sides have the same pass rate at every problem (the sharp null: a model against itself), each of
these rejects at most at its level, whatever the rates, the numbers of attempts and the clusters are. If the sides'
rates differ from problem to problem and only their mean is equal, the permutation of signs holds its level where the
units' differences are symmetric, and approximately for many units otherwise; the hypergeometric test does not, which
is why it never decides alone.
"""

import math

import numpy as np

from touchstone.inference.hypergeometric import hypergeometric_test
from touchstone.inference.paired_units import Integers, PairedOutcomes, PairedUnits
from touchstone.inference.tails import MAX_LATTICE_SUM, SMALLEST_P, DiscreteTerms, lattice_tail, two_sided

# A rounded permutation has a grid of so many steps per unit, and in all at least this many.
_STEPS, _MIN_STEPS = 32, 2**12
# Where attempts are unequal the permutation is not exact anyway, and rounded sooner.
_UNEQUAL_LATTICE = 2**14
# More random flips than this take too long for one pair.
_MAX_DRAWS = 2**25


def paired_test(
    table: PairedOutcomes, problems: PairedUnits, units: PairedUnits, draws: int, seed: int
) -> tuple[str, float]:
    """The test that fits the pair and its two-sided p-value.

    `problems` are the pair's problems and `units` what is independent: the same, or clusters of them.
    """
    if not np.array_equal(table.n_a, table.n_b):
        return _unequal_attempts(table, problems, units)
    if int(table.n_a.max()) == 1 and not units.clustered:
        wins, losses = (int(units.counts[turned > 0].sum()) for turned in (units.sums, -units.sums))
        return "mcnemar", mcnemar(wins, losses)
    return sign_permutation_test(units, draws, seed)


def _unequal_attempts(table: PairedOutcomes, problems: PairedUnits, units: PairedUnits) -> tuple[str, float]:
    signs, p_signs = sign_permutation_test(units, 0, 0, _UNEQUAL_LATTICE)
    towards_b = problems.mean(problems.sums) >= 0
    computed, p_attempts = hypergeometric_test(table if towards_b else table.swapped())
    if computed == "exact" and "rounded" in signs:
        computed = "rounded"
    name = "permutation-hypergeometric" + ("" if computed == "exact" else f"-{computed}")
    return units.method_name(name), max(p_signs, p_attempts)


def mcnemar(wins: int, losses: int) -> float:
    """Exact p of so many flips for and against.

    >>> mcnemar(9, 1)
    0.021484375
    """
    # Imported here: it takes longer than all else that a comparison does.
    from scipy.special import bdtr  # type: ignore[import-untyped]

    return min(1.0, max(2 * float(bdtr(min(wins, losses), wins + losses, 0.5)), SMALLEST_P))


def smallest_p(units: int) -> float:
    """The smallest two-sided p-value that so many units can give: all differ, and all in the same direction.

    >>> smallest_p(6)
    0.03125
    """
    return max(math.ldexp(2.0, -units), SMALLEST_P) if units > 0 else 1.0


def sign_permutation_test(units: PairedUnits, draws: int, seed: int, lattice: int | None = None) -> tuple[str, float]:
    """Which permutation of signs fits the units, and its p. 0 draws: no random ones.

    - `permutation-exact` where the differences, as whole numbers, add up to at most `lattice` (else `MAX_LATTICE_SUM`).
    - `permutation` beyond it: random flips, p = (as extreme + 1) / (draws + 1).
    - `permutation-rounded` where so many draws would take too long: the differences are rounded to a coarser grid and
      the exact test is made of those. That costs next to no power, and the level stays exact: a rounded difference is
      as likely to have the other sign as the difference itself.

    >>> ones = np.ones(3, dtype=np.int64)
    >>> units = PairedUnits(0 * ones, np.array([3, 6, 6]), 9, ones, ones, clustered=False, exact=True)
    >>> sign_permutation_test(units, 100, 7)
    ('permutation-exact', 0.25)
    """
    sums, counts = units.sums, units.counts
    sums = sums // max(1, int(np.gcd.reduce(sums)))
    reach = abs(int((sums * counts).sum()))
    sizes, many = _distinct(sums, counts)
    total = int((sizes * many).sum())
    if units.exact and total <= (MAX_LATTICE_SUM if lattice is None else lattice):
        return units.method_name("permutation-exact"), exact_permutation_p(sizes, many, reach)
    if 0 < len(sizes) * draws <= _MAX_DRAWS:
        # Rates that were rounded may part what are ties, by a step or two for each problem.
        slack = 0 if units.exact else 2 * units.problems
        return units.method_name("permutation"), monte_carlo_p(sizes, many, reach - slack, draws, seed)
    steps = min(MAX_LATTICE_SUM, max(_MIN_STEPS, _STEPS * int(many.sum())))
    rounded = np.rint(sums * (steps / total)).astype(np.int64)
    sizes, many = _distinct(rounded, counts)
    return units.method_name("permutation-rounded"), exact_permutation_p(
        sizes, many, abs(int((rounded * counts).sum()))
    )


def exact_permutation_p(sizes: Integers, counts: Integers, reach: int) -> float:
    """Chance that the sum of distinct positive `sizes`, `counts` of each, gets `reach` from zero by fair signs.

    >>> exact_permutation_p(np.array([1, 2]), np.array([1, 2]), 5)
    0.25
    """
    total = int((sizes * counts).sum())
    if reach == 0:
        return 1.0
    if reach == total:
        # At once, and to the last digit: all signs agree.
        return smallest_p(int(counts.sum()))
    coins = DiscreteTerms(sizes, np.full((len(sizes), 2), 0.5), counts)
    return two_sided(lattice_tail(coins, (total + reach) // 2))


def monte_carlo_p(sizes: Integers, counts: Integers, reach: int, draws: int, seed: int) -> float:
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
