"""Paired outcomes of two sides of a comparison, and the sums over problems from which all figures of a pair follow.

Pass rates c / n are brought to one denominator, so that they are integers, in multiples of 1 / `denominator`:
differences cancel exactly, ties stay ties, and neither the order of rows nor that of the sides affects the last digit.
If the numbers of attempts have no common denominator of tolerable size, the rates are rounded to a power of two.

Many pairs are computed at once: a chunk of pairs is a matrix with a row per pair and a column per problem. Sums and
sums of products are exact integers, and each figure is their quotient, rounded once. So the other pairs do not affect
the last digit either, and no digits cancel.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from touchstone.inference.arrays import Booleans, Floats, Integers

# A dataclass of arrays with an entry per pair.
T = TypeVar("T")
# Exact integers: of 64 bits, or objects of any size.
WholeNumbers = NDArray[Any]

# Numbers in a matrix of a chunk: 2 MB each.
_CHUNK = 2**18
# The standard error of units that all agree is at most this: rounding errors.
_ROUNDING = 1e-12
# Relative distance from an integer at which degrees of freedom are taken for it.
_WHOLE = 1e-12
# The denominator must be exact as a float, and the largest sum over all problems must fit into 64 bits.
_LARGEST_DENOMINATOR_BITS = 52
_LARGEST_SUM_BITS = 62


@dataclass(frozen=True)
class PairedUnits:
    """Independent units of a pair: problems, or clusters of them; `counts` units have the same sum of differences.

    The sums are multiples of one number. `exact` is false if the rates were rounded to get there.
    """

    sums: Integers
    counts: Integers
    problems: int
    exact: bool


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


# Sums over problems, pair by pair


@dataclass(frozen=True)
class PairChunk:
    """Pairs of sides of a matrix with at least one problem in common, a row each.

    `a` and `b` are the sums of each side's rates over the `sizes` problems of a unit, in multiples of
    1 / `denominator`; a unit without a problem has size 0. `exact` is false where the rates were rounded.
    """

    matrix: OutcomeMatrix
    first: Integers
    second: Integers
    shared: Booleans
    problem_a: Integers
    problem_b: Integers
    a: Integers
    b: Integers
    sizes: Integers
    denominator: Integers
    exact: Booleans

    @cached_property
    def differences(self) -> Integers:
        """Sums of the differences b - a of the units."""
        return self.b - self.a

    @cached_property
    def clustered(self) -> Booleans:
        """Whether a unit of the pair holds several problems."""
        if not self.matrix.clustered:
            return np.zeros(len(self.first), dtype=bool)
        clustered: Booleans = self.sizes.max(axis=1) > 1
        return clustered

    @cached_property
    def differing(self) -> Integers:
        """Number of units whose sides differ."""
        return np.asarray(np.count_nonzero(self.differences, axis=1))

    def units(self, row: int) -> PairedUnits:
        """The units of one pair."""
        present = self.sizes[row] > 0
        sums, counts = np.unique(self.differences[row, present], return_counts=True)
        return PairedUnits(sums, counts.astype(np.int64), int(self.sizes[row].sum()), bool(self.exact[row]))


def pair_chunks(matrix: OutcomeMatrix, first: Integers, second: Integers) -> Iterator[PairChunk]:
    """The pairs in chunks of bounded memory; all must have a problem in common. At least one chunk, if empty."""
    rows = max(1, _CHUNK // max(1, matrix.codes.shape[1]))
    for start in range(0, max(1, len(first)), rows):
        part = slice(start, start + rows)
        yield pair_chunk(matrix, first[part], second[part])


def pair_chunk(matrix: OutcomeMatrix, first: Integers, second: Integers) -> PairChunk:
    """These pairs of sides."""
    shared = matrix.decided[first] & matrix.decided[second]
    denominator, exact = _denominators(matrix, first, second, np.count_nonzero(shared, axis=1))
    numerators = [_numerators(matrix, side, shared, denominator, exact) for side in (first, second)]
    sizes: Integers = shared.astype(np.int64)
    a, b, sizes = (_by_unit(part, matrix.cluster_starts) for part in (*numerators, sizes))
    return PairChunk(matrix, first, second, shared, numerators[0], numerators[1], a, b, sizes, denominator, exact)


def _denominators(
    matrix: OutcomeMatrix, first: Integers, second: Integers, problems: Integers
) -> tuple[Integers, Booleans]:
    """The common denominator of each pair, and whether it is exact."""
    denominators, exact = np.full(len(first), matrix.distinct_attempts[0]), np.ones(len(first), dtype=bool)
    if len(matrix.distinct_attempts) == 1:
        return denominators, exact
    for row, (a, b, count) in enumerate(zip(first.tolist(), second.tolist(), problems.tolist(), strict=True)):
        limit, common = largest_denominator(count), matrix.common_denominator(a, b)
        if common > limit:
            # A problem that only one side has attempted may be the reason.
            common = matrix.shared_denominator(a, b)
        denominators[row], exact[row] = min(common, limit), common <= limit
    return denominators, exact


def _numerators(
    matrix: OutcomeMatrix, side: Integers, shared: Booleans, denominator: Integers, exact: Booleans
) -> Integers:
    c = matrix.c[side]
    c *= shared
    if len(matrix.distinct_attempts) == 1:
        return c
    n = matrix.n[side]
    numerators: Integers = c * (denominator[:, None] // np.maximum(n, 1))
    if not exact.all():
        rounded = np.rint(c / np.maximum(n, 1) * denominator[:, None]).astype(np.int64)
        numerators = np.where(exact[:, None], numerators, rounded)
    return numerators


def _by_unit(values: Integers, cluster_starts: Integers) -> Integers:
    """Columns of single problems as they are, followed by the sum of each cluster's columns."""
    if len(cluster_starts) == 0:
        return values
    sums: Integers = np.add.reduceat(values, cluster_starts, axis=1)
    return np.concatenate([values[:, : cluster_starts[0]], sums], axis=1)


