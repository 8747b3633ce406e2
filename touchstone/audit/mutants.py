"""The mutants of reference fixes, each validated as a fix of its own: the rows of the table `mutants`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from touchstone.audit.mutations import Mutant, choose_mutants
from touchstone.validation.fixes.apply_fix import AppliedFix
from touchstone.validation.fixes.line_diff import diff_lines
from touchstone.validation.outcomes import (
    ExcludedTests,
    Row,
    ValidatedProblem,
    is_final,
    judge_fix,
    reference_verdict,
    validate_problems,
)
from touchstone.validation.protocol import SETTLED, NoTarget
from touchstone.validation.session import Request, ValidationSession
from touchstone.validation.targets import Target


@dataclass(frozen=True)
class _Planned:
    problem: ValidatedProblem
    reference: AppliedFix
    mutant: Mutant
    applied: AppliedFix
    request: Request


def mutant_rows(
    targets: Mapping[str, Target | NoTarget], validation: ValidationSession, excluded: ExcludedTests, most: int
) -> Iterator[Row]:
    """One row per mutant of every reference fix that passes, at most so many per problem, with `SETTLED`."""
    problems = validate_problems(targets, validation, excluded)
    planned = [plan for known in problems.values() for plan in _plan(known, validation, most)]
    reports = validation.reports([plan.request for plan in planned], "validating mutants of the reference fixes")
    numbers: dict[str, int] = {}
    for plan in planned:
        report, verdict = judge_fix(reports[plan.request.key].report, plan.applied, plan.problem, validation)
        oid, mutant, status = plan.problem.target.problem.oid, plan.mutant, verdict.status
        final = is_final(status, report)
        numbers[oid] = numbers.get(oid, 0) + 1
        diff = diff_lines(mutant.path, plan.reference.changes[mutant.path], mutant.content)
        yield {
            "oid": oid,
            "mutant": numbers[oid],
            "path": mutant.path,
            "line": mutant.line,
            "change": mutant.change,
            "status": status,
            "result": "survived" if status == "passed" else "killed" if final else "undecided",
            "diff": "\n".join(diff),
            # What is undecided is tried again by the next run, as for any other fix.
            SETTLED: final,
        }


def _plan(known: ValidatedProblem | NoTarget, validation: ValidationSession, most: int) -> Iterator[_Planned]:
    """The mutants of a problem whose reference fix passes, each as a fix of its own."""
    if isinstance(known, NoTarget) or not isinstance(known.applied, AppliedFix):
        return
    verdict = reference_verdict(known, validation.settings.success)
    if verdict is None or verdict.status != "passed":
        return
    reference, tree, tests = known.applied, known.target.tree, set(known.target.problem.judge_files)
    files = [
        (path, tree.read(path) if path in tree.files else None, content)
        for path, content in sorted(reference.changes.items())
        if content is not None and path.endswith(".py") and path not in tests
    ]
    for mutant in choose_mutants(files, most):
        applied = replace(reference, changes={**reference.changes, mutant.path: mutant.content})
        yield _Planned(known, reference, mutant, applied, validation.request(known.target, applied))
