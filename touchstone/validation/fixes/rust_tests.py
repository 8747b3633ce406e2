"""The tests inside Rust sources: items for tests only, found in the text, and put back where a fix changed them.

Such an item stands at the top level of a file with `#[cfg(test)]`, `#[test]` or an attribute like these.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# The beginning of a comment or a literal. A `'` that does not match begins a lifetime.
_SKIPPED = re.compile(
    r"""//[^\n]*|(?P<block>/\*)|(?<!')\b(?:br|cr|r)(?P<hashes>\#*)".*?"(?P=hashes)"""
    r"""|(?:\b[bc])?"(?:[^"\\]|\\.)*"|(?:\bb)?'(?:[^'\\\n]|\\[^\n]{1,10}?)'""",
    re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_BRACKET = re.compile(r"[][(){};]|#\s*\[")
_EDGE = re.compile(r"[][(){};]")
_ATTRIBUTE = re.compile(r"\s*#\s*\[")
_SPACE = re.compile(r"\s*")
_FOR_TESTS = re.compile(
    r"\s*(?:cfg\s*\((?!.*\bnot\s*\(\s*test\b).*\btest\b.*|(?:\w+\s*::\s*)*test\s*(?:\(.*)?)", re.DOTALL
)
_USE = re.compile(r"(?:pub\s*(?:\([^)]*\)\s*)?)?use\b")
_NAMED = re.compile(r"(?:pub\s*(?:\([^)]*\)\s*)?)?(?:(?:async|unsafe|const)\s+)*(mod|fn)\s+(?:r#)?(\w+)")
_PATH = re.compile(r'path\s*=\s*"([^"\n]*)"')
# Takes what a fix may have put before the end of its file to disable what follows.
_GUARD = "\nconst _: () = ();\n"


@dataclass(frozen=True)
class TestItem:
    """One item for tests: where it is, what it is called, and of a module in a file of its own the path it gives."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    start: int
    end: int
    key: str
    text: str
    file_module: str = ""
    path: str = ""


def without_literals(text: str) -> str:
    """The text of a Rust file with spaces in place of comments and literals, as long as before."""
    kept, start = [], 0
    while (skipped := _SKIPPED.search(text, start)) is not None:
        end = _end_of_comment(text, skipped.end()) if skipped["block"] else skipped.end()
        kept += [text[start : skipped.start()], " " * (end - skipped.start())]
        start = end
    return "".join([*kept, text[start:]])


def _end_of_comment(text: str, start: int) -> int:
    """The end of a block comment; they nest."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def test_items(text: str) -> list[TestItem]:
    """The items for tests of a Rust file, in order.

    >>> [item.key for item in test_items('fn a() {}\\n#[cfg(test)]\\nmod tests { #[test] fn b() {} }')]
    ['mod tests']
    """
    if "test" not in text:
        return []
    return list(_items(text, without_literals(text)))


test_items.__test__ = False  # type: ignore[attr-defined]


def _items(text: str, code: str) -> Iterator[TestItem]:
    position = 0
    while (found := _BRACKET.search(code, position)) is not None:
        if not found[0].startswith("#"):
            position = _closed(code, found.start()) if found[0] in "[({" else found.end()
            continue
        start, position, for_tests = found.start(), found.start(), False
        while (opened := _ATTRIBUTE.match(code, position)) is not None:
            position = _closed(code, opened.end() - 1)
            for_tests = for_tests or _FOR_TESTS.fullmatch(code[opened.end() : position - 1]) is not None
        body = _SPACE.match(code, position).end()  # type: ignore[union-attr]
        end = _end_of_item(code, body)
        if for_tests:
            named = _NAMED.match(code, body)
            key = f"{named[1]} {named[2]}" if named else " ".join(code[body:end].split())
            in_file = named is not None and named[1] == "mod" and code[end - 1 : end] == ";"
            path = _PATH.search(text[start:position]) if in_file else None
            name = named[2] if named is not None and in_file else ""
            yield TestItem(start, end, key, text[start:end], name, path[1] if path else "")
        position = max(end, position)


def _closed(code: str, opening: int) -> int:
    """Behind the bracket that closes the one at a place."""
    depth = 0
    for bracket in _EDGE.finditer(code, opening):
        depth += {"[": 1, "(": 1, "{": 1, ";": 0}.get(bracket[0], -1)
        if depth == 0:
            return bracket.end()
    return len(code)


def _end_of_item(code: str, start: int) -> int:
    """Behind the `;` or the block that ends an item."""
    position, has_lists = start, _USE.match(code, start) is not None
    while (found := _EDGE.search(code, position)) is not None:
        if found[0] == ";":
            return found.end()
        position = _closed(code, found.start())
        if found[0] == "{" and not has_lists:
            return position
    return len(code)


def with_original_tests(original: bytes, fixed: bytes) -> bytes | None:
    """A fixed file with the items for tests of the original; None if the fix left them as they were.

    >>> with_original_tests(b"fn a() {}\\n#[test]\\nfn b() { c() }\\n", b"fn a() { 1 }\\n#[test]\\nfn b() {}\\n")
    b'fn a() { 1 }\\n#[test]\\nfn b() { c() }\\n'
    """
    text = fixed.decode("utf-8", "surrogateescape")
    missing: dict[str, list[str]] = {}
    for item in test_items(original.decode("utf-8", "surrogateescape")):
        missing.setdefault(item.key, []).append(item.text)
    after = [item for item in test_items(text) if item.key in missing] if missing else []
    if sorted(item.text for item in after) == sorted(one for texts in missing.values() for one in texts):
        return None
    kept, start = [], 0
    for item in after:
        texts = missing[item.key]
        kept += [text[start : item.start], texts.pop(0) if texts else ""]
        start = item.end
    lost = [one for texts in missing.values() for one in texts]
    appended = [_GUARD, *(f"{one}\n" for one in lost)] if lost else []
    return "".join([*kept, text[start:], *appended]).encode("utf-8", "surrogateescape")
