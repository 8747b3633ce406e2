"""Which files a fix may change: inside the problem's tree, and no tests unless the configuration allows it."""

import glob
import re
import sys
import sysconfig
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Set
from importlib.machinery import PathFinder
from itertools import pairwise
from pathlib import PurePosixPath

from touchstone.validation.files.locate_files import path_refusal
from touchstone.validation.files.working_copy import LEFT_OUT
from touchstone.validation.protocol import Problem, Tree
from touchstone.validation.test_reports.runners import scripts

MAX_FILES = 1_000

# Tests rely on these; a new file of such a name would be imported instead.
_TEST_LIBRARIES = (
    *("pytest", "_pytest", "pluggy", "iniconfig", "hypothesis", "numpy", "pandas", "mock", "parameterized"),
    *("freezegun", "anyio", "trio"),
)
# What pytest finds its plugins by, and how their modules are named.
_METADATA = (".dist-info", ".egg-info")
_PLUGIN = "pytest_"
_LIBRARY = frozenset({*sys.stdlib_module_names, *_TEST_LIBRARIES, "sitecustomize", "usercustomize"} - {"test"})

# Cargo's settings can replace the compiler and what runs the tests.
_TEST_FOLDERS = ("tests", "__tests__", "testdata", ".cargo")
_TOP_TEST_FOLDERS = ("test", "spec")
_TEST_NAMES = ("tests.py", "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
_TEST_STEMS = ("jest.config", "vitest.config")


def path_error(changes: Iterable[str]) -> str:
    """Why a path in a fix is refused; empty if all of them stay inside the tree."""
    paths = dict.fromkeys(changes)
    if len(paths) > MAX_FILES:
        return f"it changes {len(paths):,} paths; at most {MAX_FILES:,} are allowed"
    for path in paths:
        parts = path.split("/")
        if not path or "" in parts or "." in parts:
            return f"the path {path[:80]!r} is not a plain path"
        if reason := path_refusal("path", path):
            return reason
        if left_out := LEFT_OUT.intersection(parts):
            return f"the path {path[:80]!r} is in {min(left_out)}, which is not part of the problem"
    return ""


def layout_error(tree: Tree, changes: Mapping[str, bytes | None]) -> str:
    """Why the changed files cannot lie beside the others: one would be a file and a folder."""
    files = tree.with_changes(changes).files
    known = set(files)
    for path in (path for path, content in changes.items() if content is not None):
        parents = [str(parent) for parent in PurePosixPath(path).parents]
        if (taken := next((parent for parent in parents if parent in known), None)) is not None:
            return f"{path} cannot be written: {taken} is a file"
        after = bisect_left(files, f"{path}/")
        if after < len(files) and files[after].startswith(f"{path}/"):
            return f"{path} cannot be written: it is a folder"
    return ""


def changed_tests(paths: Iterable[str], problem: Problem, tree: Tree) -> list[str]:
    """The paths that are the problem's tests, are run by its test command, or look like tests or a runner's settings.

    >>> from pathlib import Path
    >>> problem = Problem("a", "shop.py", Path("clones"), fail_to_pass=("checks/cart.py::test_add",))
    >>> changed_tests(["checks/cart.py", "src/cart_test.go", "tests/a.json", "src/test.py"], problem, Tree(Path(), ()))
    ['checks/cart.py', 'src/cart_test.go', 'tests/a.json']
    """
    named = {*problem.tests, *(name.partition("::")[0] for name in problem.judged_tests if "::" in name)}
    named |= scripts(problem.test_command or "")
    own = {str(PurePosixPath(problem.working_directory) / name) for name in named}
    folders = _folders_of_tests(own, problem, tree)
    return [
        path
        for path in paths
        if path in own
        or _looks_like_test(PurePosixPath(path).parts)
        or not folders.isdisjoint(map(str, PurePosixPath(path).parents))
    ]


def _folders_of_tests(own: Set[str], problem: Problem, tree: Tree) -> set[str]:
    """The folders of a Python problem's tests that do not contain its file: what else is there helps the tests.

    A problem with a test command may have its tests beside any of its sources.
    """
    if problem.test_command or not problem.path.endswith(".py"):
        return set()
    tests = own or {path for path in tree.files if _is_test_name(PurePosixPath(path).name)}
    folders = {str(PurePosixPath(path).parent) for path in tests}
    return folders - set(map(str, PurePosixPath(problem.path).parents))


def hidden_module(paths: Iterable[str], problem: Problem, tree: Tree) -> str:
    """The first path that would be imported instead of a module of the library or of a test runner, if any.

    >>> from pathlib import Path
    >>> problem, tree = Problem("a", "shop.py", Path("clones")), Tree(Path("clones"), ("numpy/core.py",))
    >>> [hidden_module([path], problem, tree) for path in ("json.py", "pytest/a.py", "shop/json.py", "numpy/b.py")]
    ['json.py', 'pytest/a.py', '', '']
    """
    folders = {"", f"{problem.working_directory}/" if problem.working_directory else "", "src/", "lib/"}
    known = {(folder, _top_name(path, folder)) for path in tree.files for folder in folders}
    for path in paths:
        for folder in folders:
            name = _top_name(path, folder)
            if not name or (folder, name) in known:
                continue
            if name.endswith(_METADATA):
                return path
            if not path.endswith(".py"):
                continue
            if name in _LIBRARY or name.startswith(_PLUGIN) or _is_imported(name, problem, tree):
                return path
    return ""


def _is_imported(name: str, problem: Problem, tree: Tree) -> bool:
    """Whether the problem's tests import an installed package of this name."""
    beside = PathFinder.find_spec(name, [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    installed = beside is not None and beside.origin is not None
    if not installed and problem.environment is not None:
        places = (f"lib/python*/site-packages/{glob.escape(name)}{end}" for end in ("", ".py", ".*.so"))
        installed = any(any(problem.environment.glob(place)) for place in places)
    if not installed or any(_top_name(path, "") == name for path in tree.files):
        return False
    imports = re.compile(rb"^[ \t]*(?:import|from)[ \t]+" + re.escape(name.encode()) + rb"\b", re.MULTILINE)
    return any(imports.search(tree.read(path)) for path in changed_tests(tree.files, problem, tree))


def _top_name(path: str, folder: str) -> str:
    """The name under which a file or its package is imported from a folder; empty if it is elsewhere."""
    if not path.startswith(folder):
        return ""
    first, _, rest = path[len(folder) :].partition("/")
    return first if rest else first.removesuffix(".py")


def _looks_like_test(parts: tuple[str, ...]) -> bool:
    folders = parts[:-1]
    in_tests = any(folder in _TEST_FOLDERS for folder in folders) or (folders[:1] and folders[0] in _TOP_TEST_FOLDERS)
    java = ("src", "test") in pairwise(folders)
    return bool(in_tests) or java or _is_test_name(parts[-1])


def _is_test_name(name: str) -> bool:
    stem, dot, _ = name.rpartition(".")
    if not dot:
        return False
    return (
        name in _TEST_NAMES
        or stem in _TEST_STEMS
        or (name.startswith("test_") and name.endswith(".py"))
        or stem.endswith(("_test", "_spec", ".test", ".spec"))
    )
