"""The rows of the `baselines` and `outcomes` tables: apply each fix, get its report, and compute its verdict.

Getting reports belongs in `session`; deciding a verdict belongs in `verdicts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from touchstone.validation.apply_fix import AppliedFix, Fix, NotApplied, apply_fix, choose_fix
from touchstone.validation.judged_tests import only_judged, unlike_recorded
from touchstone.validation.protocol import UNDECIDED, Problem, Report
from touchstone.validation.session import CachedReport, Request, ValidationSession
from touchstone.validation.targets import NoTarget, Target
from touchstone.validation.verdicts import Verdict, compute_verdict, target_diagnostics
from touchstone.validation_config import ValidationSettings
from touchstone.vocabulary import Success

_MAX_DIAGNOSTICS = 2000
Row = dict[str, Any]


@dataclass(frozen=True)
class _PlannedAttempt:
    """An attempt with the request for its report, or without one if its outcome needs no report."""

    attempt: Mapping[str, Any]
    target: Target | NoTarget
    applied: AppliedFix | NotApplied | NoTarget
    request: Request | None = None


def baseline_rows(targets: Mapping[str, Target | NoTarget], validation: ValidationSession) -> list[Row]:
    """One row per problem: the results for its unmodified files and its reference fix, to tell if it can be trusted."""
    usable = {oid: target for oid, target in targets.items() if isinstance(target, Target)}
    baselines = {oid: validation.request(target, None) for oid, target in usable.items()}
    references = {oid: reference_request(target, validation) for oid, target in usable.items()}
    wanted = [*baselines.values(), *(made for _, made in references.values() if made is not None)]
    reports = validation.reports(wanted, "validating the problems")
    rows = []
    for oid, target in targets.items():
        if isinstance(target, NoTarget):
            rows.append(_unvalidated_problem_row(oid, target))
            continue
        baseline = reports[baselines[oid].key].report
        applied, request = references[oid]
        report = reports[request.key].report if request else None
        verdict = _reference_verdict(target, baseline, applied, report, validation.settings.success)
        rows.append(_problem_row(target, baseline, verdict, validation))
    return rows


def outcome_rows(
    attempts: Iterable[Mapping[str, Any]], targets: Mapping[str, Target | NoTarget], validation: ValidationSession
) -> list[Row]:
    """One row per attempt, in order. Fixes that produce the same file are validated once."""
    applied: dict[tuple[str, Fix | None], _PlannedAttempt] = {}
    planned = []
    for attempt in attempts:
        target = targets[attempt["oid"]]
        has_range = isinstance(target, Target) and target.problem.line_start is not None
        fix = choose_fix(attempt, validation.settings.apply, has_range)
        known = applied.get((attempt["oid"], fix))
        if known is None:
            known = applied[attempt["oid"], fix] = _plan_attempt(attempt, target, fix, validation)
        planned.append((attempt, known))
    usable = {plan.target.problem.oid: plan.target for _, plan in planned if isinstance(plan.target, Target)}
    baselines = {oid: validation.request(target, None) for oid, target in usable.items()}
    reports = validation.reports(list(baselines.values()), "validating the problems")
    references = {
        oid: request
        for oid, target in usable.items()
        if reports[baselines[oid].key].report.declared is not None
        and (request := reference_request(target, validation)[1]) is not None
    }
    reports |= validation.reports(list(references.values()), "validating the reference fixes") if references else {}
    wanted = [plan.request for _, plan in planned if plan.request is not None]
    models = {attempt["model"]: None for attempt, _ in planned}
    reports |= validation.reports(wanted, f"validating {', '.join(models)}")
    return [_outcome(attempt, plan, baselines, references, reports, validation) for attempt, plan in planned]


def _plan_attempt(
    attempt: Mapping[str, Any], target: Target | NoTarget, fix: Fix | None, validation: ValidationSession
) -> _PlannedAttempt:
    if isinstance(target, NoTarget):
        return _PlannedAttempt(attempt, target, target)
    if fix is None:
        return _PlannedAttempt(attempt, target, NotApplied("validator_unavailable", "the file brings no fix"))
    applied = apply_fix(target.tree, fix, target.problem, validation.settings.test_edits)
    if isinstance(applied, NotApplied):
        return _PlannedAttempt(attempt, target, applied)
    return _PlannedAttempt(attempt, target, applied, validation.request(target, applied.changes))


def _outcome(
    attempt: Mapping[str, Any],
    plan: _PlannedAttempt,
    baselines: Mapping[str, Request],
    references: Mapping[str, Request],
    reports: Mapping[str, CachedReport],
    validation: ValidationSession,
) -> Row:
    row = {name: attempt[name] for name in ("model", "tier", "oid", "iteration_id")} | _UNDECIDED_COLUMNS
    if plan.request is None:
        assert not isinstance(plan.applied, AppliedFix)
        return row | _not_validated_columns(plan.applied, plan.target, validation)
    assert isinstance(plan.target, Target) and isinstance(plan.applied, AppliedFix)
    known = reports[plan.request.key]
    baseline = reports[baselines[attempt["oid"]].key].report
    reference = references.get(attempt["oid"])
    applied = plan.applied
    success = validation.settings.success
    if known.report.status in ("validator_unavailable", "unsafe_input") and baseline.decided:
        known = blame_fix(known, plan.target, validation)
    verdict = compute_verdict(
        baseline,
        known.report,
        plan.target.problem,
        applied.first_line,
        applied.last_line,
        success,
        reports[reference.key].report if reference else None,
    )
    return row | _validated_columns(known, verdict, plan.target, validation)


def blame_fix(known: CachedReport, target: Target, validation: ValidationSession) -> CachedReport:
    """Turn undecided into a failure if only the fix needs what is missing, such as an invented provider or room."""
    if not validation.available(target.validator).usable:
        return known
    note = f"the fix needs what the problem does not: {known.report.note}"
    return replace(known, report=replace(known.report, status="no_report", note=note))


_UNDECIDED_COLUMNS: Row = {
    "validator": None,
    "validator_version": None,
    "fidelity": None,
    "sandbox": None,
    "cached": False,
    "duration_seconds": None,
    "diagnostics": None,
    "applied": None,
    "fixed": None,
    "introduced_block": None,
    "introduced_file": None,
    "introduced_module": None,
    "introduced_errors": None,
    "block_errors": None,
    "module_errors": None,
    "consistent": None,
    "compiled": None,
    "tests_passed": None,
    "tests_failed": None,
    "lint_warnings": None,
}


def _not_validated_columns(why: NotApplied | NoTarget, target: Target | NoTarget, validation: ValidationSession) -> Row:
    """The columns of a fix that could not be applied: failed if the model caused it, else undecided."""
    if why.status in UNDECIDED or isinstance(target, NoTarget):
        return {"status": why.status, "passed": None, "diagnostics": why.reason}
    return {
        "status": why.status,
        "passed": False,
        "diagnostics": why.reason,
        "applied": False,
        "fixed": False,
        "compiled": False,
        **_validator_columns(target, target_fidelity(target, validation), validation),
    }


def _validated_columns(known: CachedReport, verdict: Verdict, target: Target, validation: ValidationSession) -> Row:
    report = only_judged(known.report, target.problem)
    decided = verdict.status not in UNDECIDED
    tests = report.tests.values()
    return {
        "status": verdict.status,
        "passed": verdict.status == "passed" if decided else None,
        "cached": known.cached,
        "duration_seconds": report.duration_seconds,
        "diagnostics": _diagnostics_text(report, verdict),
        "applied": True,
        "fixed": verdict.fixed,
        "introduced_block": verdict.introduced_block,
        "introduced_file": verdict.introduced_file,
        "introduced_module": verdict.introduced_module,
        "introduced_errors": verdict.introduced_errors,
        "block_errors": verdict.block_errors,
        "module_errors": verdict.module_errors,
        "consistent": report.consistent,
        "compiled": _compiled(report, verdict) if decided else None,
        "tests_passed": sum(tests) if report.tests else None,
        "tests_failed": len(tests) - sum(tests) if report.tests else None,
        "lint_warnings": report.lint_warnings,
        **_validator_columns(target, report.fidelity, validation),
    }


def _compiled(report: Report, verdict: Verdict) -> bool | None:
    """The validator's answer; without one, a validation that did not finish counts as not compiled."""
    return report.compiled if report.compiled is not None or verdict.status in ("passed", "failed") else False


