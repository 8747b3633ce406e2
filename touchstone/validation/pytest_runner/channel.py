"""The channel for results: a descriptor opened before any code of the fix is imported, and a token on every line.

The token is never in the environment, on disk or in a module. Code that writes to every open descriptor therefore
produces lines without it, which the reader counts as tampering.
"""

import json
import os
import random
from collections.abc import Callable
from typing import Any

WriteLine = Callable[..., None]
# In place of the name of a file: the code is in none.
UNKNOWN = "?"
# A descriptor number that a loop over the first few does not hit.
_LOWEST, _HIGHEST = 60, 120


def open_channel(descriptor: int, token: str) -> WriteLine:
    """A function that writes one line; only its closure holds the token. The given descriptor is moved.

    It writes nothing in a process that a test or the fix has forked: how that goes on is no result of the job.
    """
    target = random.SystemRandom().randrange(_LOWEST, _HIGHEST)
    os.dup2(descriptor, target, inheritable=False)
    os.close(descriptor)
    # Bound here, because tests may replace `os.write` or `json.dumps`.
    write, dumps, process = os.write, json.dumps, os.getpid
    own = process()

    def write_line(**line: Any) -> None:
        if process() != own:
            return
        left = memoryview(f"{token}{dumps(line)}\n".encode())
        while left:
            left = left[write(target, left) :]

    return write_line


def read_lines(answer: bytes, token: str) -> tuple[list[dict[str, Any]], bool]:
    """The lines, and whether anything was written without the token, which makes all of them worthless.

    >>> read_lines(b'abc{"done": 0}\\n', "abc"), read_lines(b'abc{"done": 0}\\nforged\\n', "abc")
    (([{'done': 0}], False), ([], True))
    """
    start = token.encode()
    lines, foreign = [], False
    *whole, rest = answer.split(b"\n")
    for line in whole:
        try:
            lines.append(dict(json.loads(line.removeprefix(start))))
        except (ValueError, TypeError, RecursionError):
            foreign = True
        foreign = foreign or not line.startswith(start)
    return lines if not foreign else [], foreign or bool(rest)
