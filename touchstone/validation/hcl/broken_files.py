"""What a file that does not parse was meant to declare, found by a scan that needs neither quotes nor braces to match.

Only what can be told with some certainty: a name that is no declaration would fail the fixes that drop it.
"""

import itertools
import re
from collections.abc import Iterable, Iterator

from touchstone.validation.hcl.blocks import ROOT
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.root_blocks import DIRECTIVES
from touchstone.validation.judging.removed_blocks import JSON, UNREAD, Address

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
_JSON_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[\[{]|[\]}]|:')


def broken_file_addresses(text: SourceText) -> Iterator[Address]:
    """The addresses of a file with syntax errors: of blocks whose header can be read, and of other headers by type."""
    data = _NOISE.sub(_quiet, text.data)
    readable = set()
    for header in _HEADER.finditer(data):
        kind, labels = header[1].decode(), header[2].decode("utf-8", "replace").split()
        if kind not in DIRECTIVES and len(ROOT.blocks.get(kind, ("", *labels))) == len(labels):
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
    """Whether the lines after an opening bracket are indented further, so that indentation tells the nesting."""
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
            if depth == 1 and last in ROOT.blocks.keys() - DIRECTIVES:
                kinds.append(last)
    found = set(_json_addresses(keys)) if matched and depth == 0 else set()
    yield from sorted(found)
    yield from _unread(kind.encode() for kind in kinds if all(address[1] != kind for address in found))


def _json_addresses(keys: Iterable[Address]) -> Iterator[Address]:
    for kind, *names in keys:
        if kind in ROOT.blocks and kind not in DIRECTIVES and len(names) == len(ROOT.blocks[kind]):
            yield (JSON, kind, *names)
        elif kind == "locals" and len(names) == 1:
            yield (JSON, "local", names[0])


def _unread(kinds: Iterable[bytes]) -> Iterator[Address]:
    return ((UNREAD, kind.decode(), str(number)) for number, kind in enumerate(kinds))
