"""pass@1 in parts: slices of the problems by a column of theirs, and levels of a factor, a column of the attempts.

A slice has the problems with one value of a column, such as a difficulty, a language or a side of a cutoff. It is a
smaller benchmark, so its figure and interval are those of `pass_at_k` at k = 1 on its problems: problems are the units,
or clusters if problems of the slice share one. Every problem of a tier is in exactly one value of a column, so that
their numbers add up to those of the whole benchmark. A column that is cut at the models' training cutoffs has rows only
for the models that have a cutoff.

A level is like a slice of the attempts, such as those at one reasoning effort, prompt or temperature: its figure is the
mean over problems of the pass rate of the problem's attempts at that level, with the same interval. Differences between
levels are in `comparison.factor_effects`, paired by problem.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.errors import TouchstoneError
from touchstone.inference.units import GroupKey
from touchstone.metrics.keys import ATTEMPT_KEY, MODEL_TIER, PROBLEM_KEY, counting_problems, without_excluded
from touchstone.metrics.pass_at_k import (
    OutcomeCounts,
    estimates,
    mean_figures,
    outcome_counts,
    outcome_histogram,
    problem_counts,
)
from touchstone.tables import TABLES

_SLICE = [name for name in TABLES["problem_slices"].dtypes if name not in ("cutoff_model", "oid")]
_GROUP = [*MODEL_TIER, *_SLICE]
_NONE = OutcomeCounts(*np.zeros((4, 0), dtype=np.int64))


def slices(
    problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, problem_slices: pl.LazyFrame, intervals: IntervalSettings
) -> pl.LazyFrame:
    """The table `slices`: pass@1 with its confidence interval per model, tier and value of each configured column."""
    schema = TABLES["slices"].dtypes
    members = problem_slices.collect()
    if members.is_empty():
        return pl.LazyFrame(schema=schema)
    counts = problem_counts(problem_pass_at_k).collect()
    totals = _problems(members, problems, counts.select(MODEL_TIER).unique())
    decided = in_slices(counts.filter(pl.col("n") > 0), members)
    histogram = outcome_histogram(decided.lazy(), problems, _GROUP).collect()
    attempted = outcome_counts(histogram, _GROUP)
    figures = _figures({key: attempted.get(key, _NONE) for key in totals}, totals, intervals)
    return pl.LazyFrame(figures, schema=schema)


def in_slices(counts: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Rows by model and problem, each once for every slice that its problem is in for that model."""
    of_all, of_one = _by_cutoff(members)
    parts = [counts.join(of_all, on="oid"), counts.join(of_one, on=["model", "oid"])]
    return pl.concat([part.select(*counts.columns, *_SLICE) for part in parts])


