"""Two sides of a comparison as whole numbers: what each passed, problem by problem, and which problems go together.

Rates c / n are brought to one denominator, so that sums over clusters cancel to exactly nothing where they should, ties
are ties, and neither the order of rows nor which side comes first can show in a last digit. Where the attempts per
problem have no common denominator of tolerable size, a power of two takes its place and the rates are rounded to it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# Whole numbers up to here are exact as floats, and the largest sum over all problems must stay below the other.
_LARGEST_DENOMINATOR_BITS = 52
_LARGEST_SUM_BITS = 62

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PairedUnits:
    """What is independent: problems, or clusters of them, those with equal figures in one row.

    `a` and `b` are sums of the sides' rates in parts of `denominator`, over `sizes` problems each; `counts` says how
    many units are like that. `exact` tells whether the denominator is that of the rates or they were rounded to it.
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
        """Sums of differences, b - a."""
        return self.b - self.a

    @cached_property
    def total(self) -> int:
        """How many units there are."""
        return int(self.counts.sum())

    @cached_property
    def problems(self) -> int:
        """How many problems they hold."""
        return int((self.counts * self.sizes).sum())

    def mean(self, sums: Integers) -> float:
        """Mean over problems, correctly rounded."""
        return int((sums * self.counts).sum()) / (self.denominator * self.problems)

    def method_name(self, method: str) -> str:
        """The method's name, which tells of clusters."""
        return f"{method}-cluster" if self.clustered else method


@dataclass(frozen=True)
class PairedOutcomes:
    """The problems that both sides of a pair decided, as a histogram sorted by cluster and counts.

    Cluster 0 is none: problems that stand alone, and those whose cluster has no other problem in this pair.
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
        """How many problems both sides decided."""
        return int(self.weights.sum())

    @property
    def cluster_names(self) -> Sequence[str | None]:
        """A name per row for those who tell clusters by name."""
        return [str(cluster) if cluster else None for cluster in self.clusters.tolist()]

    def swapped(self) -> "PairedOutcomes":
        """The same with the sides exchanged."""
        return PairedOutcomes(
            self.n_b, self.c_b, self.n_a, self.c_a, self.weights, self.clusters, self.only_b, self.only_a
        )

    def problem_units(self) -> PairedUnits:
        """Each problem on its own, in the order of the rows."""
        a, b, denominator, exact = _numerators(self)
        return PairedUnits(a, b, denominator, np.ones_like(a), self.weights, clustered=False, exact=exact)


@dataclass(frozen=True)
class OutcomeMatrix:
    """Attempts and passes of all sides: which distinct (n, c) a side has at each problem, and the problems' clusters.

    `codes` has a row per side and a column per problem; 0 stands for no decided attempt. So a pair of sides is two
    rows, and its histogram one sort of whole numbers.
    """

    n: Integers
    c: Integers
    codes: Integers
    clusters: Integers

    def overlap(self, a: int, b: int) -> bool:
        """Whether both decided any problem."""
        return bool(((self.codes[a] > 0) & (self.codes[b] > 0)).any())

    def pair(self, a: int, b: int) -> PairedOutcomes:
        """The problems that sides a and b share."""
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
    """Codes from matrices of decided and passed attempts, a row per side. Cluster 0 is none.

    >>> n, c = np.array([[5, 5, 0], [5, 5, 2]]), np.array([[1, 1, 0], [3, 3, 2]])
    >>> pair = outcome_matrix(n, c, np.zeros(3, dtype=int)).pair(0, 1)
    >>> pair.c_a, pair.c_b, pair.weights, pair.only_a, pair.only_b
    (array([1]), array([3]), array([2]), 0, 1)
    """
    base = int(n.max(initial=0)) + 1
    # With a kind for "no attempt" first, so that it is code 0 whether or not it occurs.
    kinds, codes = np.unique(np.append(n * base + np.where(n > 0, c, 0), 0), return_inverse=True)
    distinct_n, distinct_c = np.divmod(kinds, base)
    return OutcomeMatrix(distinct_n, distinct_c, codes[:-1].reshape(n.shape), clusters)


def independent_units(table: PairedOutcomes, problems: PairedUnits) -> PairedUnits:
    """Problems that stand alone as they are, the others summed within clusters."""
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
