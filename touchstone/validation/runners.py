"""The runner of each Python problem's tests, and which test ids a report from pytest must have.

The runner is chosen per problem, before any fix is validated: from the problem's files, then from what the isolated
runner says about the unmodified problem and its reference fix. Both are trusted; a fix never changes the choice.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from touchstone.config.validation import ValidationSettings
from touchstone.validation.protocol import Diagnostic, Problem, Report, Tree
from touchstone.validation.validators.python import ISOLATED, PYTEST
from touchstone.validation.validators.python_runner import isolated_obstacle

_FINISHED = ("passed", "failed")


@dataclass(frozen=True)
class CannotJudge:
    """Why the isolated runner, which the configuration demands, cannot judge a problem."""

    reason: str


def choose_runner(problem: Problem, tree: Tree, settings: ValidationSettings) -> str | CannotJudge:
    """The runner for a problem and all its fixes, from its files alone."""
    if settings.python.runner == PYTEST:
        return PYTEST
    obstacle = isolated_obstacle(problem, tree, doctest=settings.python.doctest)
    return ISOLATED if obstacle is None else runner_instead(obstacle, settings)


def runner_instead(obstacle: str, settings: ValidationSettings) -> str | CannotJudge:
    """The runner of a problem that the isolated runner cannot judge."""
    if settings.python.runner != ISOLATED:
        return PYTEST
    hint = "set validation.python.runner to auto or pytest"
    return CannotJudge(f"the isolated runner cannot judge this problem: {obstacle}; {hint}")


def hold_to_known_tests(report: Report, baseline: Report, reference: Report | None) -> Report:
    """Add an error for every test that is missing, skipped or new in a fix's report.

    Compared with the unmodified problem and the reference fix. Without either (the unmodified problem cannot be
    collected, and there is no reference fix) nothing is known and nothing is added.
    """
    if report.status not in _FINISHED or report.compiled is False:
        return report
    known = [one for one in (baseline, reference) if one is not None and one.status in _FINISHED and one.compiled]
    added = tuple(_differences(report, known)) if known else ()
    if not added:
        return report
    return replace(report, status="failed", diagnostics=(*report.diagnostics, *added))


def _differences(report: Report, known: list[Report]) -> Iterator[Diagnostic]:
    ids = {name for one in known for name in (*one.tests, *one.skipped)}
    may_skip = {name for one in known for name in one.skipped}
    for name in known[-1].tests:
        if name not in report.tests and name not in report.skipped:
            yield Diagnostic("error", f"test did not report: {name}", test=name)
    for name in report.skipped:
        if name in ids and name not in may_skip:
            yield Diagnostic("error", f"test skipped: {name}", "it is not skipped without the fix", test=name)
    for name in (*report.tests, *report.skipped):
        if name not in ids:
            yield Diagnostic("error", f"unknown test: {name}", "the problem has no such test", test=name)
