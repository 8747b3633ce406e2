"""Parse a unified diff as `git diff`, `diff -u` and models write it.

Text around the patches (a message, a Markdown fence) is skipped, as `git apply` does. Applying belongs in `patching`.
The diff is untrusted: every line is looked at a fixed number of times.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_MAX_DIGITS = 9
# The prefixes that git puts before the old and the new name.
_OLD_PREFIXES, _NEW_PREFIXES = ("a/", "c/", "i/", "o/"), ("b/", "i/", "w/")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_UNSUPPORTED_MODES = {"120000": "a symbolic link", "160000": "a submodule"}
_OF_OWNER = 0o100


class PatchError(ValueError):
    """A patch that cannot be applied. The message completes the sentence "the patch ..."."""


@dataclass(frozen=True)
class Hunk:
    """One change: the lines before and after it, newlines included, with context. `old_start` counts from 1."""

    header: str
    old_start: int
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    trailing: int

    @property
    def text(self) -> str:
        """The hunk's old lines, for messages."""
        lines = b"".join(self.before).decode("utf-8", "replace")
        return f"{self.header}\n{lines}".rstrip("\n")


@dataclass(frozen=True)
class FilePatch:
    """The changes of one file. `old` is None if the patch creates it, `new` is None if the patch deletes it.

    `executable` is None if the patch says nothing of the file's mode.
    """

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...]
    executable: bool | None = None


def parse_diff(text: str) -> list[FilePatch]:
    r"""The patches in a text, in order.

    >>> (patch,) = parse_diff("--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
    >>> patch.old, patch.new, patch.hunks[0].before, patch.hunks[0].after
    ('x.py', 'x.py', (b'a\n', b'b\n'), (b'a\n', b'c\n'))
    """
    lines = text.encode().split(b"\n")
    if not lines[-1]:
        lines.pop()
    reader = _Reader(lines)
    patches = []
    while reader.line is not None:
        if reader.starts(b"diff --git "):
            patches.append(_git_patch(reader))
        elif reader.starts(b"--- ") and reader.next_starts(b"+++ "):
            patches.append(_plain_patch(reader))
        elif reader.starts(b"@@ -"):
            raise PatchError(f"has a hunk without a file name, in line {reader.number}")
        else:
            reader.skip()
    if not patches:
        raise PatchError("has no unified diff in it")
    return patches


class _Reader:
    """The lines of a diff and the position in them."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines, self._at = lines, 0

    @property
    def line(self) -> bytes | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    @property
    def number(self) -> int:
        return self._at + 1

    def starts(self, prefix: bytes) -> bool:
        return self.line is not None and self.line.startswith(prefix)

    def next_starts(self, prefix: bytes) -> bool:
        return self._at + 1 < len(self._lines) and self._lines[self._at + 1].startswith(prefix)

    def skip(self) -> None:
        self._at += 1

    def take(self) -> bytes:
        line = self.line
        if line is None:
            raise PatchError("ends in the middle of a hunk")
        self._at += 1
        return line


_KEYS = (
    "old mode",
    "new mode",
    "deleted file mode",
    "new file mode",
    "rename from",
    "rename to",
    "copy from",
    "copy to",
    "similarity index",
    "dissimilarity index",
    "index",
)


def _git_patch(reader: _Reader) -> FilePatch:
    """A patch with git's extended header, which may have no hunks: a new empty file, or a renamed one."""
    first = reader.take()
    header: dict[str, str] = {}
    while reader.line is not None:
        line = reader.line.decode("utf-8", "replace").rstrip("\r")
        if line.startswith(("GIT binary patch", "Binary files ")):
            raise PatchError("changes a binary file, which only whole files can do")
        key = next((key for key in _KEYS if line.startswith(f"{key} ")), None)
        if key is None:
            break
        header[key] = line.removeprefix(f"{key} ")
        reader.skip()
    _refuse_unsupported(header)
    executable = _executable(header)
    renamed = "rename from" in header and "rename to" in header
    hunks: tuple[Hunk, ...] = ()
    old: str | None = None
    new: str | None = None
    if reader.starts(b"--- ") and reader.next_starts(b"+++ "):
        plain = _plain_patch(reader)
        old, new, hunks = plain.old, plain.new, plain.hunks
    elif not renamed:
        old = new = _name_in_header(first.decode("utf-8", "replace").rstrip("\r"))
    if renamed:
        old, new = _unquoted(header["rename from"]), _unquoted(header["rename to"])
    creates, deletes = "new file mode" in header, "deleted file mode" in header
    return FilePatch(None if creates else old, None if deletes else new, hunks, executable)


def _refuse_unsupported(header: dict[str, str]) -> None:
    if "copy from" in header:
        raise PatchError("copies a file, which is not supported")
    for key in ("new file mode", "new mode", "old mode", "deleted file mode", "index"):
        if (what := _UNSUPPORTED_MODES.get(header.get(key, "").rpartition(" ")[2])) is not None:
            raise PatchError(f"{'makes' if key.startswith('new') else 'changes'} {what}, which is refused")


