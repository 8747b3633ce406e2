"""Right and wrong repairs of ordinary modules: no right one fails, no wrong one passes."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.validation.hcl.repairs import MODULES, Module, repaired
from touchstone.validation.hcl import check_module
from touchstone.validation.judging.verdicts import Verdict, compute_verdict, new_doubts
from touchstone.validation.protocol import Problem, Report

PROBLEM = Problem("p", "main.tf", Path("clones"), summary="Reference to undeclared input variable")


def report(text: str, schema: str | None) -> Report:
    found = check_module({"main.tf": text.encode()}, schema)
    status = "failed" if found.diagnostics else "passed"
    return Report(
        status, found.fidelity, found.diagnostics, found.compiled, declared=found.declared, doubts=found.doubts
    )


def judge(module: Module, fixed: str) -> Verdict:
    baseline, after = report(module.text, module.schema), report(fixed, module.schema)
    after = replace(after, doubts=new_doubts(after, baseline, [module.text.encode()]))
    return compute_verdict(baseline, after, PROBLEM, 1, fixed.count("\n"))


CASES = [(name, *repair) for name, module in MODULES.items() for repair in module.right]
WRONG = [(name, *repair) for name, module in MODULES.items() for repair in module.wrong]


def test_there_are_enough_of_both_kinds() -> None:
    assert len(MODULES) >= 10 and len(CASES) >= 40 and len(WRONG) >= 100


@pytest.mark.parametrize(("name", "old", "new"), [(name, "", "") for name in MODULES] + CASES)
def test_a_right_repair_passes(name: str, old: str, new: str) -> None:
    verdict = judge(MODULES[name], repaired(MODULES[name].text, old, new))
    assert (verdict.status, verdict.note) == ("passed", "")


@pytest.mark.parametrize(("name", "old", "new"), WRONG)
def test_a_wrong_repair_fails_or_is_undecided_with_a_reason(name: str, old: str, new: str) -> None:
    verdict = judge(MODULES[name], repaired(MODULES[name].text, old, new))
    assert verdict.status in ("failed", "validator_unavailable")
    assert verdict.note


@pytest.mark.parametrize("emptied", ["", "\n", "# nothing is left\n", "locals {}\n"])
@pytest.mark.parametrize("name", MODULES)
def test_an_emptied_file_is_no_repair(name: str, emptied: str) -> None:
    assert judge(MODULES[name], emptied).status == "failed"
