"""Saddlepoint approximations of the two permutation tests, for many pairs at once.

`sign_saddlepoint_p`, the sign permutation test: the sum of units' differences with random signs has the cumulant
generating function K(t) = sum of log cosh(t s) over the absolute differences s. With observed sum x on a lattice of
span 2 g, Lugannani and Rice's formula with Daniels' second continuity correction (1987, section 6) has the tail
probability

    1 - Phi(w) + phi(w) (1 / u - 1 / w),   w = sqrt(2 (t y - K(t))),   u = sinh(g t) / g * sqrt(K''(t)),

where y = x - g and K'(t) = y; g = 0 if differences are rounded. From `MIN_DIFFERING_UNITS` units that differ, the
relative error is below 1%, and a few percent far out in the tail. It is larger if nearly all differences lie on a
coarser lattice than 2 g, which a bound on the characteristic function detects for small sizes; for larger ones it was
up to 8% at p above 1e-8 in simulation, and 17% below.

`hypergeometric_saddlepoint_p`, the permutation of attempts within problems (`hypergeometric`): problems with the same
attempts on both sides and as many passes in total are of one kind, and a matrix of results has few kinds.

Tables of cumulants. Where the variables of many sums are of few kinds, the cumulant generating function K of each kind
and its first two derivatives are tabulated on a grid of tilts t once for all sums. For each sum the tabulated values
are added over its variables, the cell of the grid where K'(t) equals the observed sum is found by bisection, and K is
interpolated there by the quintic polynomial that agrees with the table at both ends. This costs a few look-ups per
variable, and the relative error of p from it is below 0.1%.

References: Lugannani and Rice (1980), "Saddle point approximation for the distribution of the sum of independent
random variables", Advances in Applied Probability 12(2). Robinson (1982), "Saddlepoint approximations for permutation
tests and confidence intervals", Journal of the Royal Statistical Society B 44(1). Daniels (1987), "Tail probability
approximations", International Statistical Review 55(1).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from touchstone.inference.arrays import Booleans, Floats, Integers
from touchstone.inference.hypergeometric import MIN_VARIANCE, Strata
from touchstone.inference.paired_moments import OutcomeMatrix, PairChunk, count_by_row
from touchstone.inference.tails import SMALLEST_P, lugannani_rice

# Tilts in a table, and how far they are apart for a variable with steps of 1.
TILTS, APART = 128, 0.5
# The largest table: 48 MB.
MAX_KINDS = 2**21 // TILTS
_CELL_STEPS = 8

# Fewer differing units are tested exactly.
MIN_DIFFERING_UNITS = 100
# Up to this size, units are counted by size.
_MAX_COUNTED = 64
_NEWTON_STEPS = 60
# The tilted mean is this near to the observed sum, in standard deviations; the error of p is about its square.
_NEAR = 1e-7
# The largest absolute value of the characteristic function at the frequencies of coarser lattices.
_COARSER = 0.01
# No decision turns on p-values below this, however many pairs there are.
_FAR = 1e-12
# The hyperbolic cosine of more overflows, squared.
_LARGEST = 300


# Tables of cumulants


@dataclass(frozen=True)
class CumulantTable:
    """K, K' and K'' of each kind of variable, a row per tilt; `apart` is the distance between tilts."""

    cumulant: Floats
    mean: Floats
    variance: Floats
    apart: float


@dataclass(frozen=True)
class Saddlepoints:
    """The tilt at which the expected sum is the observed one, K and K'' there, and whether the table reaches so far."""

    tilt: Floats
    cumulant: Floats
    variance: Floats
    found: Booleans


@dataclass(frozen=True)
class Variables:
    """The variables of each row: the kind of each, and how many there are of each kind if the kinds are few."""

    kinds: Integers
    counts: Floats | None

    @classmethod
    def of(cls, kinds: Integers, width: int) -> "Variables":
        """The variables of these kinds, which are below `width`."""
        few = width <= kinds.shape[1]
        return cls(kinds, count_by_row(kinds, width).astype(np.float64) if few else None)

    def sums_at(self, values: Floats, tilts: Integers) -> Floats:
        """The sum of tabulated values over each row, at the tilt of the row."""
        if self.counts is not None:
            return np.asarray(np.einsum("ij,ij->i", self.counts, values[tilts]))
        return np.asarray(values.ravel()[self.kinds + (tilts * values.shape[1])[:, None]].sum(axis=1))


