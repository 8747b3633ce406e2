"""Tail probabilities of sums of independent discrete variables.

- `lattice_tail`, for integers, is exact up to floating-point rounding. The distribution is the inverse Fourier
  transform of its characteristic function (Pagano and Tritchler 1983), at a cost that grows with the largest sum and
  not with the number of combinations. It is first tilted exponentially so that it peaks at the observed sum (Esscher
  1932), which makes a p-value of 1e-50 as precise as one of 0.05.
- `exact_tail` is the same by convolution where that is faster: no digits cancel, however small the tail. The shortfalls
  from the largest possible sum add up to at most `rest`. Variables with the same step are convolved with each other
  first, on a short lattice of multiples of the step. These few sums are divided into two halves, each with a
  distribution of its own, and the tail follows from one half and the cumulated probabilities of the other: the
  distribution of the whole sum has many more points and is not needed.
- `saddlepoint_tail`, for any numbers, is the Lugannani-Rice approximation (1980), accurate for sums of many variables
  even far out in the tail.

References: Pagano and Tritchler (1983), "On obtaining permutation distributions in polynomial time", Journal of the
American Statistical Association 78(382). Lugannani and Rice (1980), "Saddle point approximation for the distribution of
the sum of independent random variables", Advances in Applied Probability 12(2).
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from touchstone.inference.arrays import Floats, Integers

Complex = NDArray[np.complex128]

# The largest sum whose exact distribution is computed.
MAX_LATTICE_SUM = 2**20
# Smaller values of the characteristic function vanish in the rounding of the others.
_NEGLIGIBLE = 1e-16
_NEWTON_STEPS = 200
# Numbers per block of kinds and frequencies: large enough for numpy, small enough for the CPU cache.
_FREQUENCY_BLOCK = 2**16
# More products of probabilities than this are left to the Fourier transform.
_WORK = 2**21
# Probabilities with fewer values above 0 than one in so many are convolved value by value.
_SPARSE = 8
# Sums of two values at a time: as many as fit into the CPU cache.
_BLOCK = 2**14
# An observed sum this near to the expected one, in half squared standard deviations, has the tail 1/2.
_CENTRAL = 1e-8
_erfc = np.frompyfunc(math.erfc, 1, 1)
# A p-value is never 0, even if no float is small enough to represent it.
SMALLEST_P = sys.float_info.min


@dataclass(frozen=True)
class DiscreteTerms:
    """Independent variables: `counts[i]` of them equal `steps[i] * j` with probability `probabilities[i, j]`.

    Rows of `probabilities` are padded with zeros on the right.
    """

    steps: Integers | Floats
    probabilities: Floats
    counts: Integers

    @cached_property
    def widths(self) -> Integers:
        """Number of possible values of each kind of variable."""
        present = self.probabilities > 0
        widths: Integers = present.shape[1] - np.argmax(present[:, ::-1], axis=1)
        return widths

    @cached_property
    def total(self) -> int:
        """The largest possible sum, for integer steps."""
        return int((self.counts * self.steps * (self.widths - 1)).sum())

    def largest_sum_probability(self) -> float:
        """The probability of the largest possible sum."""
        last = self.probabilities[np.arange(len(self.counts)), self.widths - 1]
        return math.exp(math.fsum(self.counts * np.log(last)))


def lattice_tail(terms: DiscreteTerms, observed: int) -> float:
    """Probability that the sum, for integer steps, is at least `observed`.

    Two fair coins worth 1 and one worth 3:

    >>> coins = DiscreteTerms(np.array([1, 3]), np.full((2, 2), 0.5), np.array([2, 1]))
    >>> round(lattice_tail(coins, 4), 12)
    0.375
    """
    if observed <= 0:
        return 1.0
    if observed >= terms.total:
        return terms.largest_sum_probability() if observed == terms.total else 0.0
    tilt = _exponential_tilt(terms, observed, within=0.5)
    bound = math.exp(tilt.cumulant - tilt.size * observed)  # by Chernoff (1952)
    if bound == 0:
        return 0.0  # No float is so small. The distribution would take seconds: it is concentrated on a few sums.
    probabilities = _distribution(tilt.terms)[observed : terms.total + 1]
    weights = np.exp(-tilt.size * np.arange(len(probabilities)))
    return min(1.0, bound * float((probabilities * weights).sum()))


def saddlepoint_tail(terms: DiscreteTerms, observed: float) -> float:
    """The same for any steps, by the Lugannani-Rice approximation; `observed` must be below the largest sum."""
    tilt = _exponential_tilt(terms, observed, within=1e-9)
    exponent, u = 2 * (tilt.size * observed - tilt.cumulant), tilt.size * math.sqrt(tilt.variance)
    return float(lugannani_rice(np.array([exponent]), np.array([u]))[0])


def lugannani_rice(exponent: Floats, u: Floats) -> Floats:
    """Tail probabilities 1 - Phi(w) + phi(w) (1 / u - 1 / w) with w = sqrt(exponent); 1/2 if that is hardly above 0.

    >>> lugannani_rice(np.array([4.0, 0.0]), np.array([2.0, 0.0])).round(4)
    array([0.0228, 0.5   ])
    """
    central = exponent < _CENTRAL
    w = np.sqrt(np.where(central, 1.0, exponent))
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        correction = np.exp(-w * w / 2) / math.sqrt(2 * math.pi) * (1 / u - 1 / w)
    tail = np.asarray(_erfc(w / math.sqrt(2)), dtype=np.float64) / 2 + correction
    return np.where(central, 0.5, np.clip(tail, 0.0, 1.0))


def two_sided(tail: float) -> float:
    """Twice a tail probability, as a p-value."""
    return min(1.0, max(2 * tail, SMALLEST_P))


@dataclass(frozen=True)
class _Tilt:
    """Terms tilted by exp(size * sum), the cumulant generating function at that size, and the variance of the sum."""

    size: float
    cumulant: float
    variance: float
    terms: DiscreteTerms


def _exponential_tilt(terms: DiscreteTerms, observed: float, within: float) -> _Tilt:
    """The tilt under which the expected sum is `observed`, `within` some standard deviations, by safeguarded Newton.

    Not tilted if the expected sum is beyond `observed` already.
    """
    values = np.arange(terms.probabilities.shape[1])
    with np.errstate(divide="ignore"):
        logs = np.log(terms.probabilities)
    size, low, high = 0.0, 0.0, math.inf
    for _ in range(_NEWTON_STEPS):
        exponents = logs + size * terms.steps[:, None] * values
        top = exponents.max(axis=1, keepdims=True)
        probabilities = np.exp(exponents - top)
        norms = probabilities.sum(axis=1, keepdims=True)
        probabilities /= norms
        means = probabilities @ values
        variances = (probabilities * (values - means[:, None]) ** 2).sum(axis=1)
        missing = observed - float((terms.counts * terms.steps * means).sum())
        variance = max(float((terms.counts * terms.steps**2 * variances).sum()), SMALLEST_P)
        if abs(missing) <= within * math.sqrt(variance) or (size == 0 and missing < 0):
            break
        low, high = (size, high) if missing > 0 else (low, size)
        newton = size + missing / variance
        size = newton if low < newton < high else (low + high) / 2
    cumulant = math.fsum(terms.counts * (np.log(norms) + top)[:, 0])
    return _Tilt(size, cumulant, variance, DiscreteTerms(terms.steps, probabilities, terms.counts))


def _distribution(terms: DiscreteTerms) -> Floats:
    """Probabilities of the sums 0, 1, ... up to a power of two above the largest."""
    points = 1 << terms.total.bit_length()
    frequencies = np.arange(points // 2 + 1)
    values = np.ones(len(frequencies), dtype=np.complex128)
    # The most frequent kinds first, because they eliminate the most frequencies.
    order = np.argsort(-terms.counts, kind="stable")
    done = 0
    while done < len(order):
        kinds = order[done : done + (max(1, _FREQUENCY_BLOCK // max(1, len(frequencies))) if done else 1)]
        done += len(kinds)
        factors = _characteristic(terms, kinds, frequencies, points)
        values *= _powers(factors, terms.counts[kinds]).prod(axis=0)
        kept = np.abs(values) > _NEGLIGIBLE
        frequencies, values = frequencies[kept], values[kept]
    spectrum = np.zeros(points // 2 + 1, dtype=np.complex128)
    spectrum[frequencies] = np.conj(values)
    return np.maximum(np.fft.irfft(spectrum, points), 0.0)


def _powers(bases: Complex, exponents: Integers) -> Complex:
    """Each row to the power of its exponent, at least 1, by squaring: numpy takes ten times as long from 100 on.

    >>> _powers(np.array([[1j, 2.0], [1j, 2.0]]), np.array([2, 5])).tolist()
    [[(-1+0j), (4+0j)], [1j, (32+0j)]]
    """
    powers = np.ones_like(bases)
    while True:
        odd = exponents % 2 == 1
        if odd.all():
            powers *= bases
        elif odd.any():
            powers[odd] *= bases[odd]
        exponents = exponents // 2
        if not exponents.any():
            return powers
        bases = bases * bases


def _characteristic(terms: DiscreteTerms, kinds: Integers, frequencies: Integers, points: int) -> Complex:
    """Characteristic function of one variable of each kind, a row per kind."""
    width = max(2, int(terms.widths[kinds].max()))
    probabilities, steps = terms.probabilities[kinds, :width], terms.steps[kinds].astype(np.int64)
    values: Complex
    # A bit mask takes the exponents modulo `points` in a fifth of the time of a division.
    if len(kinds) > 1 and (steps == steps[0]).all():
        powers = _roots_of_unity(points)[(steps[0] * np.arange(width)[:, None] * frequencies) & (points - 1)]
        values = probabilities @ powers.real + 1j * (probabilities @ powers.imag)
        return values
    bases = _roots_of_unity(points)[(steps[:, None] * frequencies) & (points - 1)]
    # Horner's rule.
    values = probabilities[:, -1:] * bases
    for place in range(width - 2, 0, -1):
        values += probabilities[:, place : place + 1]
        values *= bases
    values += probabilities[:, :1]
    return values


@lru_cache(maxsize=4)
def _roots_of_unity(points: int) -> Complex:
    roots: Complex = np.exp(2j * np.pi * np.arange(points) / points)
    return roots


# Convolution


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
