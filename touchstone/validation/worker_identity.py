"""What must be the same on every machine that validates: otherwise the same fix could get two verdicts.

These facts are found before the first job, so that a refused worker is refused with a reason. The cache key of every
problem, which covers more, is compared besides; see `cluster_worker`.
"""

import platform
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

from touchstone import __version__
from touchstone.validation.cache_key import validation_code
from touchstone.validation.files.file_identity import packages_identity
from touchstone.validation.registry import ValidatorRegistry


def identity_facts(registry: ValidatorRegistry, validators: Iterable[str]) -> dict[str, str]:
    """What this machine answers by: versions, code, packages, and the version of each validator."""
    packages = Path(sysconfig.get_path("platlib"))
    facts = {
        "Touchstone": __version__,
        "the code of the validators": validation_code(),
        "Python": sys.version.split()[0],
        "the build of Python": sys.version,
        "the processor": platform.machine(),
        "the folder of Python packages": str(packages),
        "the content of that folder": packages_identity(packages),
    }
    return facts | {f"the validator {name}": registry.validator(name).version for name in sorted(set(validators))}


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str | None:
    """The first fact that differs, in words; None if all agree.

    >>> difference({"Python": "3.12.1"}, {"Python": "3.11.7"})
    'Python is 3.11.7 there, 3.12.1 here'
    """
    for name, expected in here.items():
        found = there.get(name, "unknown")
        if found != expected:
            return f"{name} is {_short(found)} there, {_short(expected)} here"
    return None


def _short(value: str) -> str:
    """A value in a sentence: hashes by their first digits."""
    one_line = " ".join(value.split()) or "absent"
    return one_line[:12] if len(one_line) == 64 and one_line.isalnum() else one_line[:80]
