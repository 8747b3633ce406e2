"""What a fix may rename, and what it may not remove."""

from pathlib import Path

import pytest

from touchstone.validation.hcl import check_module
from touchstone.validation.judging.removed_blocks import removed_blocks
from touchstone.validation.judging.verdicts import compute_verdict
from touchstone.validation.protocol import Diagnostic, Problem, Report

MODULE = """\
terraform {
}
variable "regoin" {}
resource "aws_vpc" "main" {}
resource "aws_vpc" "other" {}
locals {
  a = 1
}
output "x" {
  value = 1
}
"""


def report(text: str, path: str = "main.tf", *diagnostics: Diagnostic) -> Report:
    found = check_module({path: text.encode()}, None)
    return Report("failed", found.fidelity, diagnostics, found.compiled, declared=found.declared)


def removed(before: str, after: str, *errors: Diagnostic) -> list[str]:
    return [found.summary for found in removed_blocks(report(before, "main.tf", *errors), report(after))]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"regoin"', '"region"'),
        ('"aws_vpc" "main"', '"aws_vpc" "first"'),
        ("a = 1", "b = 1"),
        ('"x"', '"y"'),
        ("terraform {\n}\n", "terraform {\n}\n\nterraform {\n}\n"),
        ('variable "regoin" {}\n', 'variable "regoin" {}\nvariable "region" {}\n'),
    ],
)
def test_renaming_and_adding(old: str, new: str) -> None:
    assert removed(MODULE, MODULE.replace(old, new)) == []


@pytest.mark.parametrize(
    ("old", "new", "gone"),
    [
        ('variable "regoin" {}\n', "", ['Block removed: variable "regoin"']),
        ('variable "regoin" {}\n', '# variable "regoin" {}\n', ['Block removed: variable "regoin"']),
        ("  a = 1\n", "", ['Block removed: local "a"']),
        ("terraform {\n}\n", "", ["Block removed: terraform"]),
        ('resource "aws_vpc" "main"', 'resource "other_vpc" "main"', ['Block removed: resource "aws_vpc" "main"']),
        ('resource "aws_vpc" "main"', 'data "aws_vpc" "main"', ['Block removed: resource "aws_vpc" "main"']),
        (
            'resource "aws_vpc" "main" {}\nresource "aws_vpc" "other" {}\n',
            'resource "aws_vpc" "both" {}\n',
            ['Block removed: resource "aws_vpc" "other"'],
        ),
    ],
)
def test_what_is_gone(old: str, new: str, gone: list[str]) -> None:
    assert removed(MODULE, MODULE.replace(old, new)) == gone


@pytest.mark.parametrize(
    ("header", "repaired", "error"),
    [
        ('resorce "aws_vpc" "a"', 'resource "aws_vpc" "a"', 'Blocks of type "resorce" are not expected here.'),
        ('resource "aws_vcp" "a"', 'resource "aws_vpc" "a"', 'The provider does not support resource type "aws_vcp".'),
        ('resource "aws_vpc"', 'resource "aws_vpc" "a"', "All resource blocks must have 2 labels (type, name)."),
        ('variable "a" "b"', 'variable "a"', "Only 1 labels (name) are expected for variable blocks."),
        ("terrafrom", "terraform", 'Blocks of type "terrafrom" are not expected here.'),
    ],
)
def test_a_header_that_is_the_error_may_change_but_not_vanish(header: str, repaired: str, error: str) -> None:
    wrong = Diagnostic("error", "wrong", error)
    assert removed(f"{header} {{\n}}\n", f"{repaired} {{\n}}\n", wrong) == []
    assert len(removed(f"{header} {{\n}}\n", "# nothing\n", wrong)) == 1


def test_directives_may_go() -> None:
    moved = "moved {\n  from = aws_vpc.old\n  to   = aws_vpc.main\n}\n"
    assert removed(MODULE + moved, MODULE) == []
    assert removed(MODULE + moved.replace("}", ""), MODULE) == []


def test_duplicates_may_go() -> None:
    assert removed('variable "a" {}\nvariable "a" {}\n', 'variable "a" {}\n') == []


def test_a_fix_may_remove_what_the_reference_removes() -> None:
    before, after = report(MODULE), report(MODULE.replace('output "x"', 'variable "y"').replace("value = 1", ""))
    assert [found.summary for found in removed_blocks(before, after)] == ['Block removed: output "x"']
    assert removed_blocks(before, after, reference=after) == []
    assert removed_blocks(before, after, reference=report(MODULE.replace('"x"', '"y"'))) != [], "renamed, not removed"


