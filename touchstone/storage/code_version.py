"""A hash of the code that makes a table, so that a table made by different code is always stale.

The hash covers the module of the table's function and every module of the package that it imports, directly or
indirectly, at the top of a file or inside a function, and the versions of the numeric libraries.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from touchstone.tables import TABLES

_PACKAGE = Path(__file__).parents[1]
_LIBRARIES = ("numpy", "polars", "pyarrow", "scipy")
# Other libraries and packages that take part in publishing.
_WRITERS = ("duckdb",)
_AROUND = ("assets", "pipelines")
# The public API imports everything on use but makes no table.
_API = ("touchstone", "touchstone.evaluation")
_IMPORT = re.compile(
    r"""^[ \t]*(?:
        from\ (?P<package>touchstone[\w.]*)\ import\ (?P<names>\([^)]*\)|[^\n(]+)
        |import\ (?P<module>touchstone[\w.]*)
    )""",
    re.MULTILINE | re.VERBOSE,
)


@cache
def table_code_version(table: str) -> str:
    """A hash of the code behind a table and of the numeric libraries' versions."""
    return _version_of(modules_behind(table))


@cache
def module_code_version(module: str) -> str:
    """The same of the code behind a module."""
    return _version_of(_with_imports([module]))


def _version_of(modules: Iterable[str]) -> str:
    lines = [f"{name} {library_version(name)}" for name in _LIBRARIES]
    lines += [f"{module} {_content(module)}" for module in sorted(modules)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@cache
def package_code_version() -> str:
    """A hash of all code that takes part in a run, Dagster's definitions included, and of the libraries' versions.

    That of this process: a file that is edited while it runs makes another version for the next one.
    """
    lines = [f"{name} {library_version(name)}" for name in (*_LIBRARIES, *_WRITERS)]
    for package in (_PACKAGE, *(_PACKAGE.with_name(name) for name in _AROUND)):
        lines += [f"{file} {_sha256(_PACKAGE.parent / file)}" for file in _python_files(package)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def modules_behind(table: str) -> set[str]:
    """Every module of the package that is used to make a table.

    >>> {"touchstone.metrics.tiers", "touchstone.tables"} <= modules_behind("tiers")
    True
    """
    return _with_imports(module for package in TABLES[table].code for module in _modules_in(package))


def _with_imports(modules: Iterable[str]) -> set[str]:
    """The modules and all that they import, directly or indirectly."""
    found, waiting = set[str](), list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found and module not in _API:
            found.add(module)
            waiting.extend(imports_of(module))
    return found


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of the package that a module imports, and the packages that contain it."""
    text = _modules()[module].read_text()
    found = {module.rpartition(".")[0]} if "." in module else set[str]()
    for match in _IMPORT.finditer(text):
        if match["module"]:
            found.add(match["module"])
            continue
        package = match["package"]
        found.add(package)
        names = re.findall(r"(\w+)(?: as \w+)?", re.sub(r"#[^\n]*", "", match["names"]))
        found.update(f"{package}.{name}" for name in names if f"{package}.{name}" in _modules())
    return frozenset(found)


def _modules_in(package: str) -> list[str]:
    return [module for module in _modules() if module == package or module.startswith(f"{package}.")]


@cache
def _modules() -> dict[str, Path]:
    """The file of every module of the package, found in one pass: looking for each costs more than the rest."""
    names = {file: file.removesuffix(".py").replace(os.sep, ".") for file in _python_files(_PACKAGE)}
    return {name.removesuffix(".__init__"): _PACKAGE.parent / file for file, name in names.items()}


def _python_files(package: Path) -> list[str]:
    """The Python files in a package, relative to the folder that contains it."""
    above = len(f"{package.parent}{os.sep}")
    found = [f"{folder}{os.sep}{name}" for folder, _, names in os.walk(package) for name in names]
    return sorted(path[above:] for path in found if path.endswith(".py"))


# Finding a version means reading the library's metadata, once for all tables.
library_version = cache(version)


@cache
def _content(module: str) -> str:
    return _sha256(_modules()[module])


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
