"""The cost of a Dask cluster on this machine beside the process pool, on the same cores.

    python benchmarks/dask_workers.py [--fixes N] [--workers N] [--rounds N]

Both validate the same Python fixes with an empty cache, turn by turn, after their processes were started and warmed up.
The ratio is that of CPU seconds of all processes together, which other work on the machine does not change; wall-clock
time is printed beside it. Every verdict is compared with the truth. Nothing here asserts a time.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import python_problems

from touchstone.config import WorkerSettings
from touchstone.config.validation import ValidationSettings
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Target, Targets
from touchstone.workers.cluster import local_cluster

REQUIRED_OVERHEAD = 0.15
_TICKS = os.sysconf("SC_CLK_TCK")


class Fix:
    """A text of a problem's file, and the status that it should get."""

    def __init__(self, oid: str, text: str, status: str) -> None:
        self.oid, self.text, self.status = oid, text.encode(), status


class Runner:
    """A session that stays open for all rounds, and what each took."""

    def __init__(self, name: str, workers: WorkerSettings, targets: dict[str, Target], folder: Path) -> None:
        self.name, self.targets, self.cpu, self.wall = name, targets, list[float](), list[float]()
        settings = ValidationSettings()
        self.session = ValidationSession(settings, folder / name / "cache", folder / name / "scratch", workers=workers)

    def validate(self, fixes: list[Fix]) -> int:
        """Validate all fixes; returns how many verdicts are wrong."""
        requests = [self.session.request(self.targets[fix.oid], fix.text) for fix in fixes]
        reports = self.session.reports(requests, self.name)
        return sum(
            reports[request.key].report.status != fix.status for request, fix in zip(requests, fixes, strict=True)
        )

    def measure(self, fixes: list[Fix]) -> int:
        """The same, with the time that it took."""
        wall, cpu = time.perf_counter(), cpu_seconds(os.getpid())
        wrong = self.validate(fixes)
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(cpu_seconds(os.getpid()) - cpu)
        return wrong


def main() -> None:
    """Measure both, turn by turn."""
    arguments = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="touchstone-bench-") as name,
        local_cluster(arguments.workers, 0) as cluster,
    ):
        folder = Path(name)
        problems = python_problems.write_problems(folder)
        found = Targets(folder / "clones", ValidationSettings()).find(problem.row for problem in problems)
        targets = {oid: target for oid, target in found.items() if isinstance(target, Target)}
        kinds = {
            "processes": WorkerSettings(kind="processes", count=arguments.workers),
            "dask": cluster,
        }
        with _opened([Runner(kind, settings, targets, folder) for kind, settings in kinds.items()]) as runners:
            wrong = sum(runner.validate(_fixes(problems, "warm up", 40 * arguments.workers)) for runner in runners)
            for turn in range(arguments.rounds):
                for runner in runners if turn % 2 == 0 else runners[::-1]:
                    wrong += runner.measure(_fixes(problems, f"round {turn}", arguments.fixes))
                    print(f"  {runner.name}: {runner.cpu[-1]:.2f} CPU s, {runner.wall[-1]:.2f} s", flush=True)
            show(runners, arguments.fixes)
    print(f"verdicts: {f'{wrong:,} wrong' if wrong else 'all as they should be'}")
    raise SystemExit(1 if wrong else 0)


def show(runners: list[Runner], fixes: int) -> None:
    """The means, the ratio of the sums, that of the rounds (range and median), and the requirement."""
    pool, dask = runners
    # The CPU time of workers that end unawaited is lost, which can make a round's negative: busy workers use more.
    lost = {turn for runner in runners for turn, cpu in enumerate(runner.cpu) if cpu < runner.wall[turn] / 2}
    for runner in runners:
        runner.cpu, runner.wall = (
            [figure for turn, figure in enumerate(all_rounds) if turn not in lost]
            for all_rounds in (runner.cpu, runner.wall)
        )
    if lost:
        print(
            f"left out, as CPU time of workers that ended is missing: {len(lost)} of {len(lost) + len(pool.cpu)} rounds"
        )
    if not pool.cpu:
        raise SystemExit("error: no round can be used; run again with more --rounds")
    for runner in runners:
        cpu, wall = statistics.mean(runner.cpu), statistics.mean(runner.wall)
        print(f"{runner.name}: {1000 * cpu / fixes:.2f} CPU ms a validation, {fixes / wall:.1f} a second")
    rounds = [ours / theirs for ours, theirs in zip(dask.cpu, pool.cpu, strict=True)]
    ratio, wall = sum(dask.cpu) / sum(pool.cpu), sum(dask.wall) / sum(pool.wall)
    print(f"dask / processes, sums of the rounds: {ratio:.3f} of the CPU time, {wall:.3f} of the time")
    spread = f"{min(rounds):.3f} to {max(rounds):.3f}, median {statistics.median(rounds):.3f}"
    print(f"dask / processes, round by round: {spread} of the CPU time")
    met = "yes" if ratio - 1 < REQUIRED_OVERHEAD else "no"
    print(f"overhead < {REQUIRED_OVERHEAD:.0%}: {met} ({ratio - 1:.1%})")


def cpu_seconds(process: int) -> float:
    """The CPU time of a process, of all that it has started, and of those of them that have ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        children = [child for task in Path(f"/proc/{process}/task").glob("*/children") for child in _words(task)]
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS + sum(cpu_seconds(int(child)) for child in children)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _fixes(problems: list[python_problems.PythonProblem], comment: str, count: int) -> list[Fix]:
    texts = [(problem.oid, text, status) for problem in problems for text, status in _both(problem)]
    return [
        Fix(oid, f"{text}# {comment}, {place}\n", status)
        for place in range(count)
        for oid, text, status in [texts[place % len(texts)]]
    ]


def _both(problem: python_problems.PythonProblem) -> list[tuple[str, str]]:
    return [(problem.broken, "failed"), (problem.reference, "passed")]


@contextmanager
def _opened(runners: list[Runner]) -> Iterator[list[Runner]]:
    try:
        yield runners
    finally:
        for runner in runners:
            runner.session.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure a Dask cluster on this machine beside the process pool.")
    parser.add_argument("--fixes", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