def saddlepoints(table: CumulantTable, variables: Variables, observed: Floats) -> Saddlepoints:
    """The saddlepoint of each row, a sum of variables."""
    low, high = np.zeros(len(observed), dtype=np.int64), np.full(len(observed), TILTS - 1)
    found = variables.sums_at(table.mean, high) > observed
    while (high - low > 1).any():
        middle = (low + high) // 2
        beyond = variables.sums_at(table.mean, middle) > observed
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return _interpolated(table, variables, observed, low, found)


def _interpolated(
    table: CumulantTable, variables: Variables, observed: Floats, cell: Integers, found: Booleans
) -> Saddlepoints:
    apart = table.apart
    (k0, d0, s0), (k1, d1, s1) = (
        [
            variables.sums_at(values, cell + end) * apart**order
            for order, values in enumerate((table.cumulant, table.mean, table.variance))
        ]
        for end in (0, 1)
    )
    rise, slope, bend = k1 - k0 - d0 - s0 / 2, d1 - d0 - s0, s1 - s0
    # K at the share x of the cell is k0 + d0 x + s0 x^2 / 2 + cubic x^3 + quartic x^4 + quintic x^5.
    cubic = 10 * rise - 4 * slope + bend / 2
    quartic = -15 * rise + 7 * slope - bend
    quintic = 6 * rise - 3 * slope + bend / 2
    x = np.full(len(cell), 0.5)
    for _ in range(_CELL_STEPS):
        first = d0 + x * (s0 + x * (3 * cubic + x * (4 * quartic + x * 5 * quintic)))
        second = s0 + x * (6 * cubic + x * (12 * quartic + x * 20 * quintic))
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.clip(x + (observed * apart - first) / second, 0.0, 1.0)
    cumulant = k0 + x * (d0 + x * (s0 / 2 + x * (cubic + x * (quartic + x * quintic))))
    variance = s0 + x * (6 * cubic + x * (12 * quartic + x * 20 * quintic))
    return Saddlepoints((cell + x) * apart, cumulant, variance / apart**2, found)


# The sign permutation test


def sign_saddlepoint_p(differences: Integers, exact: Booleans) -> Floats:
    """Two-sided p-values of the sums of each row; NaN where the approximation is not to be trusted.

    `exact` is false for rows whose differences are rounded, which have no lattice.

    >>> differences = np.array([[1, 2, 3, 4] * 30 + [-1, -2, -3] * 30])
    >>> sign_saddlepoint_p(differences, np.array([True])).round(6)  # exactly 0.00099245
    array([0.000992])
    """
    sizes = np.abs(differences)
    observed, total = np.abs(differences.sum(axis=1)), sizes.sum(axis=1)
    units = np.count_nonzero(sizes, axis=1)
    p_values = np.where(units < MIN_DIFFERING_UNITS, np.nan, 1.0)
    # A sum of 0, or of a single step, is the least extreme.
    rows = np.flatnonzero((p_values == 1) & (observed > 0))
    if len(rows) < len(sizes):
        sizes, observed, total, units, exact = sizes[rows], observed[rows], total[rows], units[rows], exact[rows]
    largest = int(sizes.max(initial=0))
    approximate = _counted_p if largest <= _MAX_COUNTED else _tabulated_p if largest < MAX_KINDS else _p_of_units
    p = np.clip(approximate(sizes, observed, exact), SMALLEST_P, 1.0)
    # All signs agree: exact to the last digit.
    p_values[rows] = np.where(observed == total, np.maximum(np.ldexp(2.0, -units), SMALLEST_P), p)
    return p_values


def _counted_p(sizes: Integers, observed: Integers, exact: Booleans) -> Floats:
    """For small sizes: by the number of units of each size."""
    counts = count_by_row(sizes, int(sizes.max(initial=0)) + 1)[:, 1:]
    kinds = np.arange(1, counts.shape[1] + 1)
    spans = np.gcd.reduce(np.where(counts > 0, kinds, 0), axis=1)
    p, tilt = _newton_p(kinds[None], counts, observed, np.where(exact, spans, 0))
    return np.where((p > _FAR) & _on_coarser_lattice(counts, tilt[:, None] * kinds, spans), np.nan, p)


