"""Writes 164 small Python problems with reference solutions, for Touchstone to be run on.

    python benchmarks/python_problems.py FOLDER
    touchstone run --config FOLDER/evaluation_config.json

The 41 tasks in `python_tasks.txt` come in four variants each. A problem is a module with one bug, a test file that
finds it, and the module without the bug; the model `reference` answers each with the latter. The same bytes come out
each time and on each machine.
"""

import csv
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

TASKS = Path(__file__).with_name("python_tasks.txt")
MODEL = "reference"
CLONES = "clones"
FILENAME, TESTS = "solution.py", "test_solution.py"
CONFIG = {
    "problems_csv": "problems.csv",
    "fixes_dir": ".",
    "output_dir": "output",
    "clones_dir": CLONES,
    "k_values": [1],
}


class PythonProblem(NamedTuple):
    """One broken module with its tests and the module as it should be."""

    name: str
    broken: str
    reference: str
    tests: str

    @property
    def oid(self) -> str:
        """Its id, made from its name."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:12]

    @property
    def row(self) -> dict[str, str]:
        """Its row of the problems file."""
        return {
            "oid": self.oid,
            "filename": FILENAME,
            "working_directory": self.name,
            "suite": "python-164",
            "language": "python",
            "tests": TESTS,
            "reference_fix": self.reference,
        }


def main() -> None:
    """Write them into the folder that is named."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python benchmarks/python_problems.py FOLDER")
    written = write_problems(Path(sys.argv[1]))
    print(f"{len(written)} problems in {sys.argv[1]}")


def write_problems(folder: Path) -> list[PythonProblem]:
    """Write problems, clones, the reference model's fixes and a configuration; returns the problems."""
    problems = list(make_problems())
    for problem in problems:
        clone = folder / CLONES / problem.name
        clone.mkdir(parents=True)
        (clone / FILENAME).write_text(problem.broken, encoding="utf-8")
        (clone / TESTS).write_text(problem.tests, encoding="utf-8")
    fixes = [{"oid": each.oid, "iteration_id": "1", "fixed_code": each.reference} for each in problems]
    _write_csv(folder / "problems.csv", [each.row for each in problems])
    _write_csv(folder / f"{MODEL}_fixes.csv", fixes)
    (folder / "evaluation_config.json").write_text(json.dumps(CONFIG, indent=4) + "\n", encoding="utf-8")
    return problems


def make_problems() -> Iterator[PythonProblem]:
    """Every variant of every task."""
    _, *tasks = re.split(r"^=== ", TASKS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for task in tasks:
        yield from _variants(task)


def _variants(task: str) -> Iterator[PythonProblem]:
    head, solution, tests = re.split(r"^--- (?:solution|tests)\n", task, flags=re.MULTILINE)
    name, *table = head.strip().splitlines()
    columns, *rows = ([cell.strip() for cell in line.split(" | ")] for line in table)
    for row in rows:
        given = dict(zip(columns, row, strict=True))
        yield PythonProblem(
            name=f"{name}/{given['name'].lower()}",
            broken=_filled(_side(solution, "-"), given),
            reference=_filled(_side(solution, "+"), given),
            tests=_filled(tests.strip().splitlines(), given),
        )


def _side(difference: str, sign: str) -> list[str]:
    """The lines of one side of a difference, and those that both share."""
    return [line[1:] for line in difference.rstrip().splitlines() if line[:1] in ("", " ", sign)]


def _filled(lines: Iterable[str], given: dict[str, str]) -> str:
    return Template("\n".join(lines) + "\n").substitute(given)


def _write_csv(path: Path, rows: Sequence[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
