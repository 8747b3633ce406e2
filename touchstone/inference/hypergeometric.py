"""Permutation of attempts within problems: a stratified exact test of "no difference" for unequal attempts.

If both sides have the same pass rate on a problem, its attempts are exchangeable between them. So, given that `passed`
of the n_a + n_b attempts at a problem passed, the number of them on side b is hypergeometric, independently between
problems, as in Fisher's exact test (1935). The statistic is the sum over problems of the difference of rates, which for
given `passed` is c_b (1 / n_a + 1 / n_b) up to a constant. Clusters do not matter, because attempts are exchangeable
within each problem whatever problems have in common. Each problem is a stratum, and all have equal weight.
"""

import math
from dataclasses import dataclass

import numpy as np

from touchstone.inference.arrays import Floats, Integers
from touchstone.inference.paired_moments import PairedOutcomes
from touchstone.inference.tails import MAX_LATTICE_SUM, DiscreteTerms, exact_tail, saddlepoint_tail, two_sided

# The exact test is too slow if the largest sum times the number of values of one problem exceeds this.
_WORK = 2**19
_LARGEST_DENOMINATOR = 2**40
# The rounded test has a grid of this many steps per standard deviation of the sum, and at most so many in all.
_STEPS, _MAX_STEPS = 64, 2**14
# From this variance of side b's passes on, the saddlepoint approximation is as accurate.
MIN_VARIANCE = 100
# The largest matrix of probabilities; beyond that, each problem is rounded to so many values.
_MAX_PROBABILITIES, _MAX_VALUES = 2**22, 1024


@dataclass(frozen=True)
class Strata:
    """`counts` problems of each kind, alike in attempts and passes; b can have `lowest` to `lowest + spans` passes."""

    n_a: Integers
    n_b: Integers
    passed: Integers
    counts: Integers
    lowest: Integers
    spans: Integers

    @classmethod
    def of(cls, n_a: Integers, n_b: Integers, passed: Integers, counts: Integers) -> "Strata":
        lowest = np.maximum(0, passed - n_a)
        return cls(n_a, n_b, passed, counts, lowest, np.minimum(n_b, passed) - lowest)

    @property
    def effect(self) -> Floats:
        """How much one more pass of b, and so one fewer of a, adds to the sum of differences."""
        effect: Floats = 1 / self.n_a + 1 / self.n_b
        return effect

    def probabilities(self) -> Floats:
        """The probabilities of `lowest`, `lowest + 1`, ... passes of b: a row per stratum, padded with zeros."""
        above = np.arange(int(self.spans.max()) + 1)
        possible = above <= self.spans[:, None]
        c_b = self.lowest[:, None] + np.where(possible, above, 0)
        c_a = self.passed[:, None] - c_b
        logs = np.append(0.0, np.cumsum(np.log(np.arange(1, int(max(self.n_a.max(), self.n_b.max())) + 1))))
        ways = -logs[c_b] - logs[self.n_b[:, None] - c_b] - logs[c_a] - logs[self.n_a[:, None] - c_a]
        relative = np.where(possible, np.exp(ways - ways.max(axis=1, keepdims=True)), 0.0)
        probabilities: Floats = relative / relative.sum(axis=1, keepdims=True)
        return probabilities

    def variances(self) -> Floats:
        """The variance of b's passes on one problem of each stratum."""
        attempts = self.n_a + self.n_b
        mixed: Floats = self.passed * (attempts - self.passed) / (attempts**2 * (attempts - 1.0))
        return self.n_a * self.n_b * mixed

    def grid(self) -> Floats:
        """How many steps of the rounded test's grid one more pass of b is, in each stratum."""
        deviation = math.sqrt(math.fsum(self.counts * self.effect**2 * self.variances()))
        largest = math.fsum(self.counts * self.effect * self.spans)
        return self.effect * min(_STEPS / deviation, _MAX_STEPS / largest)

    def rounded_probabilities(self, scales: Floats) -> Floats:
        """The probabilities of 0, 1, ... if passes above the lowest are multiplied by `scales` and rounded."""
        rows = []
        for place, scale in enumerate(scales):
            (row,) = Strata(*(part[place : place + 1] for part in vars(self).values())).probabilities()
            rows.append(np.bincount(_rounded(scale, np.arange(len(row))), weights=row))
        width = max(len(row) for row in rows)
        return np.stack([np.pad(row, (0, width - len(row))) for row in rows])


