"""Count the lint warnings of Python files with ruff: many files in one call, inside the sandbox."""

import functools
import importlib.metadata
import json
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from touchstone.validation.protocol import Tree
from touchstone.validation.sandbox.command import TMP, Command, Limits, Sandbox

# Style and logic errors that a reviewer would point out. Formatting rules are left out: they say nothing about a fix.
RULES = "E4,E7,E9,F,B,W6"
_LIMITS = Limits(seconds=60.0, memory_bytes=1024 * 2**20, disk_bytes=256 * 2**20, output_bytes=32 * 2**20)


@functools.cache
def _program() -> Path:
    return Path(sysconfig.get_path("scripts")) / "ruff"


@functools.cache
def identity() -> dict[str, str]:
    """Everything that the counts depend on."""
    return {"ruff": importlib.metadata.version("ruff"), "rules": RULES}


def count_warnings(sandbox: Sandbox, texts: Sequence[bytes]) -> list[int | None]:
    """The number of warnings in each file; None if it could not be counted.

    A file that does not parse has no count: a syntax error is not a lint warning. `noqa` comments are ignored, or a fix
    could silence its own warnings. A file that crashes the linter is isolated by bisection.
    """
    if not texts:
        return []
    counts = _count(sandbox, texts)
    if counts is not None:
        return counts
    if len(texts) == 1:
        return [None]
    middle = len(texts) // 2
    return count_warnings(sandbox, texts[:middle]) + count_warnings(sandbox, texts[middle:])


def _count(sandbox: Sandbox, texts: Sequence[bytes]) -> list[int | None] | None:
    names = [f"{place}.py" for place in range(len(texts))]
    tree = Tree(Path("/"), tuple(names), dict(zip(names, texts, strict=True)))
    options = ["--isolated", "--no-cache", "--ignore-noqa", "--output-format=json", f"--select={RULES}"]
    command = Command(
        [str(_program()), "check", *options, "."],
        tree,
        readable=[_program()],
        environment={"HOME": TMP, "PATH": "/usr/bin:/bin", "RAYON_NUM_THREADS": "1"},
    )
    result = sandbox.run(command, _LIMITS)
    if result.status == "sandbox_error":
        # Nothing can run here, so fewer files would not help.
        return [None] * len(texts)
    if result.status != "exited" or result.exit_code not in (0, 1):
        return None
    return _counts(result.stdout, names)


def _counts(output: bytes, names: Sequence[str]) -> list[int | None] | None:
    try:
        found: list[dict[str, Any]] = json.loads(output)
    except ValueError:
        return None
    counts = dict.fromkeys(names, 0)
    unparsed = set()
    for warning in found:
        name = Path(warning["filename"]).name
        if warning["code"] in (None, "invalid-syntax", "E902", "E999"):
            unparsed.add(name)
        counts[name] += 1
    return [None if name in unparsed else counts[name] for name in names]