def test_blocks_of_a_file_with_syntax_errors_must_stay_too() -> None:
    broken = MODULE.replace("value = 1\n}", "value = 1") + '/*\nvariable "old" {\n}\n*/\n  data "a" "inner" {\n'
    assert removed(broken, MODULE.replace('resource "aws_vpc" "main" {}\n', "")) == [
        'Block removed: resource "aws_vpc" "main"'
    ]
    assert removed(broken, MODULE) == []


def test_json_files() -> None:
    text = '{"variable": {"a": {}, "b": {}}, "resource": {"x_y": [{"z": {}}]}, "locals": [{"l": 1}]}'
    declared = {("variable", "a"), ("variable", "b"), ("resource", "x_y", "z"), ("locals",), ("local", "l")}
    found = {address[1:] for address in report(text, "main.tf.json").declared or () if address[0] == "json"}
    assert found == declared


def test_code_that_is_gone_is_not_fixed() -> None:
    target = Diagnostic("error", "Bad output", file="main.tf", line=9)
    before, after = report(MODULE, "main.tf", target), report(MODULE[: MODULE.index("output")])
    after = Report("passed", "static", declared=after.declared, compiled=True)
    for success in ("plausible", "clean", "fixed", "strict_block", "strict_module"):
        verdict = compute_verdict(before, after, Problem("p", "main.tf", Path("clones"), line_start=9), 9, 9, success)
        assert (verdict.status, verdict.fixed) == ("failed", False)
        assert 'Block removed: output "x"' in verdict.note


def test_validators_that_declare_nothing_are_not_concerned() -> None:
    assert removed_blocks(Report("failed", "full"), Report("passed", "full")) == []


def test_a_fix_whose_blocks_cannot_be_read() -> None:
    (found,) = removed_blocks(report(MODULE), Report("passed", "full", compiled=True))
    assert found.summary == "Blocks cannot be read"


KEPT = 'variable "q" {}\n'
VPC = 'resource "aws_vpc" "a" {\n}\n'
UNREADABLE = {
    "a quote is missing": 'resource "aws_vpc "a" {\n}\n',
    "the first quote is missing": 'resource aws_vpc" "a" {\n}\n',
    "other quotes": "resource 'aws_vpc' 'a' {\n}\n",
    "the brace is on the next line": 'resource "aws_vpc" "a"\n{\n}\n',
    "no brace": 'resource "aws_vpc" "a"\n}\n',
    "an equals sign": 'resource "aws_vpc" "a" = {\n}\n',
    "indented": '  resource "aws_vpc" "a" {\n    b = = 1\n  }\n',
    "after another block": '} resource "aws_vpc" "a" {\n}\n',
    "in a comment without an end": f"/*\n{VPC}",
}


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_header_that_cannot_be_read(how: str) -> None:
    broken = KEPT + UNREADABLE[how]
    (gone,) = removed(broken, KEPT)
    assert gone.startswith("Block removed: resource")
    assert removed(broken, KEPT + VPC) == []
    assert removed(broken, KEPT + VPC.replace('"a"', '"b"')) == []


def test_words_in_a_broken_file_that_are_no_headers() -> None:
    text = 'output "a" {\n  value = <<EOT\ndata of the module\noutput: {}\nresource = "x"\nEOT\n}\n'
    assert removed(text + "locals {\n", text) == ["Block removed: locals"]
    nested = 'check "a" {\n  data "b" "c" {\n  }\n  assert {\n    condition = 1\n    error_message = "x"\n  }\n}\n'
    assert removed(nested + "x = = 1\n", nested) == []


def test_a_broken_file_in_json_syntax() -> None:
    broken = report('{"resource": {"a_map": {"b": {"data": {"c": 1,}}}}}', "main.tf.json")
    emptied, kept = report("{}", "main.tf.json"), report('{"resource": {"a_map": {"b": {}}}}', "main.tf.json")
    assert [found.summary for found in removed_blocks(broken, emptied)] == ['Block removed: resource "a_map" "b"']
    assert removed_blocks(broken, kept) == []
    unclosed = report('{"resource": {"a_map": {"b": {}}', "main.tf.json")
    assert [found.summary for found in removed_blocks(unclosed, emptied)] == [
        "Block removed: resource with an unreadable header"
    ]
    assert removed_blocks(unclosed, kept) == []