def _tabulated_p(sizes: Integers, observed: Integers, exact: Booleans) -> Floats:
    """For larger sizes: each size is a kind of its own in a table of cumulants."""
    # A table of a few widths serves all chunks.
    table = _sign_table(1 << int(sizes.max()).bit_length())
    steps = np.where(exact, np.gcd.reduce(sizes, axis=1), 0).astype(np.float64)
    sums = observed - steps
    point = saddlepoints(table, Variables.of(sizes, table.mean.shape[1]), sums)
    tail = lugannani_rice(2 * (point.tilt * sums - point.cumulant), _width(point.tilt, steps) * np.sqrt(point.variance))
    return np.where(point.found, 2 * tail, np.nan)


@lru_cache(maxsize=1)
def _sign_table(width: int) -> CumulantTable:
    kinds, apart = np.arange(width, dtype=np.float64), APART / width
    products = apart * np.arange(TILTS)[:, None] * kinds
    return CumulantTable(_log_cosh(products), kinds * np.tanh(products), (kinds / np.cosh(products)) ** 2, apart)


def _p_of_units(sizes: Integers, observed: Integers, exact: Booleans) -> Floats:
    """For any sizes: unit by unit."""
    return _newton_p(sizes, (sizes > 0).astype(np.int64), observed, np.zeros_like(observed))[0]


def _newton_p(kinds: Integers, counts: Integers, observed: Integers, spans: Integers) -> tuple[Floats, Floats]:
    """The p-values, NaN where Newton's method does not converge, and the tilts."""
    scale = np.sqrt((counts * kinds.astype(np.float64) ** 2).sum(axis=1))
    values, step = kinds / scale[:, None], spans / scale
    sums = observed / scale - step
    tilt, found = _tilted(values, counts, sums)
    products = tilt[:, None] * values
    cumulant = (counts * _log_cosh(products)).sum(axis=1)
    variance = (counts * (values / np.cosh(np.minimum(products, _LARGEST))) ** 2).sum(axis=1)
    p = 2 * lugannani_rice(2 * (tilt * sums - cumulant), _width(tilt, step) * np.sqrt(variance))
    return np.where(sums <= 0, 1.0, np.where(found, p, np.nan)), tilt / scale


