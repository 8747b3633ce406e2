"""The bare script: what the core figures of a run cost with Polars and NumPy alone, as an expert writes it in an hour.

    python benchmarks/bare_run.py FOLDER OUTPUT [--tables]

Reads every `<model>_synthetic_fixes.csv` of the folder, writes its attempts as Parquet, finds duplicates, counts by
problem and writes pass@k with bootstrap intervals (10,000 replicates, shared by all models) and all paired differences
with their standard errors. With `--tables`, instead of intervals and pairs, it writes the tables that grow with the
rows, with the columns of a run: `attempts`, `outcomes` and `attempt_scores`, one file per model each, and the counts.

No row is checked beyond its types, nothing is kept for the next run, and every model must attempt every problem.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

K_VALUES = (1, 5, 10)
REPLICATES, CHUNK, SEED, CONFIDENCE = 10_000, 500, 7, 0.95
SUFFIX = "_synthetic_fixes.csv"
INPUT = {"oid": pl.String, "iteration_id": pl.String, "plausible_fix": pl.Boolean}

# Columns that the tables of a run have and these inputs do not: null in every row.
ATTEMPT_TEXTS = ("run_id", "fix_sha", "classification")
ATTEMPT_INTEGERS = ("tests_passed", "tests_failed", "lint_warnings", "input_tokens", "output_tokens",
                    "cache_read_tokens", "cache_write_tokens")  # fmt: skip
ATTEMPT_FLOATS = ("weighted_score", "cost_usd", "duration_seconds", "latency_ms")
OUTCOME_TEXTS = ("validator_version", "runner", "sandbox", "diagnostics")
OUTCOME_BOOLEANS = ("applied", "fixed", "consistent", "compiled")
OUTCOME_INTEGERS = ("introduced_block", "introduced_file", "introduced_module", "introduced_errors", "block_errors",
                    "module_errors", "tests_passed", "tests_failed", "lint_warnings")  # fmt: skip
SCORE_TEXTS = ("run_id", "classification", "priced_as", "grade")
SCORE_FLOATS = ("impl_rate", "cost_usd", "duration_seconds", "latency_ms", "cost_of_pass", "composite_score",
                "code_score", "compilation_score")  # fmt: skip

Floats = NDArray[np.float64]


def main() -> None:
    """Make everything that the arguments ask for."""
    parser = argparse.ArgumentParser(description="The core figures of a run with Polars and NumPy alone.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--tables", action="store_true", help="the tables that grow with the rows, and pass@k")
    arguments = parser.parse_args()
    files = {path.name.removesuffix(SUFFIX): path for path in sorted(arguments.folder.glob(f"*{SUFFIX}"))}
    write = write_tables if arguments.tables else write_attempts
    counts = write(files, arguments.output).sort("model", "oid")
    duplicates = (counts["n"] - counts["distinct"]).sum()
    if duplicates:
        raise SystemExit(f"{duplicates} duplicate attempts")
    models, n, c = as_matrices(counts)
    if arguments.tables:
        counts.write_parquet(arguments.output / "counts.parquet")
        pass_at_k(models, n, c).write_parquet(arguments.output / "pass_at_k.parquet")
    else:
        pass_at_k(models, n, c, weights(n.shape[1])).write_parquet(arguments.output / "pass_at_k.parquet")
        paired_differences(models, c / n).write_parquet(arguments.output / "pairs.parquet")


def write_attempts(files: dict[str, Path], output: Path) -> pl.DataFrame:
    """Write the attempts as they were read, all models in one scan; returns the counts."""
    model = pl.col("path").str.extract(f"([^/]+){SUFFIX}$")
    paths = list(files.values())
    rows = pl.scan_csv(paths, schema=INPUT, include_file_paths="path").with_columns(model=model).drop("path")
    by_model = pl.PartitionBy(output / "attempts", key="model", include_key=True)
    return pl.collect_all([rows.sink_parquet(by_model, mkdir=True, lazy=True), count(rows)], engine="streaming")[-1]


def write_tables(files: dict[str, Path], output: Path) -> pl.DataFrame:
    """Write the tables of a run that have a row per attempt, model after model for less memory; returns the counts."""
    counts = []
    for model, path in files.items():
        rows = pl.scan_csv(path, schema=INPUT).with_columns(model=pl.lit(model), tier=pl.lit("T0"))
        sinks = [
            frame.sink_parquet(output / name / f"{model}.parquet", mkdir=True, lazy=True)
            for name, frame in tables(rows).items()
        ]
        counts.append(pl.collect_all([*sinks, count(rows)], engine="streaming")[-1])
    return pl.concat(counts)


def count(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Attempts n, passes c and distinct attempts per model and problem."""
    return rows.group_by("model", "oid").agg(
        n=pl.len(), c=pl.col("plausible_fix").sum(), distinct=pl.col("iteration_id").n_unique()
    )


