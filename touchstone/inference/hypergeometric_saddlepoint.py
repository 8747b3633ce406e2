"""Saddlepoint approximation of the within-problem permutation test (`hypergeometric`), for many pairs at once.

Problems with the same attempts on both sides and as many passes in total are of one kind. A matrix of results has few
kinds, so their cumulant generating functions are tabulated (`cumulant_tables`).
"""

from dataclasses import dataclass

import numpy as np

from touchstone.inference.cumulant_tables import APART, MAX_KINDS, TILTS, CumulantTable, Variables, saddlepoints
from touchstone.inference.hypergeometric import SADDLEPOINT_FROM, Strata
from touchstone.inference.paired_moments import PairChunk
from touchstone.inference.paired_units import Floats, Integers, OutcomeMatrix
from touchstone.inference.tails import SMALLEST_P, lugannani_rice


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
    enough = known.variances[kinds].sum(axis=1) >= SADDLEPOINT_FROM
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