@dataclass(frozen=True)
class PairMoments:
    """Figures of each pair, from its problems and from its independent units.

    `difference`, `rate_a` and `rate_b` are means over problems. `standard_error` is CR2's, 0 if all units agree;
    `degrees` are Bell and McCaffrey's, NaN for a single unit. `evidence` is the sum of the units' absolute differences,
    each at most 1; `absolute` and `squares` are the sums of their absolute differences and of their squares; `scatter`
    is that of their squared residuals, and `problem_scatter` the same over problems. `product` is the mean over
    problems of the product of both rates, `between_units` the covariance of the sides between units, per problem.
    `inverse_a` and `inverse_b` are the means of 1 / attempts, and `step` is what one attempt is worth.
    """

    problems: Integers
    units: Integers
    wins: Integers
    losses: Integers
    rate_a: Floats
    rate_b: Floats
    difference: Floats
    standard_error: Floats
    degrees: Floats
    evidence: Floats
    absolute: Floats
    squares: Floats
    differing: Integers
    scatter: Floats
    problem_scatter: Floats
    product: Floats
    between_units: Floats
    inverse_a: Floats
    inverse_b: Floats
    step: Floats


def joined(parts: Sequence[T]) -> T:
    """The columns of several chunks, one after the other."""
    kind: Any = type(parts[0])
    return cast(T, kind(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(kind))))


