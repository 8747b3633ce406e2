"""A file as blocks and arguments with positions, over the tree-sitter tree. Expressions stay tree-sitter nodes."""

import unicodedata
from dataclasses import dataclass, field

import tree_sitter_hcl
from tree_sitter import Language, Node, Parser

from touchstone.validation.hcl.positions import SourceText, Span

_PARSER = Parser(Language(tree_sitter_hcl.language()))


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
    root = _PARSER.parse(text.data).root_node
    if root.has_error:
        return None
    bodies = [child for child in root.named_children if child.type == "body"]
    return Block(text, "", (), root, (), root, _body(text, bodies[0]) if bodies else Body())


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
    return text[1:-1] if node.type == "string_lit" else text
