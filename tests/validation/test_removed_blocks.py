"""What a fix may rename, and what it may not remove."""

from pathlib import Path

import pytest

from touchstone.validation.hcl import check_module
from touchstone.validation.protocol import Diagnostic, Problem, Report
from touchstone.validation.removed_blocks import removed_blocks
from touchstone.validation.verdicts import compute_verdict

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
    broken = MODULE.replace("value = 1\n}", "value = 1") + '/*\nvariable "old" {\n}\n*/\n  variable "inner" {\n'
    assert removed(broken, MODULE.replace('resource "aws_vpc" "main" {}\n', "")) == [
        'Block removed: resource "aws_vpc" "main"'
    ]
    assert removed(broken, MODULE) == []


def test_json_files() -> None:
    text = '{"variable": {"a": {}, "b": {}}, "resource": {"x_y": [{"z": {}}]}, "locals": [{"l": 1}]}'
    declared = {("variable", "a"), ("variable", "b"), ("resource", "x_y", "z"), ("locals",), ("local", "l")}
    assert set(report(text, "main.tf.json").declared or ()) == declared


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