def pair_moments(chunk: PairChunk) -> PairMoments:
    """The moments of a chunk of pairs."""
    difference, sizes = chunk.differences, chunk.sizes
    own = chunk.problem_b - chunk.problem_a if chunk.matrix.clustered else difference
    problems = np.count_nonzero(chunk.shared, axis=1)
    denominator, count = (_sized(part, chunk) for part in (chunk.denominator, problems))
    largest = int(chunk.denominator.max(initial=1))
    total_a, total_b = (_sized(part.sum(axis=1), chunk) for part in (chunk.a, chunk.b))
    total, absolute = total_b - total_a, np.abs(difference)
    own_squares, product = (sum_of_products(x, y, largest) for x, y in ((own, own), (chunk.problem_a, chunk.problem_b)))
    if chunk.matrix.clustered:
        most = int(sizes.max(initial=1))
        squares, unit_product = (
            sum_of_products(x, y, most * largest) for x, y in ((difference, difference), (chunk.a, chunk.b))
        )
        sizes_a, sizes_b = (sum_of_products(sizes, part, most * largest) for part in (chunk.a, chunk.b))
        sizes_squared = sum_of_products(sizes, sizes, most)
        variance, degrees = _cluster_robust(chunk, total, count, most)
    else:
        squares, unit_product, sizes_a, sizes_b, sizes_squared = own_squares, product, total_a, total_b, count
        variance = _quotient(count * squares - total**2, denominator**2 * count**2 * np.maximum(count - 1, 1))
        degrees = np.where(problems > 1, problems - 1.0, np.nan)
    scatter = count**2 * squares - 2 * count * total * (sizes_b - sizes_a) + total**2 * sizes_squared
    between = count**2 * unit_product - count * (total_a * sizes_b + total_b * sizes_a)
    between += total_a * total_b * sizes_squared
    inverse_a, inverse_b, step = _attempts(chunk, problems)
    return PairMoments(
        problems=problems,
        units=np.count_nonzero(sizes, axis=1) if chunk.matrix.clustered else problems,
        wins=np.count_nonzero(own > 0, axis=1),
        losses=np.count_nonzero(own < 0, axis=1),
        rate_a=_quotient(total_a, denominator * count),
        rate_b=_quotient(total_b, denominator * count),
        difference=_quotient(total, denominator * count),
        standard_error=np.where(np.sqrt(variance) > _ROUNDING, np.sqrt(variance), 0.0),
        degrees=degrees,
        evidence=_quotient(np.minimum(absolute, chunk.denominator[:, None]).sum(axis=1), denominator),
        absolute=_quotient(absolute.sum(axis=1), denominator),
        squares=_quotient(squares, denominator**2),
        differing=chunk.differing,
        scatter=_quotient(scatter, (denominator * count) ** 2),
        problem_scatter=_quotient(count * own_squares - total**2, denominator**2 * count),
        product=_quotient(product, denominator**2 * count),
        between_units=_quotient(between, denominator**2 * count**3),
        inverse_a=inverse_a,
        inverse_b=inverse_b,
        step=step,
    )


def _cluster_robust(chunk: PairChunk, total: WholeNumbers, count: WholeNumbers, most: int) -> tuple[Floats, Floats]:
    """CR2's variance of the mean and Bell-McCaffrey's degrees of freedom; see `uncertainty`.

    Units of one size have the same factor, so their sums are enough.
    """
    sizes, denominator = chunk.sizes, _sized(chunk.denominator, chunk)
    variance, squares, b_sum, b_squares = (np.zeros(len(sizes)) for _ in range(4))
    bound = most * int(chunk.denominator.max(initial=1))
    for size in np.unique(sizes[sizes > 0]).tolist():
        here = np.count_nonzero(sizes == size, axis=1)
        inside = np.where(sizes == size, chunk.differences, 0)
        residuals = count**2 * sum_of_products(inside, inside, bound) - 2 * count * size * total * inside.sum(axis=1)
        residuals += total**2 * size**2 * here
        rest = np.maximum(count - size, 1)
        variance += _quotient(residuals, denominator**2 * count**3 * rest)
        b = np.where(here > 0, size**2 / rest.astype(np.float64), 0.0)
        squares += here * float(size**2)
        b_sum += here * b
        b_squares += here * b**2
    single = np.count_nonzero(sizes, axis=1) < 2
    degrees = np.where(single, np.nan, count.astype(np.float64) ** 2 / (squares + b_sum**2 - b_squares))
    whole = np.rint(degrees)
    # Undo rounding errors, so that equal sizes give the classic result to the last digit.
    degrees = np.where(np.abs(degrees - whole) <= _WHOLE * degrees, whole, degrees)
    return np.where(single, 0.0, variance), degrees


