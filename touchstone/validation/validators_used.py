"""What decided the outcomes: per model and tier the validators, their versions, fidelity and sandbox."""

from collections.abc import Mapping, Sequence

import polars as pl

GROUP = ("model", "tier")
DETAILS = ("validator", "validator_version", "fidelity", "sandbox")
SCHEMA = pl.Schema(dict.fromkeys([*GROUP, *DETAILS], pl.String))


def validators_used(outcomes: pl.LazyFrame) -> pl.DataFrame:
    """Per model and tier, every validator with version, fidelity and sandbox that decided an attempt."""
    decided = outcomes.filter(pl.col("passed").is_not_null())
    return decided.select(list(SCHEMA)).unique().sort(list(SCHEMA)).collect()


def recorded_validators(attempt_scores: pl.DataFrame) -> pl.DataFrame:
    """The same for outcomes that a file brought itself."""
    groups = attempt_scores.filter(pl.col("pass_rate").is_not_null()).select(GROUP).unique().sort(GROUP)
    recorded = {"validator": pl.lit("recorded"), "fidelity": pl.lit("recorded")}
    return groups.with_columns(**{name: pl.lit(None, pl.String) for name in DETAILS} | recorded)


def frozen_validators(rows: Sequence[Mapping[str, str | None]]) -> pl.DataFrame:
    """What a snapshot's manifest recorded."""
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)
