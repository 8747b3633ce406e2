"""What this machine has of what Touchstone needs."""

import importlib.metadata
import shutil
import sys
from dataclasses import dataclass

_PACKAGES = ("polars", "duckdb", "pyarrow", "dagster", "dagster-webserver", "dataframely")
_OPTIONAL_PROGRAMS = {
    "bwrap": "sandbox for validation; Debian and Ubuntu: apt-get install bubblewrap",
    "terraform": "full validation of Terraform fixes; see terraform.io for how to install it",
    "cargo": "validation of Rust fixes; Debian and Ubuntu: apt-get install cargo",
}


@dataclass(frozen=True)
class Item:
    """One thing that was looked for."""

    name: str
    good: bool
    needed: bool
    detail: str


def examine() -> list[Item]:
    """Look for the interpreter, the packages and the optional programs."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    items = [Item("python", sys.version_info >= (3, 11), True, f"{version} (3.11 or later is needed)")]
    items += [_package(name) for name in _PACKAGES]
    for program, purpose in _OPTIONAL_PROGRAMS.items():
        found = shutil.which(program)
        items.append(Item(program, found is not None, False, found or f"not found: {purpose}"))
    return items


def _package(name: str) -> Item:
    try:
        return Item(name, True, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Item(name, False, True, "missing: run `make setup`")