def _executable(header: dict[str, str]) -> bool | None:
    """Whether the patch makes its file executable; as in git, the owner's permission decides. None: as it was."""
    mode = header.get("new file mode") or header.get("new mode")
    if mode is None:
        return None
    if not (len(mode) == 6 and mode.startswith("100") and set(mode) <= set("01234567")):
        raise PatchError(f"has the file mode {mode[:20]!r}; only 100644 and 100755 are allowed")
    return bool(int(mode, 8) & _OF_OWNER)


def _plain_patch(reader: _Reader) -> FilePatch:
    """A patch that starts with `---` and `+++`."""
    old, new = _name(reader.take()), _name(reader.take())
    old, new = _without_prefixes(old, new)
    if old is None and new is None:
        raise PatchError("creates and deletes /dev/null")
    hunks = []
    while reader.starts(b"@@ -"):
        hunks.append(_hunk(reader))
    if not hunks:
        raise PatchError(f"has no hunk for {new or old}")
    return FilePatch(old, new, tuple(hunks))


def _name(line: bytes) -> str | None:
    """The file name in a `---` or `+++` line; None for /dev/null."""
    try:
        text = line[4:].decode()
    except UnicodeDecodeError:
        raise PatchError("has a file name that is not UTF-8") from None
    name = _unquoted(text.partition("\t")[0].rstrip(" \r"))
    return None if name == "/dev/null" else name


def _without_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Strip `a/` and `b/`; names without these prefixes stay as they are."""
    prefixed = (old is None or old.startswith(_OLD_PREFIXES)) and (new is None or new.startswith(_NEW_PREFIXES))
    return (old and old[2:], new and new[2:]) if prefixed else (old, new)


def _name_in_header(line: str) -> str:
    """The name in `diff --git a/name b/name`, where both are the same."""
    names = line.removeprefix("diff --git ")
    old, new = names[: len(names) // 2], names[len(names) // 2 + 1 :]
    stripped = _without_prefixes(_unquoted(old), _unquoted(new))
    if stripped[0] is None or stripped[0] != stripped[1]:
        raise PatchError(f"has an unreadable header: {line[:200]}")
    return stripped[0]


def _unquoted(name: str) -> str:
    r"""A name without git's quotes and escapes.

    >>> _unquoted('"b/caf\\303\\251.py"')
    'b/café.py'
    """
    if not (len(name) >= 2 and name[0] == name[-1] == '"'):
        return name
    out, rest = bytearray(), iter(name[1:-1])
    for character in rest:
        if character != "\\":
            out += character.encode()
            continue
        escape = next(rest, "")
        if escape in _ESCAPES:
            out.append(_ESCAPES[escape])
            continue
        octal = escape + next(rest, "") + next(rest, "")
        if len(octal) != 3 or not set(octal) <= set("01234567") or int(octal, 8) > 255:
            raise PatchError(f"has an unreadable file name: {name[:200]}")
        out.append(int(octal, 8))
    try:
        return out.decode()
    except UnicodeDecodeError:
        raise PatchError("has a file name that is not UTF-8") from None


def _hunk(reader: _Reader) -> Hunk:
    header = reader.take().decode("utf-8", "replace").rstrip("\r")
    old_start, old_count, new_count = _ranges(header)
    before: list[bytes] = []
    after: list[bytes] = []
    trailing = 0
    last: tuple[list[bytes], ...] = ()
    while len(before) < old_count or len(after) < new_count or reader.starts(b"\\"):
        line = reader.take()
        sign, content = line[:1], line[1:] + b"\n"
        if sign == b"\\":
            for side in last:  # the line before has no newline
                side[-1] = side[-1].removesuffix(b"\n")
            continue
        if sign not in (b" ", b"-", b"+", b"") and line != b"\r":
            raise PatchError(f"has a hunk whose lines do not fit its header: {header[:200]}")
        last = {b"-": (before,), b"+": (after,)}.get(sign, (before, after))
        for side in last:
            side.append(content if sign in (b" ", b"-", b"+") else line + b"\n")
        trailing = trailing + 1 if len(last) == 2 else 0
    if len(before) != old_count or len(after) != new_count:
        raise PatchError(f"has a hunk whose lines do not fit its header: {header[:200]}")
    return Hunk(header, old_start, tuple(before), tuple(after), trailing)


def _ranges(header: str) -> tuple[int, int, int]:
    """The old start and count, and the new count, in `@@ -1,2 +3,4 @@`."""
    words = header.split(" ", 4)
    if len(words) < 4 or words[0] != "@@" or not words[3].startswith("@@") or words[2][:1] != "+":
        raise PatchError(f"has an unreadable hunk header: {header[:200]}")
    numbers = []
    for word in (words[1][1:], words[2][1:]):
        start, comma, count = word.partition(",")
        for number in (start, count if comma else "1"):
            if not (number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS):
                raise PatchError(f"has an unreadable hunk header: {header[:200]}")
            numbers.append(int(number))
    return numbers[0], numbers[1], numbers[3]