def _width(tilt: Floats, step: Floats) -> Floats:
    """u in multiples of the standard deviation: the tilt, corrected for the lattice."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(step > 0, np.sinh(step * tilt) / step, tilt)


def _log_cosh(x: Floats) -> Floats:
    """Without cancellation near 0, and without overflow."""
    return np.asarray(x + np.log1p(np.expm1(-2 * x) / 2))


def _tilted(values: Floats, counts: Integers, sums: Floats) -> tuple[Floats, Booleans]:
    """The t with K'(t) = sums for values of total square 1, and where it was found.

    K' is concave, so Newton's method from the left never passes the solution.
    """
    tilt, found = sums.copy(), sums <= 0
    rows = np.flatnonzero(~found)
    for _ in range(_NEWTON_STEPS):
        if len(rows) == 0:
            break
        some, many = values[rows], counts[rows]
        decay = np.exp(-2 * tilt[rows, None] * some)
        mean = (many * some * ((1 - decay) / (1 + decay))).sum(axis=1)
        variance = (many * some**2 * (4 * decay / (1 + decay) ** 2)).sum(axis=1)
        missing = sums[rows] - mean
        done = np.abs(missing) <= _NEAR * np.sqrt(variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            tilt[rows] += np.where(done, 0.0, missing / variance)
        found[rows] = done
        rows = rows[~done & np.isfinite(tilt[rows])]
    return tilt, found


def _on_coarser_lattice(counts: Integers, products: Floats, spans: Integers) -> Booleans:
    """Whether nearly all differences are multiples of something larger than their common divisor.

    Then the characteristic function, the product of cos(f s) over units, is nearly 1 somewhere. Tilted, its absolute
    value is at most exp(-1/2 * sum of sin(f s)^2 / cosh(t s)^2). `products` are t s.
    """
    kinds = np.arange(1, counts.shape[1] + 1)
    fractions = [(k, q) for q in kinds[1:].tolist() for k in range(1, q // 2 + 1) if math.gcd(k, q) == 1]
    if not fractions:
        return np.zeros(len(counts), dtype=bool)
    k, q = np.array(fractions).T
    waves = np.sin(np.pi * kinds[:, None] * k / q) ** 2
    weights = counts / np.cosh(np.minimum(products, _LARGEST)) ** 2
    exponents = weights @ waves / 2
    own = spans[:, None] * k % q == 0
    return np.asarray((np.where(own, np.inf, exponents) < -math.log(_COARSER)).any(axis=1))


# Permutation of attempts within problems


@dataclass(frozen=True)
class AttemptKinds:
    """The kinds of problems of a matrix: numbers of attempts of both sides, and passes of both together.

    The statistic counts side b's passes above `lowest`, each worth `effects`, which is infinite if there is no choice.
    """

    table: CumulantTable
    lowest: Integers
    effects: Floats
    variances: Floats


def attempt_kinds(matrix: OutcomeMatrix) -> AttemptKinds | None:
    """The kinds of problems that a matrix may have; None if they are too many, or all attempts are equally many."""
    attempts = matrix.distinct_attempts
    passes = _most_passes(matrix)
    if len(attempts) == 1 or len(attempts) ** 2 * passes > MAX_KINDS:
        return None
    n_a, n_b, passed = (part.ravel() for part in np.meshgrid(attempts, attempts, np.arange(passes), indexing="ij"))
    # Kinds that cannot occur do no harm.
    strata = Strata.of(n_a, n_b, np.minimum(passed, n_a + n_b), np.ones_like(passed))
    effect, values = strata.effect, np.arange(int(strata.spans.max()) + 1)
    apart = APART / float(effect.max())
    cumulant, mean, variance = np.empty((3, TILTS, len(passed)))
    with np.errstate(divide="ignore"):
        logs = np.log(strata.probabilities())
    for place in range(TILTS):
        exponents = logs + place * apart * effect[:, None] * values
        top = exponents.max(axis=1)
        tilted = np.exp(exponents - top[:, None])
        norms = tilted.sum(axis=1)
        cumulant[place], mean[place] = np.log(norms) + top, tilted @ values / norms
        variance[place] = (tilted @ values**2 / norms - mean[place] ** 2) * effect**2
        mean[place] *= effect
    table = CumulantTable(cumulant, mean, variance, apart)
    return AttemptKinds(table, strata.lowest, np.where(strata.spans > 0, effect, np.inf), strata.variances())


def hypergeometric_saddlepoint_p(known: AttemptKinds, chunk: PairChunk, rows: Integers) -> Floats:
    """Two-sided p-values of these pairs; NaN where there is too little data, or p is too small for the table."""
    kinds, ahead = _kinds(chunk, rows)
    enough = known.variances[kinds].sum(axis=1) >= MIN_VARIANCE
    effects, above = known.effects[kinds], ahead - known.lowest[kinds]
    smallest = effects.min(axis=1)
    # As in `hypergeometric`, half a pass is subtracted as a continuity correction.
    observed = (np.where(above > 0, effects, 0.0) * above).sum(axis=1) - smallest / 2
    lattice = np.where(np.isinf(effects), smallest[:, None], effects).max(axis=1) == smallest
    variables = Variables.of(kinds, len(known.lowest))
    point = saddlepoints(known.table, variables, observed)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        width = np.where(lattice, np.sinh(smallest * point.tilt / 2) * 2 / smallest, point.tilt)
        exponent = 2 * (point.tilt * observed - point.cumulant)
        tail = lugannani_rice(exponent, width * np.sqrt(point.variance))
    # Not above what is expected.
    tail = np.where(observed <= variables.sums_at(known.table.mean, np.zeros_like(rows)), 0.5, tail)
    return np.where(enough & point.found, np.clip(2 * tail, SMALLEST_P, 1.0), np.nan)


def _kinds(chunk: PairChunk, rows: Integers) -> tuple[Integers, Integers]:
    """The kind of each problem, and how often the leading side passed it; that side becomes b.

    A problem that is not shared is of a kind without passes.
    """
    matrix, shared = chunk.matrix, chunk.shared[rows]
    swapped = chunk.differences[rows].sum(axis=1) < 0
    behind = np.where(swapped, chunk.second[rows], chunk.first[rows])
    ahead = np.where(swapped, chunk.first[rows], chunk.second[rows])
    kinds = matrix.attempt_kinds[behind] * len(matrix.distinct_attempts) + matrix.attempt_kinds[ahead]
    kinds = kinds * _most_passes(matrix) + matrix.c[behind] + matrix.c[ahead]
    return np.where(shared, kinds, 0), np.where(shared, matrix.c[ahead], 0)


def _most_passes(matrix: OutcomeMatrix) -> int:
    """One more than two sides can pass."""
    return 2 * int(matrix.distinct_attempts[-1]) + 1