def _validator_columns(target: Target, fidelity: str, validation: ValidationSession) -> Row:
    validator = validation.registry.validator(target.validator)
    return {
        "validator": validator.name,
        "validator_version": validator.version,
        "fidelity": fidelity or target_fidelity(target, validation),
        "sandbox": validation.sandbox.name,
    }


def target_fidelity(target: Target, validation: ValidationSession) -> str:
    """The fidelity of the target's validator for this problem."""
    return validation.registry.validator(target.validator).fidelity(target.problem)


def _diagnostics_text(report: Report, verdict: Verdict) -> str | None:
    said = [verdict.note, report.note if report.note != verdict.note else "", *(str(one) for one in report.diagnostics)]
    return _truncated_text(said)


def _truncated_text(lines: Sequence[str]) -> str | None:
    """The lines as one truncated text, without lone surrogates, which tables cannot store."""
    text = "\n".join(line for line in lines if line)[:_MAX_DIAGNOSTICS]
    return text.encode("utf-8", "replace").decode() or None


def reference_request(
    target: Target, validation: ValidationSession
) -> tuple[AppliedFix | NotApplied | None, Request | None]:
    """The reference fix as applied and the request for its report, each None where there is none."""
    fix = _reference_fix(target.problem, validation.settings)
    if fix is None:
        return None, None
    applied = apply_fix(target.tree, fix, target.problem, validation.settings.test_edits)
    return applied, validation.request(target, applied.changes) if isinstance(applied, AppliedFix) else None


