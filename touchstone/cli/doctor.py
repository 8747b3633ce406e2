"""Looks for what Touchstone needs on this machine: Python, packages and optional programs."""

import importlib.metadata
import shutil
import sys
from dataclasses import dataclass

_PACKAGES = ("polars", "duckdb", "pyarrow", "dagster", "dagster-webserver")
_OPTIONAL_PROGRAMS = {
    "bwrap": "sandbox for validation; Debian and Ubuntu: apt-get install bubblewrap",
    "terraform": "full validation of Terraform fixes; installation: terraform.io",
    "cargo": "validation of Rust fixes; Debian and Ubuntu: apt-get install cargo",
}


@dataclass(frozen=True)
class Requirement:
    """One requirement, and whether it is met."""

    name: str
    met: bool
    required: bool
    detail: str


def check_requirements() -> list[Requirement]:
    """Check the interpreter, the packages and the optional programs."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    items = [Requirement("python", sys.version_info >= (3, 11), True, f"{version} (3.11 or later required)")]
    items += [_package(name) for name in _PACKAGES]
    for program, purpose in _OPTIONAL_PROGRAMS.items():
        found = shutil.which(program)
        items.append(Requirement(program, found is not None, False, found or f"not found: {purpose}"))
    return items


def _package(name: str) -> Requirement:
    try:
        return Requirement(name, True, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Requirement(name, False, True, "missing: reinstall Touchstone (in a checkout: make setup)")
