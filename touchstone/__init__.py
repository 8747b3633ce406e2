"""The evaluation engine: pure functions over Polars frames. Nothing in this package imports Dagster."""

__version__ = "0.1.0"