def module(files: dict[str, str]) -> Report:
    found = check_module({path: text.encode() for path, text in files.items()}, None)
    status = "failed" if found.diagnostics else "passed"
    return Report(status, found.fidelity, found.diagnostics, found.compiled, declared=found.declared)


UNKNOWN = 'output "x" {\n  value = nosuch(var.q)\n}\n'
EACH = 'resource "aws_vpc" "a" {\n  b = each.key\n}\n'
ESCAPES = {
    "into JSON": (UNKNOWN, {"b.tf.json": '{"output": {"x": {"value": "${nosuch(1)}"}}}'}),
    "into a provider's function": (UNKNOWN, {"b.tf": UNKNOWN.replace("nosuch", "provider::a::nosuch")}),
    "into the core namespace": (UNKNOWN, {"b.tf": UNKNOWN.replace("nosuch", "core::nosuch")}),
    "into another namespace": (UNKNOWN, {"b.tf": UNKNOWN.replace("nosuch", "a::nosuch")}),
    "behind an override file": (EACH, {"b.tf": EACH, "b_override.tf": "# nothing\n"}),
}


@pytest.mark.parametrize("how", ESCAPES)
def test_moving_an_error_to_where_nothing_is_checked(how: str) -> None:
    before, after = ESCAPES[how]
    problem = Problem("a", "main.tf", Path("clones"))
    verdict = compute_verdict(module({"main.tf": KEPT + before}), module({"main.tf": KEPT, **after}), problem, 1, 9)
    assert verdict.status == "failed", verdict


def test_what_was_not_checked_before_may_stay() -> None:
    called = 'output "y" {\n  value = provider::a::b(1)\n}\n'
    repaired = KEPT + UNKNOWN.replace("nosuch", "core::upper") + called
    problem = Problem("a", "main.tf", Path("clones"))
    for broken in (KEPT + UNKNOWN + called, repaired.replace("value = p", "value = = p"), repaired + repaired):
        assert (
            compute_verdict(module({"main.tf": broken}), module({"main.tf": repaired}), problem, 1, 9).status
            == "passed"
        )
    in_json = {"b.tf.json": '{"output": {"z": {"value": 1}}}'}
    before, after = module({"main.tf": KEPT + UNKNOWN + called, **in_json}), {"c.tf": 'output "z" {\n  value = 1\n}\n'}
    assert removed_blocks(before, module({"main.tf": repaired, **after})) == []


@pytest.mark.parametrize(
    ("source", "there"),
    [
        ("./parts", True),
        ("./parts/", True),
        ("../shop/parts", True),
        ("./nowhere", False),
        ("../parts", False),
        ("hashicorp/consul/aws", True),
        ("../../elsewhere", True),
    ],
)
def test_a_call_of_a_module_that_is_not_there(source: str, there: bool) -> None:
    def of(text: str) -> Report:
        found = check_module({"shop/main.tf": text.encode()}, None, [".", "shop", "shop/parts"])
        return Report("passed", found.fidelity, compiled=True, declared=found.declared)

    called = KEPT + f'module "m" {{\n  source = "{source}"\n}}\n'
    assert (removed_blocks(of(KEPT), of(called)) == []) == there
    assert removed_blocks(of(called), of(called)) == [], "the problem is no better"


# Local values of files that do not parse: none may vanish, as far as one can tell from the broken text.

LOCALS = """\
locals {
  first = 1
  tags = {
    inner = "x"
  }
  last = [
    2,
  ]
}
"""
OUTPUT = 'output "x" {\n  value = 1\n}\n'
BROKEN = {
    "elsewhere in the file": LOCALS + OUTPUT.replace("value =", "value = ="),
    "in its own value": LOCALS.replace("first = 1", "first = = 1") + OUTPUT,
    "without an equals sign": LOCALS.replace("first = 1", "first 1") + OUTPUT,
    "with a colon": LOCALS.replace("first = 1", "first : 1") + OUTPUT,
    "in quotes": LOCALS.replace("first = 1", '"first" = 1') + OUTPUT,
    "in a string without an end": LOCALS.replace("first = 1", 'first = "1') + OUTPUT,
    "a brace is missing inside": LOCALS.replace("  }\n", "") + OUTPUT,
    "a bracket is missing inside": LOCALS.replace("  ]\n", "") + OUTPUT,
    "a brace too many": LOCALS.replace("  }\n", "  }}\n") + OUTPUT,
    "its end is missing": LOCALS.removesuffix("}\n") + OUTPUT,
    "its end is the file's": OUTPUT + LOCALS.removesuffix("}\n"),
    "its brace is on the next line": LOCALS.replace("locals {", "locals\n{") + OUTPUT,
    "with an equals sign": LOCALS.replace("locals {", "locals = {") + OUTPUT.replace("value =", "value = ="),
    "beside a heredoc": LOCALS.replace("first = 1", "first = <<EOT\n  other = 1\n}\nEOT\n  more = = 1") + OUTPUT,
    "not indented": LOCALS.replace("  ", "").replace("first = 1", "first = = 1") + OUTPUT,
}


