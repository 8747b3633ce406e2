"""Frames that tests of several metrics need."""

import polars as pl

from touchstone.metrics import problem_scores as metric
from touchstone.tables import TABLES


def problem_scores(attempts: pl.LazyFrame) -> pl.LazyFrame:
    """The table `problem_scores` of attempts; columns that a test leaves out are null."""
    present = attempts.collect_schema()
    missing = {name: dtype for name, dtype in TABLES["attempt_scores"].dtypes.items() if name not in present}
    return metric.problem_scores(attempts.with_columns(pl.lit(None, dtype).alias(n) for n, dtype in missing.items()))
