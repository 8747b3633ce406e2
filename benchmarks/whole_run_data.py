"""Work that `whole_run.py` does in other processes, so that it stays small: data and checks.

python benchmarks/whole_run_data.py make FOLDER MODELS PROBLEMS ATTEMPTS
python benchmarks/whole_run_data.py check RESULTS RIVAL...
python benchmarks/whole_run_data.py pairs CONFIG RESULTS
python benchmarks/whole_run_data.py steps CONFIG
"""

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

from touchstone.config import load_config
from touchstone.ingest.synthetic import synthesise

K_VALUES = [1, 5, 10]
TOLERANCE = 1e-9
# A p-value from random signs may be off by so many of its standard errors.
MOST_ERRORS = 5
RESAMPLES = 9_999


def make(folder: Path, models: int, problems: int, attempts: int) -> str:
    """Write the inputs with a configuration to `input`, and another file of the first model to `changed`."""
    # Pass rates from .2 to .8, spread by the golden ratio: neighbours differ, and more models only fill the gaps.
    rates = {f"m{place:04d}": 0.2 + 0.6 * (place * 0.6180339887 % 1) for place in range(models)}
    synthesise(folder / "input", problems=problems, iterations=attempts, models=rates)
    first = min(rates)
    synthesise(folder / "changed", problems=problems, iterations=attempts, models={first: rates[first] / 2 + 0.4})
    config = {"problems_csv": "problems.csv", "fixes_dir": ".", "output_dir": "results", "k_values": K_VALUES}
    (folder / "input" / "evaluation_config.json").write_text(json.dumps({**config, "models": [], "data_type": "all"}))
    return f"{models * problems * attempts:,} rows"


def check(results: Path, *rivals: Path) -> str:
    """Compare the figures of rivals, or of another run, with the published ones; stop where one differs."""
    figures = _figures(results).filter(pl.col("pass_at_k").is_not_null())
    pairs, checked = _pairs(results), []
    assert pairs is not None, f"{results} has no paired differences"
    for rival in rivals:
        apart = _compare(figures, _figures(rival), ["model", "k"], "pass_at_k", rival)
        name = rival.parent.name if _is_run(rival) else rival.name
        said = f"{name}: {apart.height:,} of {figures.height:,} pass@k"
        theirs = _pairs(rival)
        if theirs is not None:
            joined = _compare(pairs, theirs, ["model_a", "model_b"], "difference", rival)
            said += f", {joined.height:,} of {pairs.height:,} paired differences"
            if "p_value_right" in joined.columns and not _is_run(rival):
                said += f", {_check_p_values(joined, rival):,} p-values within Monte Carlo error"
        checked.append(said)
    return f"equal to {TOLERANCE:g}: {'; '.join(checked)}"


def pairs_alone(config: Path, results: Path) -> str:
    """CPU seconds of the table `model_comparison` alone, and its pairs, as JSON."""
    from touchstone.comparison.pairs import compare_counts, comparison_settings
    from touchstone.metrics.pass_at_k import problem_counts

    counts, problems = (
        pl.scan_parquet(results / "tables" / name / "*.parquet") for name in ("problem_pass_at_k", "problems")
    )
    settings = comparison_settings(load_config(config))
    start = time.process_time()
    made = compare_counts(problem_counts(counts), problems, settings)
    return json.dumps({"cpu": time.process_time() - start, "pairs": made.height})


def steps(config: Path) -> str:
    """How many steps the Dagster job has."""
    from pipelines.automation import EVALUATE
    from pipelines.definitions import build_defs
    from pipelines.resources import EvaluationResource

    defs = build_defs(EvaluationResource(config_file=str(config), output_dir=None))
    return str(len(defs.resolve_job_def(EVALUATE).nodes))


def _figures(folder: Path) -> pl.DataFrame:
    figures = _read(folder, "pass_at_k")
    assert figures is not None, f"{folder} has no pass@k"
    return figures.select("model", "k", "pass_at_k")


def _pairs(folder: Path) -> pl.DataFrame | None:
    pairs = _read(folder, "model_comparison" if _is_run(folder) else "pairs")
    if pairs is None:
        return None
    return pairs.select("model_a", "model_b", "difference", *({"p_value"} & set(pairs.columns)))


def _is_run(folder: Path) -> bool:
    return (folder / "tables").is_dir()


def _read(folder: Path, name: str) -> pl.DataFrame | None:
    for path in (folder / "tables" / name / f"{name}.parquet", folder / f"{name}.parquet"):
        if path.is_file():
            return pl.read_parquet(path)
    path = folder / f"{name}.csv"
    return pl.read_csv(path) if path.is_file() else None


def _compare(ours: pl.DataFrame, theirs: pl.DataFrame, key: list[str], figure: str, rival: Path) -> pl.DataFrame:
    """The figures side by side; stops where one is missing or differs."""
    joined = ours.join(theirs.filter(pl.col(figure).is_not_null()), on=key, how="inner")
    complete = figure != "pass_at_k" or joined.height == ours.height
    # A NaN would pass "differs by more than".
    wrong = joined.filter(~((pl.col(figure) - pl.col(f"{figure}_right")).abs() <= TOLERANCE).fill_null(False))
    if not joined.height or not complete or wrong.height:
        example = f"; first: {wrong.row(0, named=True)}" if wrong.height else ""
        raise SystemExit(f"{rival}: {figure}: {joined.height} of {ours.height} found, {wrong.height} differ{example}")
    return joined


def _check_p_values(joined: pl.DataFrame, rival: Path) -> int:
    for row in joined.iter_rows(named=True):
        exact, drawn = row["p_value"], row["p_value_right"]
        # SciPy doubles the smaller tail, so its standard error is that of a count twice as far out.
        slack = MOST_ERRORS * math.sqrt(2 * max(exact, 1 / RESAMPLES) / RESAMPLES) + 2 / RESAMPLES
        if not abs(exact - drawn) <= slack:
            raise SystemExit(f"{rival}: p-value of {row['model_a']} and {row['model_b']}: {drawn}, ours {exact}")
    return joined.height


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    if command == "make":
        print(make(Path(words[0]), *map(int, words[1:])))
    else:
        helpers: dict[str, Callable[..., str]] = {"check": check, "pairs": pairs_alone, "steps": steps}
        print(helpers[command](*map(Path, words)))
