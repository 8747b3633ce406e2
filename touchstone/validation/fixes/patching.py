"""Apply a parsed diff to a tree, as `git apply` does without fuzz: all of it, or nothing.

Context must match exactly. A hunk may have moved; the nearest place where it matches is taken. A hunk that starts at
line 1 must match at the beginning of its file, one without trailing context at the end.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from touchstone.validation.files.working_copy import is_executable
from touchstone.validation.fixes.unified_diff import FilePatch, Hunk, PatchError
from touchstone.validation.protocol import Tree

# Bounds on the work for one patch: bytes of the files that it touches, and lines compared to find moved hunks.
_MAX_FILE_BYTES = 50_000_000
_MAX_COMPARED_LINES = 2_000_000
_MAX_SHOWN = 1_500

Changes = dict[str, bytes | None]
Modes = dict[str, bool]


def apply_patches(tree: Tree, patches: list[FilePatch]) -> tuple[Changes, Modes]:
    """The changed files, by path; None is a deleted file. Then the files that become executable, or no longer are.

    Raises PatchError if any part does not apply.
    """
    patching = _Patching(tree)
    for patch in patches:
        patching.apply(patch)
    return patching.changes, patching.modes


@dataclass
class _Patching:
    """A tree while patches are applied to it."""

    tree: Tree
    changes: Changes = field(default_factory=dict)
    modes: Modes = field(default_factory=dict)
    bytes_left: int = _MAX_FILE_BYTES
    lines_left: int = _MAX_COMPARED_LINES
    start_taken: bool = False
    end_taken: bool = False

    def __post_init__(self) -> None:
        self._files = frozenset(self.tree.files)

    def apply(self, patch: FilePatch) -> None:
        source, target = self._names(patch)
        old = b"" if source is None else self._content(source)
        if target is not None and target != source and self._exists(target):
            raise PatchError(f"creates {target}, which is already there")
        new = self._with_hunks(old, patch.hunks, source or target or "")
        if target is None:
            if new:
                raise PatchError(f"deletes {source}, but not all of its lines")
        else:
            self.changes[target] = new
            mode = self._mode(source, target) if patch.executable is None else patch.executable
            if mode is not None:
                self.modes[target] = mode
        if source is not None and source != target:
            self.changes[source] = None

    def _mode(self, source: str | None, target: str) -> bool | None:
        """Whether a renamed file is executable: if it was before. None: the tree knows."""
        if source is None or source == target:
            return None
        return self.modes[source] if source in self.modes else is_executable(self.tree, source)

    def _names(self, patch: FilePatch) -> tuple[str | None, str | None]:
        """Old and new name. A patch of a missing file that only adds lines creates it, like one from /dev/null."""
        creates = len(patch.hunks) == 1 and not patch.hunks[0].before
        if patch.old is not None and patch.old == patch.new and creates and not self._exists(patch.old):
            return None, patch.new
        return patch.old, patch.new

    def _exists(self, path: str) -> bool:
        return self.changes[path] is not None if path in self.changes else path in self._files

    def _content(self, path: str) -> bytes:
        if not self._exists(path):
            raise PatchError(f"changes {path}, which is not there")
        changed = self.changes.get(path)
        content = self.tree.read(path) if changed is None else changed
        self.bytes_left -= len(content)
        if self.bytes_left < 0:
            raise PatchError(f"touches more than {_MAX_FILE_BYTES:,} bytes of files")
        return content

    def _with_hunks(self, old: bytes, hunks: tuple[Hunk, ...], path: str) -> bytes:
        if not hunks:
            return old
        lines = _split(old)
        self._spend(len(lines))
        places: dict[bytes, list[int]] = {}
        for number, line in enumerate(lines):
            places.setdefault(line, []).append(number)
        taken = bytearray(len(lines))
        self.start_taken = self.end_taken = False
        found = []
        for number, hunk in enumerate(hunks, start=1):
            start = self._find(lines, places, taken, hunk)
            if start is None:
                raise PatchError(f"does not apply: {path}: hunk {number} does not match\n{hunk.text}"[:_MAX_SHOWN])
            end = start + len(hunk.before)
            taken[start:end] = b"\1" * (end - start)
            self.start_taken |= start == 0 and bool(hunk.after)
            self.end_taken |= end == len(lines) and bool(hunk.after)
            found.append((start, end, hunk.after))
        return b"".join(_replaced(lines, found))

    def _find(self, lines: list[bytes], places: Mapping[bytes, list[int]], taken: bytearray, hunk: Hunk) -> int | None:
        """Where a hunk matches, nearest to where it should; None if nowhere. A line is changed by one hunk only."""
        before, count = list(hunk.before), len(hunk.before)
        expected = max(hunk.old_start - 1, 0) if count else hunk.old_start
        at_start, at_end = hunk.old_start <= 1, hunk.trailing == 0
        if at_start or at_end or not count:
            only = 0 if at_start else len(lines) - count
            fits = only >= 0 and (not at_end or only + count == len(lines))
            # What an earlier hunk put at the beginning or the end is no longer this file's own.
            fits &= not (count and ((at_start and self.start_taken) or (at_end and self.end_taken)))
            candidates = iter([only] if fits else [])
        else:
            candidates = _outward(places.get(before[0], ()), expected)
        return next((place for place in candidates if self._matches(lines, taken, before, place)), None)

    def _matches(self, lines: list[bytes], taken: bytearray, before: list[bytes], place: int) -> bool:
        self._spend(len(before))
        end = place + len(before)
        return lines[place:end] == before and taken.find(1, place, end) < 0

    def _spend(self, lines: int) -> None:
        self.lines_left -= lines
        if self.lines_left < 0:
            raise PatchError(f"needs more than {_MAX_COMPARED_LINES:,} comparisons of lines")


def _outward(places: Sequence[int], expected: int) -> Iterator[int]:
    """Ascending places, the nearest first; of two as near, the later one.

    >>> list(_outward([1, 4, 6, 9], 5))
    [6, 4, 9, 1]
    """
    after = bisect_left(places, expected)
    before = after - 1
    while before >= 0 or after < len(places):
        if before < 0 or (after < len(places) and places[after] - expected <= expected - places[before]):
            yield places[after]
            after += 1
        else:
            yield places[before]
            before -= 1


def _split(content: bytes) -> list[bytes]:
    """Lines that end at a newline, and at nothing else."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    last = lines.pop().removesuffix(b"\n")
    return [*lines, last] if last else lines


def _replaced(lines: list[bytes], found: list[tuple[int, int, tuple[bytes, ...]]]) -> list[bytes]:
    """The lines with the found ranges replaced."""
    out: list[bytes] = []
    at = 0
    for start, end, after in sorted(found, key=lambda one: one[:2]):
        out += lines[at:start]
        out += after
        at = end
    return out + lines[at:]
