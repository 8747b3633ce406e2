"""Syntax errors, found by the Go parser that Terraform uses and reported with its messages and positions."""

import re
from collections.abc import Iterator

import pygohcl  # type: ignore[import-untyped]

from touchstone.validation.hcl.limits import MAX_NESTING, too_deep
from touchstone.validation.hcl.positions import SourceText, Span
from touchstone.validation.protocol import Diagnostic

_PARSER_PREFIX = "invalid HCL: "
_PARSER_DIAGNOSTIC = re.compile(
    r"tmp\.hcl:(\d+),(\d+)-(?:(\d+),)?(\d+): (.+?); (.*?)(?=, tmp\.hcl:\d+,\d+-(?:\d+,)?\d+: |\Z)", re.DOTALL
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def normalized(data: bytes) -> bytes:
    """The bytes in a form that the parsers accept, with the same meaning and columns.

    The parser stops at a NUL byte. Terraform treats NUL like any other control character: valid in strings and
    comments, an invalid character elsewhere. Terraform ignores a byte order mark.
    """
    return data.removeprefix(_BYTE_ORDER_MARK).replace(b"\0", b"\1")


def syntax_errors(text: SourceText) -> list[Diagnostic]:
    """The syntax errors of one file whose bytes are `normalized`; empty if Terraform accepts it."""
    deep = too_deep(text.data)
    if deep is not None:
        detail = f"Expressions and blocks may not be nested more than {MAX_NESTING} levels deep."
        return [text.error(text.point(deep), "Nesting too deep", detail)]
    try:
        # This parses everything and then rejects blocks: the cheapest entry point, since it builds no values.
        pygohcl.attributes_loadb(text.data)
    except pygohcl.HCLParseError as refusal:
        return list(_parse_diagnostics(text, str(refusal)))
    except UnicodeDecodeError:
        # The parser's message quotes invalid UTF-8, so it cannot be decoded; the error is clear anyway.
        return [_wrong_encoding(text)]
    return []


def _parse_diagnostics(text: SourceText, refusal: str) -> Iterator[Diagnostic]:
    if not refusal.startswith(_PARSER_PREFIX):
        return
    found = _PARSER_DIAGNOSTIC.findall(refusal)
    for line, column, end_line, end_column, summary, detail in found:
        span = _widened(Span(int(line), int(column), int(end_line or line), int(end_column)))
        yield text.error(span, summary, detail.replace("tmp.hcl:", f"{text.name}:"))
    if not found:
        yield Diagnostic("error", "Invalid configuration", refusal.removeprefix(_PARSER_PREFIX), text.path)


def _widened(span: Span) -> Span:
    """Widen an empty span by one column, as Terraform does."""
    empty = (span.line, span.column) == (span.end_line, span.end_column)
    return span._replace(end_column=span.end_column + 1) if empty else span


def _wrong_encoding(text: SourceText) -> Diagnostic:
    try:
        text.data.decode("utf-8")
        offset = 0
    except UnicodeDecodeError as broken:
        offset = broken.start
    detail = "All input files must be UTF-8 encoded. Ensure that UTF-8 encoding is selected in your editor."
    return text.error(text.point(offset), "Invalid character encoding", detail)