def _reference_fix(problem: Problem, settings: ValidationSettings) -> Fix | None:
    """The problem's own fix: a file or a block, else a patch."""
    if (problem.reference_fix or "").strip():
        return Fix(problem.reference_fix or "", "block" if settings.apply == "block" else "file")
    return Fix(problem.reference_patch or "", "diff") if (problem.reference_patch or "").strip() else None


def _reference_verdict(
    target: Target, baseline: Report, applied: AppliedFix | NotApplied | None, report: Report | None, success: Success
) -> Verdict | None:
    """The verdict on the reference fix under the configured success rule; None without a reference fix."""
    if applied is None:
        return None
    if isinstance(applied, NotApplied):
        return Verdict(applied.status, fixed=False, note=applied.reason)
    assert report is not None
    lines = (applied.first_line, applied.last_line)
    return compute_verdict(baseline, report, target.problem, *lines, success, report)


def _unvalidated_problem_row(oid: str, why: NoTarget) -> Row:
    return {
        "oid": oid,
        "validator": None,
        "fidelity": None,
        "baseline_status": why.status,
        "baseline_errors": None,
        "fails_as_recorded": None,
        "reference_status": None,
        "diagnostics": why.reason,
    }


def _problem_row(target: Target, baseline: Report, reference: Verdict | None, validation: ValidationSession) -> Row:
    problem = target.problem
    baseline = only_judged(baseline, problem)
    finished = baseline.status in ("passed", "failed")
    unlike = unlike_recorded(baseline, problem) if finished else ""
    failing = not finished or (bool(target_diagnostics(baseline, problem)) and not unlike)
    words: Sequence[str] = [unlike, baseline.note, *(str(one) for one in baseline.diagnostics)]
    if reference is not None and reference.status != "passed":
        words = [f"reference fix: {reference.status} ({reference.note})", *words]
    return {
        "oid": problem.oid,
        "validator": target.validator,
        "fidelity": baseline.fidelity or target_fidelity(target, validation),
        "baseline_status": baseline.status,
        "baseline_errors": sum(one.severity == "error" for one in baseline.diagnostics) if baseline.decided else None,
        "fails_as_recorded": failing if baseline.decided else None,
        "reference_status": None if reference is None else reference.status,
        "diagnostics": _truncated_text(words),
    }
