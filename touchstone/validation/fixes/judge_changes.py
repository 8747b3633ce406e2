"""Which changes of a fix are the judge's to undo: of its files, by new files in their place, of runners' settings.

A fix of several files may change a manifest, but not its settings for the test runner, which could replace the tests:
then the whole manifest is put back. What the judge's files are belongs in `judge_side`.
"""

import configparser
import glob
import json
import re
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from importlib.machinery import PathFinder
from pathlib import PurePosixPath
from typing import Any

from touchstone.validation.protocol import Problem, Tree
from touchstone.validation.reach import CODE, SOURCE_FOLDERS, looks_like_test

# Tests rely on these; a new file of such a name would be imported instead.
_TEST_LIBRARIES = (
    *("pytest", "_pytest", "pluggy", "iniconfig", "hypothesis", "numpy", "pandas", "mock", "parameterized"),
    *("freezegun", "anyio", "trio", "packaging", "pygments", "py", "xdist"),
)
_LIBRARY = frozenset({*sys.stdlib_module_names, *_TEST_LIBRARIES} - {"test"})
# What a build runs, or a runner reads if it finds nothing of its own.
_NEVER_NEW = re.compile(r"/build\.rs$|/vite\.config\.\w+$")
_METADATA = (".dist-info", ".egg-info")
MANIFESTS = ("Cargo.toml", "go.mod", "package.json", "pyproject.toml", "setup.cfg", "tox.ini")
_JAVASCRIPT_RUNNERS = ("jest", "mocha", "ava", "tap", "vitest")
_DEVELOPMENT = "for development "
_PYTEST_SECTIONS = ("pytest", "tool:pytest")


def judge_changes(changes: Mapping[str, bytes | None], problem: Problem, tree: Tree) -> list[str]:
    """The changed paths that are the judge's: its files, new ones that would be used instead, and runners' settings."""
    files, judge = frozenset(tree.files), frozenset(problem.judge_files)
    new = [path for path in changes if path not in files and not _matches(path, problem.source_patterns)]
    found = judge.intersection(changes)
    found |= {path for path in new if looks_like_test(path) or _matches(path, problem.judge_patterns)}
    found |= set(used_instead(new, judge))
    found |= {path for path in new if _NEVER_NEW.search(f"/{path}")}
    found |= set(hidden_modules(new, problem, tree))
    settings = changed_settings(changes, tree)
    found |= {path for path in settings if not _matches(path, problem.source_patterns)}
    return sorted(found - {problem.path})


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def used_instead(paths: Iterable[str], files: Iterable[str]) -> list[str]:
    """The paths that are one of some files, or would be imported instead of one.

    >>> used_instead(["lib/index.js", "a.py", "b.py"], ["lib.js", "a.py"])
    ['lib/index.js', 'a.py']
    """
    places = {_module_place(path) for path in files if PurePosixPath(path).suffix in CODE}
    code = {path for path in paths if PurePosixPath(path).suffix in ("", *CODE)}
    return [path for path in paths if path in files or (path in code and _module_place(path) in places)]


def _module_place(path: str) -> str:
    """The path that imports a module, from its folder: the same for `a.py`, `a/__init__.py` and `a/index.js`."""
    stem = path.removesuffix(PurePosixPath(path).suffix)
    folder, _, name = stem.rpartition("/")
    return folder if name in ("__init__", "index", "mod") else stem


def hidden_modules(new: Iterable[str], problem: Problem, tree: Tree) -> list[str]:
    """The new paths that would be imported instead of a library's module, a test runner's or a judge's.

    >>> from pathlib import Path
    >>> problem, tree = Problem("a", "shop.py", Path("clones"), "app"), Tree(Path("clones"), ("numpy/core.py",))
    >>> hidden_modules(["json.py", "pytest/a.py", "app/src/json.py", "shop/json.py", "numpy/b.py"], problem, tree)
    ['json.py', 'pytest/a.py', 'app/src/json.py']
    """
    below = [f"{place}/" if place else "" for place in {"", problem.working_directory}]
    folders = {*below, *(f"{place}{name}/" for place in below for name in SOURCE_FOLDERS)}
    places = [(path, folder, name) for path in new for folder in folders if (name := _top_name(path, folder))]
    known = {(folder, _top_name(path, folder)) for path in tree.files for folder in folders} if places else set()
    return [
        path
        for path, folder, name in places
        if (folder, name) not in known
        and (
            name.endswith(_METADATA)
            or (path.endswith(".py") and (name in _LIBRARY or name.startswith("pytest_")))
            or (path.endswith(".py") and _is_imported(name, problem, tree))
        )
    ]