@pytest.mark.parametrize("how", BROKEN)
def test_of_a_broken_block(how: str) -> None:
    more = "  more = 1\n" if "more" in BROKEN[how] else ""
    kept = LOCALS.replace("  first = 1\n", more) + OUTPUT
    assert removed(BROKEN[how], kept) == ['Block removed: local "first"']
    assert removed(BROKEN[how], LOCALS.replace("}\n}", f"}}\n{more}}}").replace("]\n}", f"]\n{more}}}") + OUTPUT) == []
    assert removed(BROKEN[how], kept.replace("locals {", "locals {\n  renamed = 1")) == []


@pytest.mark.parametrize(
    "text",
    [
        "locals {\na = {\nb = 1\n}\nc = = 2\n}\n",
        "locals {\n  a = {\n  b = 1\n  c = 2\n}\n",
        'locals {\n  a = "${x}" {\n    b = 1\n  }\n}\n',
        "locals {\n  a = <<EOT\n  b = 1\n  c = 2\n}\n",
        "locals {\n  a = var.x ?\n    b :\n    c\n}\n",
        "locals {\n  a = merge(var.x, {\n    b = 1\n  }\n}\n",
        "locals {\n  # b = 1\n  a = = 1 # c = 2\n}\n",
    ],
)
def test_words_that_are_no_local_values(text: str) -> None:
    kept = "locals {\n  a = 1\n  c = 2\n}\n" if "c = = 2" in text else "locals {\n  a = 1\n}\n"
    assert removed(text, kept) == []


def test_on_one_line() -> None:
    assert removed("locals { a = = 1 }\n" + OUTPUT, "locals {\n}\n" + OUTPUT) == ['Block removed: local "a"']


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("locals {\n  a {\n    b = 1\n  }\n}\n", "locals {\n}\n"),
        ("locals = {\n  a = 1\n}\n", "# nothing\n"),
        ('terraform = {\n  required_version = "1"\n}\n', "# nothing\n"),
    ],
)
def test_what_parses_and_was_meant_to_be_a_declaration(before: str, after: str) -> None:
    assert len(removed(before, after)) == 1
    assert removed(before, "locals {\n  a = 1\n}\nterraform {\n}\n") == []


JSON_BLOCKS = {
    "locals": ('"locals": {"a": 1, "b": 2}', '"locals": {"a": 1}', 'local "b"'),
    "locals in a list": ('"locals": [{"a": 1}, {"b": 2}]', '"locals": [{"a": 1}]', 'local "b"'),
    "variables": ('"variable": {"a": {}, "b": {}}', '"variable": {"a": {}}', 'variable "b"'),
    "outputs": ('"output": {"a": {"value": 1}, "b": {"value": 2}}', '"output": {"a": {"value": 1}}', 'output "b"'),
    "modules": ('"module": {"a": {"source": "./a"}, "b": {}}', '"module": {"a": {"source": "./a"}}', 'module "b"'),
    "providers": ('"provider": {"a": {}, "b": [{}]}', '"provider": {"a": {}}', 'provider "b"'),
    "resources": ('"resource": {"x_y": {"a": {}, "b": {}}}', '"resource": {"x_y": {"a": {}}}', 'resource "x_y" "b"'),
}


@pytest.mark.parametrize("kind", JSON_BLOCKS)
@pytest.mark.parametrize("broken", ["{%s,}", '{%s "x": 1}', '{// comment\n%s "x": 1}'])
def test_in_json_syntax(kind: str, broken: str) -> None:
    whole, less, gone = JSON_BLOCKS[kind]
    before, after, kept = (
        report(text, "a.tf.json") for text in (broken.replace("%s", whole), f"{{{less}}}", f"{{{whole}}}")
    )
    assert [found.summary for found in removed_blocks(before, after)] == [f"Block removed: {gone}"]
    assert removed_blocks(before, kept) == []
