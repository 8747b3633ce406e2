"""Parse patches as OpenAI's models write them for the tool `apply_patch` of Codex.

`*** Begin Patch`, then files (`*** Add File: path`, `*** Delete File: path`, `*** Update File: path`, which may be
followed by `*** Move to: path`), then `*** End Patch`. A hunk starts with `@@`, perhaps with a line that stands before
it, and has no line numbers: its lines must occur exactly once, or follow that line.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from touchstone.validation.fixes.unified_diff import FilePatch, Hunk, PatchError, relative

_BEGIN, _END, _END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_FILE = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
_MOVE = "*** Move to: "


def is_codex_patch(text: str) -> bool:
    """Whether a line begins such a patch."""
    return any(line.rstrip() == _BEGIN for line in text.split("\n"))


def parse_codex_patch(text: str) -> list[FilePatch]:
    r"""The patches in a text, in order; text around them is skipped.

    >>> (patch,) = parse_codex_patch("*** Begin Patch\n*** Update File: x.py\n@@ def f():\n-a\n+b\n*** End Patch\n")
    >>> patch.new, patch.hunks[0].before, patch.hunks[0].after, patch.hunks[0].anchors
    ('x.py', (b'a\n',), (b'b\n',), (b'def f():',))
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    patches: list[FilePatch] = []
    begin: int | None = None
    for number, line in enumerate(lines):
        if line.rstrip() == _BEGIN and begin is None:
            begin = number + 1
        elif line.rstrip() == _END and begin is not None:
            patches += _patches(lines[begin:number], begin + 1)
            begin = None
    if begin is not None:
        raise PatchError(f"has no line '{_END}'")
    if not patches:
        raise PatchError("has no file in it")
    return patches


def _patches(lines: Sequence[str], first: int) -> list[FilePatch]:
    starts = [number for number, line in enumerate(lines) if _FILE.fullmatch(line)]
    if any(line.strip() for line in lines[: starts[0] if starts else None]):
        raise PatchError(f"has something else than a file in line {first}")
    return [_patch(lines[start:end], first + start) for start, end in pairwise([*starts, len(lines)])]


def _patch(lines: Sequence[str], first: int) -> FilePatch:
    header = _FILE.fullmatch(lines[0])
    assert header is not None
    how, path, body = header[1], relative(header[2].strip()), _without_blank_end(lines[1:])
    if how == "Delete":
        if body:
            raise PatchError(f"has lines after the deleted file in line {first}")
        return FilePatch(path, None, None)
    if how == "Add":
        if not all(line.startswith("+") for line in body):
            raise PatchError(f"has a new file in line {first} with a line that does not start with '+'")
        content = tuple(_encoded(line[1:]) for line in body)
        return FilePatch(None, path, (Hunk(lines[0], 0, (), content),) if content else ())
    target = path
    if body and body[0].startswith(_MOVE):
        target = relative(body[0].removeprefix(_MOVE).strip())
        body = body[1:]
    hunks = tuple(_hunks(body))
    if not hunks and target == path:
        raise PatchError(f"has no hunk for {path}")
    return FilePatch(path, target, hunks)


def _hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    starts = [number for number, line in enumerate(lines) if line.startswith("@@")]
    anchors: list[bytes] = []
    for start, end in pairwise([*([-1] if lines and starts[:1] != [0] else []), *starts, len(lines)]):
        header = lines[start] if start >= 0 else "@@"
        named = header.removeprefix("@@").removesuffix("@@").strip()
        if named and not named.startswith(("-", "...")):
            anchors.append(named.encode())
        body = _without_blank_end(lines[start + 1 : end])
        if body:  # else the next line names a line within this one
            yield _hunk(header, tuple(anchors), body)
            anchors.clear()


def _hunk(header: str, anchors: tuple[bytes, ...], lines: Sequence[str]) -> Hunk:
    ends_file = lines[-1].rstrip() == _END_OF_FILE
    body = lines[:-1] if ends_file else lines
    if wrong := next((line for line in body if line[:1] not in ("", " ", "-", "+")), None):
        raise PatchError(f"has a line in a hunk that starts with neither ' ', '+' nor '-': {wrong[:200]}")
    before, after = (tuple(_encoded(line[1:]) for line in body if line[:1] != other) for other in ("+", "-"))
    return Hunk(header, None, before, after, anchors=anchors, ends_file=ends_file, adds_newline=True)


def _without_blank_end(lines: Sequence[str]) -> Sequence[str]:
    end = next((number for number in range(len(lines), 0, -1) if lines[number - 1]), 0)
    return lines[:end]


def _encoded(line: str) -> bytes:
    return f"{line}\n".encode()
