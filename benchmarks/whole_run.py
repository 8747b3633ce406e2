"""The cost of a whole `touchstone run`, beside the scripts that people would write instead.

    python benchmarks/whole_run.py [--shapes small,134,1m,10m,1000] [--quick] [--repeat N] [--against CHECKOUT]
                                   [--skip-slow] [--markdown]

For every shape of data: this project's first run, an unchanged run, and a run with one model changed; `bare_run.py`
(Polars and NumPy), `pandas_run.py` (pandas and SciPy), and `empty_dagster.py` (as many steps that do nothing). With
`--against`, another checkout of this project with its own `.venv` runs beside them. Every command is a process of its
own. The rivals must come to the same pass@k and paired differences, or the benchmark stops. The best of the repeats
counts, by CPU time. docs/benchmarks.md explains the rivals. Nothing here asserts a time.
"""

import argparse
import json
import math
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

import ratios
from arguments import at_least_one
from processes import Run, run
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
OURS, OTHER = "touchstone", "other checkout"
STATES = ("first run", "unchanged", "one model changed")
BARE, QUERY, PANDAS, EMPTY, IMPORT = (
    "bare script",
    "bare query",
    "pandas + SciPy",
    "empty Dagster job",
    "import dagster",
)
# The usual script runs so many intervals and pairs in part: as many as are cheap for the number of problems.
INTERVALS_PROBLEMS, PAIRS_PROBLEMS, FEWEST = 16_000, 8_000, 2
# From so many models on, the table of all pairs is measured alone.
MANY_MODELS = 100


@dataclass(frozen=True)
class Shape:
    """Models, problems, and attempts per problem. `tables`: the bare query makes the tables that grow with the rows."""

    name: str
    models: int
    problems: int
    attempts: int
    tables: bool = False

    @property
    def rows(self) -> int:
        """Attempts of all models."""
        return self.models * self.problems * self.attempts

    def __str__(self) -> str:
        return f"{self.models:,} models, {self.problems:,} problems, {self.rows:,} rows"


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("small", 3, 80, 20),
        Shape("134", 134, 800, 10),
        Shape("1m", 10, 1_000, 100, tables=True),
        Shape("10m", 10, 10_000, 100, tables=True),
        Shape("1000", 1_000, 100, 10),
    )
}


@dataclass
class Measured:
    """The best run of every contender on one shape, with what must be said about it."""

    shape: Shape
    runs: dict[str, Run] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    agreement: str = ""
    pair_microseconds: float | None = None

    def add(self, name: str, done: Run) -> None:
        """Keep the run if it is the best so far."""
        self.runs[name] = min(done, self.runs.get(name, done), key=lambda each: each.cpu)

    def cpu(self, name: str) -> float | None:
        """CPU seconds of a contender; None if it did not run."""
        return self.runs[name].cpu if name in self.runs else None

    @property
    def bare(self) -> str:
        """The bare rival of this shape."""
        return QUERY if self.shape.tables else BARE