def _is_imported(name: str, problem: Problem, tree: Tree) -> bool:
    """Whether the judge's files import a module of their own, or of an installed package, by this name."""
    beside = PathFinder.find_spec(name, [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    installed = beside is not None and beside.origin is not None
    if not installed and problem.environment is not None:
        places = (f"lib/python*/site-packages/{glob.escape(name)}{end}" for end in ("", ".py", ".*.so"))
        installed = any(any(problem.environment.glob(place)) for place in places)
    ends = (f"/{name}.py", f"/{name}/__init__.py")
    own = any(f"/{path}".endswith(ends) for path in problem.judge_files)
    if not own and (not installed or any(_top_name(path, "") == name for path in tree.files)):
        return False
    imports = re.compile(rb"^[ \t]*(?:from[ \t]+|import[ \t][^\n#]*?\b)%b\b" % re.escape(name.encode()), re.MULTILINE)
    return any(imports.search(tree.read(path)) for path in problem.judge_files if path.endswith(".py"))


def _top_name(path: str, folder: str) -> str:
    """The name under which a file or its package is imported from a folder; empty if it is elsewhere."""
    if not path.startswith(folder):
        return ""
    first, _, rest = path[len(folder) :].partition("/")
    return first if rest else first.removesuffix(".py")


# Settings for test runners: which tests there are and how they run


def changed_settings(changes: Mapping[str, bytes | None], tree: Tree) -> list[str]:
    """The changed manifests that have other settings for a test runner than before.

    >>> from pathlib import Path
    >>> tree = Tree(Path(), ("package.json",), {"package.json": b'{"scripts": {"test": "jest"}}'})
    >>> changed_settings({"package.json": b'{"scripts": {"test": "true"}}'}, tree)
    ['package.json']
    >>> changed_settings({"package.json": b'{"scripts": {"test": "jest", "lint": "eslint"}}'}, tree)
    []
    """
    return [path for path, content in changes.items() if _is_changed(path, content, tree)]


def _is_changed(path: str, content: bytes | None, tree: Tree) -> bool:
    name = PurePosixPath(path).name
    if name not in MANIFESTS:
        return False
    before = _settings(name, tree.read(path)) if path in tree.files else {}
    after = _settings(name, content) if content is not None else {}
    if before is None or after is None:
        return after is None
    if name == "package.json":
        watched = {word + script for script in before for word in ("", "pre", "post")}
        after = {key: value for key, value in after.items() if key in watched or key.startswith("runner ")}
    if name == "Cargo.toml":
        after = {key: value for key, value in after.items() if not key.startswith(_DEVELOPMENT) or key in before}
    return before != after


def _settings(name: str, content: bytes) -> dict[str, Any] | None:
    """The settings for test runners in a manifest; None if it cannot be read."""
    try:
        if name == "package.json":
            manifest = json.loads(content)
            runners = {f"runner {name}": manifest[name] for name in _JAVASCRIPT_RUNNERS if name in manifest}
            return {**manifest.get("scripts", {}), **runners}
        if name == "go.mod":
            return dict.fromkeys(re.findall(r"^.*=>.*$", content.decode(), re.MULTILINE), True)
        if name == "Cargo.toml":
            return _of_crate(tomllib.loads(content.decode()))
        if name == "pyproject.toml":
            tools = tomllib.loads(content.decode()).get("tool", {})
            return {"pytest": tools["pytest"]} if "pytest" in tools else {}
        sections = configparser.RawConfigParser()
        sections.read_string(content.decode())
        return {section: dict(sections[section]) for section in _PYTEST_SECTIONS if section in sections}
    except (ValueError, AttributeError, RecursionError, configparser.Error):
        return None


def _of_crate(manifest: Mapping[str, Any]) -> dict[str, Any]:
    targets = {kind: manifest.get(kind, []) for kind in ("lib", "bin", "example")}
    harness = {
        (kind, str(target.get("name")), key): target[key]
        for kind, found in targets.items()
        for target in (found if isinstance(found, list) else [found])
        for key in ("harness", "test", "doctest")
        if key in target
    }
    package = {key: manifest.get("package", {}).get(key) for key in ("autotests", "build")}
    replaced = {key: manifest.get(key) for key in ("test", "patch", "replace")}
    listed = {**replaced, **package, "harness": harness}
    listed |= {f"{_DEVELOPMENT}{name}": value for name, value in manifest.get("dev-dependencies", {}).items()}
    return {key: value for key, value in listed.items() if value not in (None, {})}
