"""Bytes that parsers cannot handle, and the errors reported for them."""

import pytest

from tests.conftest import nightly_but
from touchstone.validation.hcl import check_module
from touchstone.validation.hcl.parsing import MAX_NESTING

DEPTH = MAX_NESTING - 1
HALF = DEPTH // 2 - 1
CHAIN = [b"  a%d = local.a%d\n" % (number, number + 1) for number in range(900)]
DYNAMIC = b'dynamic "x" {\n  for_each = []\n  content {\n'


def summaries(data: bytes, name: str = "main.tf") -> list[tuple[str, int | None, int | None]]:
    found = check_module({name: data}, None)
    return [(error.summary, error.line, error.column) for error in found.diagnostics]


READ = {
    "NUL in a string": b'variable "x" {\n default = "a\0b"\n}\n',
    "NUL in a comment": b"# \0\n",
    "no text in a comment": b"# \xff\n",
    "BOM and CRLF": b'\xef\xbb\xbfvariable "x" {}\r\nvariable "y" {\r\n  default = "a"\r\n}\r\n',
    "nested lists": b"locals {\n  a = " + b"[" * DEPTH + b"]" * DEPTH + b"\n}\n",
    "nested blocks": b'resource "x" "y" {\n' + b"z {\n" * (DEPTH - 1) + b"}\n" * DEPTH,
    "nested types": b'variable "x" {\n  type = ' + b"list(" * (DEPTH - 1) + b"any" + b")" * (DEPTH - 1) + b"\n}\n",
    "nested dynamic blocks": b'resource "x" "y" {\n' + DYNAMIC * HALF + b"}\n}\n" * HALF + b"}\n",
    "brackets in strings and comments": b"# " + b"[" * 1000 + b'\nlocals {\n  a = "' + b"(" * 1000 + b'"\n}\n',
    "long chains": b"locals {\n  a = " + b"1 + " * 3000 + b"1\n  b = " + b"true ? 1 : " * 3000 + b"2\n}\n",
    "chained locals": b"locals {\n" + b"".join(CHAIN) + b"  a900 = 1\n}\n",
    "rulers in comments": b"# " + b"-" * 1500 + b"\n/* " + b"!" * 1500 + b" */\n",
}


@pytest.mark.parametrize("what", READ)
def test_what_terraform_reads(what: str) -> None:
    assert summaries(READ[what]) == []


WRONG = {
    "NUL elsewhere": (b'variable "x" {\n default = [1, \0]\n}\n', ("Invalid character", 2, 16)),
    "behind a NUL": (b"# \0\nlocals {\n  a = 1 +\n}\n", ("Invalid expression", 3, 10)),
    "no text": (b'variable "x" {\n description = "a\xff\xfeb"\n}\n', ("Invalid character encoding", 2, 18)),
    "nesting as deep as allowed": (b"x {\n" * DEPTH + b"}\n" * DEPTH, ("Unsupported block type", 1, 1)),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors(what: str) -> None:
    data, found = WRONG[what]
    assert found in summaries(data)


OPENING = [b"[", b"(", b"{a=", b'"${', b"[for x in "]
RUNS = [b"!", b"-", b"[*]", b".*.y"]


@pytest.mark.parametrize("repeated", nightly_but([*OPENING, RUNS[0]], [*OPENING, *RUNS]))
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