def main() -> None:
    """Measure what the arguments ask for, and print it."""
    arguments = _arguments()
    shapes = [SHAPES[name] for name in arguments.shapes]
    if arguments.quick:
        shapes = [replace(shape, problems=max(10, shape.problems // 10)) for shape in shapes]
    projects = {OURS: CHECKOUT} | ({OTHER: arguments.against} if arguments.against else {})
    with tempfile.TemporaryDirectory(prefix="touchstone-bench-") as scratch, _progress() as progress:
        bar = progress.add_task(
            "", total=len(shapes) * arguments.repeat * (4 - arguments.skip_slow + 3 * len(projects))
        )
        measured = []
        for shape in shapes:
            folder = Path(scratch) / shape.name
            tell = partial(_tell, progress, bar, shape)
            measured.append(measure(shape, folder, projects, arguments, tell))
            shutil.rmtree(folder)
    show(measured, arguments.markdown)
    add_ratios(measured)


def measure(
    shape: Shape, folder: Path, projects: dict[str, Path], arguments: argparse.Namespace, tell: Callable[..., None]
) -> Measured:
    """Everything about one shape. Contenders take turns, so that a busy moment does not hit one alone."""
    folder.mkdir()
    found = Measured(shape)

    def add(name: str, command: Sequence[str]) -> None:
        tell(name)
        done = run(command, folder, _environment())
        found.add(name, extrapolated(done, found) if name == PANDAS else done)
        tell(name, finished=1)

    tell("making the data")
    _helper(folder, "make", folder, shape.models, shape.problems, shape.attempts)
    steps = _count_steps(folder)
    for turn in range(arguments.repeat):
        for name, checkout in projects.items():
            shutil.rmtree(folder / name, ignore_errors=True)
            add(f"{name}, {STATES[0]}", _evaluation(checkout, folder, name))
        for name, command in _rivals(shape, folder, turn, steps, found.bare):
            if not (arguments.skip_slow and name == PANDAS):
                add(name, command)
        if not turn:
            _inspect(found, folder, projects, tell)
        for name, checkout in projects.items():
            add(f"{name}, {STATES[1]}", _evaluation(checkout, folder, name))
        with _one_model_changed(folder):
            for name, checkout in projects.items():
                add(f"{name}, {STATES[2]}", _evaluation(checkout, folder, name))
    return found


def _inspect(found: Measured, folder: Path, projects: dict[str, Path], tell: Callable[..., None]) -> None:
    """Hold the figures of all first runs together, and measure the pairs alone."""
    tell("comparing figures")
    others = [folder / name / "results" for name in projects if name != OURS]
    results, rivals = folder / OURS / "results", [folder / "bare"]
    if PANDAS in found.runs:
        rivals.append(folder / "pandas")
    found.agreement = _helper(folder, "check", results, *rivals, *others).output.strip()
    if found.shape.models >= MANY_MODELS:
        tell("pairs alone")
        config = folder / "input" / "evaluation_config.json"
        alone = json.loads(_helper(folder, "pairs", config, results).output)
        found.pair_microseconds = alone["cpu"] / alone["pairs"] * 1e6


def _evaluation(checkout: Path, folder: Path, name: str) -> list[str]:
    config, output = folder / "input" / "evaluation_config.json", folder / name / "results"
    touchstone = checkout / ".venv" / "bin" / "touchstone" if name != OURS else _sibling("touchstone")
    return [str(touchstone), "run", "--config", str(config), "--output-dir", str(output)]


def _rivals(shape: Shape, folder: Path, turn: int, steps: int, bare: str) -> Iterator[tuple[str, list[str]]]:
    """The rivals with their commands."""
    inputs = str(folder / "input")
    shutil.rmtree(folder / "bare", ignore_errors=True)
    tables = ["--tables"] if shape.tables else []
    yield bare, [sys.executable, str(HERE / "bare_run.py"), inputs, str(folder / "bare"), *tables]
    parts = {"--intervals": INTERVALS_PROBLEMS, "--pairs": PAIRS_PROBLEMS}
    limits = [word for option, most in parts.items() for word in (option, str(max(FEWEST, most // shape.problems)))]
    yield PANDAS, [sys.executable, str(HERE / "pandas_run.py"), inputs, str(folder / "pandas"), *limits]
    home = str(folder / f"home-{turn}")
    yield EMPTY, [sys.executable, str(HERE / "empty_dagster.py"), home, "--steps", str(steps)]
    yield IMPORT, [sys.executable, "-c", "import dagster"]


def extrapolated(done: Run, found: Measured) -> Run:
    """The run of the usual script as if it had done all intervals and pairs; a note says from how many."""
    parts = json.loads(done.output)
    few = {name: part for name, part in parts.items() if part["done"] < part["all"]}
    if few:
        counts = ", ".join(f"{part['done']:,} of {part['all']:,} {name}" for name, part in few.items())
        found.notes[PANDAS] = f"extrapolated from {counts}"
    more = {unit: sum(p[unit] * (p["all"] / p["done"] - 1) for p in few.values()) for unit in ("wall", "cpu")}
    return replace(done, seconds=done.seconds + more["wall"], cpu=done.cpu + more["cpu"])


@contextmanager
def _one_model_changed(folder: Path) -> Iterator[None]:
    """The first model's file is another one while the block runs."""
    changed = next((folder / "changed").glob("m*.csv"))
    file, kept = folder / "input" / changed.name, folder / changed.name
    file.rename(kept)
    shutil.copyfile(changed, file)
    yield
    kept.replace(file)


def show(measured: Sequence[Measured], markdown: bool) -> None:
    """Print the machine, the runs, the ratios, and what was found equal."""
    output = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    libraries = ", ".join(f"{name} {version(name)}" for name in ("dagster", "polars", "numpy", "pandas", "scipy"))
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {libraries}"
    say = print if markdown else output.print
    say(f"{datetime.now(UTC):%Y-%m-%d}: {machine}\n")
    for title, headings, rows in (_run_table(measured), _ratio_table(measured)):
        if markdown:
            print(ratios.as_markdown(headings, rows))
            continue
        table = Table(headings[0], title=title, title_justify="left")
        for heading in headings[1:]:
            table.add_column(heading, justify="right")
        for row in rows:
            table.add_row(*row)
        output.print(table)
    for each in measured:
        notes = "".join(f"\n  {name}: {note}" for name, note in each.notes.items())
        say(f"{'- ' if markdown else ''}{each.shape.name}: {each.agreement}{notes}")


def add_ratios(measured: Sequence[Measured]) -> None:
    """Add the figures that have a goal, or a rival, to the table of all benchmarks."""
    first, unchanged, changed = (f"{OURS}, {state}" for state in STATES)
    for each in measured:
        name, runs = each.shape.name, each.runs
        allowed = 1.5 * runs[EMPTY].cpu + 4 * runs[each.bare].cpu
        many = name == "134"
        ratios.add(f"`{name}`: first run / bare", runs[first].cpu / runs[each.bare].cpu)
        ratios.add(f"`{name}`: first run / (1.5 empty jobs + 4 bare)", runs[first].cpu / allowed, at_most=1)
        ratios.add(
            f"`{name}`: one model changed / first run",
            runs[changed].cpu / runs[first].cpu,
            at_most=0.5 if many else None,
        )
        ratios.add(f"`{name}`: unchanged, CPU s", runs[unchanged].cpu, at_most=1 if many else None)
        ratios.add(f"`{name}`: pandas + SciPy / first run", _ratio(each.cpu(PANDAS), each.cpu(first)))
        if name == "small":
            ratios.add(f"`{name}`: first run, CPU s", runs[first].cpu, at_most=6)


def _run_table(measured: Sequence[Measured]) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [
            f"{each.shape.name}: {name}{' (extrapolated)' if name in each.notes else ''}",
            *(f"{figure:,.2f}" for figure in (done.seconds, done.cpu)),
            f"{done.peak_mb:,.0f}",
        ]
        for each in measured
        for name, done in each.runs.items()
    ]
    shapes = "; ".join(f"{each.shape.name}: {each.shape}" for each in measured)
    return shapes, ["shape and contender", "wall s", "CPU s", "peak MB"], rows


def _ratio_table(measured: Sequence[Measured]) -> tuple[str, list[str], list[list[str]]]:
    first, unchanged, changed = (f"{OURS}, {state}" for state in STATES)
    ratios: dict[str, Callable[[Measured], float | None]] = {
        "first run / bare script or query": lambda each: _ratio(each.cpu(first), each.cpu(each.bare)),
        "pandas + SciPy / first run": lambda each: _ratio(each.cpu(PANDAS), each.cpu(first)),
        "first run / empty Dagster job": lambda each: _ratio(each.cpu(first), each.cpu(EMPTY)),
        "unchanged / first run": lambda each: _ratio(each.cpu(unchanged), each.cpu(first)),
        "one model changed / first run": lambda each: _ratio(each.cpu(changed), each.cpu(first)),
        "one model changed, less the import of Dagster / first run": lambda each: _ratio(
            _less(each.cpu(changed), each.cpu(IMPORT)), each.cpu(first)
        ),
        "other checkout's first run / first run": lambda each: _ratio(
            each.cpu(f"{OTHER}, {STATES[0]}"), each.cpu(first)
        ),
        "µs of CPU per pair of models": lambda each: each.pair_microseconds,
    }
    rows = [[name, *(_cell(figure(each)) for each in measured)] for name, figure in ratios.items()]
    rows += [
        [name, *(_cell(value if each.shape.name == "10m" else None) for each in measured)]
        for name, value in _exponents(measured, first)
    ]
    rows = [row for row in rows if any(row[1:])]
    return "ratios of CPU time", ["ratio of CPU time", *(each.shape.name for each in measured)], rows


def _exponents(measured: Sequence[Measured], first: str) -> Iterator[tuple[str, float]]:
    """How CPU time grows from 1 M to 10 M rows: as rows to this power, in all and beyond the empty Dagster job."""
    by_name = {each.shape.name: each for each in measured}
    if not {"1m", "10m"} <= by_name.keys():
        return
    few, many = by_name["1m"], by_name["10m"]
    growth = math.log(many.shape.rows / few.shape.rows)
    yield "exponent of CPU in rows, 1m to 10m", math.log(many.runs[first].cpu / few.runs[first].cpu) / growth
    beyond = [max(1e-9, each.runs[first].cpu - each.runs[EMPTY].cpu) for each in (many, few)]
    yield "the same beyond the empty Dagster job", math.log(beyond[0] / beyond[1]) / growth


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _cell(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,.2f}" if abs(figure) < 100 else f"{figure:,.0f}"


def _helper(folder: Path, *words: object) -> Run:
    return run([sys.executable, str(HERE / "whole_run_data.py"), *map(str, words)], folder, _environment())


def _count_steps(folder: Path) -> int:
    """The steps of this project's job."""
    return int(_helper(folder, "steps", folder / "input" / "evaluation_config.json").output)


def _environment() -> dict[str, str]:
    """Compiled modules are kept, as in any installation, and every evaluation has its own Dagster history."""
    hidden = ("PYTHONDONTWRITEBYTECODE", "DAGSTER_HOME")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def _sibling(program: str) -> Path:
    return Path(sys.executable).with_name(program)


def _tell(progress: Progress, bar: TaskID, shape: Shape, what: str, finished: int = 0) -> None:
    progress.update(bar, description=f"{shape.name}: {what}", advance=finished)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _shapes(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in SHAPES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no shape {', '.join(unknown)}; shapes: {', '.join(SHAPES)}")
    return names


def _checkout(text: str) -> Path:
    path = Path(text).resolve()
    if not (path / ".venv" / "bin" / "touchstone").is_file():
        raise argparse.ArgumentTypeError(f"{text}: no .venv/bin/touchstone there; run `make setup` in that checkout")
    return path


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure a whole run beside other ways to the same figures.")
    parser.add_argument("--shapes", type=_shapes, default=list(SHAPES), metavar="A,B", help=", ".join(SHAPES))
    parser.add_argument("--quick", action="store_true", help="a tenth of the problems")
    parser.add_argument("--repeat", type=at_least_one, default=1, metavar="N", help="the best of N counts")
    parser.add_argument("--against", type=_checkout, metavar="CHECKOUT", help="another checkout with its own .venv")
    parser.add_argument("--skip-slow", action="store_true", help="leave out pandas + SciPy")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    return parser.parse_args()


if __name__ == "__main__":
    main()
