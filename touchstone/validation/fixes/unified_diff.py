"""Parse a unified diff as `git diff`, `diff -u` and models write it.

Text around the patches (a message, a Markdown fence) is skipped, as `git apply` does. Applying belongs in `patching`.
`git apply` is the reference, but not used: git may be absent, and refuses the miscounted hunks, stripped blanks and
missing line numbers of models' diffs, which still say clearly what to change. The tests compare both.
The diff is untrusted: every line is looked at a fixed number of times.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

_RANGES = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@.*", re.ASCII)
# Separated by a tab or, as `git apply` accepts it, by spaces; also as `diff` writes it in the C locale.
_TIMESTAMP = re.compile(
    r"\t.*|(?<! )[ ]++(?:\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d+)?)?(?:[ ]?[-+]\d\d:?\d\d|Z)?"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})",
    re.ASCII,
)
_EPOCH = re.compile(
    r"\s+(19(?:70-01-01|69-12-31) (?:[01]\d|2[0-3]):[0-5]\d:00)(?:\.0+)? ([-+](?:[01]\d|2[0-3]):?[0-5]\d)", re.ASCII
)
# The prefixes that git puts before the old and the new name; the second pair is that of `git diff -R`.
_PREFIXES = ((("a/", "c/", "i/", "o/"), ("b/", "i/", "w/")), (("b/",), ("a/",)))
_WITHIN_QUOTES = re.compile(r'(?:[^\\]|\\(?:[abtnvfr"\\]|[0-3][0-7]{2}))*+')
_UNSUPPORTED_MODES = {"120000": "a symbolic link", "160000": "a submodule"}
_OF_OWNER = 0o100


class PatchError(ValueError):
    """A patch that cannot be applied. The message completes the sentence "the patch ..."."""


@dataclass(frozen=True)
class Hunk:
    """One change: the lines before and after it, newlines included, with context. `old_start` counts from 1.

    It is None if the header does not say it, or counts other lines than there are: such a hunk must match exactly once,
    or first after the lines `anchors`; if `ends_file`, at the end of the file. `adds_newline`: the file ends with one
    afterwards. `trailing` counts the lines of context after the change. `counted` is the hunk by its header, if it has
    more lines than that: git would apply it without them.
    """

    header: str
    old_start: int | None
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    trailing: int = 0
    anchors: tuple[bytes, ...] = ()
    ends_file: bool = False
    adds_newline: bool = False
    counted: "Hunk | None" = None

    @property
    def text(self) -> str:
        """The hunk's old lines, for messages."""
        lines = b"".join(self.before).decode("utf-8", "replace")
        return f"{self.header}\n{lines}".rstrip("\n")


@dataclass(frozen=True)
class FilePatch:
    """The changes of one file. `old` is None if the patch creates it, `new` is None if the patch deletes it.

    `executable` is None if the patch says nothing of the file's mode. `copies`: the old file stays. `hunks` is None if
    the file is deleted whatever it contains. `bare`: the names have no `a/` and `b/`, and git would leave out their
    first folder instead.
    """

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...] | None
    executable: bool | None = None
    copies: bool = False
    bare: bool = False


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
    patches: list[FilePatch] = []
    while reader.line is not None:
        if reader.starts(b"diff --git "):
            patches += _git_patch(reader)
        elif reader.starts_file:
            patches.append(_with_one_name(_plain_patch(reader)))
        elif reader.starts(b"@@ -"):
            raise PatchError(f"has a hunk without a file name, in line {reader.number}")
        else:
            reader.take()
    if not patches:
        raise PatchError("has no unified diff in it")
    return patches


def readable_patches(text: str | None) -> list[FilePatch]:
    """The patches in a text; none if there is no text, or it is no diff."""
    try:
        return parse_diff(text or "")
    except PatchError:
        return []


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

    def starts(self, prefix: bytes | tuple[bytes, ...]) -> bool:
        return self.line is not None and self.line.startswith(prefix)

    @property
    def starts_file(self) -> bool:
        """Whether a patch of a file starts here, with `---` and `+++`."""
        following = self._lines[self._at + 1 : self._at + 2]
        return self.starts(b"--- ") and bool(following) and following[0].startswith(b"+++ ")

    @property
    def in_hunk(self) -> bool:
        """Whether the line looks like one of a hunk: it starts with a sign, and does not sign a mail."""
        return self.starts((b" ", b"+", b"-", b"\\")) and self.line not in (b"-- ", b"--") and not self.starts_file

    def go_back_to(self, number: int) -> None:
        self._at = number - 1

    def take(self) -> bytes:
        line = self.line
        assert line is not None
        self._at += 1
        return line


