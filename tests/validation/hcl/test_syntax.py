"""Bytes that parsers cannot handle, and the errors reported for them."""

import pytest

from tests.conftest import nightly_but
from touchstone.validation.hcl import check_module
from touchstone.validation.hcl.limits import MAX_NESTING


def summaries(data: bytes, name: str = "main.tf") -> list[tuple[str, int | None, int | None]]:
    found = check_module({name: data}, None)
    return [(error.summary, error.line, error.column) for error in found.diagnostics]


def test_nul_is_an_invalid_character_outside_strings_and_comments() -> None:
    assert ("Invalid character", 2, 16) in summaries(b'variable "x" {\n default = [1, \0]\n}\n')


@pytest.mark.parametrize("data", [b'variable "x" {\n default = "a\0b"\n}\n', b"# \0\n", b"# \xff\n"])
def test_what_terraform_reads_in_strings_and_comments(data: bytes) -> None:
    assert summaries(data) == []


def test_text_after_a_nul_is_checked_too() -> None:
    assert summaries(b"# \0\nlocals {\n  a = 1 +\n}\n") == [("Invalid expression", 3, 10)]


def test_only_syntax_errors_keep_a_module_from_compiling() -> None:
    assert not check_module({"main.tf": b"{", "other.tf": b""}, None).compiled
    assert check_module({"main.tf": b"foo {}\n"}, None).compiled


def test_bytes_that_are_no_text() -> None:
    found = summaries(b'variable "x" {\n description = "a\xff\xfeb"\n}\n')
    assert found[0] == ("Invalid character encoding", 2, 18)


def test_byte_order_mark_and_carriage_returns_are_fine() -> None:
    assert summaries(b'\xef\xbb\xbfvariable "x" {}\r\nvariable "y" {\r\n  default = "a"\r\n}\r\n') == []


@pytest.mark.parametrize("opening", [b"[", b"(", b"{a=", b'"${', b"[for x in "])
def test_nesting_too_deep_for_the_parser_is_refused(opening: bytes) -> None:
    assert summaries(b"locals {\n  a = " + opening * 100_000)[0][0] == "Nesting too deep"


RUNS = [b"!" * 100_000, b"-" * 1_000_000, b"x" + b"[*]" * 100_000, b"x" + b".*.y" * 300_000]


@pytest.mark.parametrize("run", nightly_but(RUNS[::2], RUNS))
def test_long_runs_of_operators_are_refused(run: bytes) -> None:
    assert summaries(b"locals {\n  a = " + run + b"1\n}\n")[0][0] == "Nesting too deep"


def test_nesting_as_deep_as_allowed_is_read() -> None:
    depth = MAX_NESTING - 1
    assert summaries(b"locals {\n  a = " + b"[" * depth + b"]" * depth + b"\n}\n") == []
    assert summaries(b"x {\n" * depth + b"}\n" * depth)[0][0] == "Unsupported block type"
    assert summaries(b'resource "x" "y" {\n' + b"z {\n" * (depth - 1) + b"}\n" * depth) == []
    assert (
        summaries(b'variable "x" {\n  type = ' + b"list(" * (depth - 1) + b"any" + b")" * (depth - 1) + b"\n}\n") == []
    )


def test_deep_dynamic_blocks_are_read() -> None:
    depth = MAX_NESTING // 2 - 1
    opening = b'dynamic "x" {\n  for_each = []\n  content {\n'
    assert summaries(b'resource "x" "y" {\n' + opening * depth + b"}\n}\n" * depth + b"}\n") == []


def test_brackets_in_strings_and_comments_are_no_nesting() -> None:
    assert summaries(b"# " + b"[" * 1000 + b'\nlocals {\n  a = "' + b"(" * 1000 + b'"\n}\n') == []


def test_long_sums_and_chains_are_read() -> None:
    assert summaries(b"locals {\n  a = " + b"1 + " * 3000 + b"1\n  b = " + b"true ? 1 : " * 900 + b"2\n}\n") == []


def test_rulers_in_comments_are_no_operators() -> None:
    assert summaries(b"# " + b"-" * 1500 + b"\n/* " + b"!" * 1500 + b" */\n") == []


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b"null", b'{"variable": }', b"\xff", b"[" * 200_000, b'{"//": 1e999999999999}']
)
def test_json_files_give_findings_and_no_exception(data: bytes) -> None:
    found = summaries(data, "main.tf.json")
    assert len(found) == (0 if data.startswith(b'{"//"') else 1)


def test_json_errors_have_a_place() -> None:
    error = check_module({"a.tf.json": b'{\n  "variable": ]\n}'}, None).diagnostics[0]
    assert (error.summary, error.file, error.line, error.column) == ("Invalid JSON", "a.tf.json", 2, 15)
