"""Stage 2: every attempt gets an outcome. Validators belong in `touchstone.validation`.

Most checks of this stage are gates: if one fails, no score is computed.
"""

import dagster as dg

from assets.common import EvaluationParam, Figures, checks_of, materialized, per_model, table_spec
from touchstone.storage.store import Part
from touchstone.tables import TABLES


@dg.multi_asset(specs=[table_spec(TABLES["validator_noise"], "python")])
def validator_noise(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Validates problems, reference fixes and some fixes several times, if the configuration asks for it."""
    return materialized(evaluation, "validator_noise")


@dg.multi_asset(specs=[table_spec(TABLES["baselines"], "python")])
def baselines(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Validates the unmodified problems and their reference fixes."""
    return materialized(evaluation, "baselines")


@dg.multi_asset(specs=[table_spec(TABLES["outcomes"])])
def outcomes(evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Validates the fixes, one part per model."""
    parts = evaluation.materialize("outcomes")
    return per_model("outcomes", parts, {model: _counts(part) for model, part in parts.items()})


def _counts(part: Part) -> Figures:
    """How many outcomes of a model passed, are undecided, were validated, or came from the cache."""
    import polars as pl

    counts = pl.scan_parquet(part.path, glob=False).select(
        passed=pl.col("passed").sum(),
        undecided=pl.col("passed").is_null().sum(),
        validated_here=pl.col("applied").is_not_null().sum(),
        cache_hits=pl.col("cached").sum(),
    )
    return counts.collect().row(0, named=True)


noise_checks = checks_of("validator_noise")
baseline_checks = checks_of("baselines")
outcome_checks = checks_of("outcomes")