def fisher_p(n_a: int, c_a: int, n_b: int, c_b: int) -> float:
    """The one-sided p-value of Fisher's exact test (1935): how surprising as many as c_b of n_b are, or more.

    >>> round(fisher_p(4, 1, 4, 3), 4)  # his lady tasting tea, who found three of four cups: 17 in 70
    0.2429
    """
    strata = Strata.of(*(np.array([count]) for count in (n_a, n_b, c_a + c_b, 1)))
    return float(strata.probabilities()[0, c_b - int(strata.lowest[0]) :].sum())


def hypergeometric_test(table: PairedOutcomes) -> tuple[str, float]:
    """How the p-value was computed, and the p-value: twice the probability that b is ahead of a by this much.

    - `exact` if the differences have a common denominator of tolerable size, for example if all problems have equally
      many attempts.
    - `rounded` for little data: each problem's contribution is rounded to a grid. The level stays exact, because the
      distribution of the rounded statistic is known, too.
    - `saddlepoint`, an approximation, for more data. Half a pass is subtracted as a continuity correction: the p-value
      is right if the sums lie on a lattice, and otherwise up to 15% too large at p-values of 0.01 and more.

    Three problems with 1 of 1 attempts of b passed and 1 of 4 of a, so 2 of 5 in each:

    >>> table = PairedOutcomes(*(np.array([count]) for count in (4, 1, 1, 1, 3)))
    >>> name, p = hypergeometric_test(table)
    >>> name, round(p, 12), round(2 * 0.4**3, 12)
    ('exact', 0.128, 0.128)
    """
    # Problems that all attempts passed, or none, are uninformative.
    passed = table.c_a + table.c_b
    varies = (passed > 0) & (passed < table.n_a + table.n_b)
    weights, c_b = table.weights[varies], table.c_b[varies]
    if len(weights) == 0:
        return "exact", 1.0
    keys = np.stack([table.n_a, table.n_b, passed])[:, varies]
    kinds, stratum = np.unique(keys, axis=1, return_inverse=True)
    counts = np.zeros(kinds.shape[1], dtype=np.int64)
    np.add.at(counts, stratum, weights)
    strata = Strata.of(kinds[0], kinds[1], kinds[2], counts)
    above = c_b - strata.lowest[stratum]
    steps = _integer_steps(strata)
    if steps is not None:
        observed = int((weights * steps[stratum] * above).sum())
        return "exact", two_sided(exact_tail(DiscreteTerms(steps, strata.probabilities(), counts), observed))
    if math.fsum(counts * strata.variances()) < MIN_VARIANCE:
        scales = strata.grid()
        terms = DiscreteTerms(np.ones_like(counts), strata.rounded_probabilities(scales), counts)
        observed = int((weights * _rounded(scales[stratum], above)).sum())
        return "rounded", two_sided(exact_tail(terms, observed))
    return "saddlepoint", _saddlepoint(strata, weights, stratum, above)


def _integer_steps(strata: Strata) -> Integers | None:
    """The effects of the strata as integers; None if the sums would be too large."""
    products = strata.n_a * strata.n_b
    common = 1
    for product in np.unique(products).tolist():
        common = math.lcm(common, product)
        if common > _LARGEST_DENOMINATOR:
            return None
    steps: Integers = (strata.n_a + strata.n_b) * (common // products)
    steps //= int(np.gcd.reduce(steps))
    total = math.fsum(strata.counts * strata.spans * steps.astype(np.float64))
    return steps if total <= MAX_LATTICE_SUM and total * int(strata.spans.max()) <= _WORK else None


def _saddlepoint(strata: Strata, weights: Integers, stratum: Integers, above: Integers) -> float:
    effect, spans = strata.effect, strata.spans
    if len(spans) * int(spans.max()) <= _MAX_PROBABILITIES:
        terms = DiscreteTerms(effect, strata.probabilities(), strata.counts)
    else:
        scales = np.minimum(1.0, _MAX_VALUES / spans)
        terms = DiscreteTerms(effect / scales, strata.rounded_probabilities(scales), strata.counts)
        above = _rounded(scales[stratum], above)
    if bool((above == terms.widths[stratum] - 1).all()):
        return two_sided(terms.largest_sum_probability())
    observed = math.fsum(weights * terms.steps[stratum] * above) - float(effect.min()) / 2
    return two_sided(saddlepoint_tail(terms, observed))


def _rounded(scale: Floats | float, values: Integers) -> Integers:
    rounded: Integers = np.rint(scale * values).astype(np.int64)
    return rounded
