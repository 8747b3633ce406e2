"""Differences between two versions of a file, line by line, in bounded time whatever a fix contains."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import Match, SequenceMatcher
from io import BytesIO

# difflib compares every pair of equal lines: without a limit, a fix that repeats one line would take minutes.
_MAX_EQUAL_PAIRS = 200_000
_MAX_STEPS = 3_000_000

_CONTEXT_LINES = 3
Opcode = tuple[str, int, int, int, int]


def diff_lines(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    r"""The lines of a unified diff of one file, without newlines; None is a file that does not exist.

    >>> list(diff_lines("a.py", b"x = 1\ny = 2\n", b"x = 1\ny = 3"))  # doctest: +NORMALIZE_WHITESPACE
    ['--- a/a.py', '+++ b/a.py', '@@ -1,2 +1,2 @@', ' x = 1', '-y = 2', '+y = 3', '\\ No newline at end of file']
    """
    before, after = (BytesIO(content).readlines() for content in (old or b"", new or b""))
    hunks = _hunks(before, after)
    if hunks:
        yield "--- /dev/null" if old is None else f"--- a/{path}"
        yield "+++ /dev/null" if new is None else f"+++ b/{path}"
    for hunk in hunks:
        (_, old_start, _, new_start, _), (_, _, old_stop, _, new_stop) = hunk[0], hunk[-1]
        yield f"@@ -{_range(old_start, old_stop)} +{_range(new_start, new_stop)} @@"
        for tag, *places in hunk:
            yield from _hunk_lines(tag, before[places[0] : places[1]], after[places[2] : places[3]])


def _hunks(before: Sequence[bytes], after: Sequence[bytes]) -> list[list[Opcode]]:
    matcher: SequenceMatcher[bytes] = SequenceMatcher(None, [], [])
    # difflib groups any opcodes, also those that another matcher found.
    matcher.opcodes = _merged(opcodes(before, after))  # type: ignore[attr-defined]
    grouped: Iterator[list[Opcode]] = matcher.get_grouped_opcodes(_CONTEXT_LINES)  # type: ignore[assignment]
    return [hunk for hunk in grouped if any(tag != "equal" for tag, *_ in hunk)]


def _merged(found: Iterator[Opcode]) -> list[Opcode]:
    """The opcodes without empty ones, and equal ones that follow each other as one."""
    merged: list[Opcode] = []
    for tag, old_start, old_stop, new_start, new_stop in found:
        if old_start == old_stop and new_start == new_stop:
            continue
        if merged and tag == "equal" == merged[-1][0]:
            _, old_start, _, new_start, _ = merged.pop()
        merged.append((tag, old_start, old_stop, new_start, new_stop))
    return merged


def _hunk_lines(tag: str, removed: Sequence[bytes], added: Sequence[bytes]) -> Iterator[str]:
    for sign, lines in ((" ", removed),) if tag == "equal" else (("-", removed), ("+", added)):
        for line in lines:
            yield sign + line.removesuffix(b"\n").decode("utf-8", "replace")
            if not line.endswith(b"\n"):
                yield "\\ No newline at end of file"


def _range(start: int, stop: int) -> str:
    """A range of lines as a hunk's header has it; an empty one stands after the line before it."""
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + (length > 0)},{length}"


def opcodes(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[Opcode]:
    """difflib's opcodes, computed after stripping the common prefix and suffix."""
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    yield "equal", 0, head, 0, head
    for tag, old_begin, old_stop, new_begin, new_stop in _middle_opcodes(old_middle, new_middle):
        yield tag, head + old_begin, head + old_stop, head + new_begin, head + new_stop
    yield "equal", len(old) - tail, len(old), len(new) - tail, len(new)


def _middle_opcodes(old: Sequence[bytes], new: Sequence[bytes]) -> Sequence[Opcode]:
    for autojunk in (False, True):
        with suppress(_TooMuchWorkError):
            return _BoundedMatcher(old, new, autojunk=autojunk).get_opcodes()
    return [("replace", 0, len(old), 0, len(new))]


class _TooMuchWorkError(Exception):
    """The comparison takes longer than it is worth."""


class _BoundedMatcher(SequenceMatcher[bytes]):
    """Compares lines, and gives up on too many equal ones, or after `_MAX_STEPS`: interleaved lines would take
    quadratic time."""

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes], *, autojunk: bool) -> None:
        # Like difflib, `autojunk` skips lines that make up over 1% of a long file.
        most = len(new) // 100 + 1 if autojunk and len(new) >= 200 else len(new)
        counts = {line: count for line, count in Counter(new).items() if count <= most}
        pairs = [counts.get(line, 0) for line in old]
        if sum(pairs) > _MAX_EQUAL_PAIRS:
            raise _TooMuchWorkError
        super().__init__(None, old, new, autojunk=autojunk)
        self._steps_left = _MAX_STEPS
        self._steps_before = list(itertools.accumulate((1 + count for count in pairs), initial=0))

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        """difflib's own; it looks at every pair of equal lines in the range."""
        self._steps_left -= self._steps_before[-1 if ahi is None else ahi] - self._steps_before[alo]
        if self._steps_left < 0:
            raise _TooMuchWorkError
        return super().find_longest_match(alo, ahi, blo, bhi)
