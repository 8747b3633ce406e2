"""The cache key of a report: a hash of everything that can change it.

Fields of `Problem` and of the settings are part of the key unless they are listed here with the reason why no report
depends on them, so that a new field cannot be forgotten. What a validator reads from the machine (programs, packages,
mirrors) is its `identity`.
"""

import dataclasses
import functools
import hashlib
import json
import platform
import sys
from pathlib import Path
from typing import Any, get_args

from touchstone.config.validation import ValidationSettings, ValidatorName
from touchstone.validation.protocol import Problem, Validator
from touchstone.validation.sandbox.command import Limits

# Field by field, the reason why no report depends on it.
PROBLEM_FIELDS_LEFT_OUT = {
    "oid": "names the problem in the outcomes; no validator sees it",
    "root": "the tree is hashed by relative path and content, wherever it is",
    **dict.fromkeys(
        ("line_start", "line_end", "block_start", "block_end"),
        "read by the verdict and when a fix is applied, never by a validator",
    ),
    **dict.fromkeys(("severity", "summary"), "read by the verdict, never by a validator"),
    **dict.fromkeys(("reference_fix", "reference_patch"), "a tree of its own, hashed like that of any fix"),
    **dict.fromkeys(
        ("shared_files", "judge_patterns", "source_patterns"), "read when a fix is applied, never by a validator"
    ),
}
SETTINGS_LEFT_OUT = {
    "mode": "decides which attempts are validated",
    **dict.fromkeys(("apply", "test_edits"), "decides what the tree becomes, and the tree is hashed"),
    **dict.fromkeys(("success", "exclude_flaky"), "read by the verdict, never by a validator"),
    **dict.fromkeys(("repeat", "repeat_fixes"), "says how many reports are made again"),
    "mutants": "each is a tree of its own, hashed like that of any fix",
    "validators": "the validator that they choose is part of the key",
    **dict.fromkeys(("sandbox", "unsandboxed"), "the backend that it chooses is part of the key"),
    "workers": "says how many processes share the work",
    "cache_dir": "says where reports are kept",
    "environments_dir": "the environment that a problem uses is part of the validator's identity",
    "kept_characters": "says what is kept of a validation for people to look at",
    "limits": "the limits that follow from them are part of the key",
}

# Modules that no report depends on.
_WITHOUT_INFLUENCE = ("cache.py", "recorded.py")


def report_key(tree: str, conditions: str) -> str:
    """The cache key of a report: a hash of the tree hash and the `conditions_key`."""
    return hashlib.sha256(f"{tree} {conditions}".encode()).hexdigest()


def conditions_key(
    problem: Problem, validator: Validator, limits: Limits, sandbox: str, settings: ValidationSettings
) -> str:
    """A hash of everything besides the tree that a report depends on; the same for all fixes of a problem."""
    fields = [field.name for field in dataclasses.fields(problem) if field.name not in PROBLEM_FIELDS_LEFT_OUT]
    return _digest(
        {
            "problem": {name: getattr(problem, name) for name in fields},
            "validator": validator.name,
            "version": validator.version,
            "identity": validator.identity(problem),
            "settings": _settings_of(validator.name, settings),
            "limits": dataclasses.asdict(limits),
            "sandbox": sandbox,
            "machine": platform.machine(),
            "python": sys.version,
            "code": validation_code(),
        }
    )


def _settings_of(validator: str, settings: ValidationSettings) -> dict[str, Any]:
    """The settings that a validator may depend on: all but those left out and the sections of other validators."""
    others = {name for name in get_args(ValidatorName) if name != validator}
    return settings.model_dump(mode="json", exclude=others | SETTINGS_LEFT_OUT.keys())


@functools.cache
def validation_code() -> str:
    """A hash of the source code of this package."""
    here = Path(__file__).parent
    files = sorted(path for path in here.rglob("*.py") if path.name not in _WITHOUT_INFLUENCE)
    return _digest({str(path.relative_to(here)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files})


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
