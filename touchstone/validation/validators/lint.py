"""Count the lint warnings of Python files with ruff: many files in one call, inside the sandbox."""

import functools
import importlib.metadata
import json
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from touchstone.validation.protocol import Tree
from touchstone.validation.sandbox.command import TMP, Command, Limits, Sandbox

# Style and logic errors that a reviewer would point out. Formatting rules are left out: they say nothing about a fix.
RULES = "E4,E7,E9,F,B,W6"
# The highest count: this many or more, or what cannot be counted although the code runs.
MOST_WARNINGS = 1000
_LIMITS = Limits(seconds=60.0, memory_bytes=1024 * 2**20, disk_bytes=256 * 2**20, output_bytes=32 * 2**20)

# PEP 263: how a file names its encoding, in its first or second line. The others decode as much as they like to hide.
_COOKIE = re.compile(rb"(?:^|[\r\n])[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")
_COOKIE_LINES = re.compile(rb"[^\n]*\n?[^\n]*")
_UTF_8 = frozenset({b"utf-8", b"utf8", b"ascii", b"us-ascii"})
_ONE_BYTE = {b"latin-1": "latin-1", b"iso-8859-1": "latin-1", b"iso-8859-15": "iso-8859-15", b"cp1252": "cp1252"}


@functools.cache
def _program() -> Path:
    return Path(sysconfig.get_path("scripts")) / "ruff"


@functools.cache
def identity() -> dict[str, str]:
    """Everything that the counts depend on."""
    return {"ruff": importlib.metadata.version("ruff"), "rules": RULES}


def count_warnings(sandbox: Sandbox, texts: Sequence[bytes]) -> list[int | None]:
    """The number of warnings in each file, at most `MOST_WARNINGS`; None if the linter does not work here.

    A file that keeps the linter from counting has the highest count: lint that a fix can make unknown must not score
    like lint without a warning. `noqa` comments are ignored, or a fix could silence its own warnings.
    """
    readable = [_as_utf_8(text) for text in texts]
    counts = iter(_isolated_counts(sandbox, [text for text in readable if text is not None]))
    return [MOST_WARNINGS if text is None else next(counts) for text in readable]


def of_report(count: int | None, compiled: bool | None) -> int | None:
    """The count for a report: None if the code neither compiles nor can be read, since it has no lint to score.

    >>> of_report(3, False), of_report(MOST_WARNINGS, True), of_report(MOST_WARNINGS, False)
    (3, 1000, None)
    """
    return None if count == MOST_WARNINGS and compiled is False else count


def _as_utf_8(text: bytes) -> bytes | None:
    """The file as the interpreter reads it; None if its encoding could hide code from the linter."""
    first_lines = _COOKIE_LINES.match(text)
    cookies = {cookie.lower().replace(b"_", b"-") for cookie in _COOKIE.findall(first_lines[0] if first_lines else b"")}
    if all(cookie in _UTF_8 or cookie.startswith(b"utf-8-") for cookie in cookies):
        return text
    encoding = _ONE_BYTE.get(cookies.pop()) if len(cookies) == 1 else None
    return text.decode(encoding, "replace").encode() if encoding else None


def _isolated_counts(sandbox: Sandbox, texts: Sequence[bytes]) -> Sequence[int | None]:
    """The counts; a file that crashes the linter is found by bisection."""
    if not texts:
        return []
    counts = _count(sandbox, texts)
    if counts is not None:
        return counts
    if len(texts) == 1:
        # Either this file is more than the linter can take, or the linter itself is broken.
        return [MOST_WARNINGS if _count(sandbox, [b""]) == [0] else None]
    middle = len(texts) // 2
    return [*_isolated_counts(sandbox, texts[:middle]), *_isolated_counts(sandbox, texts[middle:])]


def _count(sandbox: Sandbox, texts: Sequence[bytes]) -> Sequence[int | None] | None:
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


def _counts(output: bytes, names: Sequence[str]) -> list[int] | None:
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
    return [MOST_WARNINGS if name in unparsed else min(counts[name], MOST_WARNINGS) for name in names]
