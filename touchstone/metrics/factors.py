"""pass@1 by the levels of a factor: a column of the attempts, such as a reasoning effort, a prompt or a temperature.

A level is like a slice of the attempts: its figure is the mean over problems of the pass rate of the problem's attempts
at that level, and its interval that of `pass_at_k` at k = 1, with problems or clusters as units. Differences between
levels are in `comparison.factor_effects`, paired by problem.
"""

from collections.abc import Sequence

import polars as pl

from touchstone.config import IntervalSettings
from touchstone.errors import TouchstoneError
from touchstone.metrics.counting import without_excluded
from touchstone.metrics.keys import ATTEMPT_KEY, MODEL_TIER, PROBLEM_KEY
from touchstone.metrics.pass_at_k import estimates, mean_figures, outcome_counts, outcome_histogram
from touchstone.tables import TABLES

NO_LEVEL = "(missing)"
_MOST_LEVELS = 20
# Words for more and less of something, in their order.
_ASCENDING = ("none", "off", "false", "no", "minimal", "low", "medium", "high", "xhigh", "max", "on", "true", "yes")
_GROUP = [*MODEL_TIER, "factor", "level"]


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
    found = estimates(outcome_counts(outcome_histogram(by_level.lazy(), problems, _GROUP).collect(), _GROUP), 1)
    levels = [(name, level) for name in names for level in levels_of(counts, name)]
    order: dict[tuple[str | None, ...], int] = {level: place for place, level in enumerate(levels)}
    rows = []
    for key in sorted(found, key=lambda key: (*map(str, key[:2]), order[key[2:]])):
        eligible = found[key].eligible
        problems_here = int(eligible.problems.sum())
        figures = mean_figures(found[key], problems_here, problems_here, intervals)
        own = {"attempts": int((eligible.n * eligible.problems).sum()), "pass_at_1": figures["pass_at_k"]}
        rows.append(dict(zip(_GROUP, key, strict=True)) | figures | own)
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
