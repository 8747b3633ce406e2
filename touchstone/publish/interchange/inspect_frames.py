"""Results as the data frames of Inspect AI: `samples.parquet` and `evals.parquet`.

Columns are named as `inspect_ai.analysis.samples_df` and `evals_df` name them. A task is a suite, an epoch an attempt;
the tier is a task argument. An undecided attempt has no score and an error, as an errored sample has.
"""

import hashlib
import json
from pathlib import Path

import polars as pl

from touchstone.publish.interchange.results import STATUS, Run

_EVAL = ["model", "tier", "suite"]


def write_inspect(run: Run, folder: Path) -> list[str]:
    """Write both frames."""
    rows = _with_epochs(run.rows())
    samples = rows.select(**_sample_columns())
    samples.sink_parquet(folder / "samples.parquet")
    _evals(pl.scan_parquet(folder / "samples.parquet", glob=False)).sink_parquet(folder / "evals.parquet")
    return []


def _with_epochs(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Numbers of attempts as epochs; attempts with other names are numbered in order."""
    number = pl.col("iteration_id").cast(pl.Int64, strict=False)
    named = rows.select((number.is_null() | (number < 0)).any()).collect(engine="streaming").item()
    place = pl.int_range(1, pl.len() + 1).over("model", "tier", "oid")
    return rows.with_columns(epoch=(place if named else number).cast(pl.Int64))


def _sample_columns() -> dict[str, pl.Expr]:
    undecided = pl.col("passed").is_null()
    tokens = pl.sum_horizontal("input_tokens", "output_tokens")
    known = pl.col("input_tokens").is_not_null() & pl.col("output_tokens").is_not_null()
    return {
        "sample_id": _identity("model", "tier", "suite", "oid", "iteration_id"),
        "eval_id": _identity(*_EVAL),
        "log": pl.lit(""),
        "model": pl.col("model"),
        "task_name": pl.col("suite"),
        "task_arg_tier": pl.col("tier"),
        "id": pl.col("oid"),
        "epoch": pl.col("epoch"),
        # Frames of Inspect always have these; the results of a run do not.
        "input": pl.lit(""),
        "target": pl.lit(""),
        "metadata_iteration_id": pl.col("iteration_id"),
        "metadata_run_id": pl.col("run_id"),
        "metadata_classification": pl.col("classification"),
        "score_passed": pl.col("passed").cast(pl.Float64),
        "score_weighted": pl.col("weighted_score"),
        "model_usage": pl.struct("model", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        .map_batches(_usage, return_dtype=pl.String, is_elementwise=True)
        .alias("model_usage"),
        "input_tokens": pl.col("input_tokens"),
        "output_tokens": pl.col("output_tokens"),
        "total_tokens": pl.when(known).then(tokens),
        "total_cost": pl.col("cost_usd"),
        "total_time": pl.coalesce("duration_seconds", pl.col("latency_ms") / 1000),
        "error": pl.when(undecided).then(pl.coalesce(STATUS, pl.lit("undecided"))).otherwise(pl.lit("")),
    }


def _identity(*columns: str) -> pl.Expr:
    """A short id that the same attempt or eval has in every export."""
    text = pl.concat_str([pl.col(name).str.replace_all("\x1f", "") for name in columns], separator="\x1f")
    return text.map_batches(_hashed, return_dtype=pl.String, is_elementwise=True)


def _hashed(texts: pl.Series) -> pl.Series:
    found = [None if text is None else hashlib.blake2b(text.encode(), digest_size=11).hexdigest() for text in texts]
    return pl.Series(texts.name, found, dtype=pl.String)


def _usage(rows: pl.Series) -> pl.Series:
    names = {"cache_read_tokens": "input_tokens_cache_read", "cache_write_tokens": "input_tokens_cache_write"}
    texts: list[str | None] = []
    for row in rows:
        usage = {names.get(key, key): value for key, value in row.items() if key != "model" and value is not None}
        texts.append(json.dumps({row["model"]: usage}) if usage else None)
    return pl.Series(rows.name, texts, dtype=pl.String)


def _evals(samples: pl.LazyFrame) -> pl.LazyFrame:
    """One row per model, tier and suite. The score is the mean over problems of the mean over attempts."""
    by = ["eval_id", "model", "task_name", "task_arg_tier"]
    scored = pl.col("score_passed")
    problems = samples.group_by(*by, "id").agg(
        scored.mean(), pl.len().alias("rows"), scored.count().alias("scored"), pl.col("epoch").max()
    )
    evals = problems.group_by(by).agg(
        pl.len().cast(pl.Int64).alias("dataset_samples"),
        pl.col("epoch").max().alias("epochs"),
        pl.col("rows").sum().cast(pl.Int64).alias("total_samples"),
        pl.col("scored").sum().cast(pl.Int64).alias("completed_samples"),
        scored.mean().alias("score_headline_value"),
    )
    return evals.with_columns(
        log=pl.lit(""),
        task_id=pl.col("task_name"),
        dataset_name=pl.col("task_name"),
        status=pl.lit("success"),
        score_headline_name=pl.lit("passed"),
        score_headline_metric=pl.lit("mean"),
        score_passed_mean=pl.col("score_headline_value"),
    ).sort("model", "task_arg_tier", "task_name")
