"""Failure modes: what failed attempts have in common, and which modes are new, grown or gone since a baseline.

The share of attempts that fail in one way is compared like a pass rate: within each case (a model and tier at a
problem) that both sides decided, with problems or their clusters as units, and Holm's correction over the modes that
are tested. Rare modes come and go by chance, which is why new and gone ones have a p-value too.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from touchstone.comparison.pairs import ComparisonSettings, compare_pairs
from touchstone.metrics.keys import PROBLEM_KEY
from touchstone.tables import TABLES
from touchstone.text import counted

if TYPE_CHECKING:
    from touchstone.comparison.inputs import ComparisonInput

# The most common modes: a test of a rarer one would find nothing, and cost the others power.
_MOST_TESTED = 30
_MOST_NAMED = 3
_SEPARATOR = "\x1f"


def failure_modes(failures: pl.DataFrame, changes: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """The table `failure_modes`, the most common first; modes of earlier snapshots alone have no attempts."""
    now = failures.group_by("fingerprint").agg(
        pl.col("attempts").sum(),
        pl.col("oid").n_unique().alias("problems"),
        pl.col("model").n_unique().alias("models"),
        example_now=pl.col("example").min(),
    )
    rows = spans.join(now, on="fingerprint", how="full", coalesce=True)
    rows = rows.join(changes.select("fingerprint", "mode_change"), on="fingerprint", how="left")
    counts = pl.col("attempts", "problems", "models").fill_null(0).cast(pl.Int64)
    rows = rows.with_columns(counts, example=pl.coalesce("example_now", "example"))
    return rows.select(TABLES["failure_modes"].dtypes.names()).sort(-pl.col("attempts"), "fingerprint")


def compare_failures(before: "ComparisonInput", after: "ComparisonInput", settings: ComparisonSettings) -> pl.DataFrame:
    """The table `failure_changes`, largest first; empty if neither side knows why an attempt failed."""
    schema = TABLES["failure_changes"].dtypes
    none = pl.DataFrame(schema=TABLES["failures"].dtypes)
    sides = [none if each.failures is None else each.failures for each in (before, after)]
    if not any(each.height for each in sides):
        return pl.DataFrame(schema=schema)
    cases = _cases(before, after)
    sides = [each.join(cases.select(PROBLEM_KEY), on=PROBLEM_KEY, how="semi") for each in sides]
    names = ("baseline_attempts", "compared_attempts")
    counts = [
        each.group_by("fingerprint").agg(pl.col("attempts").sum().alias(name), example=pl.col("example").min())
        for each, name in zip(sides, names, strict=True)
    ]
    modes = (
        counts[0]
        .join(counts[1], on="fingerprint", how="full", coalesce=True)
        .with_columns(pl.col(names).fill_null(0), example=pl.coalesce("example_right", "example"))
    )
    modes = modes.sort(-pl.sum_horizontal(names), "fingerprint")
    tested = _tested(cases, sides, modes["fingerprint"].head(_MOST_TESTED).to_list(), settings)
    was, now = map(pl.col, names)
    significant = pl.col("p_adjusted") <= settings.alpha
    change = (
        pl.when(was == 0)
        .then(pl.lit("new"))
        .when(now == 0)
        .then(pl.lit("gone"))
        .when(significant & (pl.col("difference") > 0))
        .then(pl.lit("grown"))
        .when(significant & (pl.col("difference") < 0))
        .then(pl.lit("shrunk"))
        .otherwise(pl.lit("unchanged"))
    )
    joined = modes.join(tested, on="fingerprint", how="left", maintain_order="left")
    return joined.with_columns(mode_change=change).select(schema.names()).cast(schema)


def _cases(before: "ComparisonInput", after: "ComparisonInput") -> pl.DataFrame:
    """The cases that both sides decided, with their numbers of attempts and the units that they belong to."""
    decided = [
        each.attempt_scores.filter(pl.col("pass_rate").is_not_null())
        .group_by(PROBLEM_KEY)
        .agg(pl.len().cast(pl.Int64).alias(f"n_{side}"))
        for each, side in ((before, "a"), (after, "b"))
    ]
    problems = after.problems if after.problems is not None else before.problems
    known = pl.LazyFrame(schema={"oid": pl.String, "cluster": pl.String}) if problems is None else problems
    cases = decided[0].join(decided[1], on=PROBLEM_KEY).join(known.select("oid", "cluster"), on="oid", how="left")
    # All models' cases of a problem are one unit. No name of a cluster starts with this character.
    alone = pl.concat_str(pl.lit(_SEPARATOR), "oid")
    return cases.with_columns(cluster=pl.coalesce("cluster", alone)).sort(PROBLEM_KEY).collect()


def _tested(
    cases: pl.DataFrame, sides: list[pl.DataFrame], modes: list[str], settings: ComparisonSettings
) -> pl.DataFrame:
    """Each mode's share of the attempts before and after, tested as if it were a pass rate."""

    def pair(mode: str) -> pl.DataFrame:
        rows = cases
        for each, name in zip(sides, ("c_a", "c_b"), strict=True):
            own = each.filter(pl.col("fingerprint") == mode).select(*PROBLEM_KEY, pl.col("attempts").alias(name))
            rows = rows.join(own, on=PROBLEM_KEY, how="left")
        case = pl.concat_str(PROBLEM_KEY, separator=_SEPARATOR)
        return rows.select(case.alias("oid"), "n_a", "n_b", pl.col("c_a", "c_b").fill_null(0), "cluster")

    results = compare_pairs([pair(mode) for mode in modes], replace(settings, family="all", baseline_model=None))
    figures = ("difference", "p_value", "p_adjusted")
    rows = [(mode, *(getattr(each, name) for name in figures)) for mode, each in zip(modes, results, strict=True)]
    return pl.DataFrame(rows, schema={"fingerprint": pl.String} | dict.fromkeys(figures, pl.Float64), orient="row")


def describe_changes(changes: pl.DataFrame, alpha: float) -> list[str]:
    """A line each on the modes that are new, grown, shrunk or gone, the most common first."""
    lines = []
    for change in ("new", "grown", "shrunk", "gone"):
        rows = changes.filter(pl.col("mode_change") == change).to_dicts()
        named = []
        for row in rows[:_MOST_NAMED]:
            was, now = row["baseline_attempts"], row["compared_attempts"]
            size = f"{was:,} to {counted(now, 'attempt')}" if was and now else counted(was or now, "attempt")
            by_chance = ", which may be chance" if row["p_adjusted"] is None or row["p_adjusted"] > alpha else ""
            named.append(f"{row['fingerprint']} ({size}{by_chance})")
        more = [f"{len(rows) - _MOST_NAMED:,} more"] if len(rows) > _MOST_NAMED else []
        if rows:
            lines.append(f"failure modes {change}: {'; '.join([*named, *more])}")
    return lines
