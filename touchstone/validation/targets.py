"""Targets: each problem with its files and its validator, or the reason why it has none."""

import ast
import json
import re
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from touchstone.config import EvaluationConfig
from touchstone.config.validation import ValidationSettings
from touchstone.ingest.discovery import require_problems_csv
from touchstone.ingest.input_paths import fetch_inputs
from touchstone.ingest.problems import read_problems
from touchstone.validation.environments import find_environment
from touchstone.validation.files.locate_files import LocatedFile, locate
from touchstone.validation.files.working_copy import HashedTree, list_files
from touchstone.validation.fixes.apply_fix import Fix, NotApplied, apply_fix
from touchstone.validation.judge_side import Declared, with_judge_side
from touchstone.validation.judging.verdicts import named_severity
from touchstone.validation.protocol import NoTarget, Problem, Tree
from touchstone.validation.reach import TreeIndex
from touchstone.validation.registry import language_of, validator_for
from touchstone.vocabulary import VALIDATION_COLUMNS, WARNING_NOT_SHOWN


@dataclass(frozen=True)
class Target:
    """A problem with its files and validator: its fixes can be validated."""

    problem: Problem
    tree: Tree
    validator: str
    hashed: HashedTree = field(repr=False)


class Targets:
    """Resolves problem rows to targets, each row once. A root folder is listed and hashed once."""

    def __init__(self, clones_dir: Path | None, settings: ValidationSettings) -> None:
        self._clones_dir, self._settings = clones_dir, settings
        self._trees: dict[Path, HashedTree | NoTarget] = {}
        self._known_files: dict[Path, dict[tuple[str, str], Any]] = {}
        # By row: every model's attempts ask for the same problems.
        self._found: dict[tuple[tuple[str, Any], ...], Target | NoTarget] = {}

    def find(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Target | NoTarget]:
        """The target of each problem, by oid."""
        return {row["oid"]: self._target_once(row) for row in rows}

    def _target_once(self, row: Mapping[str, Any]) -> Target | NoTarget:
        key = tuple(row.items())
        if key not in self._found:
            self._found[key] = self._target(row)
        return self._found[key]

    def _target(self, row: Mapping[str, Any]) -> Target | NoTarget:
        if self._clones_dir is None:
            return NoTarget("validator_unavailable", "there are no files to fix: set 'clones_dir' in the config")
        place = locate(
            self._clones_dir,
            row.get("filename"),
            row.get("working_directory"),
            row.get("project_name"),
            row["oid"],
            whole_folder=bool(_text(row.get("test_command"))),
        )
        if isinstance(place, NoTarget):
            return place
        try:
            problem = _problem(row, place)
        except ValueError as error:
            return NoTarget("validator_unavailable", str(error))
        validator = "command" if problem.test_command else validator_for(problem.language, self._settings)
        if validator is None:
            what = f"the language '{problem.language}'" if problem.language else f"the file {place.filename}"
            reason = f"no validator for {what}; name one under 'validation.validators' in the config"
            return NoTarget("validator_unavailable", reason)
        if validator == "hcl" and named_severity(problem) == "warning":
            return NoTarget("validator_unavailable", WARNING_NOT_SHOWN)
        return self._with_files(problem, validator, row)

    def _with_files(self, problem: Problem, validator: str, row: Mapping[str, Any]) -> Target | NoTarget:
        root = problem.root
        if root not in self._trees:
            files = list_files(root)
            self._trees[root] = files if isinstance(files, NoTarget) else HashedTree(root, files)
        hashed = self._trees[root]
        if isinstance(hashed, NoTarget):
            return hashed
        tree = Tree(root, hashed.files)
        test_patch = row.get("test_patch") or ""
        patched: tuple[str, ...] = ()
        if test_patch.strip():
            added = apply_fix(tree, Fix(test_patch, "diff"), problem, "allow")
            if isinstance(added, NotApplied):
                return NoTarget("validator_unavailable", f"test_patch: {added.reason}")
            tree = tree.with_changes(added.changes, added.executable)
            patched = tuple(added.changes)
        problem = self._with_judge_side(problem, tree, validator, row, patched)
        if validator == "python":
            environment = find_environment(row, problem, tree, self._settings)
            if isinstance(environment, NoTarget):
                return environment
            problem = replace(problem, environment=environment)
        return Target(problem, tree, validator, hashed)

    def _with_judge_side(
        self, problem: Problem, tree: Tree, validator: str, row: Mapping[str, Any], patched: tuple[str, ...]
    ) -> Problem:
        declared = Declared(_names(row.get("judge_files")), _names(row.get("source_files")), patched)
        if validator in ("hcl", "terraform") and declared == Declared():
            return problem
        index = TreeIndex(tree, self._known_files.setdefault(problem.root, {}))
        command = shlex.join(self._settings.command.arguments) if validator == "command" else ""
        return with_judge_side(problem, tree, declared, command, index)


