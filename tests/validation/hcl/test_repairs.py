"""Right and wrong repairs of ordinary modules: no right one fails, no wrong one passes."""

import functools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.validation.hcl.repairs import MODULES, Module
from touchstone.validation.hcl import check_module
from touchstone.validation.judging.verdicts import Verdict, compute_verdict, new_doubts
from touchstone.validation.protocol import Problem, Report

PROBLEM = Problem("p", "main.tf", Path("clones"), summary="Reference to undeclared input variable")


@functools.cache
def report(text: str, schema: str | None) -> Report:
    return check_module({"main.tf": text.encode()}, schema)


@functools.cache
def judge(module: Module, fixed: str) -> Verdict:
    baseline, after = report(module.text, module.schema), report(fixed, module.schema)
    after = replace(after, doubts=new_doubts(after, baseline, [module.text.encode()]))
    return compute_verdict(baseline, after, PROBLEM, 1, fixed.count("\n"))


def cases(kind: str) -> list[Any]:
    repairs = {name: enumerate(getattr(module, kind)) for name, module in MODULES.items()}
    return [pytest.param(MODULES[name], text, id=f"{name} {n}") for name, texts in repairs.items() for n, text in texts]


@pytest.mark.parametrize(("module", "fixed"), cases("right"))
def test_a_right_repair_passes(module: Module, fixed: str) -> None:
    verdict = judge(module, fixed)
    assert (verdict.status, verdict.note) == ("passed", "")


@pytest.mark.parametrize(("module", "fixed"), cases("wrong"))
def test_a_wrong_repair_fails_or_is_undecided_with_a_reason(module: Module, fixed: str) -> None:
    verdict = judge(module, fixed)
    assert verdict.status in ("failed", "validator_unavailable")
    assert verdict.note


def test_the_documented_number_of_wrong_repairs_is_undecided() -> None:
    found = Counter(judge(module, fixed).status for module in MODULES.values() for fixed in module.wrong)
    assert found == {"failed": 148, "validator_unavailable": 8}


@pytest.mark.parametrize("emptied", ["", "\n", "# nothing is left\n", "locals {}\n"])
@pytest.mark.parametrize("name", MODULES)
def test_an_emptied_file_is_no_repair(name: str, emptied: str) -> None:
    assert judge(MODULES[name], emptied).status == "failed"


HEAD = """
variable "b" {
  type = bool
}
variable "ls" {
  type = list(string)
}
variable "lo" {
  type = list(object({ name = string, port = optional(number) }))
}
"""


@pytest.mark.parametrize(
    "expression",
    [
        'var.b ? "a" : 1 > 2 ? "b" : "c"',
        'var.b ? [] : [var.b ? "x" : null]',
        "var.b ? { a = 1 } : {}",
        "var.lo[*].name",
        "{ for one in var.lo : one.name => one.port... }",
        "merge([for one in var.lo : { (one.name) = one.port }]...)",
        '"%{ for x in var.ls }${x},%{ endfor }"',
        'try(var.ls.x, upper([]), "d")',
        '(1 + 2) * 3 % 2 == "1" + 2',
        'compact([var.b, "", null, 1])',
        "var.ls == [] || !var.b",
        '"${var.ls}"',
    ],
)
def test_expressions_of_which_terraform_complains_of_nothing(expression: str) -> None:
    found = report(f'{HEAD}output "o" {{\n  value = {expression}\n}}\n', None)
    assert (found.diagnostics, found.doubts) == ((), ())


@pytest.mark.parametrize(
    ("argument", "doubted"),
    [
        ('value = cidrhost("10.0.0.0/8", 1)', "cidrhost"),
        ('value = file("${path.module}/x")', "file"),
        ("value = var.b ? upper(var.ls) : 1", "unless it is never evaluated"),
        ("value = [for one in var.lo : one + upper([])]", "unless it is never evaluated"),
        ("value = var.b ? 1 : true", "a number and a bool"),
        ('value = join("-")', "join"),
        ('value = formatlist("%s of %s", "a")', "formatlist"),
        ("value = [for one in var.lo : nonesuch(one.name)]", "Call to unknown function"),
        ("value = var.b ? 1 : setproduct(var.ls)", "at least two arguments"),
    ],
)
def test_what_cannot_be_told_is_a_doubt_unless_the_problem_has_it_already(argument: str, doubted: str) -> None:
    text = f'{HEAD}output "o" {{\n  {argument}\n}}\n'
    baseline, fixed = report(HEAD, None), report(text, None)
    ((reason, _),) = new_doubts(fixed, baseline, [HEAD.encode()])
    assert doubted in reason
    assert new_doubts(fixed, baseline, [text.replace(" ", "\t").encode()]) == ()
    assert new_doubts(fixed, fixed, []) == ()
    broken = report(f"{HEAD}locals {{\n  x = local.y\n}}\n", None)
    problem = replace(PROBLEM, summary=None)
    undecided = compute_verdict(broken, fixed, problem, 1, 1)
    assert (undecided.status, undecided.fixed) == ("failed", False), "the locals are gone"
    whole = report(f"{text}locals {{\n  x = 1\n}}\n", None)
    assert compute_verdict(broken, whole, problem, 1, 1).status == "validator_unavailable"
    assert compute_verdict(broken, whole, problem, 1, 1, reference=whole).status == "passed"


@pytest.mark.parametrize(
    ("block", "doubted"),
    [
        ('resource "terraform_data" "a" {{\n  for_each = {}\n}}\n', ["toset([1, 2])", "toset(var.lo)"]),
        ('terraform {{\n  required_version = "{}"\n}}\n', [">= 9.0", "1.3", "~> 1.3.0", ">= 1.0, < 1.11"]),
    ],
)
def test_what_depends_on_terraform_or_on_values_is_a_doubt(block: str, doubted: list[str]) -> None:
    certain = [">= 1.3", "~> 1.3", "1.11.4", "!= 1.3, < 2"] if "version" in block else ["toset(var.ls)", "{ a = 1 }"]
    baseline = report(HEAD, None)
    for value in (*certain, *doubted):
        found = report(HEAD + block.format(value), None)
        assert (found.diagnostics, len(new_doubts(found, baseline, [HEAD.encode()]))) == ((), int(value in doubted))


def test_another_set_of_arguments_of_a_module_is_a_doubt() -> None:
    call = 'module "m" {\n  source = "./m"\n  size   = 1\n}\n'
    before = report(call, None)
    assert new_doubts(report(call.replace("1", "2"), None), before, [call.encode()]) == ()
    assert new_doubts(report(call.replace("size", "sise"), None), before, [call.encode()])
