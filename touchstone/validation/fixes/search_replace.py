"""Search/replace blocks, as coding agents write them: a file name, a line `<<<<<<< SEARCH`, the lines to find, a line
`=======`, the lines that replace them, and a line that says REPLACE after seven `>`.

The searched lines must occur exactly once in the file. An empty search creates the file, or fills an empty one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from touchstone.validation.fixes.patching import Changes
from touchstone.validation.fixes.unified_diff import PatchError
from touchstone.validation.protocol import Tree

_SEARCH, _DIVIDER, _REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
_MAX_SHOWN = 1_500
_MAX_FILE_BYTES = 50_000_000


@dataclass(frozen=True)
class Edit:
    """One block: the lines to find in a file, and the lines that replace them."""

    path: str
    search: bytes
    replacement: bytes


def apply_edits(tree: Tree, text: str) -> Changes:
    """The files that the blocks change. Raises PatchError if one of them does not match."""
    changes: Changes = {}
    bytes_left, files = _MAX_FILE_BYTES, frozenset(tree.files)
    for edit in parse_edits(text):
        there = edit.path in changes or edit.path in files
        content = (changes.get(edit.path) or b"") if edit.path in changes else tree.read(edit.path) if there else b""
        bytes_left -= len(content) + len(edit.search)
        if bytes_left < 0:
            raise PatchError(f"touches more than {_MAX_FILE_BYTES:,} bytes of files")
        changes[edit.path] = _edited(content, edit, there=there)
    return changes


def _edited(content: bytes, edit: Edit, *, there: bool) -> bytes:
    if not edit.search:
        if content:
            raise PatchError(f"does not apply: {edit.path}: an empty search needs an empty or new file")
        return edit.replacement
    if not there:
        raise PatchError(f"changes {edit.path}, which is not there")
    # With a newline on both sides, only whole lines match.
    padded = b"\n" + content + (b"" if content.endswith(b"\n") else b"\n")
    wanted = b"\n" + edit.search
    first = padded.find(wanted)
    shown = edit.search.decode()
    if first < 0:
        raise PatchError(f"does not apply: {edit.path}: these lines are not there\n{shown}"[:_MAX_SHOWN])
    if padded.find(wanted, first + 1) >= 0:
        raise PatchError(f"does not apply: {edit.path}: these lines are there twice\n{shown}"[:_MAX_SHOWN])
    return padded[1 : first + 1] + edit.replacement + padded[first + len(wanted) :]


def parse_edits(text: str) -> list[Edit]:
    r"""The blocks in a text, in order.

    >>> parse_edits("a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n")
    [Edit(path='a.py', search=b'x = 1\n', replacement=b'x = 2\n')]
    """
    edits = list(_blocks([line.rstrip("\r") for line in text.split("\n")]))
    if not edits:
        raise PatchError("has no search/replace block in it")
    return edits


def _blocks(lines: Sequence[str]) -> Iterator[Edit]:
    path, start, divider = "", None, None
    for number, line in enumerate(lines):
        mark = line.rstrip()
        if start is None:
            if mark == _SEARCH:
                start = number
                if not path:
                    raise PatchError(f"names no file before the block in line {number + 1}")
            elif mark and not mark.startswith("```"):
                path = mark.strip(" `*#:")  # the last line before a block is its file
        elif mark == _DIVIDER and divider is None:
            divider = number
        elif mark == _REPLACE and divider is not None:
            yield Edit(path, _joined(lines[start + 1 : divider]), _joined(lines[divider + 1 : number]))
            start = divider = None
    if start is not None:
        raise PatchError(f"has a block without an end, in line {start + 1}")


def _joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
