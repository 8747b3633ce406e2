"""The environment of a Python problem: which packages its columns `requirements` and `environment` ask for, and where.

An environment is a folder with packages in `lib/python3.X/site-packages`, for the configured interpreter. It is found
here, and nothing in it runs outside the sandbox. `touchstone environments prepare` makes one with uv or pip for each
set of requirements, outside the sandbox, as installing packages always does; afterwards everything works offline.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import filelock

from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.progress import report_step, track
from touchstone.validation.protocol import NoTarget, Problem, Tree
from touchstone.validation.sandbox.interpreters import Interpreter, interpreter

# Written last, into an environment that `touchstone environments prepare` made.
ABOUT = "environment.json"
_PREPARE = "run `touchstone environments prepare`"
_MAX_NAME = 200
_MAX_MESSAGE = 400
_LOCK = ".lock"
_UNFINISHED = ".unfinished-"
_FILE_ENDINGS = (".txt", ".in")
_REQUIREMENT = re.compile(r"([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(\[[\w\s,.-]*\])?\s*((?:[<>=!~@;(].*)?)", re.ASCII)


def find_environment(
    row: Mapping[str, Any], problem: Problem, tree: Tree, settings: ValidationSettings
) -> Path | NoTarget | None:
    """The environment that a problem's row asks for, by name rather than by requirements; None if it asks for none."""
    named, text = ((row.get(column) or "").strip() for column in ("environment", "requirements"))
    if not named and not text:
        return None
    python, folder = interpreter(settings.python.interpreter), settings.environments_dir
    if folder is None:
        return _no_environment("there is no folder of environments; set validation.environments_dir")
    if named:
        if not named.isprintable() or len(named) > _MAX_NAME:
            return _no_environment(f"environment is {named[:80]!r}, which is no name or path of a folder")
        return _usable(folder / named, python) or _no_environment(_why_unusable(folder / named, python))
    try:
        requirements = read_requirements(_requirements_text(text, problem, tree))
    except ValueError as error:
        return _no_environment(f"requirements: {error}")
    if not requirements:
        return None
    made = folder / environment_name(requirements, python)
    found = _usable(made, python) if (made / ABOUT).is_file() else None
    return found or _no_environment(f"the environment for its requirements is missing; {_PREPARE}", requirements)


def _no_environment(reason: str, requirements: tuple[str, ...] = ()) -> NoTarget:
    return NoTarget("validator_unavailable", reason, requirements)


def environment_name(requirements: tuple[str, ...], python: Interpreter) -> str:
    """The folder name of a prepared environment: the same for the same requirements, Python version and platform."""
    about = [requirements, python.library, sysconfig.get_platform()]
    return f"{python.library}-{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]}"


def read_requirements(text: str) -> tuple[str, ...]:
    r"""The requirements in a text, normalised and sorted.

    >>> read_requirements("Zope.Interface >= 5 , <6  # comment\n\nattrs[tests]; python_version > '3'\n")
    ("attrs[tests]; python_version > '3'", 'zope-interface>=5,<6')
    """
    return tuple(sorted(set(_requirements(text))))


def _requirements(text: str) -> Iterator[str]:
    for number, line in enumerate(re.sub(r"\\\r?\n", " ", text).splitlines(), 1):
        stripped = " ".join(re.sub(r"(^|\s)#.*", "", line).split())
        if not stripped:
            continue
        found = _REQUIREMENT.fullmatch(stripped)
        if found is None or re.search(r"\s--?\w", stripped):
            raise ValueError(f"line {number} is {stripped[:80]!r}, and only packages with versions can be prepared")
        name, extras, rest = found.groups()
        package = re.sub(r"[-_.]+", "-", name).lower() + "".join((extras or "").split())
        versions, semicolon, marker = rest.partition(";")
        if rest.startswith("@"):
            yield f"{package} {rest}"
        else:
            yield package + "".join(versions.split()) + (f"; {marker.strip()}" if semicolon else "")


def _requirements_text(text: str, problem: Problem, tree: Tree) -> str:
    """The text itself, or that of the file of the problem's tree that it names."""
    if "\n" in text or not text.endswith(_FILE_ENDINGS):
        return text
    for folder in (problem.working_directory, ""):
        path = str(PurePosixPath(folder) / text)
        if path in tree.files:
            return tree.read(path).decode("utf-8", "replace")
    raise ValueError(f"the problem has no file {text!r}")


def _usable(environment: Path, python: Interpreter) -> Path | None:
    """The environment's folder, if its packages are there and not behind a link, which could show any other folder."""
    resolved = Path(os.path.realpath(environment))
    packages = python.packages_in(resolved)
    return resolved if packages.is_dir() and Path(os.path.realpath(packages)) == packages else None


def _why_unusable(environment: Path, python: Interpreter) -> str:
    others = sorted(path.parent.name for path in environment.glob("lib/python3*/site-packages"))
    if others:
        return f"environment {environment} has packages for {others[0]}, and the interpreter is {python.library}"
    what = "has no lib/python3*/site-packages" if environment.is_dir() else "is missing"
    return f"environment {environment} {what}; create it, or use the column requirements and {_PREPARE}"


