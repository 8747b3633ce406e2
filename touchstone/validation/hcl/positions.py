"""Positions in a file as Terraform counts and prints them: from 1, with columns in characters."""

import unicodedata
from typing import NamedTuple, Protocol

from touchstone.validation.protocol import Diagnostic


class Span(NamedTuple):
    """From the first character to just after the last."""

    line: int
    column: int
    end_line: int
    end_column: int


class TreeNode(Protocol):
    """Anything with start and end points, such as a tree-sitter node."""

    @property
    def start_point(self) -> tuple[int, int]: ...

    @property
    def end_point(self) -> tuple[int, int]: ...


class SourceText:
    """The content of one file, with conversion from byte columns to character columns."""

    __slots__ = ("_ascii", "_lines", "data", "path")

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self._ascii = data.isascii()
        self._lines: list[bytes] | None = None

    @property
    def name(self) -> str:
        """The file name as Terraform prints it when run in the module's directory."""
        return self.path.rpartition("/")[2]

    def column(self, row: int, byte_column: int) -> int:
        """The column, from 1, of a byte in a row, from 0."""
        if self._ascii:
            return byte_column + 1
        if self._lines is None:
            self._lines = self.data.split(b"\n")
        before = self._lines[row][:byte_column].decode("utf-8", "replace")
        return 1 + sum(not unicodedata.combining(character) for character in before)

    def span(self, first: TreeNode, last: TreeNode | None = None) -> Span:
        """The span of a node, or from one node to another."""
        row, column = first.start_point
        end_row, end_column = (last or first).end_point
        return Span(row + 1, self.column(row, column), end_row + 1, self.column(end_row, end_column))

    def point(self, offset: int, length: int = 1) -> Span:
        """The span of `length` characters at a byte offset."""
        row = self.data.count(b"\n", 0, offset)
        start = self.data.rfind(b"\n", 0, offset) + 1
        column = self.column(row, offset - start)
        return Span(row + 1, column, row + 1, column + length)

    def reference(self, span: Span) -> str:
        """A span as Terraform prints it within a message."""
        end = f"{span.end_column}" if span.end_line == span.line else f"{span.end_line},{span.end_column}"
        return f"{self.name}:{span.line},{span.column}-{end}"

    def error(self, span: Span, summary: str, detail: str) -> Diagnostic:
        """An error at a span of this file."""
        return Diagnostic("error", summary, detail, self.path, span.line, span.end_line, span.column, span.end_column)
