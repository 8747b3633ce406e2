"""Apply a parsed diff to a tree, as `git apply` does without fuzz: all of it, or nothing.

Context must match exactly. A hunk may have moved; the nearest place where it matches is taken. A hunk that starts at
line 1 must match at the beginning of its file, one without trailing context at the end. A hunk that does not say where
it belongs must match exactly once. Where only the line ends differ, the file's are kept, and so is its BOM.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from io import BytesIO
from itertools import islice

from touchstone.validation.files.working_copy import is_executable
from touchstone.validation.fixes.unified_diff import FilePatch, Hunk, PatchError
from touchstone.validation.protocol import Tree

# Bounds on the work for one patch: bytes of the files that it touches, and lines compared to find moved hunks.
MAX_FILE_BYTES = 50_000_000
_MAX_COMPARED_LINES = 2_000_000
MAX_SHOWN = 1_500  # characters of a hunk or a block in a message
BOM = "\ufeff".encode()
Files = dict[str, bytes | None]
Places = Mapping[bytes, Sequence[int]]


class _NoMatchError(PatchError):
    """A hunk whose lines are not there, or are there several times."""


@dataclass
class Changes:
    """The effect of a fix: the changed files by path (None is a deleted one), and which of them are executable.

    `notes` are for people: deviations that were accepted.
    """

    files: Files = field(default_factory=dict)
    modes: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def apply_patches(tree: Tree, patches: Sequence[FilePatch]) -> Changes:
    """Apply patches to a tree. Raises PatchError if any part does not apply."""
    patching = _Patching(tree, frozenset(patch.old for patch in patches if patch.old != patch.new and not patch.copies))
    for patch in patches:
        patching.apply(patch)
    return patching.changes


@dataclass
class _Patching:
    """A tree while patches are applied to it. `leaving`: the files that they delete or rename."""

    tree: Tree
    leaving: frozenset[str | None]
    changes: Changes = field(default_factory=Changes)
    bytes_left: int = MAX_FILE_BYTES
    lines_left: int = _MAX_COMPARED_LINES
    start_taken: bool = False
    end_taken: bool = False

    def __post_init__(self) -> None:
        self._files = frozenset(self.tree.files)

    def apply(self, patch: FilePatch) -> None:
        source, target = self._names(patch)
        if target is None:
            self._delete(source or "", patch)
            return
        moves = source is not None and source != target
        stays = target in self.changes.files or target not in self.leaving
        if (moves or source is None) and stays and self._exists(target):
            raise PatchError(f"creates {target}, which is already there")
        old = b"" if source is None else self._content(source, original=moves)
        self.changes.files[target] = self._with_hunks(old, patch.hunks or (), source or target)
        if patch.executable is not None:
            self.changes.modes[target] = patch.executable
        elif moves and source is not None:
            self.changes.modes[target] = is_executable(self.tree, source)
        if moves and source is not None and not patch.copies:
            self.changes.files.setdefault(source, None)  # another patch may have put a file there

    def _delete(self, path: str, patch: FilePatch) -> None:
        if path not in self._files and path not in self.changes.files:
            self.changes.notes.append(f"the fix deletes {path}, which is not there")
            return
        if self.changes.files.get(path) is not None:
            raise PatchError(f"changes {path} and deletes it")
        content = self._content(path)
        if patch.hunks is not None and self._with_hunks(content, patch.hunks, path):
            raise PatchError(f"deletes {path}, but not all of its lines")
        self.changes.files[path] = None

    def _names(self, patch: FilePatch) -> tuple[str | None, str | None]:
        """Old and new name. A patch of a missing file that only adds lines creates it, like one from /dev/null."""
        if patch.old is None or self._exists(patch.old):
            return patch.old, patch.new
        if patch.bare and self._exists(shorter := patch.old.partition("/")[2]):
            return shorter, patch.new and shorter
        creates = patch.old == patch.new and patch.hunks and len(patch.hunks) == 1 and not patch.hunks[0].before
        return (None, patch.new) if creates else (patch.old, patch.new)

    def _exists(self, path: str) -> bool:
        files = self.changes.files
        return files[path] is not None if path in files else path in self._files

    def _content(self, path: str, *, original: bool = False) -> bytes:
        """The content of a file so far, or as it was: git renames and copies files as they are before any change."""
        if not (path in self._files if original else self._exists(path)):
            raise PatchError(f"changes {path}, which is not there")
        changed = None if original else self.changes.files.get(path)
        content = self.tree.read(path) if changed is None else changed
        self.bytes_left -= len(content)
        if self.bytes_left < 0:
            raise PatchError(f"touches more than {MAX_FILE_BYTES:,} bytes of files")
        return content

    def _with_hunks(self, old: bytes, hunks: Sequence[Hunk], path: str) -> bytes:
        if not hunks:
            return old
        named = any(line.startswith(BOM) for hunk in hunks for line in hunk.before[:1])
        bom = BOM if old.startswith(BOM) and not named else b""
        lines = BytesIO(old[len(bom) :]).readlines()
        try:
            new = self._replaced(lines, hunks, path)
        except _NoMatchError:
            adapted = _adapted(lines, hunks)
            if adapted is None:
                raise
            new = self._replaced(*adapted, path)
        if any(hunk.old_start is None and hunk.header.startswith("@@ -") for hunk in hunks):
            self.changes.notes.append(f"{path}: a hunk has other lines than its header counts")
        return bom + new

    def _replaced(self, lines: list[bytes], hunks: Sequence[Hunk], path: str) -> bytes:
        self._spend(len(lines))
        places: dict[bytes, list[int]] = {}
        for number, line in enumerate(lines):
            places.setdefault(line, []).append(number)
        taken = bytearray(len(lines))
        self.start_taken = self.end_taken = False
        found = []
        for number, hunk in enumerate(hunks, start=1):
            if hunk.counted is not None and list(self._find(lines, places, taken, hunk.counted)):
                raise PatchError(f"has lines behind a hunk that its header does not count: {hunk.header[:200]}")
            find = self._find_unplaced if hunk.old_start is None else self._find
            starts = list(islice(find(lines, places, taken, hunk), 2))
            if len(starts) != 1:
                why = "matches in several places" if starts else "does not match"
                raise _NoMatchError(f"does not apply: {path}: hunk {number} {why}\n{hunk.text}"[:MAX_SHOWN])
            start, end = starts[0], starts[0] + len(hunk.before)
            taken[start:end] = b"\1" * (end - start)
            self.start_taken |= start == 0 and bool(hunk.after)
            self.end_taken |= end == len(lines) and bool(hunk.after)
            found.append((start, end, hunk.after))
        new, at = list[bytes](), 0
        for start, end, after in sorted(found, key=lambda one: one[:2]):
            new += [*lines[at:start], *after]
            at = end
        return b"".join([*new, *lines[at:]])

    def _find(self, lines: list[bytes], places: Places, taken: bytearray, hunk: Hunk) -> Iterator[int]:
        """The match of a hunk that is nearest to its line number, if any. A line is changed by one hunk only."""
        before, count, old_start = list(hunk.before), len(hunk.before), hunk.old_start or 0
        at_start, at_end = old_start <= 1, hunk.trailing == 0
        if not count and 0 < old_start < len(lines):
            raise PatchError(f"has a hunk without context that is not at the end of its file: {hunk.header[:200]}")
        if at_start or at_end:
            only = 0 if at_start else len(lines) - count
            fits = only >= 0 and (not at_end or only + count == len(lines))
            # Lines that an earlier hunk put at the beginning or the end are not the original file's.
            fits &= not (count and ((at_start and self.start_taken) or (at_end and self.end_taken)))
            candidates = iter([only] if fits else [])
        else:
            candidates = _outward(places.get(before[0], ()), old_start - 1)
        return islice((place for place in candidates if self._matches(lines, taken, before, place)), 1)

    def _find_unplaced(self, lines: list[bytes], places: Places, taken: bytearray, hunk: Hunk) -> Iterator[int]:
        """The matches of a hunk without a line number; of several, the first after its anchors."""
        before = list(hunk.before)
        if not before and lines:
            raise PatchError(f"has a hunk that does not say where its lines belong: {hunk.header[:200]}")
        if not before:
            return iter([0])
        candidates = [len(lines) - len(before)] if hunk.ends_file else places.get(before[0], ())
        found = [place for place in candidates if place >= 0 and self._matches(lines, taken, before, place)]
        after = self._line_after(lines, hunk.anchors) if hunk.anchors and len(found) > 1 else None
        return iter(found if after is None else [place for place in found if place >= after][:1])

    def _line_after(self, lines: Sequence[bytes], anchors: Sequence[bytes]) -> int | None:
        """The line after the anchors, which follow each other; None unless each is there exactly once."""
        at = 0
        for anchor in anchors:
            self._spend(len(lines) - at)
            found = [number for number in range(at, len(lines)) if lines[number].strip() == anchor.strip()]
            if len(found) != 1:
                return None
            at = found[0] + 1
        return at

    def _matches(self, lines: list[bytes], taken: bytearray, before: list[bytes], place: int) -> bool:
        self._spend(len(before))
        end = place + len(before)
        return lines[place:end] == before and taken.find(1, place, end) < 0

    def _spend(self, lines: int) -> None:
        self.lines_left -= lines
        if self.lines_left < 0:
            raise PatchError(f"needs more than {_MAX_COMPARED_LINES:,} comparisons of lines")


def _adapted(lines: list[bytes], hunks: Sequence[Hunk]) -> tuple[list[bytes], Sequence[Hunk]] | None:
    """Lines and hunks with the same line ends, if they have others throughout; None if that is not what differs."""
    own = {line.endswith(b"\r\n") for line in lines if line.endswith(b"\n")}
    theirs = {line.endswith(b"\r\n") for hunk in hunks for line in (*hunk.before, *hunk.after) if line.endswith(b"\n")}
    if len(own) == len(theirs) == 1 and own != theirs:
        end = b"\r\n" if True in own else b"\n"
        return lines, [
            replace(hunk, before=_with_ends(hunk.before, end), after=_with_ends(hunk.after, end)) for hunk in hunks
        ]
    if lines and not lines[-1].endswith(b"\n") and all(hunk.adds_newline for hunk in hunks):
        return [*lines[:-1], lines[-1] + b"\n"], hunks
    return None


def _with_ends(lines: Sequence[bytes], end: bytes) -> tuple[bytes, ...]:
    bare = [(line.endswith(b"\n"), line.removesuffix(b"\n").removesuffix(b"\r")) for line in lines]
    return tuple(line + end if ended else line for ended, line in bare)


def _outward(places: Sequence[int], expected: int) -> Iterator[int]:
    """Ascending places, the nearest first; of two as near, the later one.

    >>> list(_outward([1, 4, 6, 9], 5))
    [6, 4, 9, 1]
    """
    at = bisect_left(places, expected)
    return merge(places[at:], reversed(places[:at]), key=lambda place: abs(place - expected))
