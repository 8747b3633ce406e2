"""The cost of `touchstone run` on 1, 10 and 100 million attempts, and how time and memory grow.

    python benchmarks/large_inputs.py [--millions 1,10,100] [--form csv] [--problems 10000] [--folder /tmp]

Every model has 10,000 problems with 100 attempts each, so that a million attempts are one model and 100 million are 100
models. The data is made in a temporary folder and removed at the end: 21 MB of CSV per million attempts, and twice as
much for the results. `--form` writes the fixes as `csv.gz`, `csv.zst`, `jsonl` or `parquet` instead.

The exponent says how CPU time grows with the attempts: 1 is linear. What every run pays makes it smaller, so it is
also given for each step from one size to the next. Nothing here asserts a time.
"""

import argparse
import itertools
import json
import math
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from arguments import at_least_one
from processes import Run, run

HERE = Path(__file__).resolve().parent
FORMS = ("csv", "csv.gz", "csv.zst", "jsonl", "parquet")
ATTEMPTS = 100


@dataclass(frozen=True)
class Measured:
    """One size: the attempts, the bytes of the inputs, and the run."""

    attempts: int
    input_mb: float
    done: Run


def main() -> None:
    """Measure the sizes one after the other, and print them."""
    arguments = _arguments()
    measured = []
    for millions in arguments.millions:
        with tempfile.TemporaryDirectory(prefix="touchstone-large-", dir=arguments.folder) as folder:
            measured.append(measure(Path(folder), millions, arguments.problems, arguments.form))
        print(_line(measured[-1]), file=sys.stderr)
    show(measured, arguments.form)


def measure(folder: Path, models: int, problems: int, form: str) -> Measured:
    """One run in a process of its own, on data that is made for it."""
    _helper(folder, "make", folder, models, problems, ATTEMPTS)
    shutil.rmtree(folder / "changed")
    inputs = folder / "input"
    if form != "csv":
        _helper(folder, "--convert", inputs, form, script=Path(__file__))
    size = sum(file.stat().st_size for file in inputs.iterdir())
    command = [
        str(Path(sys.executable).with_name("touchstone")),
        "run",
        "--config",
        str(inputs / "evaluation_config.json"),
    ]
    done = run(command, folder, _environment())
    _require_rows(folder, inputs / "results", models * problems * ATTEMPTS)
    return Measured(models * problems * ATTEMPTS, size / 1e6, done)


def convert(inputs: Path, form: str) -> None:
    """Replace the fixes files by the same tables in another form."""
    import polars as pl
    import pyarrow as pa

    for path in sorted(inputs.glob("m*_fixes.csv")):
        target = path.with_name(f"{path.stem}.{form}")
        rows = pl.scan_csv(path, infer_schema=False)
        if form == "parquet":
            rows.sink_parquet(target, compression_level=1, row_group_size=250_000)
        elif form == "jsonl":
            rows.sink_ndjson(target)
        else:
            codec = {"csv.gz": "gzip", "csv.zst": "zstd"}[form]
            with path.open("rb") as source, pa.output_stream(str(target), compression=codec) as packed:
                shutil.copyfileobj(source, packed, 1 << 20)
        path.unlink()


def show(measured: Sequence[Measured], form: str) -> None:
    """Print a Markdown table, and the exponents."""
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    print(f"{datetime.now(UTC):%Y-%m-%d}: {machine}, inputs as {form}\n")
    print("| attempts | input MB | wall s | CPU s | CPU µs per attempt | peak MB |\n|--:|--:|--:|--:|--:|--:|")
    for each in measured:
        print(_line(each))
    print()
    pairs = list(itertools.pairwise(measured))
    for few, many in [*pairs, *([(measured[0], measured[-1])] if len(pairs) > 1 else [])]:
        print(f"exponent of CPU in attempts, {few.attempts:,} to {many.attempts:,}: {exponent(few, many):.3f}")


def exponent(few: Measured, many: Measured) -> float:
    """CPU time grows as the attempts to this power."""
    return math.log(many.done.cpu / few.done.cpu) / math.log(many.attempts / few.attempts)


def _line(each: Measured) -> str:
    figures = (each.input_mb, each.done.seconds, each.done.cpu, each.done.cpu / each.attempts * 1e6, each.done.peak_mb)
    return f"| {each.attempts:,} | " + " | ".join(f"{figure:,.1f}" for figure in figures) + " |"


def _require_rows(folder: Path, results: Path, rows: int) -> None:
    """Stop if the run did not count every attempt."""
    counted = json.loads(_helper(folder, "--count", results, script=Path(__file__)).output)
    if counted != rows:
        raise SystemExit(f"{results}: {counted:,} of {rows:,} attempts")


def _count(results: Path) -> None:
    import polars as pl

    tables = pl.scan_parquet(results / "tables" / "outcomes" / "*.parquet")
    print(tables.select(pl.len()).collect().item())


def _helper(folder: Path, *words: object, script: Path = HERE / "whole_run_data.py") -> Run:
    """A step in a process of its own: the peak memory of a process counts that of its parent at the start."""
    return run([sys.executable, str(script), *map(str, words)], folder, _environment())


def _environment() -> dict[str, str]:
    hidden = ("PYTHONDONTWRITEBYTECODE", "DAGSTER_HOME")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure runs of 1, 10 and 100 million attempts.")
    sizes = [1, 10, 100]
    parser.add_argument("--millions", type=lambda text: [at_least_one(each) for each in text.split(",")], default=sizes)
    parser.add_argument("--problems", type=at_least_one, default=10_000, metavar="N", help="problems per model")
    parser.add_argument("--form", choices=FORMS, default="csv")
    parser.add_argument("--folder", type=Path, help="where the data is made; by default the temporary folder")
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--convert"]:
        convert(Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1:2] == ["--count"]:
        _count(Path(sys.argv[2]))
    else:
        main()