def _problem(row: Mapping[str, Any], place: LocatedFile) -> Problem:
    """The problem that a row describes. Raises ValueError if a cell cannot be read."""
    lines = {"line_start": "line_start", "line_end": "line_end"}
    lines |= {"block_start": "impacted_block_start_line", "block_end": "impacted_block_end_line"}
    about: dict[str, Any] = {name: _line_number(column, row.get(column)) for name, column in lines.items()}
    about |= {name: row.get(name) for name in ("severity", "summary", "reference_fix", "resource_schema")}
    about |= {name: _names(row.get(name)) for name in ("tests", "expected_tests")}
    about |= {name: _text(row.get(name)) for name in ("test_command", "setup_command", "test_report", "report_file")}
    about |= {name: _test_names(name, row) for name in ("fail_to_pass", "pass_to_pass")}
    language = language_of(row.get("language"), place.filename)
    patch = row.get("reference_patch") or row.get("patch")
    return Problem(
        row["oid"], place.filename, place.root, place.working_directory, language, reference_patch=patch, **about
    )


def _line_number(name: str, value: str | None) -> int | None:
    """The line in a cell; None if it is empty or, as some benchmarks write it, -1.

    >>> _line_number("line_start", " 12 "), _line_number("line_start", "12.0"), _line_number("line_start", "-1")
    (12, 12, None)
    """
    written = (value or "").strip()
    if written in ("", "-1", "-1.0"):
        return None
    if not re.fullmatch(r"[0-9]+(\.0)?", written) or int(written.removesuffix(".0")) < 1:
        raise ValueError(f"{name} is {value!r}, and lines count from 1")
    return int(written.removesuffix(".0"))


def _text(value: str | None) -> str | None:
    return value.strip() or None if value else None


def _test_names(column: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    """The names in `fail_to_pass` or `pass_to_pass`, whose column may be in capitals."""
    try:
        return _read_test_names(row.get(column) or row.get(column.upper()))
    except ValueError as error:
        raise ValueError(f"{column} {error}") from None


def _read_test_names(text: str | None) -> tuple[str, ...]:
    """Test names from a cell: a JSON or Python list, else one per line, else separated by commas outside brackets.

    >>> _read_test_names('["test_a[1, 2]", "test_b"]') == _read_test_names("test_a[1, 2], test_b")
    True
    """
    text = (text or "").strip()
    if not text.startswith("["):
        names = text.split("\n") if "\n" in text else _split_at_commas(text)
        return tuple(dict.fromkeys(name for name in map(str.strip, names) if name))
    listed = _list(text)
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ValueError(f"is not a list of test names: {text[:80]}")
    return tuple(dict.fromkeys(listed))


def _list(text: str) -> object:
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def _split_at_commas(text: str) -> list[str]:
    names, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in ")]")
        if character == "," and depth <= 0:
            names.append("")
        else:
            names[-1] += character
    return names


def _names(value: str | None) -> tuple[str, ...]:
    """Split names at spaces, commas or semicolons.

    >>> _names("test_a.py; test_b.py")
    ('test_a.py', 'test_b.py')
    """
    return tuple(name for name in re.split(r"[\s,;]+", value or "") if name)


def problem_rows(config: EvaluationConfig) -> dict[str, dict[str, Any]]:
    """The columns of the problems file that control validation, by oid, for commands that need no run."""
    fetch_inputs(config)
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        path = require_problems_csv(config)
        problems = read_problems(path, Path(scratch) / "problems.parquet", config.problem_key, config.columns).problems
        present = [name for name in VALIDATION_COLUMNS if name in problems.collect_schema()]
        rows = problems.select("oid", *present).sort("oid").collect()
        return {row["oid"]: row for row in rows.iter_rows(named=True)}
