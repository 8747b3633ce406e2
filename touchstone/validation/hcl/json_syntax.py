"""Terraform's JSON syntax: the content of `.tf.json` files, their errors, and the templates in them as native syntax.

Terraform reads a text in JSON as a template, which is what a heredoc contains. All templates of a file are put into one
block in native syntax, so that the same checks find references and calls. Its positions mean nothing, and are left out.
Left out too is what may refer to more than that block could: `self`, and names of addresses.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from touchstone.validation.hcl.declarations import labelled
from touchstone.validation.hcl.expressions import META_BLOCKS, RESOURCE_KINDS
from touchstone.validation.hcl.loading import BLOCK_SCHEMAS, LABELS, ROOT
from touchstone.validation.hcl.parsing import SourceText
from touchstone.validation.hcl.schema import OPEN
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
    """The templates of a file as one block in native syntax, inside the names that its dynamic blocks bind."""
    templates: list[str] = []
    bound: set[str] = set()
    for root in roots:
        for kind, skipped in _NO_EXPRESSIONS.items():
            for entry, _ in labelled(root.get(kind, []), len(LABELS[kind])):
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
    return SourceText(path, native.encode("utf-8", "replace"), placed=False)


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


def structure_errors(text: SourceText, roots: Iterable[Mapping[str, object]], override: bool) -> Iterator[Diagnostic]:
    """Unknown root properties, and unknown and missing arguments of blocks whose content Terraform defines."""
    for root in roots:
        for kind, value in root.items():
            if kind in LABELS:
                for entry, _ in labelled(value, len(LABELS[kind])):
                    if isinstance(entry, dict):
                        yield from _body_errors(text, kind, entry, override)
            elif kind != _COMMENT and kind not in ROOT.newer:
                yield text.error(None, "Extraneous JSON object property", kind)


def _body_errors(text: SourceText, kind: str, entry: Mapping[str, object], override: bool) -> Iterator[Diagnostic]:
    schema = BLOCK_SCHEMAS.get(kind, OPEN)
    known = entry.keys() if schema.open else {*schema.attributes, *schema.blocks, *schema.newer, _COMMENT}
    yield from (text.error(None, "Extraneous JSON object property", name) for name in entry if name not in known)
    if kind == "variable" and any(_INTERPOLATION.search(one) for one in _templates([entry.get("default")])):
        yield text.error(None, "Variables not allowed")
    for name, attribute in () if override else schema.attributes.items():
        if attribute.required and name not in entry:
            yield text.error(None, "Missing required argument", name)
