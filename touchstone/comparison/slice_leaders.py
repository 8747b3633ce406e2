"""Whether the best model overall is also the best in every slice.

In each slice, the best model of a tier is compared with every other one, paired by problem (`compare.families`), with
Holm's correction over all these pairs: so many slices and models are looked at that some differ by chance. Where a
column is cut at the models' cutoffs, two models are compared on the problems that are in the slice for both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from touchstone.comparison.families import ComparisonSettings, PairList, compare_family, pair_results
from touchstone.comparison.pairs import count_matrices
from touchstone.comparison.verdicts import PairResult, sentence
from touchstone.config import SliceSettings
from touchstone.metrics.pass_at_k import problem_counts
from touchstone.metrics.slices import in_slices
from touchstone.tables.checks import CheckResult
from touchstone.text import counted, counted_of

_MOST_SHOWN = 3


@dataclass(frozen=True)
class _Pair:
    """Another model compared with the best model overall in one slice."""

    where: str
    leader: str
    other: str
    result: PairResult


def best_in_slices(
    problem_pass_at_k: pl.LazyFrame,
    problems: pl.LazyFrame,
    problem_slices: pl.LazyFrame,
    slices: Sequence[SliceSettings],
    *settings: Any,
) -> CheckResult:
    """No model is significantly better in a slice than the best model overall."""
    members = problem_slices.collect()
    if members.is_empty():
        return CheckResult(True, "no slices are configured")
    counts = problem_counts(problem_pass_at_k).filter(pl.col("n") > 0).collect()
    found, compared = _higher(counts, members, problems, ComparisonSettings(*settings))
    better = [each for each in found if each.result.verdict == "better"]
    message = "; ".join(filter(None, (_message(better, found, compared), _without_cutoff(counts, slices))))
    figures = {"slices": compared, "better_elsewhere": len(better), "higher_within_noise": len(found) - len(better)}
    return CheckResult(not better, message, figures=figures)


def _higher(
    counts: pl.DataFrame, members: pl.DataFrame, problems: pl.LazyFrame, settings: ComparisonSettings
) -> tuple[list[_Pair], int]:
    """The models that score higher in a slice than the best overall, and the number of slices compared."""
    lists, labels = [], []
    for tier, where, leader, rows in _slices(counts, members):
        names, matrix = count_matrices(problems, rows.lazy())
        others = [place for place, (model, _) in enumerate(names) if model != leader]
        if (leader, tier) in names and others:
            first = np.full(len(others), names.index((leader, tier)))
            lists.append(PairList(matrix, first, np.array(others)))
            labels += [(where, leader, names[place][0]) for place in others]
    if not lists:
        return [], 0
    results = pair_results(compare_family(lists, replace(settings, family="all", baseline_model=None)))
    pairs = [_Pair(*label, result) for label, result in zip(labels, results, strict=True)]
    compared = {each.where for each in pairs if each.result.difference is not None}
    higher = [each for each in pairs if (each.result.difference or 0.0) > 0]
    return sorted(higher, key=lambda each: each.result.p_adjusted or 0.0), len(compared)


def _slices(counts: pl.DataFrame, members: pl.DataFrame) -> Iterator[tuple[str, str, str, pl.DataFrame]]:
    """Tier, name of the slice, best model of the tier, and the counts in the slice, for each slice and tier."""
    leaders = _leaders(counts)
    several = len(leaders) > 1
    placed = in_slices(counts, members).sort("tier", "slice", "position")
    for (tier, column, value), rows in placed.group_by("tier", "column", "value", maintain_order=True):
        where = f"{column} {value}" + (f" ({tier})" if several else "")
        yield str(tier), where, leaders[str(tier)], rows.select("model", "tier", "oid", "n", "c")


def _leaders(counts: pl.DataFrame) -> dict[str, str]:
    """The model with the highest pass@1 of each tier; the first by name of several."""
    rates = counts.sort("oid").group_by("tier", "model").agg(rate=(pl.col("c") / pl.col("n")).mean())
    best = rates.sort("tier", -pl.col("rate").round(12), "model").unique("tier", keep="first", maintain_order=True)
    return dict(best.select("tier", "model").iter_rows())


def _message(better: Sequence[_Pair], higher: Sequence[_Pair], compared: int) -> str:
    if better:
        shown = [f"{each.where}: {sentence(each.result, each.leader, each.other)}" for each in better[:_MOST_SHOWN]]
        more = f" and {len(better) - _MOST_SHOWN} more" if len(better) > _MOST_SHOWN else ""
        return f"the best model overall is not the best in every slice: {'; '.join(shown)}{more}"
    slices = len({each.where for each in higher})
    if slices:
        where = counted_of(slices, compared, "slice")
        return f"in no slice is another model significantly better (Holm); another scores higher in {where}"
    return (
        f"the best model overall is the best in each of {counted(compared, 'slice')}"
        if compared
        else "no two models attempted a slice"
    )


def _without_cutoff(counts: pl.DataFrame, slices: Sequence[SliceSettings]) -> str:
    models = sorted(counts["model"].unique())
    missing = {
        each.column: [model for model in models if model not in each.cutoff]
        for each in slices
        if each.cutoff is not None
    }
    parts = [f"{column} has no cutoff for {', '.join(names)}" for column, names in missing.items() if names]
    return f"left out: {'; '.join(parts)}" if parts else ""
