"""The expressions of a file in JSON syntax: every text with a template, as the HCL that Terraform reads in it.

Terraform reads a text in JSON as a template, which is what a heredoc contains. All templates of a file are put into one
block in native syntax, so that the same checks find references and calls. Its positions mean nothing, and are left out.
Left out too is what may refer to more than that block could: `self`, and names of addresses.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from touchstone.validation.hcl.blocks import BLOCK_SCHEMAS, ROOT
from touchstone.validation.hcl.positions import SourceText, Span
from touchstone.validation.hcl.root_blocks import labelled
from touchstone.validation.hcl.scopes import META_BLOCKS, RESOURCE_KINDS
from touchstone.validation.hcl.syntax import normalized
from touchstone.validation.protocol import Diagnostic

_COMMENT = "//"
_OF_RESOURCES = META_BLOCKS | {"depends_on", "provider", _COMMENT}
# The kinds of blocks that have expressions, and what in them is none.
_NO_EXPRESSIONS: Mapping[str, frozenset[str]] = {
    "locals": frozenset(),
    "output": frozenset({"depends_on", "description", "postcondition", _COMMENT}),
    "check": frozenset({_COMMENT}),
    "module": frozenset({"depends_on", "source", "version", "providers", _COMMENT}),
    "provider": frozenset({"alias", "version", _COMMENT}),
    **dict.fromkeys(RESOURCE_KINDS, _OF_RESOURCES),
}
_TEMPLATE = re.compile(r"[$%]\{")
_INTERPOLATION = re.compile(r"(?<!\$)\$\{|(?<!%)%\{")
_NAME = re.compile(r"[A-Za-z_][\w-]*")


class JsonText(SourceText):
    """Native syntax made of a JSON file: its errors have no line."""

    __slots__ = ()

    def error(self, span: Span, summary: str, detail: str) -> Diagnostic:
        """An error somewhere in the JSON file."""
        return Diagnostic("error", summary, detail, self.path)


def native_text(path: str, roots: Iterable[Mapping[str, object]]) -> JsonText:
    """The templates of a file as one block in native syntax, inside the names that its dynamic blocks bind."""
    templates: list[str] = []
    bound: set[str] = set()
    for root in roots:
        for kind, skipped in _NO_EXPRESSIONS.items():
            for entry, _ in labelled([(root.get(kind, []), ())], len(ROOT.blocks[kind])):
                if isinstance(entry, dict):
                    kept = {name: value for name, value in entry.items() if name not in skipped}
                    kept["lifecycle"] = _parts(entry.get("lifecycle"), "precondition")
                    templates += _templates(kept)
                    bound |= set(_bound(kept))
    names = sorted(name for name in bound if _NAME.fullmatch(name))
    labels = " ".join(f'"{name}"' for name in names)
    opened, closed = (f"dynamic {labels} {{\ncontent {{\n", "}\n}\n") if names else ("", "")
    arguments = "".join(f"template{number} = {_heredoc(text)}\n" for number, text in enumerate(templates))
    native = f'provider "json" {{\n{opened}{arguments}{closed}}}\n' if templates else ""
    return JsonText(path, normalized(native.encode("utf-8", "replace")))


def _heredoc(text: str) -> str:
    mark = "EOT"
    while mark in text:
        mark += "T"
    return f"<<{mark}\n{text}\n{mark}"


def _parts(value: object, name: str) -> list[object]:
    """What a nested block, or a list of them, has under a name."""
    return [
        part[name]
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, dict) and name in part
    ]


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
            iterator, dynamic = found.get("iterator"), found.get("dynamic")
            yield from [iterator] if isinstance(iterator, str) else []
            for part in dynamic if isinstance(dynamic, list) else [dynamic]:
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
            for entry, _ in labelled([(value, ())], len(ROOT.blocks[kind])):
                if kind in BLOCK_SCHEMAS and isinstance(entry, dict):
                    yield from _body_errors(path, kind, entry, override)


def _body_errors(path: str, kind: str, entry: Mapping[str, object], override: bool) -> Iterator[Diagnostic]:
    schema = BLOCK_SCHEMAS[kind]
    if not schema.open:
        known = {*schema.arguments, *schema.blocks, *schema.newer, _COMMENT}
        yield from (_extraneous(path, name) for name in entry if name not in known)
    if kind == "variable" and any(_INTERPOLATION.search(text) for text in _templates([entry.get("default")])):
        yield Diagnostic("error", "Variables not allowed", "Variables may not be used here.", path)
    for name in () if override else schema.required:
        if name not in entry:
            detail = f'The argument "{name}" is required, but no definition was found.'
            yield Diagnostic("error", "Missing required argument", detail, path)


def _extraneous(path: str, name: str) -> Diagnostic:
    detail = f'No argument or block type is named "{name}".'
    return Diagnostic("error", "Extraneous JSON object property", detail, path)