_KEYS = (
    *("old mode", "new mode", "deleted file mode", "new file mode", "rename from", "rename to", "copy from", "copy to"),
    *("similarity index", "dissimilarity index", "index"),
)


def _git_patch(reader: _Reader) -> Iterator[FilePatch]:
    """A patch with git's extended header, if it changes anything; a renamed or empty file has no hunks."""
    title = reader.take().decode("utf-8", "replace").rstrip("\r")
    header = _git_header(reader)
    _refuse_unsupported(header)
    executable = _executable(header)
    how = next((how for how in ("rename", "copy") if f"{how} from" in header and f"{how} to" in header), None)
    if reader.starts(b"--- ") and not reader.starts_file:
        raise PatchError(f"has no second name after {title[:200]}")
    plain = _plain_patch(reader) if reader.starts_file else None
    hunks = plain.hunks if plain else ()
    if how:
        source, target = (relative(_unquoted(header[f"{how} {way}"])) for way in ("from", "to"))
        if plain and (plain.old, plain.new) != (source, target):
            raise PatchError(f"has other names than {source[:200]} and {target[:200]} for a file, before its hunks")
        yield FilePatch(source, target, hunks, executable, copies=how == "copy")
        return
    creates, deletes = "new file mode" in header, "deleted file mode" in header
    if not (plain or creates or deletes or executable is not None):
        if reader.line is None:
            raise PatchError(f"ends after {title[:200]}")
        return
    name = _name_in_header(title)
    old, new = (plain.old, plain.new) if plain else (name, name)
    names = {one for one in (name, old, new) if one is not None}
    if len(names) != 1:
        what = f"two names for one file: {' and '.join(sorted(names))[:300]}" if names else "an unreadable header"
        raise PatchError(f"has {what}, in {title[:200]}")
    yield FilePatch(None if creates else old, None if deletes else new, hunks, executable)


def _git_header(reader: _Reader) -> dict[str, str]:
    header: dict[str, str] = {}
    while reader.line is not None:
        line = reader.line.decode("utf-8", "replace").rstrip("\r")
        if line.startswith(("GIT binary patch", "Binary files ")):
            raise PatchError("changes a binary file, which only whole files can do")
        key = next((key for key in _KEYS if line.startswith(f"{key} ")), None)
        if key is None:
            break
        header[key] = line.removeprefix(f"{key} ")
        reader.take()
    return header


def _refuse_unsupported(header: dict[str, str]) -> None:
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
    names = _name(reader.take()), _name(reader.take())
    old, new = _without_prefixes(*names)
    if old is None and new is None:
        raise PatchError("creates and deletes /dev/null")
    hunks = []
    while reader.starts(b"@@") and not reader.starts(b"@@@"):
        hunks.append(_hunk(reader))
    if not hunks:
        raise PatchError(f"has no hunk for {new or old}")
    return FilePatch(old, new, tuple(hunks), bare=names == (old, new))


def _with_one_name(patch: FilePatch) -> FilePatch:
    """Like git, use the new name, unless it is the old one with something added. Only git's header renames."""
    if patch.old is None or patch.new is None:
        return patch
    name = patch.old if patch.new.startswith(patch.old) else patch.new
    return replace(patch, old=name, new=name)


def _name(line: bytes) -> str | None:
    """The file name in a `---` or `+++` line; None for /dev/null, and for a file of 1970, which means the same."""
    try:
        text = line[4:].decode().rstrip(" \r")
    except UnicodeDecodeError:
        raise PatchError("has a file name that is not UTF-8") from None
    found = re.search(rf"(?:{_TIMESTAMP.pattern})$", text, re.ASCII)
    name = _unquoted(text[: found.start()].rstrip(" ") if found else text)
    return None if name == "/dev/null" or (found and _is_epoch(found[0])) else name


