"""One file: its text with positions as Terraform prints them, its syntax errors, and its blocks and arguments.

Syntax errors come from the Go parser that Terraform uses, in its words. Blocks come from tree-sitter, which has
positions; expressions stay tree-sitter nodes. Input that would overflow the stack of a parser is refused before.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pygohcl  # type: ignore[import-untyped]
import tree_sitter_hcl
from tree_sitter import Language, Node, Parser

from touchstone.validation.hcl.messages import MESSAGES
from touchstone.validation.protocol import Diagnostic

MAX_NESTING = 250
MAX_OPERATORS = 2_000
_SKIPPED_OR_BRACKET = re.compile(
    rb'#[^\n]*|//[^\n]*|/\*.*?\*/|"(?:[^"\\\n$%]|\\.|\$(?!\{)|%(?!\{))*"|(?P<open>[\[({])|(?P<close>[\])}])', re.DOTALL
)
_OPERATOR_RUN = re.compile(
    rb"(?<![!-])(?:[!-]\s*){%d}|(?<!\*)(?:(?:\[\*\]|\.\*)(?:\.[\w-]+)*\s*){%d}" % (MAX_OPERATORS, MAX_OPERATORS)
)
_PARSER_PREFIX = "invalid HCL: "
_PARSER_DIAGNOSTIC = re.compile(
    r"tmp\.hcl:(\d+),(\d+)-(?:(\d+),)?(\d+): (.+?); (.*?)(?=, tmp\.hcl:\d+,\d+-(?:\d+,)?\d+: |\Z)", re.DOTALL
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PARSER = Parser(Language(tree_sitter_hcl.language()))
# tree-sitter ends the number `1E5` at its exponent and takes the rest for a name.
_EXPONENT = re.compile(rb"(?<=[0-9])[eE][+-]?[0-9]+")
_MAX_REPARSES = 30
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


class Span(NamedTuple):
    """From the first character to just after the last. Lines and columns count from 1, columns in characters."""

    line: int
    column: int
    end_line: int
    end_column: int


class SourceText:
    """The content of one file, in a form that the parsers accept, with the same meaning and columns.

    The Go parser stops at a NUL byte. Terraform treats NUL like any other control character: valid in strings and
    comments, an invalid character elsewhere. Terraform ignores a byte order mark. Places in a text that is not `placed`
    mean nothing, and errors have none.
    """

    __slots__ = ("_ascii", "_placed", "data", "path")

    def __init__(self, path: str, data: bytes = b"", placed: bool = True) -> None:
        self.path = path
        self._placed = placed
        self.data = data.removeprefix(_BYTE_ORDER_MARK).replace(b"\0", b"\1")
        self._ascii = self.data.isascii()

    @property
    def is_json(self) -> bool:
        """Whether it was made from a file in JSON syntax."""
        return self.path.endswith(".json")

    @property
    def name(self) -> str:
        """The file name as Terraform prints it when run in the module's directory."""
        return self.path.rpartition("/")[2]

    def _column(self, offset: int, byte_column: int) -> int:
        """The column, from 1, of the byte at an offset, given the number of bytes before it in its line."""
        if self._ascii:
            return byte_column + 1
        before = self.data[offset - byte_column : offset].decode("utf-8", "replace")
        return 1 + sum(not unicodedata.combining(character) for character in before)

    def span(self, first: Node, last: Node | None = None) -> Span:
        """The span of a node, or from one node to another."""
        last = last or first
        (row, column), (end_row, end_column) = first.start_point, last.end_point
        column, end_column = self._column(first.start_byte, column), self._column(last.end_byte, end_column)
        return Span(row + 1, column, end_row + 1, end_column)

    def point(self, offset: int) -> Span:
        """The span of one character at a byte offset."""
        row = self.data.count(b"\n", 0, offset)
        column = self._column(offset, offset - self.data.rfind(b"\n", 0, offset) - 1)
        return Span(row + 1, column, row + 1, column + 1)

    def reference(self, span: Span) -> str:
        """A span as Terraform prints it within a message."""
        if not self._placed:
            return self.name
        end = f"{span.end_column}" if span.end_line == span.line else f"{span.end_line},{span.end_column}"
        return f"{self.name}:{span.line},{span.column}-{end}"

    def error(self, where: Span | Node | None, message: str, *words: object) -> Diagnostic:
        """One of Terraform's errors, with the words that it is about, at a span or a node of this file if known."""
        summary, detail = MESSAGES[message]
        return self.diagnostic(where, summary.format(*words), detail.format(*words))

    def diagnostic(self, where: Span | Node | None, summary: str, detail: str) -> Diagnostic:
        """An error in any words."""
        if where is None or not self._placed:
            return Diagnostic("error", summary, detail, self.path)
        line, column, end_line, end_column = self.span(where) if isinstance(where, Node) else where
        return Diagnostic("error", summary, detail, self.path, line, end_line, column, end_column)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Terraform's suggestion, with its leading space: the first known name that is fewer than three edits away.

    >>> did_you_mean("defalt", ["description", "default"]), did_you_mean("x", ["default"])
    (' Did you mean "default"?', '')
    """
    near = (name for name in known if abs(len(name) - len(given)) < 3 and _edits(given, name) < 3)
    return next((f' Did you mean "{name}"?' for name in near), "")


def _edits(left: str, right: str) -> int:
    """The Levenshtein distance, cut off at three."""
    previous = list(range(len(right) + 1))
    for row, character in enumerate(left, 1):
        current = [row]
        for column, other in enumerate(right, 1):
            substituted = previous[column - 1] + (character != other)
            current.append(min(substituted, previous[column] + 1, current[-1] + 1))
        if min(current) > 2:
            return 3
        previous = current
    return previous[-1]


def syntax_errors(text: SourceText) -> list[Diagnostic]:
    """The syntax errors of one file; empty if Terraform accepts it."""
    deep = _too_deep(text.data)
    if deep is not None:
        return [text.error(text.point(deep), "Nesting too deep", MAX_NESTING)]
    try:
        # This parses everything and then rejects blocks: the cheapest entry point, since it builds no values.
        pygohcl.attributes_loadb(text.data)
    except pygohcl.HCLParseError as refusal:
        return list(_parser_errors(text, str(refusal)))
    except UnicodeDecodeError:
        # The parser's message quotes invalid UTF-8, so it cannot be decoded; the error is clear anyway.
        return [_wrong_encoding(text)]
    return []


def _too_deep(data: bytes) -> int | None:
    """The offset at which nesting exceeds the limit, or None.

    Comments and strings without templates are skipped; brackets in heredocs count, which can only overestimate.
    """
    if data.count(b"{") + data.count(b"[") + data.count(b"(") > MAX_NESTING:
        depth = 0
        for match in _SKIPPED_OR_BRACKET.finditer(data):
            if match["open"]:
                depth += 1
                if depth > MAX_NESTING:
                    return match.start()
            elif match["close"] and depth:
                depth -= 1
    if data.count(b"!") + data.count(b"-") + data.count(b"*") > MAX_OPERATORS and (run := _OPERATOR_RUN.search(data)):
        return run.start()
    return None


def _parser_errors(text: SourceText, refusal: str) -> Iterator[Diagnostic]:
    if not refusal.startswith(_PARSER_PREFIX):
        return
    found = _PARSER_DIAGNOSTIC.findall(refusal)
    for line, column, end_line, end_column, summary, detail in found:
        span = Span(int(line), int(column), int(end_line or line), int(end_column))
        if span[:2] == span[2:]:  # Terraform widens an empty span by one column
            span = span._replace(end_column=span.end_column + 1)
        yield text.diagnostic(span, summary, detail.replace("tmp.hcl:", f"{text.name}:"))
    if not found:
        yield text.diagnostic(None, "Invalid configuration", refusal.removeprefix(_PARSER_PREFIX))


def _wrong_encoding(text: SourceText) -> Diagnostic:
    try:
        text.data.decode("utf-8")
        offset = 0
    except UnicodeDecodeError as broken:
        offset = broken.start
    return text.error(text.point(offset), "Invalid character encoding")


@dataclass(slots=True, eq=False)
class Argument:
    """`name = expression`."""

    name: str
    name_node: Node
    expression: Node


@dataclass(slots=True, eq=False)
class Body:
    """The content of a block or a file. Go's parser has already rejected duplicate arguments."""

    arguments: dict[str, Argument] = field(default_factory=dict)
    blocks: list["Block"] = field(default_factory=list)

    def of_kind(self, kind: str) -> list["Block"]:
        """The blocks of one type, in order."""
        return [block for block in self.blocks if block.kind == kind]


