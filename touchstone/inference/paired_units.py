"""Paired outcomes of two sides of a comparison in exact integers, per problem and per cluster.

Pass rates c / n are brought to one denominator, so that differences cancel exactly, ties stay ties, and neither the
order of rows nor that of the sides affects the last digit. If the numbers of attempts have no common denominator of
tolerable size, the rates are rounded to a power of two.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# The denominator must be exact as a float, and the largest sum over all problems must fit into 64 bits.
_LARGEST_DENOMINATOR_BITS = 52
_LARGEST_SUM_BITS = 62

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class PairedUnits:
    """Independent units of a pair: problems, or clusters of them; `counts` units have the same sum of differences.

    The sums are multiples of one number. `exact` is false if the rates were rounded to get there.
    """

    sums: Integers
    counts: Integers
    problems: int
    clustered: bool
    exact: bool

    def method_name(self, method: str) -> str:
        """The method's name, with the suffix for clusters."""
        return f"{method}-cluster" if self.clustered else method


@dataclass(frozen=True)
class PairedOutcomes:
    """The problems on which both sides have decided attempts, as a sorted histogram of their counts."""

    n_a: Integers
    c_a: Integers
    n_b: Integers
    c_b: Integers
    weights: Integers

    def swapped(self) -> "PairedOutcomes":
        """The pair with its sides exchanged."""
        return PairedOutcomes(self.n_b, self.c_b, self.n_a, self.c_a, self.weights)


@dataclass(frozen=True)
class OutcomeMatrix:
    """Attempts n and passes c of every side on every problem, encoded, and where the clusters of problems start.

    `codes` has a row per side and a column per problem, and indexes the distinct pairs `kind_n`, `kind_c`; 0 means no
    decided attempt. The problems of a cluster are neighbours: `cluster_starts` has the first column of each, after the
    problems that share no cluster.
    """

    kind_n: Integers
    kind_c: Integers
    codes: Integers
    cluster_starts: Integers

    @cached_property
    def n(self) -> Integers:
        """Decided attempts of every side on every problem."""
        return self.kind_n[self.codes]

    @cached_property
    def c(self) -> Integers:
        """Passed attempts of every side on every problem."""
        return self.kind_c[self.codes]

    @cached_property
    def decided(self) -> Booleans:
        """Whether a side has a decided attempt on a problem."""
        return self.codes > 0

    @property
    def clustered(self) -> bool:
        """Whether any problems share a cluster."""
        return len(self.cluster_starts) > 0

    @cached_property
    def distinct_attempts(self) -> Integers:
        """The distinct numbers of attempts; 1 stands in for none at all."""
        distinct: Integers = _distinct(self.kind_n[self.kind_n > 0])
        return distinct if len(distinct) else np.ones(1, dtype=np.int64)

    @cached_property
    def attempt_kinds(self) -> Integers:
        """The place of every number of attempts among the distinct ones; meaningless without attempts."""
        return np.maximum(0, np.searchsorted(self.distinct_attempts, self.kind_n))[self.codes]

    @cached_property
    def _denominators(self) -> list[int]:
        """The least common denominator of each side's rates."""
        return [math.lcm(*_distinct(row[row > 0]).tolist()) for row in self.n]

    def common_denominator(self, a: int, b: int) -> int:
        """The least common denominator of the rates of two sides."""
        return math.lcm(self._denominators[a], self._denominators[b])

    def shared_denominator(self, a: int, b: int) -> int:
        """The same for the problems that both have attempted."""
        both = self.decided[a] & self.decided[b]
        return math.lcm(*_distinct(self.n[[a, b]][:, both]).tolist())

    def pair(self, a: int, b: int) -> PairedOutcomes:
        """The problems on which sides a and b both have decided attempts."""
        kinds = len(self.kind_n)
        both = self.decided[a] & self.decided[b]
        keys, weights = np.unique(self.codes[a][both] * kinds + self.codes[b][both], return_counts=True)
        code_a, code_b = np.divmod(keys, kinds)
        return PairedOutcomes(
            self.kind_n[code_a], self.kind_c[code_a], self.kind_n[code_b], self.kind_c[code_b], weights.astype(np.int64)
        )


def outcome_matrix(n: Integers, c: Integers, clusters: Integers) -> OutcomeMatrix:
    """Encode matrices of decided and passed attempts, a row per side. Cluster 0 means none.

    >>> n, c = np.array([[5, 5, 0], [5, 5, 2]]), np.array([[1, 1, 0], [3, 3, 2]])
    >>> pair = outcome_matrix(n, c, np.zeros(3, dtype=int)).pair(0, 1)
    >>> pair.c_a, pair.c_b, pair.weights
    (array([1]), array([3]), array([2]))
    """
    base = int(n.max(initial=0)) + 1
    # Append "no attempt", so that it is always code 0.
    kinds, codes = np.unique(np.append(n * base + np.where(n > 0, c, 0), 0), return_inverse=True)
    distinct_n, distinct_c = np.divmod(kinds, base)
    clusters = np.where(np.bincount(clusters, minlength=1)[clusters] > 1, clusters, 0)
    order = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[order], prepend=0))
    return OutcomeMatrix(distinct_n, distinct_c, codes[:-1].reshape(n.shape)[:, order], starts)


def largest_denominator(problems: int) -> int:
    """The largest denominator for rates on so many problems; rates without a common one are rounded to this one."""
    return 1 << min(_LARGEST_DENOMINATOR_BITS, _LARGEST_SUM_BITS - problems.bit_length())


def _distinct(values: Integers) -> Integers:
    """The distinct values, sorted. Without counts, `np.unique` imports `numpy.ma`, which takes 50 ms."""
    return np.unique(values, return_counts=True)[0]
