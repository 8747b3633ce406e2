"""Stage 2: every attempt gets an outcome. Validators belong in `touchstone.validation`.

Most checks of this stage are gates: if one fails, no score is computed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg

from assets.common import EvaluationParam, checks_of, materialized, table_spec
from assets.metadata import Figures, per_model
from touchstone.evaluation import Evaluation
from touchstone.tables import TABLES

if TYPE_CHECKING:
    import polars as pl

_NO_OUTCOMES: Figures = {"passed": 0, "undecided": 0, "validated_here": 0, "cache_hits": 0}


@dg.multi_asset(specs=[table_spec(TABLES["validator_noise"], "python")])
def validator_noise(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> dg.MaterializeResult[None]:
    """Validates problems, reference fixes and some fixes several times, if the configuration asks for it."""
    return materialized(context, evaluation, "validator_noise")


@dg.multi_asset(specs=[table_spec(TABLES["baselines"], "python"), table_spec(TABLES["problem_files"], "parquet")])
def baselines(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> Iterator[dg.MaterializeResult[None]]:
    """Validates the unmodified problems and their reference fixes, and keeps their files."""
    yield materialized(context, evaluation, "baselines")
    yield _kept_texts(evaluation, "problem_files")


@dg.multi_asset(specs=[table_spec(TABLES["outcomes"]), table_spec(TABLES["validated_fixes"], "parquet")])
def outcomes(evaluation: EvaluationParam) -> Iterator[dg.MaterializeResult[None]]:
    """Validates the fixes, one part per model, and keeps their diffs and test results."""
    parts = evaluation.materialize("outcomes")
    counts = _counts(evaluation.store.scan("outcomes", list(parts)))
    yield per_model("outcomes", parts, {model: counts.get(model, _NO_OUTCOMES) for model in parts})
    yield _kept_texts(evaluation, "validated_fixes")


def _kept_texts(evaluation: Evaluation, table: str) -> dg.MaterializeResult[None]:
    """The result of a table that was written with another one."""
    rows = sum(part.rows for part in evaluation.materialize(table).values())
    version = dg.DataVersion(evaluation.store.fingerprint(table))
    return dg.MaterializeResult(table, metadata={"dagster/row_count": rows}, data_version=version)


def _counts(outcomes: "pl.LazyFrame") -> dict[str, Figures]:
    """How many outcomes of each model passed, are undecided, were validated, or came from the cache."""
    import polars as pl

    counts = outcomes.group_by("model").agg(
        passed=pl.col("passed").sum(),
        undecided=pl.col("passed").is_null().sum(),
        validated_here=pl.col("applied").is_not_null().sum(),
        cache_hits=pl.col("cached").sum(),
    )
    return {row.pop("model"): row for row in counts.collect(engine="streaming").to_dicts()}


noise_checks = checks_of("validator_noise")
baseline_checks = checks_of("baselines")
outcome_checks = checks_of("outcomes")
