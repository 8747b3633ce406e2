"""What is measured of each pair by itself: its moments and its test, before anything depends on the other pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from touchstone.inference.hypergeometric_saddlepoint import attempt_kinds
from touchstone.inference.paired_moments import PairMoments, pair_chunks, pair_moments
from touchstone.inference.paired_tests import PairedTests, paired_tests
from touchstone.inference.paired_units import Booleans, Integers, OutcomeMatrix

_TESTS = [field.name for field in fields(PairedTests)]


@dataclass(frozen=True)
class PairList:
    """Pairs of sides of one matrix, by their rows."""

    matrix: OutcomeMatrix
    first: Integers
    second: Integers

    def overlaps(self) -> tuple[Integers, Integers, Integers]:
        """For each pair, how many problems both have attempted, only the first, and only the second."""
        decided = self.matrix.decided.astype(np.float64)
        shared = (decided @ decided.T)[self.first, self.second].astype(np.int64)
        each = np.count_nonzero(self.matrix.decided, axis=1)
        return shared, each[self.first] - shared, each[self.second] - shared

    def selected(self, here: Booleans) -> "PairList":
        """Some of the pairs."""
        return self if here.all() else PairList(self.matrix, self.first[here], self.second[here])


@dataclass(frozen=True)
class Measured:
    """The moments and the tests of pairs, in their order."""

    moments: PairMoments
    tests: PairedTests


def measure(lists: Sequence[PairList], draws: int, seed: int, advance: Callable[[int], None] | None = None) -> Measured:
    """Measure the pairs, all with a problem in common."""
    moments, tests = [], []
    for each in lists:
        kinds = attempt_kinds(each.matrix)
        for chunk in pair_chunks(each.matrix, each.first, each.second):
            moments.append(pair_moments(chunk))
            tests.append(paired_tests(chunk, kinds, draws, seed))
            if advance:
                advance(len(chunk.first))
    joined = (np.concatenate([getattr(test, name) for test in tests]) for name in _TESTS)
    return Measured(PairMoments.joined(moments), PairedTests(*joined))
