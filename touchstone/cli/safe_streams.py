"""Standard output and error that no foreign text can control: neither a terminal nor a CI system.

`guard_output` puts a `SafeStream` in place of both streams. Only rich may write escape sequences, through `SafeConsole`
(in `terminal_tables`).
"""

import codecs
import sys
from typing import Any, TextIO, cast

from touchstone.text import visible_lines, without_commands

# Longer than the part of a line that makes it a command.
_LONGEST_COMMAND = 40

# Our own signs beyond ASCII, for terminals that have only ASCII.
_IN_ASCII = str.maketrans({"…": "~", "→": "->", "≤": "<=", "≥": ">=", "∞": "inf", "±": "+-", "×": "x", "−": "-"})


class SafeStream:
    """A text stream that escapes control characters, unless `styled`, and disarms lines that are CI commands."""

    def __init__(self, stream: TextIO, *, styled: bool = False) -> None:
        self.stream, self._styled = stream, styled
        # The current line so far: a command may be written in pieces.
        self._line = ""

    def write(self, text: str) -> int:
        """Write the text, made safe."""
        safe = text if self._styled else visible_lines(text)
        written = without_commands(self._line + _encodable(safe, self.stream))
        self.stream.write(written[len(self._line) :])
        line = written.rpartition("\n")[2]
        self._line = line if len(line) <= _LONGEST_COMMAND else f"…{line[-_LONGEST_COMMAND:]}"
        return len(text)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's own."""
        return getattr(self.stream, name)


def _encodable(text: str, stream: TextIO) -> str:
    """The text as the stream can write it: beyond its encoding, our own signs become ASCII and others escapes."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if text.isascii() or codecs.lookup(encoding).name.startswith("utf"):
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_IN_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def guard_output() -> None:
    """Make standard output and error of this process safe."""
    sys.stdout = safe(sys.stdout)
    sys.stderr = safe(sys.stderr)


def safe(stream: TextIO, *, styled: bool = False) -> TextIO:
    """The stream, made safe. A `styled` one is for rich, which escapes text and writes its own sequences."""
    if isinstance(stream, SafeStream) and not styled:
        return stream
    return cast(TextIO, SafeStream(unguarded(stream), styled=styled))


def unguarded(stream: Any) -> TextIO:
    """The stream behind a safe one, for data that must not be changed."""
    return cast(TextIO, stream.stream if isinstance(stream, SafeStream) else stream)
