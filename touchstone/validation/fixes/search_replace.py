"""Search/replace blocks, as coding agents write them: a file name, a line `<<<<<<< SEARCH`, the lines to find, a line
`=======`, the lines that replace them, and a line that says REPLACE after seven `>`.

Five to nine characters make a mark; Cline writes `------- SEARCH` and `+++++++ REPLACE`. The searched lines must occur
exactly once in the file. An empty search creates the file, or fills an empty one.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from touchstone.validation.fixes.patching import BOM, MAX_FILE_BYTES, MAX_SHOWN, Changes
from touchstone.validation.fixes.unified_diff import PatchError, relative
from touchstone.validation.protocol import Problem, Tree

_SEARCH = re.compile(r"(?:<{5,9}|-{5,9}) SEARCH>?\s*")
_DIVIDER = re.compile(r"={5,9}\s*")
_REPLACE = re.compile(r"(?:>{5,9}|\+{5,9}) REPLACE\s*")
# Roo Code says after the first mark where the lines are; they must be unique all the same.
_LINE_NUMBER = re.compile(r":(?:start|end)_line:\s*\d+\s*")
_RULE = re.compile(r"-{5,9}\s*")
_LABEL = re.compile(r"(?i:file|filename|path):\s*")
_AROUND = " `*#:"
# In a word: it is a path, though of no file that is there, rather than text about the block.
_IN_PATH = re.compile(r"[./\\]\w")
_MAX_READINGS = 10


@dataclass(frozen=True)
class Edit:
    """One block: a file, and the lines to find in it with those that replace them.

    Where several lines could divide the block, each is one reading of it; only one of them may apply.
    """

    path: str
    readings: tuple[tuple[bytes, bytes], ...]


def apply_edits(tree: Tree, edits: Sequence[Edit]) -> Changes:
    """Apply the blocks to a tree. Raises PatchError if one of them does not match."""
    changes = Changes()
    bytes_left, files = MAX_FILE_BYTES, frozenset(tree.files)
    for edit in edits:
        content = changes.files.get(edit.path)
        if content is None and edit.path in files:
            content = tree.read(edit.path)
        bytes_left -= sum(len(content or b"") + len(search) for search, _ in edit.readings)
        if bytes_left < 0:
            raise PatchError(f"touches more than {MAX_FILE_BYTES:,} bytes of files")
        changes.files[edit.path] = _edited(content, edit)
    return changes


def _edited(content: bytes | None, edit: Edit) -> bytes:
    made: list[bytes] = []
    errors: list[PatchError] = []
    for search, replacement in edit.readings:
        try:
            made.append(_replaced(content, search, replacement, edit.path))
        except PatchError as error:
            errors.append(error)
    if not made:
        raise errors[0]
    if len(made) > 1:
        raise PatchError(f"does not apply: {edit.path}: several lines of '=' could divide a block")
    return made[0]


def _replaced(content: bytes | None, search: bytes, replacement: bytes, path: str) -> bytes:
    if not search:
        if content:
            raise PatchError(f"does not apply: {path}: an empty search needs an empty or new file")
        return replacement
    if content is None:
        raise PatchError(f"changes {path}, which is not there")
    shown = search.decode()
    bom = BOM if content.startswith(BOM) and not search.startswith(BOM) else b""
    if b"\n" in content and content.count(b"\n") == content.count(b"\r\n"):
        search, replacement = (lines.replace(b"\n", b"\r\n") for lines in (search, replacement))
    end = b"\r\n" if search.endswith(b"\r\n") else b"\n"
    # With a newline on both sides, only whole lines match.
    padded = b"\n" + content[len(bom) :] + (b"" if content.endswith(b"\n") else end)
    wanted = b"\n" + search
    first = padded.find(wanted)
    if first < 0:
        raise PatchError(f"does not apply: {path}: these lines are not there\n{shown}"[:MAX_SHOWN])
    if padded.find(wanted, first + 1) >= 0:
        raise PatchError(f"does not apply: {path}: these lines are there twice\n{shown}"[:MAX_SHOWN])
    return bom + padded[1 : first + 1] + replacement + padded[first + len(wanted) :]


def parse_edits(text: str, files: Collection[str], problem: Problem) -> list[Edit]:
    r"""The blocks in a text, in order. `files` are the problem's; a block without a name is for the file to repair.

    >>> from pathlib import Path
    >>> problem = Problem("a", "a.py", Path("clones"))
    >>> parse_edits("a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n", ["a.py"], problem)
    [Edit(path='a.py', readings=((b'x = 1\n', b'x = 2\n'),))]
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    known = frozenset(files)
    edits = []
    path, behind = "", 0
    for start, end in _blocks(lines):
        path = _name(lines[behind:start], known, problem) or path or (problem.path if problem.filename else "")
        if not path:
            raise PatchError(f"names no file before the block in line {start + 1}")
        edits.append(Edit(path, _readings(lines, start, end)))
        behind = end + 1
    return edits


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The numbers of the first and the last line of each block."""
    start = None
    for number, line in enumerate(lines):
        if _SEARCH.fullmatch(line):
            if start is not None:
                raise PatchError(f"has a block within the block in line {start + 1}, in line {number + 1}")
            start = number
        elif _REPLACE.fullmatch(line):
            if start is None:
                raise PatchError(f"has the end of a block without its beginning, in line {number + 1}")
            yield start, number
            start = None
    if start is not None:
        raise PatchError(f"has a block without an end, in line {start + 1}")


def _readings(lines: Sequence[str], start: int, end: int) -> tuple[tuple[bytes, bytes], ...]:
    width = len(lines[start].split(" ", 1)[0])
    dividers = [number for number in range(start + 1, end) if _DIVIDER.fullmatch(lines[number])]
    dividers = [number for number in dividers if len(lines[number].rstrip()) == width] or dividers
    if not dividers:
        raise PatchError(f"has a block without a line of '=', in line {start + 1}")
    if len(dividers) > _MAX_READINGS:
        raise PatchError(f"has {len(dividers)} lines that could divide the block in line {start + 1}")
    first = start + 1
    while _LINE_NUMBER.fullmatch(lines[first]):
        first += 1
    if first > start + 1 and _RULE.fullmatch(lines[first]):
        first += 1
    return tuple((_joined(lines[first:number]), _joined(lines[number + 1 : end])) for number in dividers)


def _name(lines: Sequence[str], files: frozenset[str], problem: Problem) -> str:
    """The file that the last line before a block names; empty if the line is about something else."""
    for line in reversed(lines):
        bare = line.strip()
        if bare.startswith("```"):
            name = relative(bare.strip("`").rpartition(" ")[2])
            if name in files:
                return name
        elif bare:
            return _name_in_line(_LABEL.sub("", bare.strip(_AROUND)).strip(_AROUND), files, problem)
    return ""


def _name_in_line(text: str, files: frozenset[str], problem: Problem) -> str:
    name, words = relative(text), text.split()
    if name in files:
        return name
    if len(words) == 1 and _IN_PATH.search(name):
        return problem.path if name == problem.filename else name
    named = {relative(word.strip(_AROUND + "'\"(),;")) for word in words}
    if other := (named & files).difference([problem.path]):
        raise PatchError(f"names {min(other)} before a block, but not on a line of its own")
    return ""


def _joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
