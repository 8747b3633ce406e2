"""Fixes that apply, and why others do not."""

from touchstone.validation.fixes.apply_fix import AppliedFix, Fix, NotApplied, apply_fix
from touchstone.validation.protocol import Problem, Tree
from touchstone.vocabulary import TestEdits


def applied_fix(tree: Tree, fix: Fix, problem: Problem, edits: TestEdits = "ignore") -> AppliedFix:
    """A fix that applies."""
    made = apply_fix(tree, fix, problem, edits)
    assert isinstance(made, AppliedFix), made
    return made


def refused_fix(tree: Tree, fix: Fix, problem: Problem, edits: TestEdits = "ignore") -> NotApplied:
    """Why a fix does not apply."""
    made = apply_fix(tree, fix, problem, edits)
    assert isinstance(made, NotApplied), made
    return made
