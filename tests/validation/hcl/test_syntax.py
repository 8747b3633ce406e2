"""Bytes that parsers cannot handle, and the errors reported for them."""

import pytest

from tests.conftest import nightly_but
from touchstone.validation.hcl import check_module
from touchstone.validation.hcl.parsing import MAX_NESTING

DEPTH = MAX_NESTING - 1
DYNAMIC = b'dynamic "x" {\n  for_each = []\n  content {\n'


def summaries(data: bytes, name: str = "main.tf") -> list[tuple[str, int | None, int | None]]:
    found = check_module({name: data}, None)
    return [(error.summary, error.line, error.column) for error in found.diagnostics]


@pytest.mark.parametrize(
    "data",
    [
        b'variable "x" {\n default = "a\0b"\n}\n',
        b"# \0\n",
        b"# \xff\n",
        b'\xef\xbb\xbfvariable "x" {}\r\nvariable "y" {\r\n  default = "a"\r\n}\r\n',
        b"locals {\n  a = " + b"[" * DEPTH + b"]" * DEPTH + b"\n}\n",
        b'resource "x" "y" {\n' + b"z {\n" * (DEPTH - 1) + b"}\n" * DEPTH,
        b'variable "x" {\n  type = ' + b"list(" * (DEPTH - 1) + b"any" + b")" * (DEPTH - 1) + b"\n}\n",
        b'resource "x" "y" {\n' + DYNAMIC * (DEPTH // 2 - 1) + b"}\n}\n" * (DEPTH // 2 - 1) + b"}\n",
        b"# " + b"[" * 1000 + b'\nlocals {\n  a = "' + b"(" * 1000 + b'"\n}\n',
        b"locals {\n  a = " + b"1 + " * 3000 + b"1\n  b = " + b"true ? 1 : " * 3000 + b"2\n}\n",
        b"locals {\n" + b"".join(b"  a%d = local.a%d\n" % (n, n + 1) for n in range(900)) + b"  a900 = 1\n}\n",
        b"# " + b"-" * 1500 + b"\n/* " + b"!" * 1500 + b" */\n",
    ],
    ids=[
        *(
            "NUL in a string",
            "NUL in a comment",
            "no text in a comment",
            "BOM and CRLF",
            "nested lists",
            "nested blocks",
        ),
        *("nested types", "nested dynamic blocks", "brackets in strings and comments", "long chains", "chained locals"),
        "rulers in comments",
    ],
)
def test_what_terraform_reads(data: bytes) -> None:
    assert summaries(data) == []


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'variable "x" {\n default = [1, \0]\n}\n', ("Invalid character", 2, 16)),
        (b"# \0\nlocals {\n  a = 1 +\n}\n", ("Invalid expression", 3, 10)),
        (b'variable "x" {\n description = "a\xff\xfeb"\n}\n', ("Invalid character encoding", 2, 18)),
        (b"x {\n" * DEPTH + b"}\n" * DEPTH, ("Unsupported block type", 1, 1)),
    ],
    ids=["NUL elsewhere", "behind a NUL", "bytes that are no text", "nesting as deep as allowed"],
)
def test_errors(data: bytes, found: tuple[str, int, int]) -> None:
    assert found in summaries(data)


OPENING = [b"[", b"(", b"{a=", b'"${', b"[for x in "]
RUNS = [b"!", b"-", b"[*]", b".*.y"]


@pytest.mark.parametrize("repeated", nightly_but([*OPENING, *RUNS[::2]], [*OPENING, *RUNS]))
def test_what_would_overflow_a_parser_is_refused(repeated: bytes) -> None:
    expression = b"x" * (repeated in RUNS[2:]) + repeated * (300_000 if repeated in RUNS else 100_000)
    assert summaries(b"locals {\n  a = " + expression + b"1\n}\n")[0][0] == "Nesting too deep"


def test_only_syntax_errors_keep_a_module_from_compiling() -> None:
    assert not check_module({"main.tf": b"{", "other.tf": b""}, None).compiled
    assert check_module({"main.tf": b"foo {}\n"}, None).compiled


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b"null", b'{"variable": }', b"\xff", b"[" * 200_000, b'{"//": 1e999999999999}']
)
def test_json_files_give_findings_and_no_exception(data: bytes) -> None:
    assert len(summaries(data, "main.tf.json")) == (0 if data.startswith(b'{"//"') else 1)


def test_json_errors_have_a_place() -> None:
    assert summaries(b'{\n  "variable": ]\n}', "a.tf.json") == [("Invalid JSON", 2, 15)]
