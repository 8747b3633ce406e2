"""Divides a problem's files between the two sides, by what the unmodified problem says rather than what a fix says.

The candidate gets the program; its modules are the repaired file and what that file imports. Everything else that the
tests import runs beside them, where a fix cannot patch it, and data that only the tests mention stays with them. This
runs outside the sandbox, so it only searches texts.
"""

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from touchstone.validation.protocol import Problem

_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b[^\n(]*(?:\([^)]{0,5000}\))?", re.MULTILINE)
_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)", re.MULTILINE)
_FUNCTION = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_METHOD = re.compile(r"^[ \t]+(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_FILE_NAME = re.compile(r"[\w.-]+")
_MAX_FIX = 200_000


@dataclass(frozen=True)
class Sides:
    """The job of the candidate and the job of the tests."""

    candidate: dict[str, Any]
    tests: dict[str, Any]


def unmodified_text(problem: Problem, path: str | None = None) -> str | None:
    """A file before the fix, by default the repaired one; None if the fix creates it."""
    try:
        return (problem.root / (path or problem.path)).read_bytes().decode("utf-8", "replace")
    except OSError:
        return None


def divide(problem: Problem, files: Mapping[str, str], tests: Sequence[str], changed: Iterable[str] = ()) -> Sides:
    """Divide the files of a tree with a fix applied; `tests` are relative to the working directory."""
    below = problem.working_directory
    before = unmodified_text(problem)
    test_paths = {os.path.normpath(f"{below}/{name}" if below else name) for name in tests}
    folders = _test_folders(problem.filename, tuple(tests))
    of_tests = {path for path in files if path in test_paths or _is_beside_tests(path, below, folders)}
    texts = {path: text for path, text in files.items() if path.endswith(".py") and path not in of_tests}
    texts[problem.path] = files[problem.path][:_MAX_FIX] if before is None else before
    modules = {module_name(_inside(path, below)): path for path in texts if _is_inside(path, below)}
    reached = _reachable(module_name(problem.filename), modules, texts)
    # A fix of several files: whatever it changes is the candidate's, whether the problem's file imports it or not.
    theirs = {problem.path, *(path for path in changed if path in texts)}
    reached = sorted({*reached, *(name for name, path in modules.items() if path in theirs)})
    program = [texts[modules[name]] for name in reached]
    known = [] if before is None else [before]
    known += _unmodified(problem, [modules[name] for name in reached if modules[name] != problem.path], texts)
    judging = [files[path] for path in files if path.endswith(".py") and path not in texts]
    used = _names(program)
    withheld = test_paths | {path for path in of_tests if _base(path) not in used}
    withheld |= _data_of_tests(files, below, used, judging)
    shared = {"directory": below, "modules": sorted(reached), "main": module_name(problem.filename)}
    return Sides(
        {"files": {path: text for path, text in files.items() if path not in withheld}, **shared},
        {
            # Tests that load the file by path would run it on their own side, so it is missing there.
            "files": {path: text for path, text in files.items() if path not in theirs},
            "tests": list(tests),
            "withheld": sorted(withheld - test_paths),
            "classes": _found(_CLASS, known),
            "methods": _found(_METHOD, known),
            "functions": _found(_FUNCTION, known),
            **shared,
        },
    )


def _unmodified(problem: Problem, paths: Iterable[str], texts: Mapping[str, str]) -> Iterator[str]:
    """The files before the fix, without those that it creates: only these say which classes the problem has."""
    on_disk = problem.root.is_dir()
    for path in paths:
        text = unmodified_text(problem, path) if on_disk else texts[path]
        if text is not None:
            yield text


@functools.lru_cache(4096)
def module_name(path: str) -> str:
    """The module name of a file.

    >>> module_name("shop/cart.py"), module_name("shop/__init__.py")
    ('shop.cart', 'shop')
    """
    parts = list(PurePosixPath(path).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@functools.lru_cache(4096)
def _test_folders(repaired: str, tests: Sequence[str]) -> frozenset[PurePosixPath]:
    """The folders of the tests that do not contain the repaired file."""
    return frozenset({PurePosixPath(name).parent for name in tests} - set(PurePosixPath(repaired).parents))


def _is_beside_tests(path: str, below: str, folders: Set[PurePosixPath]) -> bool:
    """Whether a file is in one of these folders, or configures pytest."""
    if not _is_inside(path, below):
        return False
    if _base(path) == "conftest.py":
        return True
    return bool(folders) and not folders.isdisjoint(PurePosixPath(_inside(path, below)).parents)


def _reachable(main: str, modules: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """The module, those that it imports, directly or not, and the packages that they are in."""
    by_last_name: dict[str, list[str]] = {}
    for name in modules:
        by_last_name.setdefault(name.rpartition(".")[2], []).append(name)
    reached, left = {main}, [main]
    while left:
        name = left.pop()
        words = {word for found in _IMPORT.findall(texts[modules[name]]) for word in _WORD.findall(found)}
        packages = [package for package in _packages(name) if package in modules]
        found = {*packages, *(one for word in words for one in by_last_name.get(word, ()))} - reached
        reached |= found
        left += found
    return sorted(reached)


def _packages(name: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        yield name


def _data_of_tests(files: Iterable[str], below: str, used: Set[str], judging: Iterable[str]) -> set[str]:
    """The data files that the tests mention, by file or folder name, and the unmodified program does not."""
    data = [path for path in files if not path.endswith(".py")]
    judged = _names(judging) if data else set()
    parts = {path: set((_inside(path, below) if _is_inside(path, below) else path).split("/")) for path in data}
    return {path for path in data if parts[path] & judged and not parts[path] & used}


def _found(pattern: re.Pattern[str], texts: Iterable[str]) -> list[str]:
    return sorted({name for text in texts for name in pattern.findall(text)})


def _names(texts: Iterable[str]) -> set[str]:
    return {name for text in texts for name in _FILE_NAME.findall(text)}


def _is_inside(path: str, directory: str) -> bool:
    return directory in ("", ".") or path.startswith(f"{directory}/")


def _inside(path: str, directory: str) -> str:
    return path if directory in ("", ".") else path[len(directory) + 1 :]


def _base(path: str) -> str:
    return path.rpartition("/")[2]