@dataclass(slots=True, eq=False)
class Block:
    """`kind "label" "label" { body }`, with the file that contains it."""

    text: SourceText
    kind: str
    labels: tuple[str, ...]
    kind_node: Node
    label_nodes: tuple[Node, ...]
    brace: Node
    body: Body
    override: bool = False

    @property
    def header(self) -> Span:
        """The type and labels: where Terraform points to refer to a block."""
        return self.text.span(self.kind_node, self.label_nodes[-1] if self.label_nodes else None)

    @property
    def missing(self) -> Span:
        """The place of an error about something missing: the opening brace, or the argument of a one-line block."""
        span = self.text.span(self.brace)
        for argument in self.body.arguments.values():
            first = self.text.span(argument.name_node)
            if first.line == span.line:
                span = first._replace(end_column=first.column + 1)
        return span


def parse(text: SourceText) -> Block | None:
    """The file as a block without a type, or None if tree-sitter rejects what Go's parser accepts."""
    root = _root(text.data)
    if root is None or root.has_error:
        return None
    bodies = [child for child in root.named_children if child.type == "body"]
    return Block(text, "", (), root, (), root, _body(text, bodies[0]) if bodies else Body())


def _root(data: bytes) -> Node | None:
    """The tree-sitter tree, with exponents read as digits so that positions stay; None if some exponents remain."""
    for _ in range(_MAX_REPARSES):
        root = _PARSER.parse(data).root_node
        if not _EXPONENT.search(data):
            return root
        numbers = (node for node in descendants(root) if node.type == "numeric_lit")
        exponents = [found.span() for node in numbers if (found := _EXPONENT.match(data, node.end_byte))]
        if not exponents:
            return root
        digits = bytearray(data)
        for start, end in exponents:
            digits[start:end] = b"0" * (end - start)
        data = bytes(digits)
    return None


