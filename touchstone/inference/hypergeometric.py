"""The within-problem permutation of attempts: a test of "no difference" for unequal numbers of attempts.

If both sides pass a problem at the same rate, the attempts at it can be exchanged between them. So, given that `passed`
of the n_a + n_b attempts at a problem passed, the number that side b has of them is hypergeometric, independently from
problem to problem. The statistic is the sum over problems of the difference of rates, which for given `passed` is
c_b (1 / n_a + 1 / n_b) but for a constant. Clusters do not matter: attempts can be exchanged within each problem,
whatever the problems share. This is a stratified exact test, a stratum per problem, all weighted alike.
"""

import math
from dataclasses import dataclass

import numpy as np

from touchstone.inference.paired_units import Floats, Integers, PairedOutcomes
from touchstone.inference.tails import MAX_LATTICE_SUM, DiscreteTerms, lattice_tail, saddlepoint_tail, two_sided

# Not exact where the largest sum times the number of values of one problem is beyond this.
_WORK = 2**19
_LARGEST_DENOMINATOR = 2**40
# The rounded test has a grid of so many steps per standard deviation of the sum, and at most so many in all.
_STEPS, _MAX_STEPS = 64, 2**14
# From this variance of the passes of b on, the saddlepoint is as good.
_SADDLEPOINT_FROM = 100
# Numbers in the table of chances that memory is spent on; beyond, each problem has so many values at most.
_MAX_PROBABILITIES, _MAX_VALUES = 2**22, 1024


@dataclass(frozen=True)
class _Strata:
    """Problems alike in attempts and passes, `counts` of each kind; b passed from `lowest` to `lowest + spans`."""

    n_a: Integers
    n_b: Integers
    passed: Integers
    counts: Integers
    lowest: Integers
    spans: Integers

    @classmethod
    def of(cls, n_a: Integers, n_b: Integers, passed: Integers, counts: Integers) -> "_Strata":
        lowest = np.maximum(0, passed - n_a)
        return cls(n_a, n_b, passed, counts, lowest, np.minimum(n_b, passed) - lowest)

    @property
    def worth(self) -> Floats:
        """What one more pass of b, and so one less of a, adds to the sum of differences."""
        worth: Floats = 1 / self.n_a + 1 / self.n_b
        return worth

    def chances(self) -> Floats:
        """The chances of `lowest`, `lowest + 1`, ... passes of b: a row per stratum, padded with zeros."""
        places = np.arange(int(self.spans.max()) + 1)
        possible = places <= self.spans[:, None]
        c_b = self.lowest[:, None] + np.where(possible, places, 0)
        c_a = self.passed[:, None] - c_b
        logs = np.append(0.0, np.cumsum(np.log(np.arange(1, int(max(self.n_a.max(), self.n_b.max())) + 1))))
        ways = -logs[c_b] - logs[self.n_b[:, None] - c_b] - logs[c_a] - logs[self.n_a[:, None] - c_a]
        chances = np.where(possible, np.exp(ways - ways.max(axis=1, keepdims=True)), 0.0)
        shares: Floats = chances / chances.sum(axis=1, keepdims=True)
        return shares

    def variances(self) -> Floats:
        """The variance of the passes of b at one problem of each stratum."""
        attempts = self.n_a + self.n_b
        mixed: Floats = self.passed * (attempts - self.passed) / (attempts**2 * (attempts - 1.0))
        return self.n_a * self.n_b * mixed

    def grid(self) -> Floats:
        """How many steps of the rounded test's grid one more pass of b is worth, in each stratum."""
        deviation = math.sqrt(math.fsum(self.counts * self.worth**2 * self.variances()))
        largest = math.fsum(self.counts * self.worth * self.spans)
        return self.worth * min(_STEPS / deviation, _MAX_STEPS / largest)

    def rounded_chances(self, scales: Floats) -> Floats:
        """The chances of 0, 1, ... where passes above the lowest are multiplied by `scales` and rounded."""
        rows = []
        for place, scale in enumerate(scales):
            (chances,) = _Strata(*(part[place : place + 1] for part in vars(self).values())).chances()
            rows.append(np.bincount(_rounded(scale, np.arange(len(chances))), weights=chances))
        width = max(len(row) for row in rows)
        return np.stack([np.pad(row, (0, width - len(row))) for row in rows])


