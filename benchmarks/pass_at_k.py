"""How fast `touchstone pass-at-k` is, beside the ways people compute the same figures today.

    python benchmarks/pass_at_k.py [--rows 1000000 10000000] [--samples 100 4] [--repeat 3] [--skip-slow]

Every contender reads the same CSV in a process of its own and must come to the same pass@k; seconds are wall
time of the whole process, start-up included, best of the repeats. Only touchstone checks what it reads
(duplicates, unknown problems, cells that are no boolean). `wc -l` is what reading costs.
Data is generated each time and removed afterwards. Nothing here asserts a time.
"""

import argparse
import csv
import json
import math
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

import ratios
from arguments import at_least_one
from processes import Run, megabytes, run

# All of them exist in both shapes: with 4 samples a problem there is no pass@5 to compute.
K_VALUES = (1, 2, 4)
TOLERANCE = 1e-9
# A contender that took longer than this is not run again.
SLOW_SECONDS = 20.0
SLOWEST = "pandas loop"

Figures = dict[int, float | None]


def main() -> None:
    """Measure what the arguments ask for, or, inside a child process, be one contender."""
    arguments = _arguments()
    if arguments.generate is not None:
        generate(arguments.data, *arguments.generate)
    elif arguments.contender is not None:
        figures = RIVALS[arguments.contender](arguments.data / "bench_fixes.csv")
        print(json.dumps(figures))
    else:
        compare_all(arguments)


def compare_all(arguments: argparse.Namespace) -> None:
    """Every size in every shape, one table each."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("polars", "pandas", "duckdb", "numpy"))
    print(f"Python {sys.version.split()[0]}, {libraries}, {os.cpu_count()} CPUs")
    for samples in arguments.samples:
        for rows in arguments.rows:
            with tempfile.TemporaryDirectory(prefix="touchstone-bench-") as folder:
                data = Path(folder)
                # In a child: a child's peak memory counts its parent's, so this process stays small.
                run([*_self(data), "--generate", str(rows), str(samples)], data)
                commands = contenders(data, skip_slow=arguments.skip_slow)
                best = measure(commands, arguments.repeat, data)
            figures = agreed_figures(best)
            show(f"{rows:,} rows, {samples} samples a problem", best, figures)
            what, many = f"`pass-at-k`, {rows // 1_000_000} M rows, {samples} samples", rows >= 10_000_000
            bare = best["touchstone"].cpu / best["bare Polars"].cpu
            ratios.add(f"{what}: CPU / bare query", bare, at_most=1.4 if many else None)
            ratios.add(f"{what}: peak MB", best["touchstone"].peak_mb, at_most=400)


def contenders(data: Path, *, skip_slow: bool) -> dict[str, list[str]]:
    """The command line of each contender."""
    fixes = str(data / "bench_fixes.csv")
    touchstone = [str(Path(sys.executable).with_name("touchstone")), "pass-at-k", "--format", "csv"]
    touchstone += ["--problems-csv", str(data / "problems.csv"), "--fixes-csv", fixes]
    touchstone += ["--k-values", *map(str, K_VALUES)]
    rivals = {name: [*_self(data), "--contender", name] for name in RIVALS}
    if skip_slow:
        del rivals[SLOWEST]
    return {"touchstone": touchstone, **rivals, "wc -l": ["wc", "-l", fixes]}


def measure(commands: dict[str, list[str]], repeat: int, scratch: Path) -> dict[str, Run]:
    """The best run of each contender. They take turns, so that a busy moment does not hit one alone."""
    best: dict[str, Run] = {}
    for turn in range(repeat):
        for name, command in commands.items():
            if turn and best[name].seconds > SLOW_SECONDS:
                continue
            done = run(command, scratch)
            print(f"  {name}: {done.seconds:.2f} s", file=sys.stderr)
            best[name] = min(done, best.get(name, done), key=lambda each: each.seconds)
    return best


def agreed_figures(best: dict[str, Run]) -> Figures:
    """The figures that all contenders came to; stops where two differ."""
    agreed = _touchstone_figures(best["touchstone"].output)
    for name in RIVALS:
        if name not in best:
            continue
        found = {int(k): value for k, value in json.loads(best[name].output).items()}
        for k, value in agreed.items():
            if not _equal(value, found[k]):
                raise SystemExit(f"pass@{k} differs: touchstone says {value}, {name} says {found[k]}")
    return agreed


def show(title: str, best: dict[str, Run], figures: Figures) -> None:
    """Print one table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("contender", title=title, title_justify="left")
    for heading in ("seconds", "times touchstone", "times bare Polars", "peak MB"):
        table.add_column(heading, justify="right")
    floor = megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    for name, done in best.items():
        ratios = [f"{done.seconds / best[base].seconds:.2f}" for base in ("touchstone", "bare Polars")]
        peak = f"{done.peak_mb:,.0f}" if done.peak_mb > floor else f"at most {done.peak_mb:,.0f}"
        table.add_row(name, f"{done.seconds:.2f}", *ratios, peak)
    Console().print(table)
    shown = ", ".join(f"pass@{k} {'none' if value is None else f'{value:.6f}'}" for k, value in figures.items())
    print(f"figures agree: {shown}\n", flush=True)


