"""What is measured of each pair by itself: its moments and its test, before anything depends on the other pairs.

Both are functions of the counts of the two sides and of the clusters, so they can be kept for the next run: if one
model changed, only its pairs are measured again.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from touchstone.inference.difference_limits import Texts
from touchstone.inference.hypergeometric_saddlepoint import attempt_kinds
from touchstone.inference.paired_moments import PairMoments, pair_chunks, pair_moments
from touchstone.inference.paired_tests import MONTE_CARLO, PairedTests, paired_tests
from touchstone.inference.paired_units import Booleans, Integers, OutcomeMatrix

if TYPE_CHECKING:
    from touchstone.storage.kept_results import KeptResults

_SIDES = ["side_a", "side_b"]
_TESTS = [field.name for field in fields(PairedTests)]
_MOMENTS = [field.name for field in fields(PairMoments)]


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

    def side_versions(self) -> tuple[Texts, Texts]:
        """A hash of all that the measurements of each pair depend on at its first, and at its second side."""
        matrix = self.matrix
        # The tables of unequal attempts depend on the kinds that occur anywhere, and so may the last digits.
        shared = hashlib.sha256(repr([matrix.codes.shape[1], *map(np.ndarray.tolist, _common(matrix))]).encode())
        versions = np.empty(len(matrix.codes), dtype=object)
        for side, codes in enumerate(matrix.codes):
            own = shared.copy()
            own.update(codes.tobytes())
            versions[side] = own.hexdigest()[:32]
        return versions[self.first], versions[self.second]


def _common(matrix: OutcomeMatrix) -> tuple[Integers, ...]:
    return matrix.kind_n, matrix.kind_c, matrix.cluster_starts


@dataclass(frozen=True)
class Measured:
    """The moments and the tests of pairs, in their order."""

    moments: PairMoments
    tests: PairedTests


def measure(
    lists: Sequence[PairList],
    draws: int,
    seed: int,
    advance: Callable[[int], None] | None = None,
    kept: "KeptResults | None" = None,
) -> Measured:
    """Measure the pairs, all with a problem in common; those that `kept` has from the last run are not computed."""
    if kept is None:
        return _compute(lists, draws, seed, advance)
    pairs, old = _sides(lists), _valid(kept.read(), draws, seed)
    missing = _missing(pairs, old)
    if old is not None and not missing.any():
        return _arrays(pairs.join(old, on=_SIDES, how="left", maintain_order="left"))
    if advance:
        advance(int(np.count_nonzero(~missing)))
    ends = np.cumsum([len(each.first) for each in lists])[:-1]
    rest = [each.selected(here) for each, here in zip(lists, np.split(missing, ends), strict=True)]
    found = pairs.filter(missing).hstack(_frame(_compute(rest, draws, seed, advance), draws, seed))
    # Equal sides have equal versions, and their pairs are measured alike.
    rows = pl.concat([found] if old is None else [old, found]).unique(_SIDES)
    kept.write(rows.join(pairs, on=_SIDES, how="semi"))
    return _arrays(pairs.join(rows, on=_SIDES, how="left", maintain_order="left"))


def _missing(pairs: pl.DataFrame, old: pl.DataFrame | None) -> Booleans:
    """Whether each pair must be measured."""
    if old is None:
        return np.ones(pairs.height, dtype=bool)
    known = pairs.join(old.select(*_SIDES, known=True), on=_SIDES, how="left", maintain_order="left")["known"]
    return known.is_null().to_numpy()


def _compute(
    lists: Sequence[PairList], draws: int, seed: int, advance: Callable[[int], None] | None = None
) -> Measured:
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


def _sides(lists: Sequence[PairList]) -> pl.DataFrame:
    """The versions of the sides of each pair."""
    versions = zip(*(each.side_versions() for each in lists), strict=True)
    texts = (np.concatenate(part).tolist() for part in versions)
    return pl.DataFrame(dict(zip(_SIDES, texts, strict=True)), schema=dict.fromkeys(_SIDES, pl.String))


def _frame(measured: Measured, draws: int, seed: int) -> pl.DataFrame:
    """A row per pair. `drawn` says by which random signs the test was done, if any."""
    moments, tests = measured.moments, measured.tests
    columns = {name: getattr(moments, name) for name in _MOMENTS}
    columns |= {"p_values": tests.p_values, "error": tests.error}
    names = pl.Series("names", tests.names.tolist(), dtype=pl.String)
    drawn = pl.when(names.is_in(MONTE_CARLO)).then(pl.lit(f"{draws} {seed}"))
    return pl.DataFrame(columns).with_columns(names, drawn.alias("drawn"))


def _valid(rows: pl.DataFrame | None, draws: int, seed: int) -> pl.DataFrame | None:
    """The kept rows that would be measured alike."""
    alike = pl.col("drawn").is_null() | (pl.col("drawn") == f"{draws} {seed}")
    return None if rows is None else rows.filter(alike)


def _arrays(rows: pl.DataFrame) -> Measured:
    arrays = {name: rows[name].to_numpy(writable=True) for name in (*_MOMENTS, "p_values", "error")}
    names = np.array(rows["names"].to_list(), dtype=object)
    return Measured(
        PairMoments(*(arrays[name] for name in _MOMENTS)), PairedTests(names, arrays["p_values"], arrays["error"])
    )