def hypergeometric_test(table: PairedOutcomes) -> tuple[str, float]:
    """Two-sided p-value, twice the chance that side b passes so much more than side a, and how it was computed.

    - `exact` where the differences have a common denominator of tolerable size, as where all problems have as many
      attempts as each other.
    - `rounded` for little data: each problem's part of the sum is rounded to a grid. The level stays exact: the
      distribution of the rounded statistic is known as well.
    - `saddlepoint` for more, approximately. Counting half a pass less is a correction for continuity: the p-value is
      right where the sums lie on a lattice, and up to 15% too large elsewhere at p-values of 0.01 and more.

    Three problems with the one attempt of b passed, and 1 of 4 of a, so 2 of 5 in each:

    >>> counts = {"n_a": [4], "c_a": [1], "n_b": [1], "c_b": [1], "weights": [3], "clusters": [0]}
    >>> table = PairedOutcomes(**{name: np.array(part) for name, part in counts.items()}, only_a=0, only_b=0)
    >>> name, p = hypergeometric_test(table)
    >>> name, round(p, 12), round(2 * 0.4**3, 12)
    ('exact', 0.128, 0.128)
    """
    # Problems that all attempts passed, or none, say nothing.
    passed = table.c_a + table.c_b
    varies = (passed > 0) & (passed < table.n_a + table.n_b)
    weights, c_b = table.weights[varies], table.c_b[varies]
    if len(weights) == 0:
        return "exact", 1.0
    keys = np.stack([table.n_a, table.n_b, passed])[:, varies]
    kinds, places = np.unique(keys, axis=1, return_inverse=True)
    counts = np.zeros(kinds.shape[1], dtype=np.int64)
    np.add.at(counts, places, weights)
    strata = _Strata.of(kinds[0], kinds[1], kinds[2], counts)
    above = c_b - strata.lowest[places]
    steps = _whole_steps(strata)
    if steps is not None:
        reach = int((weights * steps[places] * above).sum())
        return "exact", two_sided(lattice_tail(DiscreteTerms(steps, strata.chances(), counts), reach))
    if math.fsum(counts * strata.variances()) < _SADDLEPOINT_FROM:
        scales = strata.grid()
        terms = DiscreteTerms(np.ones_like(counts), strata.rounded_chances(scales), counts)
        reach = int((weights * _rounded(scales[places], above)).sum())
        return "rounded", two_sided(lattice_tail(terms, reach))
    return "saddlepoint", _saddlepoint(strata, weights, places, above)


def _whole_steps(strata: _Strata) -> Integers | None:
    """The strata's worths as whole numbers; null where the sums would be too large."""
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


def _saddlepoint(strata: _Strata, weights: Integers, places: Integers, above: Integers) -> float:
    worth, spans = strata.worth, strata.spans
    if len(spans) * int(spans.max()) <= _MAX_PROBABILITIES:
        terms = DiscreteTerms(worth, strata.chances(), strata.counts)
    else:
        scales = np.minimum(1.0, _MAX_VALUES / spans)
        terms = DiscreteTerms(worth / scales, strata.rounded_chances(scales), strata.counts)
        above = _rounded(scales[places], above)
    if bool((above == terms.widths[places] - 1).all()):
        return two_sided(terms.largest_chance())
    reach = math.fsum(weights * terms.steps[places] * above) - float(worth.min()) / 2
    return two_sided(saddlepoint_tail(terms, reach))


def _rounded(scale: Floats | float, values: Integers) -> Integers:
    rounded: Integers = np.rint(scale * values).astype(np.int64)
    return rounded
