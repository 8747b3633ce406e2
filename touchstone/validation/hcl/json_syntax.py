"""Terraform's JSON syntax: the content of `.tf.json` files, their errors, and the templates in them as native syntax.

Terraform reads a text in JSON as a template, which is what a heredoc contains. All templates of a file are put into one
block in native syntax, so that the same checks find references and calls. Its positions mean nothing, and are left out.
Left out too is what may refer to more than that block could: `self`, and names of addresses.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from tree_sitter import Node

from touchstone.validation.hcl.declarations import labelled
from touchstone.validation.hcl.expressions import META_BLOCKS, RESOURCE_KINDS
from touchstone.validation.hcl.loading import BLOCK_SCHEMAS, ROOT
from touchstone.validation.hcl.parsing import SourceText, Span
from touchstone.validation.protocol import Diagnostic

_COMMENT = "//"
# The kinds of blocks that have expressions, and what in them is none.
_NO_EXPRESSIONS: Mapping[str, frozenset[str]] = {
    "locals": frozenset(),
    "output": frozenset({"depends_on", "description", "postcondition", _COMMENT}),
    "check": frozenset({_COMMENT}),
    "module": frozenset({"depends_on", "source", "version", "providers", _COMMENT}),
    "provider": frozenset({"alias", "version", _COMMENT}),
    **dict.fromkeys(RESOURCE_KINDS, META_BLOCKS | {"depends_on", "provider", _COMMENT}),
}
_TEMPLATE = re.compile(r"[$%]\{")
_INTERPOLATION = re.compile(r"(?<!\$)\$\{|(?<!%)%\{")
_NAME = re.compile(r"[A-Za-z_][\w-]*")


class JsonText(SourceText):
    """Native syntax made of a JSON file: its errors have no line."""

    __slots__ = ()

    def error(self, where: Span | Node, summary: str, detail: str) -> Diagnostic:
        """An error somewhere in the JSON file."""
        return Diagnostic("error", summary, detail, self.path)


def read_json(text: SourceText) -> tuple[list[Mapping[str, object]], Diagnostic | None]:
    """The root objects of a file, or its error."""
    try:
        content = json.loads(text.data.decode("utf-8", "replace"))  # Terraform accepts invalid UTF-8 in strings
    except json.JSONDecodeError as broken:
        span = text.point(len(broken.doc[: broken.pos].encode("utf-8")))
        return [], text.error(span, "Invalid JSON", f"{broken.msg}.")
    except (RecursionError, ValueError) as broken:
        return [], Diagnostic("error", "Invalid JSON", f"{broken}.", text.path)
    roots = content if isinstance(content, list) else [content]
    if all(isinstance(root, dict) for root in roots):
        return roots, None
    detail = "The root value in a JSON-based configuration must be either a JSON object or a JSON array of objects."
    return [], text.error(text.point(0), "Root value must be object", detail)


def native_text(path: str, roots: Iterable[Mapping[str, object]]) -> JsonText:
    """The templates of a file as one block in native syntax, inside the names that its dynamic blocks bind."""
    templates: list[str] = []
    bound: set[str] = set()
    for root in roots:
        for kind, skipped in _NO_EXPRESSIONS.items():
            for entry, _ in labelled(root.get(kind, []), len(ROOT.blocks[kind])):
                if isinstance(entry, dict):
                    kept: dict[str, object] = {name: value for name, value in entry.items() if name not in skipped}
                    lifecycles = (part for part, _ in labelled(entry.get("lifecycle"), 0) if isinstance(part, dict))
                    kept["lifecycle"] = [part["precondition"] for part in lifecycles if "precondition" in part]
                    templates += _templates(kept)
                    bound |= set(_bound(kept))
    labels = " ".join(f'"{name}"' for name in sorted(bound) if _NAME.fullmatch(name))
    opened, closed = (f"dynamic {labels} {{\ncontent {{\n", "}\n}\n") if labels else ("", "")
    arguments = "".join(f"template{number} = {_heredoc(text)}\n" for number, text in enumerate(templates))
    native = f'provider "json" {{\n{opened}{arguments}{closed}}}\n' if templates else ""
    return JsonText(path, native.encode("utf-8", "replace"))


def _heredoc(text: str) -> str:
    mark = "EOT"
    while mark in text:
        mark += "T"
    return f"<<{mark}\n{text}\n{mark}"


def _objects(value: object) -> Iterator[dict[str, object] | str]:
    """Every object and text in a value, however deep."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            yield value


def _templates(value: object) -> Iterator[str]:
    """The texts with a template in a value; keys of objects are templates too."""
    for found in _objects(value):
        yield from (text for text in ([found] if isinstance(found, str) else found) if _TEMPLATE.search(text))


def _bound(value: object) -> Iterator[str]:
    """The names that dynamic blocks bind: their labels and iterators."""
    for found in _objects(value):
        if isinstance(found, dict):
            if isinstance(found.get("iterator"), str):
                yield str(found["iterator"])
            for part, _ in labelled(found.get("dynamic"), 0):
                yield from part if isinstance(part, dict) else []


def structure_errors(path: str, roots: Iterable[Mapping[str, object]], override: bool) -> Iterator[Diagnostic]:
    """Unknown root properties, and unknown and missing arguments of blocks whose content Terraform defines."""
    for root in roots:
        for kind, value in root.items():
            if kind == _COMMENT or kind in ROOT.newer:
                continue
            if kind not in ROOT.blocks:
                yield _extraneous(path, kind)
                continue
            for entry, _ in labelled(value, len(ROOT.blocks[kind])):
                if kind in BLOCK_SCHEMAS and isinstance(entry, dict):
                    yield from _body_errors(path, kind, entry, override)


def _body_errors(path: str, kind: str, entry: Mapping[str, object], override: bool) -> Iterator[Diagnostic]:
    schema = BLOCK_SCHEMAS[kind]
    if not schema.open:
        known = {*schema.arguments, *schema.blocks, *schema.newer, _COMMENT}
        yield from (_extraneous(path, name) for name in entry if name not in known)
    if kind == "variable" and any(_INTERPOLATION.search(text) for text in _templates([entry.get("default")])):
        yield Diagnostic("error", "Variables not allowed", "Variables may not be used here.", path)
    text = JsonText(path, b"")
    for name in () if override else schema.required:
        if name not in entry:
            yield text.missing_argument(text.point(0), name)


def _extraneous(path: str, name: str) -> Diagnostic:
    detail = f'No argument or block type is named "{name}".'
    return Diagnostic("error", "Extraneous JSON object property", detail, path)