def descendants(node: Node) -> Iterator[Node]:
    """All named nodes within a node, without recursion: long sums nest deeper than Python allows."""
    waiting = list(node.named_children)
    while waiting:
        one = waiting.pop()
        yield one
        waiting += one.named_children


def children(node: Node) -> list[Node]:
    """The named children of a node, without comments."""
    return [child for child in node.named_children if child.type != "comment"]


def children_of_type(node: Node, kind: str) -> list[Node]:
    """The named children of one type."""
    return [child for child in node.named_children if child.type == kind]


def source(node: Node) -> str:
    """A node's text, normalized as Terraform does to compare names."""
    text = (node.text or b"").decode("utf-8", "replace")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _body(text: SourceText, node: Node) -> Body:
    body = Body()
    for child in node.named_children:
        if child.type == "attribute":
            name = child.named_children[0]
            argument = Argument(source(name), name, children_of_type(child, "expression")[0])
            body.arguments[argument.name] = argument
        elif child.type == "block":
            body.blocks.append(_block(text, child))
    return body


def _block(text: SourceText, node: Node) -> Block:
    kind, *others = node.named_children
    labels = [child for child in others if child.type in ("string_lit", "identifier")]
    brace = next((child for child in others if child.type == "block_start"), kind)
    content = next((child for child in others if child.type == "body"), None)
    body = _body(text, content) if content is not None else Body()
    return Block(text, source(kind), tuple(map(_label, labels)), kind, tuple(labels), brace, body)


def _label(node: Node) -> str:
    text = source(node)
    return _ESCAPE.sub(_unescaped, text[1:-1]) if node.type == "string_lit" else text


def _unescaped(escape: re.Match[str]) -> str:
    """The character that an escape sequence stands for; Go's parser has rejected the invalid ones."""
    code = int(escape[1][1:], 16) if escape[1][0] in "uU" else 0
    return chr(code) if 0 < code < 0x110000 else _ESCAPED.get(escape[1], escape[0])
