"""A file as blocks and arguments with positions, over the tree-sitter tree. Expressions stay tree-sitter nodes."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter_hcl
from tree_sitter import Language, Node, Parser

from touchstone.validation.hcl.positions import SourceText, Span

_PARSER = Parser(Language(tree_sitter_hcl.language()))
# tree-sitter ends the number `1E5` at its exponent and takes the rest for a name.
_EXPONENT = re.compile(rb"(?<=[0-9])[eE][+-]?[0-9]+")
_MAX_REPARSES = 30
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


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
        """Where Terraform reports something missing: the opening brace, or the argument of a one-line block."""
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
        exponents = list(_exponents(root, data))
        if not exponents:
            return root
        digits = bytearray(data)
        for start, end in exponents:
            digits[start:end] = b"0" * (end - start)
        data = bytes(digits)
    return None


def _exponents(root: Node, data: bytes) -> Iterator[tuple[int, int]]:
    """Where an exponent directly follows a number."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.type == "numeric_lit" and (exponent := _EXPONENT.match(data, node.end_byte)):
            yield exponent.span()


def source(node: Node) -> str:
    """A node's text, normalized as Terraform does to compare names."""
    raw = node.text or b""
    text = raw.decode("utf-8", "replace")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _body(text: SourceText, node: Node) -> Body:
    body = Body()
    for child in node.named_children:
        kind = child.type
        if kind == "attribute":
            parts = child.named_children
            name, expression = parts[0], parts[-1]
            if expression.type != "expression":  # a comment after it
                expression = next(part for part in parts if part.type == "expression")
            argument = Argument(source(name), name, expression)
            body.arguments[argument.name] = argument
        elif kind == "block":
            body.blocks.append(_block(text, child))
    return body


def _block(text: SourceText, node: Node) -> Block:
    children = node.named_children
    labels: list[Node] = []
    brace, content = children[0], None
    for child in children[1:]:
        kind = child.type
        if kind in ("string_lit", "identifier"):
            labels.append(child)
        elif kind == "block_start":
            brace = child
        elif kind == "body":
            content = child
    return Block(
        text,
        source(children[0]),
        tuple(_label(label) for label in labels),
        children[0],
        tuple(labels),
        brace,
        _body(text, content) if content is not None else Body(),
    )


def _label(node: Node) -> str:
    text = source(node)
    return _ESCAPE.sub(_unescaped, text[1:-1]) if node.type == "string_lit" else text


def _unescaped(escape: re.Match[str]) -> str:
    """The character that an escape sequence stands for; Go's parser has rejected the invalid ones."""
    code = int(escape[1][1:], 16) if escape[1][0] in "uU" else 0
    return chr(code) if 0 < code < 0x110000 else _ESCAPED.get(escape[1], escape[0])
