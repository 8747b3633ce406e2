"""SWE-bench-style instances and predictions, with local clones of their repositories, as an evaluation folder.

An instance is a repository at `base_commit`; `test_patch`, `FAIL_TO_PASS` and `PASS_TO_PASS` (lists, or JSON text of
lists) say how it is judged, `patch` is the reference fix. The records have no test command: it is the instance's own
`test_command`, else the one that is passed, else pytest on the files of the named tests. As in SWE-bench, what a
prediction changes in test files is ignored, and an empty prediction is a failed attempt.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters.json_files import DECODER, Number
from touchstone.ingest.adapters.table import model_of_name
from touchstone.ingest.importing.evaluation_folder import (
    ImportedEvaluation,
    ImportedProblem,
    Row,
    SourceRecord,
    folder_names,
    read_records,
    records_by_id,
)

KEY = "instance_id"
# SWE-bench's own limit for the tests of an instance.
_SECONDS = 1800
# A blank cell would mean that there is no fix yet.
_EMPTY_PATCH = "\n"
_REPOSITORY = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*")
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
# The files as they were committed, without a helper program of the clone's configuration.
_OPTIONS = ("-c", "core.autocrlf=false", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_MAX_MESSAGE = 300
_PYTEST_ID = re.compile(r"(?P<file>[^:\s]+\.py)::\S.*", re.DOTALL)


@dataclass(frozen=True)
class InstanceTests:
    """How the tests of instances are run that bring no command of their own.

    `python` is the interpreter with the repositories' packages; a command in another language needs none. `report`
    names the form of a command's report.
    """

    python: Path | None = None
    command: str | None = None
    report: str = "pytest"

    def command_for(self, record: SourceRecord, tests: Sequence[str]) -> str:
        """The command that runs these tests."""
        own = record.values.get("test_command")
        if isinstance(own, str) and own.strip():
            return own
        if self.command is not None:
            return self.command
        matches = [_PYTEST_ID.fullmatch(test) for test in tests]
        other = next((test for test, match in zip(tests, matches, strict=True) if match is None), None)
        if other is not None:
            raise record.error(f"{other[:100]!r} is not one of pytest's tests; pass --test-command and --test-report")
        files = sorted({match["file"] for match in matches if match is not None})
        return shlex.join([str(self.python or sys.executable), "-m", "pytest", "-q", "-p", "no:cacheprovider", *files])

    def settings(self) -> dict[str, object]:
        """The configuration of the validator: what the sandbox shows to the command."""
        python = self.python or (Path(sys.executable) if self.command is None else None)
        command: dict[str, object] = {"report": self.report}
        if python is not None:
            folders = {str(path.parent.parent) for path in (python.absolute(), python.resolve())}
            command |= {"readable": sorted(folders), "environment": {"PYTHONPATH": "."}}
        return {"validation": {"test_edits": "ignore", "limits": {"seconds": _SECONDS}, "command": command}}


def import_swe_bench(
    instances: Path, predictions: Sequence[Path], clones: Path, folder: Path, tests: InstanceTests
) -> ImportedEvaluation:
    """Write an evaluation folder; returns what was written."""
    records = records_by_id(instances, KEY, "instance")
    fixes = _fixes(predictions, records)
    folders = folder_names(list(records))
    problems = [_problem(record, folders[name], clones, tests) for name, record in records.items()]
    evaluation = ImportedEvaluation(problems, fixes, tests.settings(), KEY)
    evaluation.write(folder)
    return evaluation


def _problem(record: SourceRecord, folder: str, clones: Path, tests: InstanceTests) -> ImportedProblem:
    name, repository, commit = record.text(KEY), record.text("repo"), record.text("base_commit")
    if not _REPOSITORY.fullmatch(repository):
        raise record.error(f"the repo {repository[:100]!r} is not of the form owner/name")
    try:
        clone = _find_clone(clones, [folder, repository.replace("/", "__"), repository, repository.partition("/")[2]])
        _require_commit(clone, commit)
    except TouchstoneError as error:
        raise record.error(str(error)) from None
    must_pass, must_stay = _tests(record, "FAIL_TO_PASS"), _tests(record, "PASS_TO_PASS")
    if not must_pass:
        raise record.error("FAIL_TO_PASS names no test")
    row = {
        KEY: name,
        "working_directory": folder,
        "cluster": repository,
        "base_commit": commit,
        "test_command": tests.command_for(record, [*must_pass, *must_stay]),
        "test_patch": _optional_text(record, "test_patch"),
        "patch": _optional_text(record, "patch"),
        "fail_to_pass": json.dumps(must_pass, ensure_ascii=False),
        "pass_to_pass": json.dumps(must_stay, ensure_ascii=False),
    }
    return ImportedProblem(row, folder, partial(_copy_tree, clone, commit))


def _tests(record: SourceRecord, key: str) -> list[str]:
    """The names in a list, or in the JSON text of one."""
    value = record.values.get(key, record.values.get(key.lower()))
    if isinstance(value, str):
        try:
            value = DECODER.decode(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list) or not all(isinstance(test, str) and not isinstance(test, Number) for test in value):
        raise record.error(f"the {key} is not a list of tests")
    return [str(test) for test in value]


def _optional_text(record: SourceRecord, key: str) -> str:
    return "" if record.values.get(key) is None else record.text(key, may_be_blank=True)


def _fixes(paths: Sequence[Path], known: dict[str, SourceRecord]) -> dict[str, list[Row]]:
    fixes: dict[str, list[Row]] = {}
    attempts: Counter[tuple[str, str]] = Counter()
    for path in paths:
        for record in read_records(path, KEY):
            name, model = record.text(KEY), _optional_text(record, "model_name_or_path").strip()
            if name not in known:
                raise record.error(f"the instance {name[:100]!r} is not among the instances")
            model = model or model_of_name(path, path.name.partition(".json")[0]).name
            attempts[model, name] += 1
            patch = _optional_text(record, "model_patch")
            row = {KEY: name, "iteration_id": str(attempts[model, name]), "llm_name": model}
            fixes.setdefault(model, []).append(row | {"model_patch": patch if patch.strip() else _EMPTY_PATCH})
    if not fixes:
        raise InputFileError(f"{', '.join(map(str, paths))}: there are no predictions")
    return fixes


def _find_clone(folder: Path, names: Sequence[str]) -> Path:
    """The first of these folders, with or without `.git` at the end, that is a git repository."""
    for name in names:
        for path in (folder / name, folder / f"{name}.git"):
            if (path / ".git").exists() or (path / "HEAD").is_file():
                return path
    raise TouchstoneError(f"{folder}: there is no clone {' or '.join(names)}; clone the repository there")


def _require_commit(clone: Path, commit: str) -> None:
    """Raise an error of one line if the clone does not have the commit."""
    if not _COMMIT.fullmatch(commit):
        raise TouchstoneError(f"{commit[:100]!r} is not a commit (expected 7 to 64 hexadecimal digits)")
    if _git(clone, "cat-file", "-e", f"{commit}^{{commit}}").returncode:
        raise TouchstoneError(f"{clone}: has no commit {commit}; run `git fetch --all` there")


def _copy_tree(clone: Path, commit: str, target: Path) -> None:
    """Write the files of a commit into an empty folder, without `.git`.

    `git archive` would leave out the files that `.gitattributes` marks as `export-ignore`, often the tests. So the
    commit is checked out with an index of its own, which touches neither the clone's index nor its working tree.
    """
    index = target.with_name(f".{target.name}.index")
    settings = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(target), "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        for arguments in (("read-tree", commit), ("checkout-index", "--all", "--quiet")):
            done = _git(clone, *arguments, **settings)
            if done.returncode:
                said = " ".join(done.stderr.decode(errors="replace").split())[:_MAX_MESSAGE]
                raise TouchstoneError(f"{clone}: commit {commit} cannot be copied ({said or 'git failed'})")
    finally:
        index.unlink(missing_ok=True)


def _git(clone: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    folder = clone / ".git" if (clone / ".git").exists() else clone
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            ["git", *_OPTIONS, f"--git-dir={folder}", *arguments],
            cwd=settings.get("GIT_WORK_TREE", clone),
            env=environment | settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise TouchstoneError("git is not on PATH; install it to import from clones") from None
