"""Failure modes against a baseline: which are new, grown or gone.

The share of attempts that fail in one way is compared like a pass rate: within each case (a model and tier at a
problem) that both sides decided, with problems or their clusters as units, and Holm's correction over the modes that
are tested. Rare modes come and go by chance, which is why new and gone ones have a p-value too.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from touchstone.comparison.pairs import ComparisonSettings, compare_pairs
from touchstone.inference.units import own_cluster
from touchstone.metrics.keys import PROBLEM_KEY
from touchstone.metrics.pass_at_k import decided_counts
from touchstone.tables import TABLES
from touchstone.text import counted

if TYPE_CHECKING:
    from touchstone.comparison.inputs import ComparisonInput

# The most common modes: a test of a rarer one would find nothing, and cost the others power.
_MOST_TESTED = 30
_MOST_NAMED = 3
_SEPARATOR = "\x1f"


def compare_failures(before: "ComparisonInput", after: "ComparisonInput", settings: ComparisonSettings) -> pl.DataFrame:
    """The table `failure_changes`, largest first; empty unless both sides know why attempts failed."""
    schema = TABLES["failure_changes"].dtypes
    sides = [each.failures for each in (before, after)]
    known = [each is not None and each.height > 0 for each in sides]
    if not any(known) or not all(has or _fails_nowhere(side) for has, side in zip(known, (before, after), strict=True)):
        return pl.DataFrame(schema=schema)
    cases = _cases(before, after)
    columns = [*PROBLEM_KEY, "fingerprint", "attempts", "example"]
    failed = pl.concat(
        each.select(columns).join(cases, on=PROBLEM_KEY, how="semi").with_columns(is_after=pl.lit(place == 1))
        for place, each in enumerate(sides)
        if each is not None
    )
    was, now = (pl.col("attempts").filter(pl.col("is_after") == after).sum() for after in (False, True))
    modes = failed.group_by("fingerprint").agg(
        pl.col("example").min(), baseline_attempts=was, compared_attempts=now, all=pl.col("attempts").sum()
    )
    modes = modes.sort(-pl.col("all"), "fingerprint")
    common = modes["fingerprint"].head(_MOST_TESTED).to_list()
    pairs = [_pair(cases, failed.filter(pl.col("fingerprint") == mode), was, now) for mode in common]
    results = compare_pairs(pairs, replace(settings, family="all", baseline_model=None))
    figures = ("difference", "p_value", "p_adjusted")
    tested = [(mode, *(getattr(each, name) for name in figures)) for mode, each in zip(common, results, strict=True)]
    types = {"fingerprint": pl.String} | dict.fromkeys(figures, pl.Float64)
    modes = modes.join(
        pl.DataFrame(tested, schema=types, orient="row"), on="fingerprint", how="left", maintain_order="left"
    )
    significant = pl.col("p_adjusted") <= settings.alpha
    change = (
        pl.when(pl.col("baseline_attempts") == 0)
        .then(pl.lit("new"))
        .when(pl.col("compared_attempts") == 0)
        .then(pl.lit("gone"))
        .when(significant)
        .then(pl.when(pl.col("difference") > 0).then(pl.lit("grown")).otherwise(pl.lit("shrunk")))
        .otherwise(pl.lit("unchanged"))
    )
    return modes.with_columns(mode_change=change).select(schema.names()).cast(schema)


def _fails_nowhere(side: "ComparisonInput") -> bool:
    """Whether all of its attempts pass: else a side without reasons does not know them."""
    return not side.attempt_scores.select((pl.col("pass_rate") < 1).any()).collect().item()


def _cases(before: "ComparisonInput", after: "ComparisonInput") -> pl.DataFrame:
    """The cases that both sides decided, with their numbers of attempts and the units that they belong to."""
    old, new = (decided_counts(each.attempt_scores).drop("c") for each in (before, after))
    problems = after.problems if after.problems is not None else before.problems
    known = pl.LazyFrame(schema={"oid": pl.String, "cluster": pl.String}) if problems is None else problems
    cases = old.join(new, on=PROBLEM_KEY, suffix="_b").join(known.select("oid", "cluster"), on="oid", how="left")
    # All models' cases of a problem are one unit.
    return cases.rename({"n": "n_a"}).with_columns(own_cluster()).collect()


def _pair(cases: pl.DataFrame, failed: pl.DataFrame, was: pl.Expr, now: pl.Expr) -> pl.DataFrame:
    """One mode's share of the attempts before and after, to be tested as if it were a pass rate."""
    rows = cases.join(failed.group_by(PROBLEM_KEY).agg(c_a=was, c_b=now), on=PROBLEM_KEY, how="left")
    case = pl.concat_str(PROBLEM_KEY, separator=_SEPARATOR)
    return rows.select(case.alias("oid"), "n_a", "n_b", pl.col("c_a", "c_b").fill_null(0), "cluster")


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