def _by_cutoff(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows that are the same for every model, and those of one model, in the column `model`."""
    named = rows.rename({"cutoff_model": "model"})
    return named.filter(pl.col("model").is_null()).drop("model"), named.filter(pl.col("model").is_not_null())


def _problems(members: pl.DataFrame, problems: pl.LazyFrame, groups: pl.DataFrame) -> dict[GroupKey, int]:
    """The number of problems in every value, for each model and tier; sorted."""
    counting = counting_problems(problems).select("oid", "only_tier").collect()
    bound = members.join(counting, on="oid")
    of_all, of_one = _by_cutoff(bound.group_by("cutoff_model", "only_tier", *_SLICE).len("problems"))
    each = [groups.join(of_all, how="cross"), groups.join(of_one, on="model")]
    columns = [*_GROUP, "only_tier", "problems"]
    totals = (
        pl.concat([part.select(columns) for part in each])
        .filter(pl.col("only_tier").is_null() | (pl.col("only_tier") == pl.col("tier")))
        .group_by(_GROUP)
        .agg(pl.col("problems").sum().cast(pl.Int64))
        .sort(_GROUP)
    )
    return {tuple(key): count for *key, count in totals.iter_rows()}


def _figures(
    groups: Mapping[GroupKey, OutcomeCounts], totals: Mapping[GroupKey, int], intervals: IntervalSettings
) -> list[dict[str, object]]:
    rows = {}
    # Slices with equally many problems one after the other, because they share their bootstrap resamples.
    by_size = sorted(estimates(groups, 1).items(), key=lambda item: int(item[1].eligible.problems.sum()))
    for key, found in by_size:
        model, tier, _, column, _, value = key
        attempted = int(found.eligible.problems.sum())
        figures = mean_figures(found, attempted, totals[key], intervals)
        rows[key] = (
            {"model": model, "tier": tier, "column": column, "value": value, "problems": totals[key]}
            | {"attempted": attempted, "attempts": int((found.eligible.n * found.eligible.problems).sum())}
            | {"pass_at_1": figures["pass_at_k"]}
            | {name: figure for name, figure in figures.items() if name.startswith("ci_")}
        )
    return [rows[key] for key in groups]


# Levels of a factor


NO_LEVEL = "(missing)"
_MOST_LEVELS = 20
# Words for more and less of something, in their order.
_ASCENDING = ("none", "off", "false", "no", "minimal", "low", "medium", "high", "xhigh", "max", "on", "true", "yes")
_LEVEL = [*MODEL_TIER, "factor", "level"]


def factors(
    attempts: pl.LazyFrame,
    outcomes: pl.LazyFrame,
    problems: pl.LazyFrame,
    names: Sequence[str],
    intervals: IntervalSettings,
) -> pl.LazyFrame:
    """The table `factors`: pass@1 with its confidence interval per model, tier and level of each configured factor."""
    schema = TABLES["factors"].dtypes
    if not names:
        return pl.LazyFrame(schema=schema)
    counts = level_counts(attempts, outcomes, names)
    by_level = pl.concat(
        counts.group_by(*PROBLEM_KEY, factor=pl.lit(name), level=pl.col(name)).agg(pl.col("n", "c").sum())
        for name in names
    )
    found = estimates(outcome_counts(outcome_histogram(by_level.lazy(), problems, _LEVEL).collect(), _LEVEL), 1)
    levels = [(name, level) for name in names for level in levels_of(counts, name)]
    order: dict[tuple[str | None, ...], int] = {level: place for place, level in enumerate(levels)}
    rows = []
    for key in sorted(found, key=lambda key: (*map(str, key[:2]), order[key[2:]])):
        eligible = found[key].eligible
        problems_here = int(eligible.problems.sum())
        figures = mean_figures(found[key], problems_here, problems_here, intervals)
        own = {"attempts": int((eligible.n * eligible.problems).sum()), "pass_at_1": figures["pass_at_k"]}
        rows.append(dict(zip(_LEVEL, key, strict=True)) | figures | own)
    return pl.LazyFrame(rows, schema=schema)


def level_counts(attempts: pl.LazyFrame, outcomes: pl.LazyFrame, names: Sequence[str]) -> pl.DataFrame:
    """Decided attempts n and passed ones c per model, tier, problem and combination of levels, sorted."""
    text = pl.col(names).cast(pl.String).str.strip_chars().replace("", None).fill_null(NO_LEVEL)
    decided = without_excluded(outcomes).filter(pl.col("passed").is_not_null()).select(*ATTEMPT_KEY, verdict="passed")
    rows = attempts.select(*ATTEMPT_KEY, text).join(decided, on=ATTEMPT_KEY).group_by(*PROBLEM_KEY, *names)
    counts = rows.agg(n=pl.len().cast(pl.Int64), c=pl.col("verdict").sum().cast(pl.Int64)).collect(engine="streaming")
    for name in names:
        levels = counts[name].n_unique()
        if levels > _MOST_LEVELS:
            raise TouchstoneError(
                f"factors: '{name}' has {levels:,} levels; choose a column with at most {_MOST_LEVELS}"
            )
    return counts.sort(*PROBLEM_KEY, *names)


def levels_of(counts: pl.DataFrame, name: str) -> list[str]:
    """The levels of a factor in their order: numbers and words such as `low` ascending, others by name.

    >>> levels_of(pl.DataFrame({"effort": ["high", "(missing)", "Low", "10", "9"]}), "effort")
    ['9', '10', 'Low', 'high', '(missing)']
    """

    def place(level: str) -> tuple[int, float, str]:
        if level == NO_LEVEL:
            return 3, 0.0, level
        if level.lower() in _ASCENDING:
            return 1, _ASCENDING.index(level.lower()), level
        try:
            return 0, float(level), level
        except ValueError:
            return 2, 0.0, level

    return sorted(counts[name].unique().to_list(), key=place)
