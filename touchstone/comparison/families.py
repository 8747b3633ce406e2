"""A family of pairs compared at once: figures of each pair, then what depends on all p-values of the family.

The pairs are rows and columns of matrices (`inference.paired_moments`), compared in chunks of bounded memory. The
result is a frame with the columns of `PairResult` and a row per pair.

p-values of many differing units are approximate (`inference.saddlepoints`), a few percent off at most. Wherever a
decision could turn on that, the exact test replaces them: near `alpha` once corrected, and near the level of the pair's
own interval.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from touchstone.comparison.verdicts import PairResult, verdicts
from touchstone.inference.arrays import Booleans, Floats, Integers, Texts
from touchstone.inference.detectable import effect_sizes, minimum_detectable_effects, units_needed
from touchstone.inference.fallen import ChangedProblems, changed_problems
from touchstone.inference.multiplicity import (
    Correction,
    Family,
    adjust_p_values,
    correction_factors,
    correction_for,
    count_rejections,
)
from touchstone.inference.paired_intervals import (
    consistent_with_test,
    difference_intervals,
    each_once,
    widen_to_margins,
)
from touchstone.inference.paired_moments import OutcomeMatrix, PairMoments, joined, pair_chunks, pair_moments
from touchstone.inference.paired_tests import PairedTests, exact_tests, paired_tests, smallest_p
from touchstone.inference.saddlepoints import attempt_kinds

# With many pairs the correction requires a small p, which too few random sign flips could never reach.
_DRAWS_PER_LEVEL = 10


@dataclass(frozen=True)
class ComparisonSettings:
    """How to compare. `relevant` is the smallest difference of pass@1 that matters to the user.

    `same_model`: the sides are one model at two times, so that a problem at which they differ has changed.
    """

    alpha: float = 0.05
    relevant: float = 0.05
    power: float = 0.8
    permutations: int = 20_000
    seed: int = 7
    confidence: float = 0.95
    family: Family = "all"
    baseline_model: str | None = None
    same_model: bool = False


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


def compare_family(
    lists: Sequence[PairList], settings: ComparisonSettings, advance: Callable[[int], None] | None = None
) -> pl.DataFrame:
    """Compare all these pairs, corrected for their number: the columns of `PairResult`, a row per pair."""
    problems, only_a, only_b = (np.concatenate(part) for part in zip(*(each.overlaps() for each in lists), strict=True))
    testable = problems > 0
    lists = [each.selected(here) for each, here in _split(lists, testable)]
    rule = correction_for(int(testable.sum()), settings.alpha, settings.family)
    draws = max(settings.permutations, math.ceil(_DRAWS_PER_LEVEL / rule.test_level))
    moments, approximate, changed = _measure(lists, draws, settings, advance)
    tests, p_values = _decided_tests(lists, approximate, changed, settings, draws)
    if settings.family == "fdr":
        # The level that this correction requires of a pair depends on the p-values of the others.
        found = count_rejections(changed.combined(p_values), settings.alpha, settings.family)
        rule = correction_for(rule.pairs, settings.alpha, settings.family, found)
    measured = _figures(moments, settings, rule, changed) | _decisions(moments, p_values, changed, settings, rule)
    measured |= {"test": tests, "p_value": p_values}
    measured |= {"fell": changed.fell, "rose": changed.rose, "p_changed": changed.p_values}
    columns = {name: _spread(column, testable) for name, column in measured.items()}
    columns["verdict"] = verdicts(
        np.where(columns["decided_by"] == "problems", columns["rose"] - columns["fell"], columns["difference"]),
        columns["p_adjusted"],
        (columns["adjusted_ci_low"], columns["adjusted_ci_high"]),
        settings.alpha,
        settings.relevant,
    )
    columns |= {"problems": problems, "problems_only_a": only_a, "problems_only_b": only_b}
    # Polars takes an array of objects for a column of objects, unless it is a list.
    values = {name: column.tolist() if column.dtype == np.object_ else column for name, column in columns.items()}
    return pl.DataFrame(values, nan_to_null=True).with_columns(
        confidence=pl.lit(settings.confidence),
        correction=pl.lit(rule.name),
        pairs=pl.lit(max(1, rule.pairs)),
        alpha=pl.lit(settings.alpha),
        relevant=pl.lit(settings.relevant),
    )


def pair_results(results: pl.DataFrame) -> Iterator[PairResult]:
    """The rows of `compare_family` as objects, made one at a time."""
    return (PairResult(**row) for row in results.iter_rows(named=True))


def _measure(
    lists: Sequence[PairList], draws: int, settings: ComparisonSettings, advance: Callable[[int], None] | None
) -> tuple[PairMoments, PairedTests, ChangedProblems]:
    """The moments and the tests of pairs, in their order: all that does not depend on other pairs."""
    moments, tests, changed = [], [], []
    for each in lists:
        kinds = attempt_kinds(each.matrix)
        for chunk in pair_chunks(each.matrix, each.first, each.second):
            moments.append(pair_moments(chunk))
            tests.append(paired_tests(chunk, kinds, draws, settings.seed))
            changed.append(changed_problems(chunk, tested=settings.same_model))
            if advance:
                advance(len(chunk.first))
    return joined(moments), joined(tests), joined(changed)


def _spread(column: Any, testable: Booleans) -> Any:
    """A column of the testable pairs as one of all pairs, with NaN, None or 0 for the others."""
    if testable.all():
        return column
    undefined = {"f": math.nan, "O": None}.get(column.dtype.kind, 0)
    whole = np.full(len(testable), undefined, dtype=column.dtype)
    whole[testable] = column
    return whole


def _split(lists: Sequence[PairList], column: Booleans) -> Iterator[tuple[PairList, Booleans]]:
    """Each list with its part of a column over all pairs."""
    ends = np.cumsum([len(each.first) for each in lists])
    return zip(lists, np.split(column, ends[:-1]), strict=True)


def _decided_tests(
    lists: Sequence[PairList], tests: PairedTests, changed: ChangedProblems, settings: ComparisonSettings, draws: int
) -> tuple[Texts, Floats]:
    """The names and p-values of the tests, exact wherever a decision could turn on it."""
    names, p_values, error = tests.names, tests.p_values, tests.error
    while (near := _near_a_level(p_values, error, changed, settings)).any():
        exact = [
            exact_tests(chunk, np.arange(len(chunk.first)), draws, settings.seed)
            for each, here in _split(lists, near)
            for chunk in pair_chunks(each.matrix, each.first[here], each.second[here])
        ]
        names[near], p_values[near] = (np.concatenate(part) for part in zip(*exact, strict=True))
        error[near] = 0.0
    return names, p_values


def _near_a_level(p_values: Floats, error: Floats, changed: ChangedProblems, settings: ComparisonSettings) -> Booleans:
    """Whether the approximate p-value of a pair is too near to a level that decides something."""
    factors = correction_factors(changed.combined(p_values), settings.family) / (1 - changed.share)
    corrected = p_values * factors / settings.alpha
    alone = p_values / (1 - settings.confidence)
    near = [(ratio >= 1 - error) & (ratio <= 1 + error) for ratio in (corrected, alone)]
    return np.asarray((error > 0) & (near[0] | near[1]))


def _figures(
    moments: PairMoments, settings: ComparisonSettings, rule: Correction, changed: ChangedProblems
) -> dict[str, Any]:
    """The figures that depend on the size of the family, but not on p-values."""
    level = rule.test_level * (1 - changed.share)
    effect, method = minimum_detectable_effects(moments, level, settings.power, settings.confidence)
    on_few, _ = minimum_detectable_effects(moments, level, settings.power, settings.confidence, on_few=True)
    return {
        "rate_a": moments.rate_a,
        "rate_b": moments.rate_b,
        "difference": moments.difference,
        "units": moments.units,
        "wins": moments.wins,
        "losses": moments.losses,
        "ties": moments.problems - moments.wins - moments.losses,
        "effect_size": effect_sizes(moments),
        "minimum_detectable_effect": effect,
        "detectable_method": method,
        "detectable_on_few": np.maximum(effect, on_few),
        "adjusted_confidence": np.full(len(effect), 1 - rule.interval_level),
    }


def _decisions(
    moments: PairMoments, p_values: Floats, changed: ChangedProblems, settings: ComparisonSettings, rule: Correction
) -> dict[str, Any]:
    """Intervals that agree with the tests, adjusted p-values, and whether there are enough units."""
    own = difference_intervals(moments, settings.confidence)
    own = consistent_with_test(own, moments.difference, p_values <= 1 - settings.confidence)
    confidence = 1 - rule.interval_level
    together = widen_to_margins(difference_intervals(moments, confidence), moments, settings.relevant, confidence)
    p_adjusted = adjust_p_values(changed.combined(p_values), settings.family)
    # An interval of the mean agrees with the test of the mean alone.
    of_mean = adjust_p_values(p_values / (1 - changed.share), settings.family)
    together = consistent_with_test(together, moments.difference, of_mean <= settings.alpha)
    decided_by = np.full(len(p_values), None, dtype=object)
    decided_by[p_adjusted <= settings.alpha] = "problems"
    decided_by[of_mean <= settings.alpha] = "mean"
    least = adjust_p_values(each_once(smallest_p, moments.units), settings.family)
    needed = np.full(len(least), units_needed(rule.best_level), dtype=object)
    needed[np.minimum(least, p_adjusted) <= settings.alpha] = None
    return {
        "ci_low": own.low,
        "ci_high": own.high,
        "method": own.methods,
        "p_adjusted": p_adjusted,
        "decided_by": decided_by,
        "adjusted_ci_low": together.low,
        "adjusted_ci_high": together.high,
        "adjusted_ci_method": together.methods,
        "units_needed": needed,
    }
