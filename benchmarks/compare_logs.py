"""`touchstone compare` on two Inspect logs against a script that reads both and runs a permutation test.

    python benchmarks/compare_logs.py [--samples 1000] [--epochs 5] [--runs 5] [--python RIVAL_PYTHON]

The rival reads the logs with `inspect_ai.log.read_eval_log` if its interpreter has Inspect, else with `zipfile` and
`json`, takes the mean of each sample's epochs and calls SciPy's paired permutation test. Prints wall and processor
seconds of the fastest run of each, and their ratio.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from arguments import at_least_one
from inspect_logs import write_log
from processes import Run, run

RIVAL = """
import json, sys, zipfile
from collections import defaultdict

try:
    from inspect_ai.log import read_eval_log
    name = "read_eval_log of inspect_ai"
except ImportError:
    read_eval_log, name = None, "zipfile and json"

def values(path):
    if read_eval_log is not None:
        return [(each.id, each.scores["tests"].value) for each in read_eval_log(path).samples]
    with zipfile.ZipFile(path) as log:
        samples = (json.loads(log.read(each)) for each in log.namelist() if each.startswith("samples/"))
        return [(each["id"], each["scores"]["tests"]["value"]) for each in samples]

def means(path):
    epochs = defaultdict(list)
    for name, value in values(path):
        epochs[name].append(value == "C")
    return {name: sum(each) / len(each) for name, each in epochs.items()}

old, new = map(means, sys.argv[1:])
import numpy as np
try:
    from scipy.stats import permutation_test
except ImportError:
    permutation_test = None
pairs = [np.array([side[each] for each in old]) for side in (new, old)]
if permutation_test is not None:
    result = permutation_test(pairs, lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples",
                              vectorized=True, n_resamples=9999)
    print(f"{name} and SciPy: {result.statistic:+.4f}, p = {result.pvalue:.4f}")
else:
    difference = pairs[0] - pairs[1]
    signs = np.random.default_rng(0).choice([-1, 1], (9999, len(difference)))
    extreme = np.abs(signs @ difference) >= abs(difference.sum()) - 1e-9
    print(f"{name} and NumPy: {difference.mean():+.4f}, p = {(1 + extreme.sum()) / 10000:.4f}")
"""


def main(arguments: list[str]) -> None:
    """Write the logs, run both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=at_least_one, default=1000)
    parser.add_argument("--epochs", type=at_least_one, default=5)
    parser.add_argument("--runs", type=at_least_one, default=5)
    parser.add_argument("--python", default=sys.executable, help="interpreter of the rival, for one that has Inspect")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        logs = [str(scratch / name) for name in ("a.eval", "b.eval")]
        for seed, (log, solved) in enumerate(zip(logs, (0.6, 0.65), strict=True), start=1):
            write_log(Path(log), options.samples, options.epochs, solved=solved, seed=seed)
        start = "from touchstone.cli.main import main; main()"
        ours = _fastest([sys.executable, "-c", start, "compare", *logs], scratch, options.runs)
        rival = _fastest([options.python, "-c", RIVAL, *logs], scratch, options.runs)
    print(f"{options.samples:,} samples x {options.epochs} epochs in each of two logs, fastest of {options.runs}")
    for name, each in (("touchstone compare", ours), ("rival", rival)):
        said = each.output.splitlines()[0]
        print(f"{name:20} {each.seconds:6.2f} s wall {each.cpu:6.2f} s CPU {each.peak_mb:6.0f} MB  {said}")
    print(f"{'rival / touchstone':20} {rival.seconds / ours.seconds:6.2f}        {rival.cpu / ours.cpu:6.2f}")


def _fastest(command: list[str], scratch: Path, runs: int) -> Run:
    return min((run(command, scratch) for _ in range(runs)), key=lambda each: each.cpu)


if __name__ == "__main__":
    main(sys.argv[1:])