def tables(rows: pl.LazyFrame) -> dict[str, pl.LazyFrame]:
    """The tables of a run that have a row per attempt, with their columns."""
    key, passed = ("model", "tier", "oid", "iteration_id"), pl.col("plausible_fix")
    attempts = rows.select(
        *key,
        *_nulls(ATTEMPT_TEXTS, pl.String),
        *_nulls(ATTEMPT_INTEGERS, pl.Int64),
        *_nulls(ATTEMPT_FLOATS, pl.Float64),
        *_nulls(["compiled"], pl.Boolean),
        suite=pl.lit("default"),
        passed=passed,
    )
    outcomes = rows.select(
        *key,
        *_nulls(OUTCOME_TEXTS, pl.String),
        *_nulls(OUTCOME_BOOLEANS, pl.Boolean),
        *_nulls(OUTCOME_INTEGERS, pl.Int64),
        *_nulls(["duration_seconds"], pl.Float64),
        status=pl.when(passed).then(pl.lit("passed")).when(~passed).then(pl.lit("failed")),
        passed=passed,
        validator=pl.lit("recorded"),
        fidelity=pl.lit("recorded"),
        cached=pl.lit(False),
    )
    scores = rows.select(
        *key,
        *_nulls(SCORE_TEXTS, pl.String),
        *_nulls(SCORE_FLOATS, pl.Float64),
        *_nulls(["total_tokens"], pl.Int64),
        suite=pl.lit("default"),
        pass_rate=passed.cast(pl.Float64),
        accuracy=passed.cast(pl.Float64),
        test_score=pl.lit(0.0),
        lint_score=pl.lit(1.0),
        ran_tests=pl.lit(False),
        lint_measured=pl.lit(False),
    )
    return {"attempts": attempts, "outcomes": outcomes, "attempt_scores": scores}


def as_matrices(counts: pl.DataFrame) -> tuple[list[str], Floats, Floats]:
    """The models, and n and c as matrices of models by problems."""
    models = counts["model"].unique().sort().to_list()
    problems = counts["oid"].n_unique()
    if counts.height != len(models) * problems:
        raise SystemExit("every model must attempt every problem")
    n, c = (counts[name].to_numpy().astype(float).reshape(len(models), problems) for name in ("n", "c"))
    return models, n, c


def weights(problems: int) -> list[Floats]:
    """How often each problem is drawn in each bootstrap replicate, in chunks."""
    generator = np.random.default_rng(SEED)
    chances = np.full(problems, 1 / problems)
    return [generator.multinomial(problems, chances, CHUNK) / problems for _ in range(REPLICATES // CHUNK)]


def pass_at_k(models: list[str], n: Floats, c: Floats, drawn: list[Floats] | None = None) -> pl.DataFrame:
    """pass@k of every model and k, with percentile intervals if the weights of the replicates are given."""
    parts = []
    for k in K_VALUES:
        estimates = 1 - np.prod([np.clip(n - c - i, 0, None) / np.maximum(n - i, 1) for i in range(k)], axis=0)
        part = pl.DataFrame({"model": models, "k": k, "pass_at_k": estimates.mean(axis=1)})
        if drawn is not None:
            means = np.vstack([chunk @ estimates.T for chunk in drawn])
            low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
            part = part.with_columns(ci_low=pl.Series(low), ci_high=pl.Series(high))
        parts.append(part.filter(bool((n >= k).all())))
    return pl.concat(parts)


def paired_differences(models: list[str], rates: Floats) -> pl.DataFrame:
    """The mean difference b - a of every pair, with its standard error over problems."""
    a, b = np.triu_indices(len(models), 1)
    covariance = np.cov(rates)
    variance = covariance.diagonal()[a] + covariance.diagonal()[b] - 2 * covariance[a, b]
    means, names = rates.mean(axis=1), pl.Series(models)
    return pl.DataFrame(
        {
            "model_a": names.gather(a),
            "model_b": names.gather(b),
            "difference": means[b] - means[a],
            "standard_error": np.sqrt(np.clip(variance, 0, None) / rates.shape[1]),
        }
    )


def _nulls(names: Iterable[str], dtype: type[pl.DataType]) -> list[pl.Expr]:
    return [pl.lit(None, dtype).alias(name) for name in names]


if __name__ == "__main__":
    main()
