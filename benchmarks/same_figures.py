"""Whether two checkouts make the same figures: evaluates a configuration with both and compares what they publish.

    python benchmarks/same_figures.py OLD_CHECKOUT NEW_CHECKOUT [CONFIG...] [--within 1e-12]

Each checkout runs with its own `.venv`. Parquet files and CSV files must be equal byte for byte, or with `--within` the
numbers up to this relative difference, in any order of rows. Tables that hold the time of the run (`history`,
`problem_history`, `failure_modes`) and how long validation took are compared by the other columns; the run log is left
out.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

CONFIGS = (
    "data/sample/evaluation_config.json",
    "data/sample/terraform/evaluation_config.json",
    "data/sample/python/evaluation_config.json",
)
# Columns that differ from run to run.
VARYING = ("snapshot", "first_snapshot", "last_snapshot", "made_at", "duration_seconds", "seconds", "validated_at")
# How long every step took, and nothing else.
LEFT_OUT = "run_log"


def main(arguments: list[str]) -> int:
    """Compare, print a line per difference and a total; exit code 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=lambda text: Path(text).resolve())
    parser.add_argument("new", type=lambda text: Path(text).resolve())
    parser.add_argument("configs", nargs="*", default=CONFIGS)
    parser.add_argument("--within", type=float, default=0.0)
    options = parser.parse_intermixed_args(arguments)
    differences: list[str] = []
    compared = 0
    for config in options.configs:
        with tempfile.TemporaryDirectory() as folder:
            outputs = [
                _evaluate(checkout, config, Path(folder) / name)
                for checkout, name in ((options.old, "old"), (options.new, "new"))
            ]
            found = [_published(output) for output in outputs]
            differences += [
                f"{config}: {name} is missing on one side" for name in sorted(set(found[0]) ^ set(found[1]))
            ]
            for name in sorted(set(found[0]) & set(found[1])):
                compared += 1
                unequal = _differences(found[0][name], found[1][name], options.within)
                differences += [f"{config}: {name}: {why}" for why in unequal]
    print(*differences, f"{compared} files compared, {len(differences)} differ", sep="\n")
    return int(bool(differences))


def _evaluate(checkout: Path, config: str, output: Path) -> Path:
    command = [checkout / ".venv/bin/touchstone", "run", "--config", config, "--output-dir", output]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{checkout}: {done.stderr.strip()}")
    return output


def _published(output: Path) -> dict[str, Path]:
    """Every published file by name; the names of snapshots, which hold a time, are replaced."""
    tables = [path for path in output.glob("tables/*/*.parquet") if path.parent.name != LEFT_OUT]
    files = sorted([*tables, *output.glob("*.csv"), *output.glob("csv/*.csv")])
    names = [str(path.relative_to(output)) for path in files]
    return {
        "tables/problem_history/1.parquet" if "problem_history" in name else name: path
        for name, path in zip(names, files, strict=True)
    }


def _differences(old: Path, new: Path, within: float) -> list[str]:
    if old.read_bytes() == new.read_bytes():
        return []
    if old.suffix == ".parquet":
        before, after = (pl.read_parquet(path) for path in (old, new))
    else:
        before, after = (pl.read_csv(path, infer_schema=bool(within)) for path in (old, new))
    if before.schema != after.schema:
        return [f"columns differ: {set(before.schema.items()) ^ set(after.schema.items())}"]
    if before.height != after.height:
        return [f"{before.height} rows against {after.height}"]
    if within:
        texts = pl.selectors.string()
        before, after = (rows.sort(texts, maintain_order=True) for rows in (before, after))
    varying = [name for name in VARYING if name in before.columns]
    compared = [name for name in before.columns if name not in varying]
    differing = [
        f"{name} differs{_largest(before[name], after[name])}"
        for name in compared
        if not _equal(before[name], after[name], within)
    ]
    return differing or ([] if varying or within else ["the bytes differ, the values do not"])


def _equal(old: pl.Series, new: pl.Series, within: float) -> bool:
    if not (within and old.dtype.is_float()):
        return old.equals(new)
    far = (old - new).abs() > within * pl.DataFrame([old.abs(), new.abs().alias("new")]).max_horizontal()
    return old.is_null().equals(new.is_null()) and not (far & (old != new)).any()


def _largest(old: pl.Series, new: pl.Series) -> str:
    return f" by up to {(old - new).abs().max()}" if old.dtype.is_numeric() else ""


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