# Preparing


def prepare(
    folder: Path,
    wanted: Iterable[tuple[str, ...]],
    python: Interpreter,
    find_links: Sequence[str] = (),
    no_index: bool = False,
) -> dict[tuple[str, ...], str]:
    """Make an environment for each set of requirements that has none; returns why each of the others failed.

    `find_links` and `no_index` are options of both uv and pip.
    """
    options = [part for place in find_links for part in ("--find-links", place)] + ["--no-index"] * no_index
    sets, failures = sorted(set(wanted)), dict[tuple[str, ...], str]()
    if not sets:
        return failures
    # An output folder may come from elsewhere, and what is written through a link inside it ends up outside.
    for place in (folder, folder / _LOCK, *(folder / environment_name(each, python) for each in sets)):
        if place.is_symlink():
            raise TouchstoneError(f"{place}: is a link, through which nothing is installed; remove it")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(folder / _LOCK, timeout=0):
            # Nobody else is preparing, so these were left by a killed preparation.
            for left in folder.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(left, ignore_errors=True)
            with track("preparing environments", len(sets)) as advance:
                for requirements in sets:
                    report_step(f"installing {', '.join(requirements)}")
                    failure = _prepare_one(folder, requirements, python, options)
                    failures |= {requirements: failure} if failure is not None else {}
                    advance(1)
    except filelock.Timeout:
        raise TouchstoneError(f"{folder}: another process is preparing environments; wait for it to end") from None
    return failures


def prepared_environments(folder: Path) -> dict[str, tuple[str, ...]]:
    """The requirements of every environment that was prepared in a folder, by its name."""
    found = {}
    for about in sorted(folder.glob(f"[!.]*/{ABOUT}")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            found[about.parent.name] = tuple(map(str, json.loads(about.read_bytes())["requirements"]))
    return found


def _prepare_one(
    folder: Path, requirements: tuple[str, ...], python: Interpreter, options: Sequence[str]
) -> str | None:
    """Install into a temporary sibling, renamed when complete; returns why that failed."""
    made = folder / environment_name(requirements, python)
    if (made / ABOUT).is_file():
        return None
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
    try:
        packages = python.packages_in(unfinished)
        packages.mkdir(parents=True)
        listed = unfinished / "requirements.txt"
        listed.write_text("".join(f"{line}\n" for line in requirements))
        command = [*_installer(python), *options, "--target", str(packages), "--requirement", str(listed)]
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        if ended.returncode != 0:
            return " ".join((ended.stderr or ended.stdout).split())[:_MAX_MESSAGE] or f"exit code {ended.returncode}"
        about = {"requirements": requirements, "python": python.version}
        (unfinished / ABOUT).write_text(json.dumps(about, indent=2) + "\n")
        # Other users must be able to read it, as the sandbox's user is one.
        unfinished.chmod(0o755)
        shutil.rmtree(made, ignore_errors=True)
        unfinished.rename(made)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return None


def _installer(python: Interpreter) -> list[str]:
    """The beginning of a command line that installs packages for an interpreter."""
    program = str(python.program)
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is not None:
        how = ["--quiet", "--no-progress", "--link-mode", "copy", "--compile-bytecode"]
        return [uv, "pip", "install", *how, "--python", program]
    how = ["install", "--quiet", "--disable-pip-version-check", "--no-input"]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", program, *how]
    has_pip = subprocess.run([program, "-I", "-m", "pip", "--version"], capture_output=True, check=False)
    if has_pip.returncode == 0:
        return [program, "-I", "-m", "pip", *how]
    raise TouchstoneError("neither uv nor pip is installed; install uv (pip install uv, or see its documentation)")


@dataclass(frozen=True)
class ListedEnvironment:
    """One environment: `ready` if it can be used, and how many problems need it."""

    name: str
    ready: bool
    problems: int
    requirements: tuple[str, ...]


def list_environments(settings: ValidationSettings, problems: Iterable[Problem | NoTarget]) -> list[ListedEnvironment]:
    """All environments, by name: those that problems need, and those that are prepared."""
    folder, python = settings.environments_dir, interpreter(settings.python.interpreter)
    prepared = prepared_environments(folder) if folder is not None else {}
    ready: Counter[str] = Counter()
    missing: Counter[tuple[str, ...]] = Counter()
    for problem in problems:
        if isinstance(problem, NoTarget):
            missing.update([problem.requirements] if problem.requirements else [])
        elif (place := problem.environment) is not None:
            inside = folder is not None and place.parent == folder.resolve()
            ready[place.name if inside else str(place)] += 1
    found = [ListedEnvironment(name, True, ready[name], prepared.get(name, ())) for name in {*ready, *prepared}]
    found += [ListedEnvironment(environment_name(some, python), False, count, some) for some, count in missing.items()]
    return sorted(found, key=lambda one: one.name)
