"""How many problems fell, and how many rose: an exact test beside that of the mean.

Ten problems of 300 that always passed and never do now are 3.3 points, which the test of the mean often misses among
the noise of the others. Each of them alone is remarkable: 5 of 5 and then 0 of 5 has the one-sided p-value 1 / 252 of
Fisher's exact test. A problem fell, or rose, if that p-value is at most 0.01. If nothing changed, the passes of a
problem are hypergeometric given those of both sides together (`hypergeometric`), so the probability that it falls is
known, and the number that fell is Poisson-binomial. Its tail is exact, whatever the pass rates, the numbers of
attempts and the clusters.

The hypothesis is that no problem changed, which only makes sense for one model at two times: two different models
differ from problem to problem even if they are equally good. So the test decides nothing about those. Even for one
model, a change that breaks as many problems as it repairs is not worse: if more rose than chance explains, fallen ones
must also outnumber them by a sign test, both less their expected numbers.

Both tests share one level: the mean gets 1 - `SHARE` of it and the fallen problems `SHARE` (a weighted Bonferroni
correction, Rosenthal and Rubin 1983), unless no number of attempts could make a problem fall.

References: Fisher (1935), "The Design of Experiments". Wang (1993), "On the number of successes in independent trials",
Statistica Sinica 3(2). Rosenthal and Rubin (1983), "Ensemble-adjusted p values", Psychological Bulletin 94(3).
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np

from touchstone.inference.arrays import Booleans, Floats, Integers
from touchstone.inference.hypergeometric import Strata
from touchstone.inference.paired_moments import PairChunk, PairedOutcomes
from touchstone.inference.paired_tests import mcnemar
from touchstone.inference.tails import MAX_LATTICE_SUM, DiscreteTerms, lattice_tail, saddlepoint_tail, two_sided

# The p-value at which a problem fell or rose, and the share of the level that their number is tested at.
LEVEL = 0.01
SHARE = 0.2
# The sign test only says which way it went, so it has this level however small the share of alpha: half a dozen broken
# problems are no doubt, but their sign test cannot reach the level of one of many looks.
SIGN_LEVEL = 0.05
# Fisher's p-values are computed with a relative error far below this.
_ROUNDING = 1e-9
# Problems changed both ways if as many rises beside falls, or falls beside rises, have at most this probability.
_BOTH_WAYS = 0.05
_MOST_COUNTED = 2**20


@dataclass(frozen=True)
class ChangedProblems:
    """How many problems fell and rose in each pair, and the p-value of that; NaN where it is not tested.

    `sign_p` is that of the sign test between those that fell and rose beyond what chance explains; 0 if chance explains
    either.
    """

    fell: Integers
    rose: Integers
    p_values: Floats
    sign_p: Floats

    @property
    def share(self) -> float:
        """The share of the level that is spent on this test, for all pairs of the family."""
        return 0.0 if bool(np.isnan(self.p_values).all()) else SHARE

    def combined(self, p_of_mean: Floats) -> Floats:
        """The p-values of both tests together: at most alpha if either is at most its share of alpha."""
        if not self.share:
            return p_of_mean
        changed = np.where(self.sign_p <= SIGN_LEVEL, self.p_values / self.share, 1.0)
        return np.minimum(1.0, np.fmin(p_of_mean / (1 - self.share), changed))


def can_fall(attempts: int, more: int) -> bool:
    """Whether a problem with so many attempts on either side can fall at all.

    >>> can_fall(4, 4), can_fall(5, 5), can_fall(1, 99), can_fall(10_000, 10_000)
    (False, True, True, True)
    """
    return comb(attempts + more, attempts) >= 1 / LEVEL


def changed_problems(chunk: PairChunk, *, tested: bool) -> ChangedProblems:
    """The problems that fell and rose from the first to the second side of each pair; if `tested`, with p-values."""
    p_values, most = np.full(len(chunk.first), np.nan), int(chunk.matrix.distinct_attempts[-1])
    if not can_fall(most, most):
        nothing = np.zeros(len(chunk.first), dtype=np.int64)
        return ChangedProblems(nothing, nothing, p_values, p_values)
    matrix, kinds = chunk.matrix, len(chunk.matrix.kind_n)
    keys = matrix.codes[chunk.first] * kinds + matrix.codes[chunk.second]
    present, places = _distinct(keys, kinds**2)
    first, second = np.divmod(present, kinds)
    tails = _Tails.of(matrix.kind_n[first], matrix.kind_c[first], matrix.kind_n[second], matrix.kind_c[second])
    change = (tails.rose.astype(np.int8) - tails.fell)[places]
    fell, rose = (np.count_nonzero(change == sign, axis=1) for sign in (-1, 1))
    if not tested:
        return ChangedProblems(fell, rose, p_values, p_values)
    found = [changed_p(matrix.pair(a, b)) for a, b in zip(chunk.first.tolist(), chunk.second.tolist(), strict=True)]
    return ChangedProblems(fell, rose, *np.array(found).reshape(-1, 2).T)


def _distinct(keys: Integers, bound: int) -> tuple[Integers, Integers]:
    """The distinct keys below the bound, and the place of each among them; counted, because sorting takes longer."""
    if bound > _MOST_COUNTED:
        present, places = np.unique(keys, return_inverse=True)
        return present, places.reshape(keys.shape)
    seen = np.bincount(keys.ravel(), minlength=bound) > 0
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[keys]


def changed_p(pair: PairedOutcomes) -> tuple[float, float]:
    """Twice the probability that as many problems fall as did if none changed, or rise if more rose; NaN if none can.

    And the p-value of the sign test, see `ChangedProblems`. Ten problems, always passing in a, two of them never in b:

    >>> pair = PairedOutcomes(*(np.array(count) for count in ([5, 5], [5, 5], [5, 5], [5, 0], [8, 2])))
    >>> p_value, sign_p = changed_p(pair)
    >>> round(p_value * 252**2, 6), sign_p
    (2.0, 0.0)
    """
    if not any(can_fall(a, b) for a, b in set(zip(pair.n_a.tolist(), pair.n_b.tolist(), strict=True))):
        return float("nan"), float("nan")
    tails = _Tails.of(pair.n_a, pair.c_a, pair.n_b, pair.c_b)
    fell, rose = (int(pair.weights[changed].sum()) for changed in (tails.fell, tails.rose))
    fallen, risen = (
        poisson_binomial_tail(chances, pair.weights, many)
        for chances, many in ((tails.falls, fell), (tails.rises, rose))
    )
    more, fewer = (risen, fallen) if rose > fell else (fallen, risen)
    beyond = (
        np.maximum(0, np.rint(many - np.dot(chances, pair.weights)).astype(np.int64))
        for many, chances in ((rose, tails.rises), (fell, tails.falls))
    )
    return two_sided(more), float(mcnemar(*beyond)) if fewer <= _BOTH_WAYS else 0.0


def poisson_binomial_tail(chances: Floats, counts: Integers, observed: int) -> float:
    """The probability that at least `observed` events occur; `counts` of them have each of the chances.

    >>> round(poisson_binomial_tail(np.array([0.5, 0.25]), np.array([2, 1]), 2), 12)
    0.375
    """
    possible = chances > 0
    chances, counts = chances[possible], counts[possible].astype(np.int64)
    if observed <= 0 or observed > counts.sum():
        return float(observed <= 0)
    terms = DiscreteTerms(np.ones_like(counts), np.stack([1 - chances, chances], axis=1), counts)
    # Beyond that, millions of problems, the exact distribution takes seconds.
    return lattice_tail(terms, observed) if terms.total <= MAX_LATTICE_SUM else saddlepoint_tail(terms, observed - 0.5)


@dataclass(frozen=True)
class _Tails:
    """Whether a problem with these counts fell or rose, and the chances of both given the passes of both sides."""

    fell: Booleans
    rose: Booleans
    falls: Floats
    rises: Floats

    @classmethod
    def of(cls, n_a: Integers, c_a: Integers, n_b: Integers, c_b: Integers) -> "_Tails":
        """Of counts that may include a side without attempts, on which nothing changes."""
        found = np.zeros((4, len(n_a)))
        informative = (n_a > 0) & (n_b > 0) & (c_a + c_b > 0) & (c_a + c_b < n_a + n_b)
        for row in np.flatnonzero(informative).tolist():
            found[:, row] = _tails(int(n_a[row]), int(n_b[row]), int(c_a[row] + c_b[row]), int(c_b[row]))
        return cls(found[0] > 0, found[1] > 0, found[2], found[3])


@lru_cache(maxsize=2**16)
def _tails(n_a: int, n_b: int, passed: int, c_b: int) -> tuple[bool, bool, float, float]:
    strata = Strata.of(*(np.array([count]) for count in (n_a, n_b, passed, 1)))
    (chances,) = strata.probabilities()
    place, level = c_b - int(strata.lowest[0]), LEVEL * (1 + _ROUNDING)
    low, high = np.cumsum(chances), np.cumsum(chances[::-1])
    falls, rises = (float(chance[chance <= level].max(initial=0.0)) for chance in (low, high))
    return bool(low[place] <= level), bool(high[len(chances) - 1 - place] <= level), falls, rises
