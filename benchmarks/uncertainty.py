"""How fast the bootstrap of `touchstone.inference.uncertainty` is, beside resampling the problems one by one.

    python benchmarks/uncertainty.py [--problems 164 10000 1000000] [--replicates 10000] [--quick]

Every contender makes one 95% percentile interval for pass@1 of the same problems (20 samples each) in a process of
its own; seconds are those of the interval alone, memory is the peak of the whole process with its imports. Rivals
that would take minutes run fewer replicates, and their seconds are extrapolated in proportion: the table says from
how many. Their memory is that of the fewer. touchstone always runs them all. The ends that all contenders come to
are printed and must agree within a third of the interval's width, which is what few replicates are good for.

At a million problems, stops with an error unless touchstone is at least 100 times faster than each rival and stays
under 1 GiB.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import ratios
from arguments import at_least_one
from processes import megabytes

SAMPLES = 20
CONFIDENCE = 0.95
SEED = 7
# Rivals resample about so many problems in all, quickly or not; a run of this size takes some ten seconds.
DRAWS, QUICK_DRAWS = 1_000_000_000, 100_000_000
FEWEST = 40
TOLERANCE = 1 / 3

LARGE = 1_000_000
FASTER = 100
MOST_MB = 1024**3 / 1e6


@dataclass(frozen=True)
class Done:
    """One finished interval. `seconds` is for all replicates, extrapolated where `ran` is fewer."""

    seconds: float
    ran: int
    peak_mb: float
    low: float
    high: float


def main() -> None:
    """Measure what the arguments ask for, or, inside a child process, be one contender."""
    arguments = _arguments()
    if arguments.contender is not None:
        print(json.dumps(be(arguments.contender, arguments.problems[0], arguments.replicates)))
        return
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    print(f"Python {sys.version.split()[0]}, {libraries}, {os.cpu_count()} CPUs")
    for problems in arguments.problems:
        compare(problems, arguments.replicates, QUICK_DRAWS if arguments.quick else DRAWS)


def compare(problems: int, replicates: int, draws: int) -> None:
    """One table; stops where the contenders disagree or a claim fails."""
    affordable = min(replicates, max(FEWEST, draws // problems))
    done = {
        name: measure(name, problems, replicates, replicates if name == "touchstone" else affordable)
        for name in CONTENDERS
    }
    show(problems, replicates, done)
    for name in CONTENDERS:
        if name != "touchstone":
            ratio = done[name].seconds / done["touchstone"].seconds
            ratios.add(
                f"bootstrap, {problems:,} problems: {name} / ours",
                ratio,
                at_least=FASTER if problems >= LARGE else None,
            )
    check_agreement(done)
    if problems >= LARGE:
        check_claims(done)
    print(flush=True)


def measure(name: str, problems: int, replicates: int, ran: int) -> Done:
    """Run one contender in a child process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--contender", name]
    command += ["--problems", str(problems), "--replicates", str(ran)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    if child.returncode != 0:
        raise SystemExit(f"{name} failed with {child.returncode}:\n{child.stderr}")
    found = json.loads(child.stdout)
    print(f"  {name}: {found['seconds']:.2f} s for {ran:,} replicates", file=sys.stderr)
    return Done(found["seconds"] * replicates / ran, ran, found["peak_mb"], found["low"], found["high"])


def show(problems: int, replicates: int, done: dict[str, Done]) -> None:
    """Print one table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("contender", title=f"{problems:,} problems, {replicates:,} replicates", title_justify="left")
    for heading in ("seconds", "times touchstone", "peak MB", "interval", "replicates run"):
        table.add_column(heading, justify="right")
    for name, each in done.items():
        ratio = each.seconds / done["touchstone"].seconds
        ran = f"{each.ran:,}" if each.ran == replicates else f"{each.ran:,}, seconds extrapolated"
        ends = f"{each.low:.5f} to {each.high:.5f}"
        table.add_row(name, f"{each.seconds:.3f}", f"{ratio:,.1f}", f"{each.peak_mb:,.0f}", ends, ran)
    Console(width=120).print(table)


def check_agreement(done: dict[str, Done]) -> None:
    """Stop where a rival came to another interval."""
    own = done["touchstone"]
    for name, each in done.items():
        apart = max(abs(each.low - own.low), abs(each.high - own.high)) / (own.high - own.low)
        if apart > TOLERANCE:
            raise SystemExit(f"{name} says {each.low} to {each.high}, touchstone {own.low} to {own.high}")


def check_claims(done: dict[str, Done]) -> None:
    """Stop where touchstone is not as fast and small as it says."""
    own = done["touchstone"]
    for name, each in done.items():
        if name != "touchstone" and each.seconds < FASTER * own.seconds:
            raise SystemExit(f"only {each.seconds / own.seconds:.0f} times faster than {name}, not {FASTER}")
    if own.peak_mb > MOST_MB:
        raise SystemExit(f"{own.peak_mb:.0f} MB at the peak, over 1 GiB")
    print(f"at least {FASTER} times faster than every rival, and under 1 GiB: yes")


def be(name: str, problems: int, replicates: int) -> dict[str, float]:
    """One contender, in this process."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    values = generator.binomial(SAMPLES, generator.beta(0.6, 0.4, problems)) / SAMPLES
    run = CONTENDERS[name](values, replicates)
    start = time.perf_counter()
    low, high = run()
    seconds = time.perf_counter() - start
    peak = megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return {"seconds": seconds, "peak_mb": peak, "low": low, "high": high}


Ends = tuple[float, float]


def touchstone(values: object, replicates: int) -> Callable[[], Ends]:
    """Multinomial over the histogram. Counting the values is part of what is measured."""
    import numpy as np

    from touchstone.config import IntervalSettings
    from touchstone.inference import uncertainty

    # 164 problems are below the size from which the bootstrap is used.
    uncertainty.BOOTSTRAP_FROM = 0
    settings = IntervalSettings(confidence=CONFIDENCE, replicates=replicates)

    def run() -> Ends:
        distinct, weights = np.unique(np.asarray(values), return_counts=True)
        interval = uncertainty.mean_interval(distinct, weights, [None] * len(distinct), settings)
        if interval.method != "bootstrap" or interval.low is None or interval.high is None:
            raise SystemExit(f"expected a bootstrap, got {interval}")
        return interval.low, interval.high

    return run


def naive_numpy(values: object, replicates: int) -> Callable[[], Ends]:
    """As many problems as there are, drawn with replacement, per replicate: the usual loop."""
    import numpy as np

    figures = np.asarray(values)
    generator = np.random.default_rng(SEED)

    def run() -> Ends:
        size = len(figures)
        means = [figures[generator.integers(0, size, size)].mean() for _ in range(replicates)]
        low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return float(low), float(high)

    return run


def scipy_bootstrap(values: object, replicates: int) -> Callable[[], Ends]:
    """scipy.stats.bootstrap, percentile, in batches of some ten million draws so that it fits in memory."""
    import numpy as np
    from scipy import stats

    figures = np.asarray(values)
    batch = max(1, 10_000_000 // len(figures))

    def run() -> Ends:
        found = stats.bootstrap(
            (figures,),
            np.mean,
            n_resamples=replicates,
            batch=batch,
            vectorized=True,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(SEED + 1),
        )
        return float(found.confidence_interval.low), float(found.confidence_interval.high)

    return run


CONTENDERS: dict[str, Callable[[object, int], Callable[[], Ends]]] = {
    "touchstone": touchstone,
    "naive numpy": naive_numpy,
    "scipy.stats.bootstrap": scipy_bootstrap,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the bootstrap over problems beside other ways to it.")
    parser.add_argument("--problems", type=at_least_one, nargs="+", default=[164, 10_000, LARGE], metavar="N")
    parser.add_argument("--replicates", type=at_least_one, default=10_000, metavar="N")
    parser.add_argument("--quick", action="store_true", help="extrapolate the rivals from a tenth of the draws")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