def _attempts(chunk: PairChunk, problems: Integers) -> tuple[Floats, Floats, Floats]:
    """The mean of 1 / attempts on either side, and the smallest difference that an attempt can make."""
    distinct, kinds = chunk.matrix.distinct_attempts, chunk.matrix.attempt_kinds
    if len(distinct) == 1:
        once = np.full(len(problems), 1 / distinct[0])
        return once, once, once
    # Problems that are not shared go to a place of their own.
    places = [np.where(chunk.shared, kinds[side], len(distinct)) for side in (chunk.first, chunk.second)]
    inverse_a, inverse_b = (
        sum((many / n for many, n in zip(counts.T, distinct.tolist(), strict=False)), np.zeros(1)) / problems
        for counts in (count_by_row(place, len(distinct) + 1) for place in places)
    )
    multiples = np.full((len(distinct) + 1,) * 2, np.iinfo(np.int64).max)
    multiples[:-1, :-1] = np.lcm.outer(distinct, distinct)
    return inverse_a, inverse_b, 1 / multiples[places[0], places[1]].min(axis=1)


def count_by_row(places: Integers, width: int) -> Integers:
    """How often each of the integers below `width` occurs in each row.

    >>> count_by_row(np.array([[0, 2, 2], [1, 1, 1]]), 3)
    array([[1, 0, 2],
           [0, 3, 0]])
    """
    keys = places + width * np.arange(len(places))[:, None]
    counts: Integers = np.bincount(keys.ravel(), minlength=width * len(places)).reshape(len(places), width)
    return counts


def sum_of_products(x: Integers, y: Integers, bound: int) -> WholeNumbers:
    """The sum of x * y over each row, exactly; no absolute value exceeds the bound.

    >>> sum_of_products(np.array([[2**61, 3]]), np.array([[2**61, 5]]), 2**61)[0] == 2**122 + 15
    True
    """
    columns = max(1, x.shape[1])
    if bound**2 * columns < 2**63:
        return np.asarray(np.einsum("ij,ij->i", x, y))
    # Beyond 64 bits, in three digits of so many bits that sums of their products fit.
    bits = (62 - columns.bit_length()) // 2
    total = np.zeros(len(x), dtype=object)
    for place, some in enumerate(_digits(x, bits)):
        for other, more in enumerate(_digits(y, bits)):
            total += np.einsum("ij,ij->i", some, more).astype(object) * 2 ** (bits * (place + other))
    return total


def _digits(values: Integers, bits: int) -> list[Integers]:
    mask = 2**bits - 1
    return [values & mask, (values >> bits) & mask, values >> 2 * bits]


def _sized(values: Integers, chunk: PairChunk) -> WholeNumbers:
    """The values as they are if all figures of the chunk are quotients of integers that floats hold, else as objects.

    With N problems and the denominator D, no numerator or denominator exceeds 4 N^3 D^2, or 4 N^4 D^2 in clusters.
    """
    problems, denominator = chunk.shared.shape[1], int(chunk.denominator.max(initial=1))
    power = 4 if chunk.matrix.clustered else 3
    return values if 4 * problems**power * denominator**2 < 2**53 else values.astype(object)


def _quotient(numerator: WholeNumbers, denominator: WholeNumbers) -> Floats:
    """The quotient of two integers of any size, rounded once."""
    quotient: Floats = (numerator / denominator).astype(np.float64)
    return quotient