def generate(data: Path, rows: int, samples: int) -> None:
    """Write problems.csv and bench_fixes.csv, with problems from hopeless to easy."""
    import numpy as np
    import polars as pl

    problems = max(1, rows // samples)
    chance = np.random.Generator(np.random.PCG64(7))
    numbers = pl.Series("oid", np.arange(problems)).cast(pl.String)
    oids = "problem_" + numbers.str.zfill(7)
    pl.DataFrame({"oid": oids, "filename": oids + ".tf"}).write_csv(data / "problems.csv")
    passed = chance.random((problems, samples)) < chance.beta(0.6, 0.4, size=(problems, 1))
    fixes = pl.DataFrame(
        {
            "oid": oids.gather(np.repeat(np.arange(problems), samples)),
            "iteration_id": np.tile(np.arange(1, samples + 1), problems),
            "plausible_fix": passed.ravel(),
        }
    )
    as_python_writes = pl.when("plausible_fix").then(pl.lit("True")).otherwise(pl.lit("False"))
    fixes.with_columns(plausible_fix=as_python_writes).write_csv(data / "bench_fixes.csv")


def pandas_groupby(fixes: Path) -> Figures:
    """Counts by groupby, then the estimator problem by problem: the usual script."""
    import pandas as pd

    attempts = pd.read_csv(fixes, dtype={"oid": str})
    counts = attempts.groupby("oid")["plausible_fix"].agg(["size", "sum"])
    return _means_by_numpy(list(zip(counts["size"], counts["sum"], strict=True)))


def pandas_loop(fixes: Path) -> Figures:
    """A Python loop over the groups: the other usual script."""
    import pandas as pd

    attempts = pd.read_csv(fixes, dtype={"oid": str})
    return _means_by_numpy([(len(group), group.plausible_fix.sum()) for _, group in attempts.groupby("oid")])


def bare_polars(fixes: Path) -> Figures:
    """One streaming query without a check: as fast as this engine can be."""
    import polars as pl

    schema = {"oid": pl.String, "iteration_id": pl.String, "plausible_fix": pl.Boolean}
    pairs = (
        pl.scan_csv(fixes, schema=schema)
        .group_by("oid")
        .agg(n=pl.len(), c=pl.col("plausible_fix").sum())
        .group_by("n", "c")
        .len()
        .collect(engine="streaming")
    )
    return _means_of_pairs(pairs.iter_rows())


def bare_duckdb(fixes: Path) -> Figures:
    """The same query in SQL."""
    import duckdb

    query = """
        with problems as (
            select count(*) as n, count(*) filter (plausible_fix) as c
            from read_csv(?, header = true, auto_detect = false, columns = {
                'oid': 'VARCHAR', 'iteration_id': 'VARCHAR', 'plausible_fix': 'BOOLEAN'
            })
            group by oid
        )
        select n, c, count(*) from problems group by n, c
    """
    return _means_of_pairs(duckdb.execute(query, [str(fixes)]).fetchall())


RIVALS: dict[str, Callable[[Path], Figures]] = {
    "pandas groupby": pandas_groupby,
    SLOWEST: pandas_loop,
    "bare Polars": bare_polars,
    "bare DuckDB": bare_duckdb,
}


def _means_by_numpy(counts: list[tuple[int, int]]) -> Figures:
    import numpy as np

    def estimate(n: int, c: int, k: int) -> float:
        if n - c < k:
            return 1.0
        return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))

    figures: Figures = {}
    for k in K_VALUES:
        # The usual script says 1.0 where n < k; leaving such problems out is all that is changed.
        estimates = [estimate(n, c, k) for n, c in counts if n >= k]
        figures[k] = float(np.mean(estimates)) if estimates else None
    return figures


def _means_of_pairs(pairs: Iterable[tuple[int, int, int]]) -> Figures:
    known = list(pairs)
    figures: Figures = {}
    for k in K_VALUES:
        eligible = [(n, c, problems) for n, c, problems in known if n >= k]
        total = math.fsum(problems * (1 - math.comb(n - c, k) / math.comb(n, k)) for n, c, problems in eligible)
        count = sum(problems for _, _, problems in eligible)
        figures[k] = total / count if count else None
    return figures


def _touchstone_figures(output: str) -> Figures:
    row = next(csv.DictReader(output.splitlines()))
    return {k: float(row[f"pass@{k}"]) if row[f"pass@{k}"] else None for k in K_VALUES}


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= TOLERANCE


def _self(data: Path) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), "--data", str(data)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure touchstone pass-at-k beside other ways to the same figures.")
    parser.add_argument("--rows", type=at_least_one, nargs="+", default=[1_000_000, 10_000_000], metavar="N")
    parser.add_argument("--samples", type=at_least_one, nargs="+", default=[100, 4], metavar="N")
    parser.add_argument("--repeat", type=at_least_one, default=3, metavar="N")
    parser.add_argument("--skip-slow", action="store_true", help=f"leave out the {SLOWEST}")
    parser.add_argument("--contender", choices=RIVALS, help=argparse.SUPPRESS)
    parser.add_argument("--generate", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
