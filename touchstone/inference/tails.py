"""Tail probabilities of sums of independent discrete variables.

- `lattice_tail`, for whole numbers, is exact up to rounding of floats. The distribution is obtained from its
  characteristic function by one Fourier transform (Pagano and Tritchler 1983), at a cost that grows with the largest
  sum and not with the number of combinations. It is first tilted so that it peaks at the observed sum (Esscher's
  transform), which makes a p of 1e-50 as precise as one of 0.05.
- `saddlepoint_tail`, for any numbers, is Lugannani and Rice's approximation (1980), good for sums of many variables,
  also far out in the tail.
"""

import math
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from touchstone.inference.paired_units import Floats, Integers

Complex = NDArray[np.complex128]

# The largest sum whose distribution is computed at once.
MAX_LATTICE_SUM = 2**20
# Frequencies whose share is below this are lost in the rounding of the others.
_NEGLIGIBLE = 1e-16
_NEWTON_STEPS = 200
# Numbers in one block of kinds and frequencies: enough to keep numpy busy, few enough to stay in the cache.
_BLOCK = 2**16
# A p-value is never 0, even where no float is small enough to hold it.
SMALLEST_P = sys.float_info.min


@dataclass(frozen=True)
class DiscreteTerms:
    """Kinds of variables: `counts[i]` of them are `steps[i] * j` with probability `chances[i, j]`, j = 0, 1, ...

    Rows of `chances` are padded with zeros on the right.
    """

    steps: Integers | Floats
    chances: Floats
    counts: Integers

    @cached_property
    def widths(self) -> Integers:
        """Number of values of each kind."""
        present = self.chances > 0
        widths: Integers = present.shape[1] - np.argmax(present[:, ::-1], axis=1)
        return widths

    @cached_property
    def total(self) -> int:
        """The largest possible sum of whole numbers."""
        return int((self.counts * self.steps * (self.widths - 1)).sum())

    def largest_chance(self) -> float:
        """The probability of the largest possible sum."""
        last = self.chances[np.arange(len(self.counts)), self.widths - 1]
        return math.exp(math.fsum(self.counts * np.log(last)))


def lattice_tail(terms: DiscreteTerms, reach: int) -> float:
    """Probability that the sum, of whole numbers, is at least `reach`.

    Two fair coins worth 1 and one worth 3:

    >>> coins = DiscreteTerms(np.array([1, 3]), np.full((2, 2), 0.5), np.array([2, 1]))
    >>> round(lattice_tail(coins, 4), 12)
    0.375
    """
    if reach <= 0:
        return 1.0
    if reach >= terms.total:
        return terms.largest_chance() if reach == terms.total else 0.0
    tilt = _tilted(terms, reach, within=0.5)
    chances = _distribution(tilt.terms)[reach : terms.total + 1]
    weights = np.exp(-tilt.size * np.arange(len(chances)))
    return min(1.0, math.exp(tilt.cumulant - tilt.size * reach) * float((chances * weights).sum()))


def saddlepoint_tail(terms: DiscreteTerms, reach: float) -> float:
    """The same for any numbers, approximately; `reach` must lie below the largest sum."""
    tilt = _tilted(terms, reach, within=1e-9)
    exponent = 2 * (tilt.size * reach - tilt.cumulant)
    if exponent < 1e-8:
        return 0.5
    w, u = math.sqrt(exponent), tilt.size * math.sqrt(tilt.variance)
    normal = NormalDist()
    tail = math.erfc(w / math.sqrt(2)) / 2 + normal.pdf(w) * (1 / u - 1 / w)
    return min(1.0, max(0.0, tail))


def two_sided(tail: float) -> float:
    """Twice a tail, as a p-value."""
    return min(1.0, max(2 * tail, SMALLEST_P))


