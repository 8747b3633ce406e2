"""The folder that an import writes: problems, their files, one fixes file per model, and a configuration.

It appears whole or not at all, and never replaces anything.
"""

import csv
import json
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from touchstone.errors import TouchstoneError
from touchstone.names import check_model_name, file_key

CLONES = "clones"
CONFIG = "evaluation_config.json"
PROBLEMS = "problems.csv"

_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_FOLDER_NAME = 100

Row = Mapping[str, str]

_KS = (1, 2, 3, 5, 10, 100)


@dataclass(frozen=True)
class ImportedProblem:
    """A problem: its row, the name of its folder among the clones, and a function that fills this folder.

    Without these two its files are elsewhere, where `clones_dir` in the settings says.
    """

    row: Row
    folder: str = ""
    fill: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class ImportedEvaluation:
    """Everything that is written. `fixes` has the rows of each model."""

    problems: Sequence[ImportedProblem]
    fixes: Mapping[str, Sequence[Row]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    problem_key: str = "oid"

    def k_values(self) -> list[int]:
        """The k of pass@k that every attempted problem has enough attempts for."""
        counts = Counter((model, row[self.problem_key]) for model, rows in self.fixes.items() for row in rows)
        return [k for k in _KS if k <= min(counts.values(), default=1)]

    def write(self, folder: Path) -> None:
        """Write the evaluation to a new or empty folder."""
        with _new_folder(folder) as scratch:
            for problem in self.problems:
                if problem.fill is not None:
                    clone = scratch / CLONES / problem.folder
                    clone.mkdir(parents=True)
                    problem.fill(clone)
            _write_csv(scratch / PROBLEMS, [problem.row for problem in self.problems])
            for model, rows in self.fixes.items():
                _write_csv(scratch / fixes_name(model), rows)
            (scratch / CONFIG).write_text(json.dumps(self._config(), indent=4) + "\n", encoding="utf-8")

    def _config(self) -> dict[str, Any]:
        files = {"problems_csv": PROBLEMS, "fixes_dir": ".", "output_dir": "output", "clones_dir": CLONES}
        return {**files, "problem_key": self.problem_key, "k_values": self.k_values(), **self.settings}


def fixes_name(model: str) -> str:
    """The name of a model's fixes file; what a file name may not contain is escaped.

    >>> fixes_name("acme/fixer-7b")
    'acme%2Ffixer-7b_fixes.csv'
    """
    return f"{file_key(check_model_name(model))}_fixes.csv"


def folder_names(ids: Sequence[str]) -> dict[str, str]:
    """A folder name for each id, made of letters, digits and `. _ -`; ids that would share one get a number.

    >>> folder_names(["HumanEval/0", "HumanEval 0", ".."])
    {'HumanEval/0': 'HumanEval_0', 'HumanEval 0': 'HumanEval_0-2', '..': '_'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for each in ids:
        plain = _UNUSUAL.sub("_", each)[:_MAX_FOLDER_NAME].strip(".-") or "_"
        name, number = plain, 1
        # Some file systems do not distinguish upper and lower case.
        while name.casefold() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.casefold())
        names[each] = name
    return names


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary sibling; renamed to `folder` on success, deleted on error."""
    target = folder.resolve()
    scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        if target == Path.cwd():
            raise TouchstoneError(f"{folder}: is the current folder; name one that does not exist")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise TouchstoneError(f"{folder}: exists and is not an empty folder; name a new one")
        scratch.mkdir(parents=True)
        yield scratch
        # Replaces an empty folder; fails if something was put there meanwhile.
        scratch.rename(target)
    except OSError as error:
        raise TouchstoneError(f"{folder}: cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_csv(path: Path, rows: Sequence[Row]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        # A lone carriage return would not be quoted otherwise, and end the row.
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
