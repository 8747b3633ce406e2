"""Paired outcomes of two sides of a comparison in exact integers, per problem and per cluster.

Pass rates c / n are brought to one denominator, so that differences cancel exactly, ties stay ties, and neither the
order of rows nor that of the sides affects the last digit. If the numbers of attempts have no common denominator of
tolerable size, the rates are rounded to a power of two.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# The denominator must be exact as a float, and the largest sum over all problems must fit into 64 bits.
_LARGEST_DENOMINATOR_BITS = 52
_LARGEST_SUM_BITS = 62

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PairedUnits:
    """Independent units of a pair: problems, or clusters of them; units with equal figures share a row.

    `a` and `b` are the sums of each side's rates over `sizes` problems, in multiples of 1 / `denominator`; `counts` is
    the number of such units. `exact` is false if the rates were rounded to the denominator.
    """

    a: Integers
    b: Integers
    denominator: int
    sizes: Integers
    counts: Integers
    clustered: bool
    exact: bool

    @cached_property
    def sums(self) -> Integers:
        """Sums of the differences b - a."""
        return self.b - self.a

    @cached_property
    def total(self) -> int:
        """Number of units."""
        return int(self.counts.sum())

    @cached_property
    def problems(self) -> int:
        """Number of problems in all units."""
        return int((self.counts * self.sizes).sum())

    def mean(self, sums: Integers) -> float:
        """Mean over problems, rounded once."""
        return int((sums * self.counts).sum()) / (self.denominator * self.problems)

    def method_name(self, method: str) -> str:
        """The method's name, with the suffix for clusters."""
        return f"{method}-cluster" if self.clustered else method


@dataclass(frozen=True)
class PairedOutcomes:
    """The problems on which both sides have decided attempts, as a histogram sorted by cluster and counts.

    Cluster 0 means none: the problem has no cluster, or no other problem of it is in this pair.
    """

    n_a: Integers
    c_a: Integers
    n_b: Integers
    c_b: Integers
    weights: Integers
    clusters: Integers
    only_a: int
    only_b: int

    @cached_property
    def problems(self) -> int:
        """Number of problems with decided attempts on both sides."""
        return int(self.weights.sum())

    @property
    def cluster_names(self) -> Sequence[str | None]:
        """The cluster of each row as text; None for cluster 0."""
        return [str(cluster) if cluster else None for cluster in self.clusters.tolist()]

    def swapped(self) -> "PairedOutcomes":
        """The pair with its sides exchanged."""
        return PairedOutcomes(
            self.n_b, self.c_b, self.n_a, self.c_a, self.weights, self.clusters, self.only_b, self.only_a
        )

    def problem_units(self) -> PairedUnits:
        """Each problem as a unit, in the order of the rows."""
        a, b, denominator, exact = _numerators(self)
        return PairedUnits(a, b, denominator, np.ones_like(a), self.weights, clustered=False, exact=exact)


@dataclass(frozen=True)
class OutcomeMatrix:
    """Attempts n and passes c of every side on every problem, encoded, and the problems' clusters.

    `codes` has a row per side and a column per problem, and indexes the distinct pairs `n`, `c`; 0 means no decided
    attempt. So the histogram of two sides is one sort of integers.
    """

    n: Integers
    c: Integers
    codes: Integers
    clusters: Integers

    def overlap(self, a: int, b: int) -> bool:
        """Whether both sides have decided attempts on any problem."""
        return bool(((self.codes[a] > 0) & (self.codes[b] > 0)).any())

    def pair(self, a: int, b: int) -> PairedOutcomes:
        """The problems on which sides a and b both have decided attempts."""
        kinds = len(self.n)
        first, second = self.codes[a], self.codes[b]
        both = (first > 0) & (second > 0)
        keys = first[both] * kinds + second[both]
        if self.clusters.any():
            clusters = self.clusters[both]
            shared = np.bincount(clusters)[clusters] > 1
            keys += np.where(shared, clusters, 0) * kinds**2
        keys, weights = np.unique(keys, return_counts=True)
        clusters, codes = np.divmod(keys, kinds**2)
        code_a, code_b = np.divmod(codes, kinds)
        decided = int(np.count_nonzero(both))
        return PairedOutcomes(
            self.n[code_a],
            self.c[code_a],
            self.n[code_b],
            self.c[code_b],
            weights.astype(np.int64),
            clusters,
            int(np.count_nonzero(first)) - decided,
            int(np.count_nonzero(second)) - decided,
        )


def outcome_matrix(n: Integers, c: Integers, clusters: Integers) -> OutcomeMatrix:
    """Encode matrices of decided and passed attempts, a row per side. Cluster 0 means none.

    >>> n, c = np.array([[5, 5, 0], [5, 5, 2]]), np.array([[1, 1, 0], [3, 3, 2]])
    >>> pair = outcome_matrix(n, c, np.zeros(3, dtype=int)).pair(0, 1)
    >>> pair.c_a, pair.c_b, pair.weights, pair.only_a, pair.only_b
    (array([1]), array([3]), array([2]), 0, 1)
    """
    base = int(n.max(initial=0)) + 1
    # Append "no attempt", so that it is always code 0.
    kinds, codes = np.unique(np.append(n * base + np.where(n > 0, c, 0), 0), return_inverse=True)
    distinct_n, distinct_c = np.divmod(kinds, base)
    return OutcomeMatrix(distinct_n, distinct_c, codes[:-1].reshape(n.shape), clusters)


def independent_units(table: PairedOutcomes, problems: PairedUnits) -> PairedUnits:
    """The problems summed within clusters; a problem without a cluster is a unit of its own."""
    alone = int(np.searchsorted(table.clusters, 1))
    if alone == len(table.clusters):
        return problems
    starts = np.append(np.arange(alone), alone + np.flatnonzero(np.diff(table.clusters[alone:], prepend=0)))
    weights = np.where(table.clusters > 0, table.weights, 1)
    a, b, sizes = (np.add.reduceat(part * weights, starts) for part in (problems.a, problems.b, problems.sizes))
    counts = np.where(table.clusters > 0, 1, table.weights)[starts]
    return PairedUnits(a, b, problems.denominator, sizes, counts, clustered=True, exact=problems.exact)


def _numerators(table: PairedOutcomes) -> tuple[Integers, Integers, int, bool]:
    bits = min(_LARGEST_DENOMINATOR_BITS, _LARGEST_SUM_BITS - table.problems.bit_length())
    products = table.n_a * table.n_b
    common = 1
    for product in np.unique(products).tolist():
        common = math.lcm(common, product)
        if common > 2**bits:
            a, b = (np.rint(c / n * 2**bits) for n, c in ((table.n_a, table.c_a), (table.n_b, table.c_b)))
            return a.astype(np.int64), b.astype(np.int64), 2**bits, False
    scale = common // products
    return table.c_a * table.n_b * scale, table.c_b * table.n_a * scale, common, True
