"""The environment of a Python problem: which packages its columns `requirements` and `environment` ask for, and where.

An environment is a folder with packages in `lib/python3.X/site-packages`, for the configured interpreter. It is found
here, and made in `prepare_environments`. Nothing in it runs outside the sandbox.
"""

import hashlib
import json
import os
import re
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from touchstone.config.validation import ValidationSettings
from touchstone.validation.protocol import Problem, Tree
from touchstone.validation.sandbox.interpreters import Interpreter, interpreter

# Written last, into an environment that `touchstone environments prepare` made.
ABOUT = "environment.json"
_PREPARE = "run `touchstone environments prepare`"
_MAX_NAME = 200
_FILE_ENDINGS = (".txt", ".in")
_REQUIREMENT = re.compile(r"([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(\[[\w\s,.-]*\])?\s*((?:[<>=!~@;(].*)?)", re.ASCII)


@dataclass(frozen=True)
class NoEnvironment:
    """Why a problem has no usable environment. `requirements` are those to prepare one for, if that would help."""

    reason: str
    requirements: tuple[str, ...] = ()


def find_environment(
    row: Mapping[str, Any], problem: Problem, tree: Tree, settings: ValidationSettings
) -> Path | NoEnvironment | None:
    """The environment that a problem's row asks for, by name rather than by requirements; None if it asks for none."""
    named, text = ((row.get(column) or "").strip() for column in ("environment", "requirements"))
    if not named and not text:
        return None
    python, folder = interpreter(settings.python.interpreter), settings.environments_dir
    if folder is None:
        return NoEnvironment("there is no folder of environments; set validation.environments_dir")
    if named:
        if not named.isprintable() or len(named) > _MAX_NAME:
            return NoEnvironment(f"environment is {named[:80]!r}, which is no name or path of a folder")
        return _usable(folder / named, python) or NoEnvironment(_why_unusable(folder / named, python))
    try:
        requirements = read_requirements(_requirements_text(text, problem, tree))
    except ValueError as error:
        return NoEnvironment(f"requirements: {error}")
    if not requirements:
        return None
    made = folder / environment_name(requirements, python)
    found = _usable(made, python) if (made / ABOUT).is_file() else None
    return found or NoEnvironment(f"the environment for its requirements is missing; {_PREPARE}", requirements)


def packages_of(environment: Path, python: Interpreter) -> Path:
    """The folder of an environment's packages."""
    return environment / "lib" / python.library / "site-packages"


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
    packages = packages_of(resolved, python)
    return resolved if packages.is_dir() and Path(os.path.realpath(packages)) == packages else None


def _why_unusable(environment: Path, python: Interpreter) -> str:
    others = sorted(path.parent.name for path in environment.glob("lib/python3*/site-packages"))
    if others:
        return f"environment {environment} has packages for {others[0]}, and the interpreter is {python.library}"
    what = "has no lib/python3*/site-packages" if environment.is_dir() else "is missing"
    return f"environment {environment} {what}; create it, or use the column requirements and {_PREPARE}"