@dataclass(frozen=True)
class _Tilt:
    """Terms tilted by exp(size * sum), the cumulant generating function at that size, and the variance of the sum."""

    size: float
    cumulant: float
    variance: float
    terms: DiscreteTerms


def _tilted(terms: DiscreteTerms, reach: float, within: float) -> _Tilt:
    """The tilt under which the expected sum is `reach`, within so many standard deviations; by safeguarded Newton.

    A sum that is expected beyond `reach` anyway is not tilted.
    """
    places = np.arange(terms.chances.shape[1])
    with np.errstate(divide="ignore"):
        logs = np.log(terms.chances)
    size, low, high = 0.0, 0.0, math.inf
    for _ in range(_NEWTON_STEPS):
        exponents = logs + size * terms.steps[:, None] * places
        top = exponents.max(axis=1, keepdims=True)
        chances = np.exp(exponents - top)
        norms = chances.sum(axis=1, keepdims=True)
        chances /= norms
        means = chances @ places
        spreads = (chances * (places - means[:, None]) ** 2).sum(axis=1)
        missing = reach - float((terms.counts * terms.steps * means).sum())
        variance = max(float((terms.counts * terms.steps**2 * spreads).sum()), SMALLEST_P)
        if abs(missing) <= within * math.sqrt(variance) or (size == 0 and missing < 0):
            break
        low, high = (size, high) if missing > 0 else (low, size)
        newton = size + missing / variance
        size = newton if low < newton < high else (low + high) / 2
    cumulant = math.fsum(terms.counts * (np.log(norms) + top)[:, 0])
    return _Tilt(size, cumulant, variance, DiscreteTerms(terms.steps, chances, terms.counts))


def _distribution(terms: DiscreteTerms) -> Floats:
    """Probabilities of the sums 0, 1, ... and on to a power of two beyond the largest."""
    points = 1 << terms.total.bit_length()
    frequencies = np.arange(points // 2 + 1)
    values = np.ones(len(frequencies), dtype=np.complex128)
    # The commonest kinds first: they leave the fewest frequencies to go on with.
    order = np.argsort(-terms.counts, kind="stable")
    done = 0
    while done < len(order):
        kinds = order[done : done + (max(1, _BLOCK // max(1, len(frequencies))) if done else 1)]
        done += len(kinds)
        factors = _characteristic(terms, kinds, frequencies, points)
        counts = terms.counts[kinds]
        if counts.max() > 1:
            factors = factors ** counts[:, None]
        values *= factors.prod(axis=0)
        kept = np.abs(values) > _NEGLIGIBLE
        frequencies, values = frequencies[kept], values[kept]
    spectrum = np.zeros(points // 2 + 1, dtype=np.complex128)
    spectrum[frequencies] = np.conj(values)
    return np.maximum(np.fft.irfft(spectrum, points), 0.0)


def _characteristic(terms: DiscreteTerms, kinds: Integers, frequencies: Integers, points: int) -> Complex:
    """Characteristic function of one variable of each kind, a row each."""
    width = max(2, int(terms.widths[kinds].max()))
    chances, steps = terms.chances[kinds, :width], terms.steps[kinds].astype(np.int64)
    values: Complex
    # Turns are taken modulo `points` by a mask, at a fifth of the price of a division.
    if len(kinds) > 1 and (steps == steps[0]).all():
        powers = _turns(points)[(steps[0] * np.arange(width)[:, None] * frequencies) & (points - 1)]
        values = chances @ powers.real + 1j * (chances @ powers.imag)
        return values
    bases = _turns(points)[(steps[:, None] * frequencies) & (points - 1)]
    # Horner's rule.
    values = chances[:, -1:] * bases
    for place in range(width - 2, 0, -1):
        values += chances[:, place : place + 1]
        values *= bases
    values += chances[:, :1]
    return values


@lru_cache(maxsize=4)
def _turns(points: int) -> Complex:
    turns: Complex = np.exp(2j * np.pi * np.arange(points) / points)
    return turns
