"""The declarations of files: the names that references can resolve to, addresses, and duplicates.

An address is a root block's type with its labels; a local value is `("local", name)`; blocks in JSON syntax have
addresses of their own. A fix must not make an address vanish; what counts as vanished belongs in
`touchstone.validation.judging.removed_blocks`. For a file that does not parse, a scan that needs neither quotes nor
braces to match finds what it was meant to declare. It gives only names that are almost certain: one that
declares nothing would fail the fixes that drop it.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from touchstone.validation.hcl.expressions import RESOURCE_KINDS, Unit
from touchstone.validation.hcl.loading import LABELS
from touchstone.validation.hcl.parsing import Block, Body, SourceText, Span, source
from touchstone.validation.hcl.schema import BUILTIN_PROVIDER, Provider
from touchstone.validation.judging.removed_blocks import JSON, UNREAD, Address
from touchstone.validation.protocol import Diagnostic

# Instructions for Terraform's state. Deleting such a block can be the repair.
_DIRECTIVES = frozenset({"moved", "import", "removed"})
_DECLARING = LABELS.keys() - _DIRECTIVES
_NAMED_ONCE = ("variable", "output", "module", "resource", "data", "ephemeral", "check")
# Brackets in comments, heredocs and strings do not nest. An unclosed string ends with its line.
_NOISE = re.compile(
    rb'(?P<comment>#[^\n]*|//[^\n]*|/\*.*?\*/)|(?P<heredoc><<-?([\w-]+)\n(?:.*?\n)?[ \t]*\3\b)|"(?:[^"\\\n]|\\.)*"',
    re.DOTALL,
)
_OPEN_HEREDOC = re.compile(rb"<<-?[A-Za-z_][\w-]*[ \t]*$", re.MULTILINE)
_STRUCTURE = bytes.maketrans(b"[](){}", b"______")
# A header at the beginning of a line: elsewhere it may be part of a string or of another block.
_HEADER = re.compile(rb'^([a-z_]+)((?:[ \t]+(?:"[^"\s]*"|[\w-]+))*)[ \t]*\{', re.MULTILINE)
# Anything that was meant to be a header: misquoted, without its brace, indented or after another block.
_MEANT = re.compile(
    rb"""(?:^|\})[ \t]*(?:(resource|module|variable|output|provider|ephemeral)[ \t]*[\w-]*["']"""
    rb"""|(locals|terraform)[ \t]*[=:]?\s*\{)|^(data|check)[ \t]*[\w-]*["']""",
    re.MULTILINE,
)
_LOCALS = re.compile(rb"(?:^|\})([ \t]*)locals[ \t]*[=:]?\s*(\{)", re.MULTILINE)
_ARGUMENT = re.compile(rb'([ \t]*)"?([A-Za-z_][\w-]*)"?(?:[ \t]*(=)(?!=)|[ \t]*:|[ \t]+["\[{\d])')
_OPENING, _CLOSING = (b"[", b"(", b"{"), (b"]", b")", b"}")
_ROOT_WORDS = {"variable": "var", "module": "module"}
_JSON_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[\[{]|[\]}]|:')


@dataclass(slots=True)
class Declarations:
    """The targets of references. `names` are those of variables, local values and module calls, by the root word.

    A resource, by mode, type and name, has a repetition: count, for_each, none or unknown. `required_providers` maps
    local names to source addresses, "" if none is given; `chosen_providers` maps resources that name their provider to
    its local name.
    """

    names: dict[str, set[str]] = field(default_factory=lambda: {"var": set(), "local": set(), "module": set()})
    resources: dict[Unit, str] = field(default_factory=dict)
    required_providers: dict[str, str] = field(default_factory=dict)
    chosen_providers: dict[Unit, str] = field(default_factory=dict)

    def add(self, blocks: Iterable[Block]) -> None:
        """Add the declarations of blocks."""
        for block in blocks:
            self._add_block(block)

    def _add_block(self, block: Block) -> None:
        arguments = block.body.arguments
        if block.kind == "locals":
            self.names["local"] |= arguments.keys()
        elif block.kind in _ROOT_WORDS:
            self.names[_ROOT_WORDS[block.kind]].add(block.labels[0])
        elif block.kind in RESOURCE_KINDS:
            self._add_resource(block)
            if "provider" in arguments:
                chosen = source(arguments["provider"].expression).strip('"').partition(".")[0]
                self.chosen_providers[RESOURCE_KINDS[block.kind], *block.labels] = chosen
        elif block.kind == "check":
            for nested in block.body.of_kind("data"):
                self._add_resource(nested)
        elif block.kind == "terraform":
            for requirements in block.body.of_kind("required_providers"):
                for argument in requirements.body.arguments.values():
                    self.required_providers[argument.name] = _provider_source(source(argument.expression))

    def _add_resource(self, block: Block) -> None:
        if len(block.labels) > 1:
            unit = (RESOURCE_KINDS[block.kind], *block.labels[:2])
            repetition = next((name for name in ("count", "for_each") if name in block.body.arguments), "none")
            self.resources[unit] = repetition if self.resources.get(unit, repetition) == repetition else "unknown"

    def provider(self, resource: Unit) -> Provider:
        """A resource's provider: from its `provider` argument, else from the first word of its type."""
        local = self.chosen_providers.get(resource) or resource[1].partition("_")[0]
        address = self.required_providers.get(local)
        if not address:
            usual = BUILTIN_PROVIDER if local == "terraform" else f"registry.terraform.io/hashicorp/{local}"
            return Provider(usual, local == "terraform")
        parts = address.lower().split("/")
        return Provider("/".join(["registry.terraform.io", "hashicorp"][: max(0, 3 - len(parts))] + parts), True)


def _provider_source(requirement: str) -> str:
    """The address in `{ source = "hashicorp/aws" }`, without fully parsing it."""
    _, found, rest = requirement.partition("source")
    parts = rest.split('"', 2)
    return parts[1] if found and len(parts) > 2 and parts[0].strip() in ("=", ":") else ""


def addresses(file: Body) -> Iterator[Address]:
    """The addresses of parsed blocks, whether or not Terraform knows their types.

    An argument with the name of a block type was meant to be a block, and a block in `locals` a local value.
    """
    yield from ((UNREAD, name, "0") for name in file.arguments if name in _DECLARING)
    for block in file.blocks:
        if block.kind not in _DIRECTIVES:
            yield (block.kind, *block.labels)
        if block.kind == "locals":
            yield from (("local", name) for name in block.body.arguments)
            yield from (("local", nested.kind) for nested in block.body.blocks)


def json_addresses(content: Mapping[str, object]) -> Iterator[Address]:
    """The addresses in an object in JSON syntax."""
    for kind, value in content.items():
        if kind in _DIRECTIVES:
            continue
        for entry, labels in labelled(value, len(LABELS.get(kind, ()))):
            yield (JSON, kind, *labels)
            if kind == "locals" and isinstance(entry, dict):
                yield from ((JSON, "local", name) for name in entry)


def labelled(value: object, depth: int) -> list[tuple[object, Address]]:
    """The entries below `depth` levels of labels in JSON syntax, each with its labels.

    A block is one object or a list of them.

    >>> labelled({"a": {"b": [1, 2]}}, 2)
    [(1, ('a', 'b')), (2, ('a', 'b'))]
    """
    return [(part, labels) for entry, labels in _named(value, depth) for part in _as_list(entry)]


def _named(value: object, depth: int) -> list[tuple[object, Address]]:
    found: list[tuple[object, Address]] = [(value, ())]
    for _ in range(depth):
        found = [
            (inner, (*labels, name))
            for entry, labels in found
            for part in _as_list(entry)
            if isinstance(part, dict)
            for name, inner in part.items()
        ]
    return found


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def broken_file_addresses(text: SourceText) -> Iterator[Address]:
    """The addresses of a file with syntax errors: of blocks whose header can be read, and of other headers by type."""
    data = _NOISE.sub(_quiet, text.data)
    readable = set()
    for header in _HEADER.finditer(data):
        kind, labels = header[1].decode(), header[2].decode("utf-8", "replace").split()
        if kind not in _DIRECTIVES and len(LABELS.get(kind, ("", *labels))) == len(labels):
            readable.add(header.start())
            yield (kind, *(label.strip('"') for label in labels))
    meant = [header for header in _MEANT.finditer(data) if header.start() not in readable]
    yield from _unread(header[header.lastindex or 0] for header in meant)
    headers = sorted([*readable, *(header.start() for header in meant)])
    for block in _LOCALS.finditer(data):
        following = next((start for start in headers if start > block.start()), len(data))
        yield from (("local", name.decode()) for name in _local_names(data, block, following))


def _quiet(noise: re.Match[bytes]) -> bytes:
    """Something of the same meaning for the scan, without brackets."""
    return b"" if noise["comment"] else b"0" if noise["heredoc"] else noise[0].translate(_STRUCTURE)


def _local_names(data: bytes, block: re.Match[bytes], following: int) -> Iterator[bytes]:
    """The names in a `locals` block that ends before the header that follows.

    Nesting decides if its braces match. Otherwise indentation does, or nesting where lines are not indented.
    """
    unclosed = _OPEN_HEREDOC.search(data, block.end(), following)
    lines, depths = data[block.end(2) : unclosed.start() if unclosed else following].split(b"\n"), [1]
    for line in lines:
        depths.append(depths[-1] + sum(map(line.count, _OPENING)) - sum(map(line.count, _CLOSING)))
    closing = block[1] + b"}"
    last = next((number for number, depth in enumerate(depths[1:]) if depth <= 0), None)
    matched = last is not None and (last == 0 or lines[last].startswith(closing))
    if not matched:
        last = next((number for number, line in enumerate(lines[1:], 1) if line.startswith(closing)), None)
    lines = lines[:last] if last else lines
    first = next((found[1] for line in lines[1:] if (found := _ARGUMENT.match(line))), b"")
    indented = not matched and _is_indented(lines)
    for number, line in enumerate(lines):
        found = _ARGUMENT.match(line)
        if found is None:
            continue
        aligned = number == 0 or found[1] == first
        if aligned if indented else depths[number] == 1 and (aligned or found[3]):
            yield found[2]


def _is_indented(lines: list[bytes]) -> bool:
    """Whether the lines after an opening bracket are indented further, so that indentation shows the nesting."""
    for line, after in itertools.pairwise(lines[1:]):
        if line.rstrip().endswith(_OPENING) and after.strip() and after.lstrip()[:1] not in b"])}":
            width, deeper = (len(each) - len(each.lstrip()) for each in (line, after))
            if deeper <= width:
                return False
    return True


def broken_json_addresses(text: SourceText) -> Iterator[Address]:
    """The addresses of a file that is not JSON: its keys where brackets match, and the types of all other blocks."""
    depth, kinds, path = 0, [], [""]
    keys: list[Address] = []
    last, matched = "", True
    for token in _JSON_TOKEN.findall(text.data):
        if token == b":":
            path[-1] = last
            if any(path):
                keys.append(tuple(filter(None, path)))
        elif token in (b"[", b"{"):
            depth += 1
            path.append("")
        elif token in (b"]", b"}"):
            depth -= 1
            path.pop()
            matched = matched and bool(path)
            path = path or [""]
        else:
            last = token[1:-1].decode("utf-8", "replace")
            if depth == 1 and last in _DECLARING:
                kinds.append(last)
    found = {address for key in keys if (address := _json_address(*key))} if matched and depth == 0 else set()
    yield from sorted(found)
    yield from _unread(kind.encode() for kind in kinds if all(address[1] != kind for address in found))


def _json_address(kind: str, *names: str) -> Address | None:
    if kind in _DECLARING and len(names) == len(LABELS[kind]):
        return (JSON, kind, *names)
    return (JSON, "local", *names) if kind == "locals" and len(names) == 1 else None


def _unread(kinds: Iterable[bytes]) -> Iterator[Address]:
    return ((UNREAD, kind.decode(), str(number)) for number, kind in enumerate(kinds))


def duplicate_errors(blocks: Iterable[Block]) -> Iterator[Diagnostic]:
    """Errors for everything declared more than once; blocks of override files do not count."""
    places: dict[Address, str] = {}
    for block in blocks:
        for key, span in () if block.override else _declared_by(block):
            if key in places:
                yield block.text.error(span, f"duplicate {key[0]}", places[key], *key[1:])
            else:
                places[key] = block.text.reference(span)


def _declared_by(block: Block) -> Iterator[tuple[Address, Span]]:
    if block.kind == "locals":
        for argument in block.body.arguments.values():
            yield ("local", argument.name), block.text.span(argument.name_node, argument.expression)
    elif block.kind == "terraform":
        for nested in block.body.blocks:
            if nested.kind in ("required_providers", "backend", "cloud"):
                yield (nested.kind,), nested.header
    elif block.kind in _NAMED_ONCE or (block.kind == "provider" and "alias" not in block.body.arguments):
        yield (block.kind, *block.labels), block.header
