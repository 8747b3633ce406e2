"""What counts: all but the attempts and problems that the ruling of a person excludes."""

import polars as pl


def without_excluded(outcomes: pl.LazyFrame) -> pl.LazyFrame:
    """The outcomes without those that a person's ruling excludes, as if there had been no such attempts."""
    return outcomes.filter(pl.col("ruling").ne_missing(pl.lit("exclude")))


def counting_problems(problems: pl.LazyFrame) -> pl.LazyFrame:
    """The problems that no ruling excludes; all of them in tables of an earlier version."""
    if "excluded" not in problems.collect_schema():
        return problems
    return problems.filter(~pl.col("excluded").fill_null(False))