def _is_epoch(timestamp: str) -> bool:
    found = _EPOCH.fullmatch(timestamp)
    return found is not None and datetime.fromisoformat(f"{found[1]}{found[2]}").timestamp() == 0


def relative(name: str) -> str:
    """A name without `./` before it."""
    while name.startswith("./"):
        name = name[2:]
    return name


def _without_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Strip `a/` and `b/`; names without these prefixes, also `./a/x.py`, stay as they are."""
    for before, after in _PREFIXES:
        if (old is None or old.startswith(before)) and (new is None or new.startswith(after)):
            return old and relative(old[2:]), new and relative(new[2:])
    return old and relative(old), new and relative(new)


def _name_in_header(line: str) -> str | None:
    """The name in `diff --git a/name b/name`; None if they differ or are ambiguous."""
    names = line.removeprefix("diff --git ")
    quoted = re.fullmatch(r'("(?:[^"\\]|\\.)*+"|\S+) ("(?:[^"\\]|\\.)*+"|\S+)', names)
    half = len(names) // 2
    pair = quoted.groups() if quoted else (names[:half], names[half + 1 :])
    old, new = _without_prefixes(*map(_unquoted, pair))
    return old if old == new else None


def _unquoted(name: str) -> str:
    r"""A name without git's quotes and escapes.

    >>> _unquoted('"b/caf\\303\\251.py"')
    'b/café.py'
    """
    if not (len(name) >= 2 and name[0] == name[-1] == '"'):
        return name
    if not _WITHIN_QUOTES.fullmatch(name[1:-1]):
        raise PatchError(f"has an unreadable file name: {name[:200]}")
    try:
        return name[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()
    except UnicodeDecodeError:
        raise PatchError("has a file name that is not UTF-8") from None


def _hunk(reader: _Reader) -> Hunk:
    header = reader.take().decode("utf-8", "replace").rstrip("\r")
    ranges = _RANGES.fullmatch(header)
    if ranges is None and header.startswith("@@ -"):
        raise PatchError(f"has an unreadable hunk header: {header[:200]}")
    counted = None
    if ranges is not None:
        first = reader.number
        counts = [int(ranges[group] or 1) for group in (2, 3)]
        before, after, trailing = _hunk_lines(reader, counts)
        if [len(before), len(after)] == counts:
            counted = Hunk(header, int(ranges[1]), before, after, trailing)
            if not reader.in_hunk:
                return counted
        reader.go_back_to(first)
    before, after, trailing = _hunk_lines(reader, None)
    if before == after:
        raise PatchError(f"has a hunk whose lines do not fit its header: {header[:200]}")
    return Hunk(header, None, before, after, trailing, counted=counted)


def _hunk_lines(reader: _Reader, counts: Sequence[int] | None) -> tuple[tuple[bytes, ...], tuple[bytes, ...], int]:
    """The old and the new lines of a hunk, as many as its header counts or as there are, and the context at its end."""
    before: list[bytes] = []
    after: list[bytes] = []
    trailing = blank = 0
    last: tuple[list[bytes], ...] = ()
    while reader.line is not None:
        sign, content = reader.line[:1], reader.line[1:] + b"\n"
        if sign == b"\\":
            for side in last:  # the line before has no newline
                side[-1] = side[-1].removesuffix(b"\n")
            reader.take()
            continue
        if counts and len(before) >= counts[0] and len(after) >= counts[1]:
            break
        is_blank = reader.line in (b"", b"\r")
        if not is_blank and not (reader.in_hunk or (counts and sign in (b" ", b"+", b"-"))):
            break
        last = {b"-": (before,), b"+": (after,)}.get(sign, (before, after))
        for side in last:
            side.append(reader.line + b"\n" if is_blank else content)
        trailing = trailing + 1 if len(last) == 2 else 0
        blank = blank + 1 if is_blank else 0
        reader.take()
    if counts is None and blank:  # blank lines behind a hunk belong to the text around it
        del before[-blank:], after[-blank:]
    return tuple(before), tuple(after), trailing
