"""A family of pairs compared at once: figures of each pair, then what depends on all p-values of the family.

The pairs are rows and columns of matrices (`inference.paired_units`), compared in chunks of bounded memory. Results are
columns, an entry per pair; only `FamilyResults.rows` makes an object of each pair, one after the other.

p-values of many differing units are approximate (`inference.sign_saddlepoint`), a few percent off at most. Wherever a
decision could turn on that, the exact test replaces them: near `alpha` once corrected, and near the level of the pair's
own interval.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from touchstone.compare.measured_pairs import PairList, measure
from touchstone.compare.verdicts import PairResult, verdicts
from touchstone.inference.detectable import effect_sizes, minimum_detectable_effects, units_needed
from touchstone.inference.difference_limits import Texts, each_once
from touchstone.inference.multiplicity import (
    Correction,
    Family,
    adjust_p_values,
    correction_factors,
    correction_for,
    count_rejections,
)
from touchstone.inference.paired_intervals import consistent_with_test, difference_intervals, widen_to_margins
from touchstone.inference.paired_moments import PairMoments, pair_chunks
from touchstone.inference.paired_tests import PairedTests, exact_tests, smallest_p
from touchstone.inference.paired_units import Booleans, Floats

# Pairs whose figures are Python objects at a time.
_ROWS = 4096
# With many pairs the correction requires a small p, which too few random sign flips could never reach.
_DRAWS_PER_LEVEL = 10


@dataclass(frozen=True)
class ComparisonSettings:
    """How to compare. `relevant` is the smallest difference of pass@1 that matters to the user."""

    alpha: float = 0.05
    relevant: float = 0.05
    power: float = 0.8
    permutations: int = 20_000
    seed: int = 7
    confidence: float = 0.95
    family: Family = "all"
    baseline_model: str | None = None


@dataclass(frozen=True)
class FamilyResults:
    """The columns of all pairs, named as in `PairResult`. Undefined is None, or NaN in a column of floats."""

    columns: dict[str, Any]

    def rows(self) -> Iterator[PairResult]:
        """The result of each pair."""
        for start in range(0, len(self.columns["difference"]), _ROWS):
            for row in zip(*self.part(slice(start, start + _ROWS)).values(), strict=True):
                yield PairResult(*row)

    def part(self, here: slice) -> dict[str, list[Any]]:
        """The columns of some pairs in the order of `PairResult`, with None for what is undefined."""
        # All fields but the last two, which no pair has by itself.
        return {field.name: _with_nulls(self.columns[field.name][here]) for field in fields(PairResult)[:-2]}


def compare_family(
    lists: Sequence[PairList],
    settings: ComparisonSettings,
    advance: Callable[[int], None] | None = None,
) -> FamilyResults:
    """Compare all these pairs, corrected for their number."""
    problems, only_a, only_b = (np.concatenate(part) for part in zip(*(each.overlaps() for each in lists), strict=True))
    testable = problems > 0
    lists = [each.selected(here) for each, here in _split(lists, testable)]
    rule = correction_for(int(testable.sum()), settings.alpha, settings.family)
    draws = max(settings.permutations, math.ceil(_DRAWS_PER_LEVEL / rule.test_level))
    measured_pairs = measure(lists, draws, settings.seed, advance)
    moments, tests, p_values = measured_pairs.moments, *_decided_tests(lists, measured_pairs.tests, settings, draws)
    if settings.family == "fdr":
        # The level that this correction requires of a pair depends on the p-values of the others.
        found = count_rejections(p_values, settings.alpha, settings.family)
        rule = correction_for(rule.pairs, settings.alpha, settings.family, found)
    measured = _figures(moments, settings, rule) | _decisions(moments, p_values, settings, rule)
    measured |= {"test": tests, "p_value": p_values}
    columns = {name: _spread(column, testable) for name, column in measured.items()}
    columns["verdict"] = verdicts(
        columns["difference"],
        columns["p_adjusted"],
        (columns["adjusted_ci_low"], columns["adjusted_ci_high"]),
        columns["minimum_detectable_effect"],
        settings.alpha,
        settings.relevant,
    )
    same = {"confidence": settings.confidence, "correction": rule.name, "pairs": max(1, rule.pairs)}
    same |= {"alpha": settings.alpha, "relevant": settings.relevant}
    columns |= {name: np.full(len(testable), value) for name, value in same.items()}
    return FamilyResults(columns | {"problems": problems, "problems_only_a": only_a, "problems_only_b": only_b})


def _spread(column: Any, testable: Booleans) -> Any:
    """A column of the testable pairs as one of all pairs, with NaN, None or 0 for the others."""
    if testable.all():
        return column
    undefined = {"f": math.nan, "O": None}.get(column.dtype.kind, 0)
    whole = np.full(len(testable), undefined, dtype=column.dtype)
    whole[testable] = column
    return whole


def _with_nulls(column: Any) -> list[Any]:
    """The values of a column, with None for NaN."""
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f":
        for place in np.flatnonzero(np.isnan(column)).tolist():
            values[place] = None
    return values


def _split(lists: Sequence[PairList], column: Booleans) -> Iterator[tuple[PairList, Booleans]]:
    """Each list with its part of a column over all pairs."""
    ends = np.cumsum([len(each.first) for each in lists])
    return zip(lists, np.split(column, ends[:-1]), strict=True)


def _decided_tests(
    lists: Sequence[PairList], tests: PairedTests, settings: ComparisonSettings, draws: int
) -> tuple[Texts, Floats]:
    """The names and p-values of the tests, exact wherever a decision could turn on it."""
    names, p_values, error = tests.names, tests.p_values, tests.error
    while (near := _near_a_level(p_values, error, settings)).any():
        exact = [
            exact_tests(chunk, np.arange(len(chunk.first)), draws, settings.seed)
            for each, here in _split(lists, near)
            for chunk in pair_chunks(each.matrix, each.first[here], each.second[here])
        ]
        names[near], p_values[near] = (np.concatenate(part) for part in zip(*exact, strict=True))
        error[near] = 0.0
    return names, p_values


def _near_a_level(p_values: Floats, error: Floats, settings: ComparisonSettings) -> Booleans:
    """Whether the approximate p-value of a pair is too near to a level that decides something."""
    corrected = p_values * correction_factors(p_values, settings.family) / settings.alpha
    alone = p_values / (1 - settings.confidence)
    near = [(ratio >= 1 - error) & (ratio <= 1 + error) for ratio in (corrected, alone)]
    return np.asarray((error > 0) & (near[0] | near[1]))


def _figures(moments: PairMoments, settings: ComparisonSettings, rule: Correction) -> dict[str, Any]:
    """What depends on the size of the family, but not on p-values."""
    effect, method = minimum_detectable_effects(moments, rule.test_level, settings.power, settings.confidence)
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
        "adjusted_confidence": np.full(len(effect), 1 - rule.interval_level),
    }


def _decisions(
    moments: PairMoments, p_values: Floats, settings: ComparisonSettings, rule: Correction
) -> dict[str, Any]:
    """Intervals that agree with the tests, adjusted p-values, and whether there are enough units."""
    own = difference_intervals(moments, settings.confidence)
    own = consistent_with_test(own, moments.difference, p_values <= 1 - settings.confidence)
    confidence = 1 - rule.interval_level
    together = widen_to_margins(difference_intervals(moments, confidence), moments, settings.relevant, confidence)
    p_adjusted = adjust_p_values(p_values, settings.family)
    together = consistent_with_test(together, moments.difference, p_adjusted <= settings.alpha)
    least = adjust_p_values(each_once(smallest_p, moments.units), settings.family)
    needed = np.full(len(least), units_needed(rule.best_level), dtype=object)
    needed[least <= settings.alpha] = None
    return {
        "ci_low": own.low,
        "ci_high": own.high,
        "method": own.methods,
        "p_adjusted": p_adjusted,
        "adjusted_ci_low": together.low,
        "adjusted_ci_high": together.high,
        "adjusted_ci_method": together.methods,
        "units_needed": needed,
    }
