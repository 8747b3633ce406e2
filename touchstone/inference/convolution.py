"""Exact tail probabilities of sums of independent integers by convolution: no digits cancel, however small the tail.

What counts is how much a sum falls short of the largest possible one: the tail at `observed` is the probability that
the shortfalls add up to at most `rest`. Variables with the same step are convolved with each other first, on a short
lattice of multiples of the step. These few sums are divided into two halves, each with a distribution of its own, and
the tail follows from one half and the cumulated probabilities of the other. So no distribution of the whole sum is
needed, which has many more points. Where it would take longer than the Fourier transform, that is used instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from touchstone.inference.paired_units import Floats, Integers
from touchstone.inference.tails import DiscreteTerms, lattice_tail

# More products of probabilities than this are left to the Fourier transform.
_WORK = 2**21
# Probabilities with fewer values above 0 than one in so many are convolved value by value.
_SPARSE = 8
# Sums of two values at a time: as many as fit into the CPU cache.
_BLOCK = 2**14


@dataclass(frozen=True)
class _Shortfalls:
    """The distribution of a sum of shortfalls: `probabilities` of the multiples 0, 1, ... of `step`."""

    step: int
    probabilities: Floats

    def values(self, rest: int) -> tuple[Integers, Floats]:
        """The possible values up to `rest`, and their probabilities."""
        places = np.flatnonzero(self.probabilities[: rest // self.step + 1])
        return self.step * places, self.probabilities[places]


def exact_tail(terms: DiscreteTerms, observed: int) -> float:
    """Probability that the sum, for integer steps, is at least `observed`.

    Two fair coins worth 1 and one worth 3:

    >>> coins = DiscreteTerms(np.array([1, 3]), np.full((2, 2), 0.5), np.array([2, 1]))
    >>> exact_tail(coins, 4)
    0.375
    """
    rest = terms.total - observed
    if observed <= 0 or rest <= 0:
        return lattice_tail(terms, observed)
    first, second = _halves(_by_step(terms, rest))
    if max(_products(first, rest), _products(second, rest)) > _WORK:
        return lattice_tail(terms, observed)
    at_most = np.cumsum(_combined(second, rest))
    # The last sum of the first half need not be combined with the others, only added to them.
    return min(1.0, _joined_tail(_combined(first[:-1], rest), first[-1], at_most))


def _joined_tail(combined: Floats, last: _Shortfalls, at_most: Floats) -> float:
    """The probability that a combined sum, a last one, and one with these cumulated probabilities are in range."""
    rest = len(combined) - 1
    values, probabilities = last.values(rest)
    sums = np.flatnonzero(combined)
    tail = 0.0
    if len(sums) * _SPARSE > len(combined):
        backwards = at_most[::-1].copy()
        for value, probability in zip(values.tolist(), probabilities.tolist(), strict=True):
            # Not by BLAS, whose threads cost more than they save on vectors of this length.
            tail += probability * float(np.einsum("i,i", combined[: rest + 1 - value], backwards[value:]))
        return tail
    for some in _blocks(len(values), len(sums)):
        left = rest - np.add.outer(values[some], sums)
        reached = np.where(left >= 0, at_most[left], 0.0)
        tail += float((probabilities[some, None] * reached * combined[sums]).sum())
    return tail


def _by_step(terms: DiscreteTerms, rest: int) -> list[_Shortfalls]:
    """The sum of the variables with each step."""
    sums: dict[int, Floats] = {}
    rows = zip(terms.steps.tolist(), terms.probabilities, terms.widths.tolist(), terms.counts.tolist(), strict=True)
    for step, row, width, count in rows:
        points = rest // step + 1
        shortfall = row[:width][::-1][:points]
        for _ in range(count):
            sums[step] = _convolved(sums[step], shortfall)[:points] if step in sums else shortfall
    return [_Shortfalls(step, probabilities) for step, probabilities in sums.items()]


def _convolved(one: Floats, other: Floats) -> Floats:
    if np.count_nonzero(other) * _SPARSE > len(other):
        return np.convolve(one, other)
    found = np.zeros(len(one) + len(other) - 1)
    for value in np.flatnonzero(other).tolist():
        found[value : value + len(one)] += one * other[value]
    return found


def _halves(sums: Sequence[_Shortfalls]) -> tuple[list[_Shortfalls], list[_Shortfalls]]:
    """The sums in two halves with about as many combinations of values."""
    halves: tuple[list[_Shortfalls], list[_Shortfalls]] = ([], [])
    combinations = [1, 1]
    for each in sorted(sums, key=lambda each: (-len(each.probabilities), each.step)):
        smaller = combinations.index(min(combinations))
        halves[smaller].append(each)
        combinations[smaller] *= len(each.probabilities)
    return halves


def _products(sums: Sequence[_Shortfalls], rest: int) -> int:
    """How many products of two probabilities the distribution of the whole takes at most."""
    points, products = 1, 0
    for each in sums:
        products += points * len(each.probabilities)
        points = min(rest + 1, points * len(each.probabilities))
    return products


def _combined(parts: Sequence[_Shortfalls], rest: int) -> Floats:
    """The probabilities of the sums 0, 1, ..., `rest`."""
    combined = np.zeros(rest + 1)
    combined[0] = 1.0
    for each in parts:
        before, combined = combined, np.zeros(rest + 1)
        values, probabilities = each.values(rest)
        sums = np.flatnonzero(before)
        if len(sums) * _SPARSE > len(before):
            for value, probability in zip(values.tolist(), probabilities.tolist(), strict=True):
                combined[value:] += probability * before[: rest + 1 - value]
            continue
        for some in _blocks(len(values), len(sums)):
            added = np.add.outer(values[some], sums)
            products = np.multiply.outer(probabilities[some], before[sums])
            possible = added <= rest
            combined += np.bincount(added[possible], products[possible], rest + 1)
    return combined


def _blocks(values: int, sums: int) -> Iterator[slice]:
    """The values in blocks of which the sums with as many others fit into the CPU cache."""
    many = max(1, _BLOCK // max(1, sums))
    return (slice(start, start + many) for start in range(0, values, many))
