"""No false alarms for modules that need providers, which Terraform cannot check here, and no missed references."""

from pathlib import Path

import pytest

from tests.validation.sections import sections
from touchstone.validation.hcl import check_module
from touchstone.validation.hcl.module import UnreadableError


def errors(text: str, **files: str) -> list[str]:
    given = {"main.tf": text.encode(), **{f"{name}.tf": content.encode() for name, content in files.items()}}
    return [f"{error.summary} {error.line}" for error in check_module(given, None).diagnostics]


VALID = sections(Path(__file__).with_suffix(".txt"))


@pytest.mark.parametrize("what", VALID)
def test_valid_modules_with_providers(what: str) -> None:
    assert errors(VALID[what]) == []


ONE = 'output "a" {\n  value = 1\n}'
COUNTED = 'variable "x" {}\nresource "a_b" "c" {\n  x = count.index\n}\n'
COUNTS = 'variable "x" {\n  default = 1\n}\nresource "a_b" "c" {\n  count = 2\n}\n'
DYNAMIC = 'dynamic "ingress" {\n for_each = ingress.value\n content {}\n}\nname = ingress.key\n'
UNDECLARED = "Reference to undeclared"


@pytest.mark.parametrize(
    ("text", "files", "expected"),
    [
        (f'resource "x_y" "a" {{\n{DYNAMIC}}}\n', {}, [f"{UNDECLARED} resource 3", f"{UNDECLARED} resource 6"]),
        (ONE.replace("1", "[var.a, local.c]"), {}, [f"{UNDECLARED} input variable 2", f"{UNDECLARED} local value 2"]),
        ('variable "gr\u00f6\u00dfe" {}\noutput "a" {\n  value = var.gro\u0308\u00dfe\n}\n', {}, []),
        (COUNTED, {"override": COUNTS}, []),
        (COUNTED, {"main_override": COUNTS}, []),
        (COUNTED, {"other": COUNTS}, ["Duplicate variable declaration 1", 'Duplicate resource "a_b" configuration 4']),
        (ONE, {"override": ONE.replace("1", "var.x")}, [f"{UNDECLARED} input variable 2"]),
    ],
    ids=[
        *("names in dynamic blocks end with them", "every name of an expression", "letters composed in two ways"),
        *("an override file", "another override file", "no override file", "a reference in an override file"),
    ],
)
def test_what_is_declared(text: str, files: dict[str, str], expected: list[str]) -> None:
    assert errors(text, **files) == expected


def test_what_a_json_file_declares_is_known() -> None:
    files = {
        "main.tf": b'output "a" {\n  value = [module.m.x, data.a_b.c[0].d, a_b.d["k"].e, data.a_b.e.f, var.nope]\n}\n',
        "more.tf.json": b"""{
          "module": {"m": {"source": "./m"}},
          "data": [{"a_b": {"c": {"count": 1}}}],
          "resource": {"a_b": [{"d": {"for_each": {}}}]},
          "check": {"k": {
                "data": {"a_b": {"e": {}}}, "assert": {"condition": "${data.a_b.e.x}", "error_message": "x"}
              }}
        }""",
    }
    assert [error.detail for error in check_module(files, None).diagnostics if "nope" not in error.detail] == []


def test_the_same_module_gives_the_same_findings_in_any_order_of_files() -> None:
    files = {"a.tf": b'variable "x" {}\n', "b.tf": b'variable "x" {}\nlocals {\n  y = var.z\n}\n'}
    backwards = dict(reversed(files.items()))
    assert check_module(files, None) == check_module(backwards, None)


def test_files_that_terraform_ignores_are_ignored() -> None:
    files = {"main.tf": b'variable "x" {}\n', ".main.tf": b'variable "x" {}\n', "#main.tf#": b"{", "a/.#x.tf": b"{"}
    assert check_module(files, None).diagnostics == ()


def test_a_file_that_only_go_can_read_is_not_judged() -> None:
    with pytest.raises(UnreadableError, match=r"^only_go.tf: Go's HCL parser accepts it and tree-sitter does not"):
        errors("", only_go="locals {\n  a = true(1)\n}\n")


@pytest.mark.parametrize("number", ["1e5", "1E5", "1E+5", "1e-5", "1E999999", "[1e5, 2E2]", '"${1e5} 1e5"', "-1E5"])
def test_numbers_with_exponents(number: str) -> None:
    text = f'resource "x_y" "z" {{\n  count = {number}\n  lifecycle {{\n  }}\n  a = var.no\n}}\nvariable "v" {{}}\n'
    assert errors(text) == ["Reference to undeclared input variable 5"]
