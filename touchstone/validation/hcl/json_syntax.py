"""Terraform's JSON syntax: the objects of `.tf.json` files and their errors, and the same blocks in native syntax.

The same checks find what is wrong with them. Positions in that text mean nothing, and are left out. What a provider
defines becomes arguments, since only its schema tells arguments from blocks; so it is not checked against the schema.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from touchstone.validation.hcl.declarations import labelled
from touchstone.validation.hcl.loading import BLOCK_SCHEMAS, CONSTANTS, LABELS
from touchstone.validation.hcl.parsing import SourceText
from touchstone.validation.hcl.schema import OPEN, BlockSchema
from touchstone.validation.protocol import Diagnostic

_COMMENT = "//"
# Properties whose text is no template.
_WORDS = ("type", "iterator", "when", "on_failure")
_PLAIN = re.compile(r'[^"\\\n]*|\$\{(?:(?!\$\{)[^\n])*\}')
_TEMPLATE = re.compile(r"[$%]\{")
_INTERPOLATIONS = re.compile(r"[$%]+(?=\{)")


class NoBlockError(ValueError):
    """A value that is no object, where Terraform wants blocks of the type that is the message."""


def read_json(text: SourceText) -> tuple[list[Mapping[str, object]], Diagnostic | None]:
    """The root objects of a file, or its error."""
    try:
        content = json.loads(text.data.decode("utf-8", "replace"))  # Terraform accepts invalid UTF-8 in strings
    except json.JSONDecodeError as broken:
        span = text.point(len(broken.doc[: broken.pos].encode("utf-8")))
        return [], text.diagnostic(span, "Invalid JSON", f"{broken.msg}.")
    except (RecursionError, ValueError) as broken:
        return [], text.diagnostic(None, "Invalid JSON", f"{broken}.")
    roots = content if isinstance(content, list) else [content]
    if all(isinstance(root, dict) for root in roots):
        return roots, None
    return [], text.error(text.point(0), "Root value must be object")


def native_text(path: str, roots: Iterable[Mapping[str, object]]) -> SourceText:
    """The blocks of a file in native syntax."""
    found = (text for root in roots for kind, value in root.items() for text in _root_blocks(kind, value))
    return SourceText(path, "".join(found).encode("utf-8", "replace"), placed=False)


def _root_blocks(kind: str, value: object) -> Iterator[str]:
    if kind in LABELS:
        yield from _blocks(kind, value, len(LABELS[kind]), BLOCK_SCHEMAS.get(kind, OPEN))
    elif re.fullmatch(r"[\w-]+", kind):
        yield f"{kind} {{\n}}\n"


def _blocks(kind: str, value: object, labels: int, schema: BlockSchema) -> Iterator[str]:
    for entry, names in labelled(value, labels):
        if entry is not None:
            if not isinstance(entry, dict):
                raise NoBlockError(kind)
            header = " ".join([kind, *(json.dumps(name) for name in names)])
            yield f"{header} {{\n{''.join(_body(kind, entry, schema))}}}\n"


def _body(kind: str, entry: Mapping[str, object], schema: BlockSchema) -> Iterator[str]:
    for name, value in entry.items():
        nested = schema.blocks.get(name)
        if name == _COMMENT:
            continue
        if nested is not None and nested.labels is not None:
            yield from _blocks(name, value, len(nested.labels), nested.block)
        elif name == "dynamic" and schema.open:
            yield from _blocks(name, value, 1, OPEN)
        elif (kind, name) in (("dynamic", "content"), ("provisioner", "connection")) or (
            schema.open and _has_dynamic(value)
        ):
            yield from _blocks(name, value, 0, OPEN)
        elif kind in CONSTANTS and name in CONSTANTS[kind]:  # where a text is no template
            yield f"{name} = {_INTERPOLATIONS.sub('$$', _expression(value))}\n"
        elif isinstance(value, str) and (name in _WORDS or (name, value) == ("ignore_changes", "all")):
            yield f"{name} = {value}\n"
        else:
            yield f"{name} = {_expression(value)}\n"


def _has_dynamic(value: object) -> bool:
    """Whether there are `dynamic` blocks in it, so that it is a block itself."""
    contents = (one for one, _ in labelled(value, 0) if isinstance(one, dict))
    return any(
        any(isinstance(one, dict) and "content" in one for one, _ in labelled(entry.get("dynamic"), 1))
        or any(map(_has_dynamic, entry.values()))
        for entry in contents
    )


def _expression(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_expression, value))}]"
    if isinstance(value, dict):
        return "{\n" + "".join(f"{_key(name)} = {_expression(one)}\n" for name, one in value.items()) + "}"
    return json.dumps(value)


def _key(name: str) -> str:
    text = _string(name)
    return f"({text})" if text.startswith("<<") else text


def _string(text: str) -> str:
    """A text as a template: in quotes if it needs no escapes, else as a heredoc."""
    if not _TEMPLATE.search(text):
        return json.dumps(re.sub(r"[\b\f]", " ", text), ensure_ascii=False)
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    mark = "EOT"
    while mark in text:
        mark += "T"
    return f"<<{mark}\n{text}\n{mark}\n"
