"""Whether two checkouts make the same figures: evaluates a configuration with both and compares what they publish.

    python benchmarks/same_figures.py OLD_CHECKOUT NEW_CHECKOUT [CONFIG...]

Each checkout runs with its own `.venv`. Parquet files and CSV files must be equal byte for byte. Tables that hold the
time of the run (`history`, `problem_history`) and how long validation took are compared by the other columns.
"""

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
VARYING = ("snapshot", "made_at", "duration_seconds", "seconds", "validated_at")


def main(arguments: list[str]) -> int:
    """Compare, print a line per difference and a total; exit code 1 if there is a difference."""
    old, new = (Path(argument).resolve() for argument in arguments[:2])
    differences: list[str] = []
    compared = 0
    for config in arguments[2:] or CONFIGS:
        with tempfile.TemporaryDirectory() as folder:
            outputs = [
                _evaluate(checkout, config, Path(folder) / name) for checkout, name in ((old, "old"), (new, "new"))
            ]
            found = [_published(output) for output in outputs]
            differences += [
                f"{config}: {name} is missing on one side" for name in sorted(set(found[0]) ^ set(found[1]))
            ]
            for name in sorted(set(found[0]) & set(found[1])):
                compared += 1
                differences += [f"{config}: {name}: {why}" for why in _differences(found[0][name], found[1][name])]
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
    files = sorted([*output.glob("tables/*/*.parquet"), *output.glob("*.csv"), *output.glob("csv/*.csv")])
    names = [str(path.relative_to(output)) for path in files]
    return {
        "tables/problem_history/1.parquet" if "problem_history" in name else name: path
        for name, path in zip(names, files, strict=True)
    }


def _differences(old: Path, new: Path) -> list[str]:
    if old.read_bytes() == new.read_bytes():
        return []
    if old.suffix != ".parquet":
        return ["the bytes differ"]
    before, after = (pl.read_parquet(path) for path in (old, new))
    if before.schema != after.schema:
        return [f"columns differ: {set(before.schema.items()) ^ set(after.schema.items())}"]
    if before.height != after.height:
        return [f"{before.height} rows against {after.height}"]
    varying = [name for name in VARYING if name in before.columns]
    differing = [name for name in before.columns if name not in varying and not before[name].equals(after[name])]
    if differing:
        return [f"{name} differs" for name in differing]
    return [] if varying else ["the bytes differ, the values do not"]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
