"""The usual script: the core figures of a run with pandas and SciPy, the way people write it.

    python benchmarks/pandas_run.py FOLDER OUTPUT [--intervals N] [--pairs N]

pass@k by groupby and the estimator problem by problem, its intervals with `scipy.stats.bootstrap`, and all pairs of
models with `scipy.stats.permutation_test` on their problems, both with SciPy's default of 9,999 resamples. All of that
takes hours for many models, so `--intervals` and `--pairs` do only so many, spread evenly. What both parts took, and
how many there would be, is printed as JSON.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

K_VALUES = (1, 5, 10)
SUFFIX = "_synthetic_fixes.csv"
# Resamples at a time: all at once would need gigabytes for 10,000 problems.
BATCH_CELLS = 10_000_000


def main() -> None:
    """Make everything, or the parts that the arguments ask for."""
    parser = argparse.ArgumentParser(description="The core figures of a run with pandas and SciPy.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--intervals", type=int, help="how many intervals; the default is all")
    parser.add_argument("--pairs", type=int, help="how many pairs; the default is all")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    attempts = read(arguments.folder)
    attempts.to_parquet(arguments.output / "attempts.parquet")
    counts = attempts.groupby(["model", "oid"])["plausible_fix"].agg(["size", "sum"]).reset_index()
    estimates = {k: estimate(counts, k) for k in K_VALUES if counts["size"].min() >= k}
    rows = {
        (model, k): {"model": model, "k": k, "pass_at_k": values.mean()}
        for k, table in estimates.items()
        for model, values in table.items()
    }
    spent = {
        "intervals": spend(list(rows), arguments.intervals, lambda key: rows[key].update(interval(estimates, *key))),
    }
    pd.DataFrame(list(rows.values())).to_csv(arguments.output / "pass_at_k.csv", index=False)
    rates, pairs = estimates[1], []
    spent["pairs"] = spend(
        list(combinations(sorted(rates), 2)), arguments.pairs, lambda pair: pairs.append(compare(rates, *pair))
    )
    pd.DataFrame(pairs).to_csv(arguments.output / "pairs.csv", index=False)
    print(json.dumps(spent))


def read(folder: Path) -> pd.DataFrame:
    """All attempts; stops at a duplicate."""
    frames = [
        pd.read_csv(path, dtype={"oid": str}).assign(model=path.name.removesuffix(SUFFIX))
        for path in sorted(folder.glob(f"*{SUFFIX}"))
    ]
    attempts = pd.concat(frames, ignore_index=True)
    duplicates = attempts.duplicated(["model", "oid", "iteration_id"]).sum()
    if duplicates:
        raise SystemExit(f"{duplicates} duplicate attempts")
    return attempts


def estimate(counts: pd.DataFrame, k: int) -> dict[str, Any]:
    """pass@k of every problem by model, with the estimator that everybody copies from Chen et al. (2021)."""

    def estimator(n: int, c: int) -> float:
        if n - c < k:
            return 1.0
        return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))

    values = [estimator(n, c) for n, c in zip(counts["size"], counts["sum"], strict=True)]
    named = counts.assign(value=values).sort_values(["model", "oid"])
    return {str(model): group["value"].to_numpy() for model, group in named.groupby("model")}


def interval(estimates: dict[int, dict[str, Any]], model: str, k: int) -> dict[str, float]:
    """The percentile bootstrap over problems."""
    values = estimates[k][model]
    found = stats.bootstrap((values,), np.mean, method="percentile", batch=max(1, BATCH_CELLS // len(values)))
    return {"ci_low": found.confidence_interval.low, "ci_high": found.confidence_interval.high}


def compare(rates: dict[str, Any], a: str, b: str) -> dict[str, object]:
    """The paired difference b - a of two models, its standard error, and the p-value of random sign flips."""

    def mean_difference(x: Any, y: Any, axis: int) -> Any:
        return np.mean(x - y, axis=axis)

    difference = rates[b] - rates[a]
    found = stats.permutation_test(
        (rates[b], rates[a]),
        mean_difference,
        permutation_type="samples",
        vectorized=True,
        batch=max(1, BATCH_CELLS // len(difference)),
    )
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    named = {"model_a": a, "model_b": b, "difference": difference.mean()}
    return named | {"standard_error": error, "p_value": found.pvalue}


def spend(items: list[Any], wanted: int | None, work: Callable[[Any], None]) -> dict[str, float]:
    """Do the work for all items, or for so many of them; what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    chosen = list(spread(items, wanted))
    for item in chosen:
        work(item)
    took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return took | {"done": len(chosen), "all": len(items)}


def spread(items: list[Any], wanted: int | None) -> Iterator[Any]:
    """So many of the items, evenly spread."""
    count = len(items) if wanted is None else min(wanted, len(items))
    yield from (items[place * len(items) // count] for place in range(count))


if __name__ == "__main__":
    main()
