"""The rows of the `baselines` and `outcomes` tables: apply each fix, get its report, and compute its verdict.

Getting reports belongs in `session`; deciding a verdict belongs in `judging`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from touchstone.config.validation import ValidationSettings
from touchstone.validation.fixes.apply_fix import AppliedFix, Fix, NotApplied, apply_fix, choose_fix
from touchstone.validation.judging.judged_tests import only_judged, unlike_recorded
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.judging.retrying import SETTLED
from touchstone.validation.judging.verdicts import Verdict, compute_verdict, new_doubts, target_diagnostics
from touchstone.validation.kept_texts import fix_columns, side_columns, with_judge_note
from touchstone.validation.protocol import UNDECIDED, Problem, Report
from touchstone.validation.session import CachedReport, Request, ValidationSession
from touchstone.validation.targets import NoTarget, Target
from touchstone.vocabulary import Success

_MAX_DIAGNOSTICS = 2000
# Beside the columns of an outcome: the columns that `validated_fixes` has besides the key, if the fix was applied.
KEPT = "kept"
Row = dict[str, Any]
# Tests that do not count, by problem.
ExcludedTests = Mapping[str, frozenset[str]]
NONE_EXCLUDED: ExcludedTests = {}


@dataclass(frozen=True)
class PlannedAttempt:
    """An attempt with the request for its report, or without one if its outcome needs no report."""

    attempt: Mapping[str, Any]
    target: Target | NoTarget
    applied: AppliedFix | NotApplied | NoTarget
    request: Request | None = None
    # What `validated_fixes` says of the fix, once it is known.
    kept: Row = field(default_factory=dict)


def baseline_rows(
    targets: Mapping[str, Target | NoTarget], validation: ValidationSession, excluded: ExcludedTests = NONE_EXCLUDED
) -> list[Row]:
    """One row per problem: the results for its unmodified files and its reference fix, to tell if it can be trusted."""
    rows = []
    for oid, known in validate_problems(targets, validation, excluded=excluded).items():
        if isinstance(known, NoTarget):
            rows.append(_unvalidated_problem_row(oid, known))
            continue
        verdict = reference_verdict(known, validation.settings.success)
        rows.append(_problem_row(known.target, known.baseline, verdict, validation))
    return rows


@dataclass(frozen=True)
class ValidatedProblem:
    """A problem with the reports that its fixes are compared with: unmodified, and with its reference fix."""

    target: Target
    baseline: Report
    applied: AppliedFix | NotApplied | None
    reference: Report | None
    excluded: frozenset[str] = frozenset()


def validate_problems(
    targets: Mapping[str, Target | NoTarget],
    validation: ValidationSession,
    excluded: ExcludedTests = NONE_EXCLUDED,
) -> dict[str, ValidatedProblem | NoTarget]:
    """Validate problems and their reference fixes. `excluded` tests do not count."""
    found = _validate_with_all_tests(targets, validation)
    return {
        oid: exclude_tests(known, excluded[oid]) if oid in excluded and isinstance(known, ValidatedProblem) else known
        for oid, known in found.items()
    }


def exclude_tests(known: ValidatedProblem, names: frozenset[str]) -> ValidatedProblem | NoTarget:
    """The problem as the other tests show it; no target if none of them shows its errors."""
    baseline, reference = known.baseline.without_tests(names), known.reference
    problem = known.target.problem
    if target_diagnostics(known.baseline, problem) and not target_diagnostics(baseline, problem):
        reason = "every test that shows its errors is flaky and left out (validation.exclude_flaky)"
        return NoTarget("validator_unavailable", f"{reason}: {', '.join(sorted(names))}")
    reference = None if reference is None else reference.without_tests(names)
    return replace(known, baseline=baseline, reference=reference, excluded=names)


def _validate_with_all_tests(
    targets: Mapping[str, Target | NoTarget], validation: ValidationSession
) -> dict[str, ValidatedProblem | NoTarget]:
    usable = {oid: target for oid, target in targets.items() if isinstance(target, Target)}
    baselines = {oid: validation.request(target, None) for oid, target in usable.items()}
    applied = {oid: _reference(target, validation) for oid, target in usable.items()}
    references = [made for _, made in applied.values() if made is not None]
    reports = validation.problem_reports([*baselines.values()], references)
    found: dict[str, ValidatedProblem | NoTarget] = {}
    for oid, target in targets.items():
        if isinstance(target, NoTarget):
            found[oid] = target
            continue
        fix, request = applied[oid]
        baseline = reports[baselines[oid].key].report
        found[oid] = ValidatedProblem(target, baseline, fix, reports[request.key].report if request else None)
    return found


def outcome_rows(
    attempts: Iterable[Mapping[str, Any]],
    targets: Mapping[str, Target | NoTarget],
    validation: ValidationSession,
    excluded: ExcludedTests = NONE_EXCLUDED,
) -> list[Row]:
    """One row per attempt, in order, with `SETTLED` and `KEPT`. Fixes that produce the same file are validated once."""
    attempts = list(attempts)
    attempted = {attempt["oid"] for attempt in attempts}
    wanted_targets = {oid: target for oid, target in targets.items() if oid in attempted}
    problems = validate_problems(wanted_targets, validation, excluded)
    planned = plan_attempts(attempts, problems, validation)
    wanted = [plan.request for _, plan in planned if plan.request is not None]
    models = {attempt["model"]: None for attempt, _ in planned}
    reports = validation.reports(wanted, f"validating {', '.join(models)}")
    return [_outcome(attempt, plan, problems, reports, validation) for attempt, plan in planned]


def plan_attempts(
    attempts: Iterable[Mapping[str, Any]],
    problems: Mapping[str, ValidatedProblem | NoTarget],
    validation: ValidationSession,
) -> list[tuple[Mapping[str, Any], PlannedAttempt]]:
    """Each attempt with its fix applied. Equal fixes of a problem are applied once."""
    applied: dict[tuple[str, Fix | None], PlannedAttempt] = {}
    planned = []
    for attempt in attempts:
        problem = problems[attempt["oid"]]
        target = problem if isinstance(problem, NoTarget) else problem.target
        has_range = isinstance(target, Target) and target.problem.has_block
        fix = choose_fix(attempt, validation.settings.apply, has_range)
        known = applied.get((attempt["oid"], fix))
        if known is None:
            known = applied[attempt["oid"], fix] = _plan_attempt(attempt, target, fix, validation)
        planned.append((attempt, known))
    return planned


def _plan_attempt(
    attempt: Mapping[str, Any], target: Target | NoTarget, fix: Fix | None, validation: ValidationSession
) -> PlannedAttempt:
    if isinstance(target, NoTarget):
        return PlannedAttempt(attempt, target, target)
    if fix is None:
        return PlannedAttempt(attempt, target, NotApplied("validator_unavailable", "the file brings no fix"))
    applied = apply_fix(target.tree, fix, target.problem, validation.settings.test_edits)
    if isinstance(applied, NotApplied):
        return PlannedAttempt(attempt, target, applied)
    return PlannedAttempt(attempt, target, applied, validation.request(target, applied))


def _outcome(
    attempt: Mapping[str, Any],
    plan: PlannedAttempt,
    problems: Mapping[str, ValidatedProblem | NoTarget],
    reports: Mapping[str, CachedReport],
    validation: ValidationSession,
) -> Row:
    row = {name: attempt[name] for name in ("model", "tier", "oid", "iteration_id")}
    row |= _UNDECIDED_COLUMNS | side_columns(plan.applied)
    if plan.request is None:
        assert not isinstance(plan.applied, AppliedFix)
        return row | _not_validated_columns(plan.applied, plan.target, validation)
    assert isinstance(plan.applied, AppliedFix)
    known, problem = reports[plan.request.key], problems[attempt["oid"]]
    assert isinstance(problem, ValidatedProblem)
    report, verdict = judge_fix(known.report, plan.applied, problem, validation)
    row[KEPT] = _kept_texts(plan, report, problem, validation.settings.kept_characters)
    told = with_judge_note(verdict, plan.applied, validation.settings)
    return row | _validated_columns(replace(known, report=report), told, problem.target, validation)


def _kept_texts(plan: PlannedAttempt, report: Report, known: ValidatedProblem, limit: int) -> Row:
    """What is kept of an applied fix; computed once for the attempts that share it."""
    if not plan.kept:
        assert isinstance(plan.applied, AppliedFix)
        after, before = (only_judged(one, known.target.problem) for one in (report, known.baseline))
        plan.kept.update(fix_columns(known.target, plan.applied, after, before, limit))
    return plan.kept


def judge_fix(
    report: Report, applied: AppliedFix, problem: ValidatedProblem, validation: ValidationSession
) -> tuple[Report, Verdict]:
    """The report on a fix as it is compared with its problem's, and the verdict."""
    target, baseline, success = problem.target, problem.baseline, validation.settings.success
    if report.status in ("validator_unavailable", "unsafe_input") and baseline.decided:
        report = _blame_fix(report, target, validation)
    report = _comparable_report(report, applied, problem)
    verdict = compute_verdict(baseline, report, target.problem, *applied.lines, success, problem.reference)
    return report, replace(verdict, note="\n".join(filter(None, (verdict.note, *applied.notes))))


def _comparable_report(report: Report, applied: AppliedFix, problem: ValidatedProblem) -> Report:
    """A fix's report without excluded tests, held to what is known of the problem's tests if pytest ran them."""
    report = report.without_tests(problem.excluded)
    if problem.target.validator == "python":
        report = hold_to_known_tests(report, problem.baseline, problem.reference, applied.changes)
    if report.doubts:
        tree = problem.target.tree
        originals = (tree.read(path) for path in tree.files if path.endswith((".tf", ".tf.json", ".tofu", ".py")))
        report = replace(report, doubts=new_doubts(report, problem.baseline, originals))
    return report


def _blame_fix(report: Report, target: Target, validation: ValidationSession) -> Report:
    """Turn undecided into a failure if only the fix needs what is missing, such as an invented provider or room."""
    if not validation.available(target.validator).usable:
        return report
    return replace(report, status="no_report", note=f"the fix needs what the problem does not: {report.note}")


_UNDECIDED_COLUMNS: Row = dict.fromkeys(
    (
        *("validator", "validator_version", "fidelity", "sandbox", "duration_seconds", "diagnostics"),
        *("applied", "fixed", "introduced_block", "introduced_file", "introduced_module", "introduced_errors"),
        *("block_errors", "module_errors", "consistent", "compiled", "tests_passed", "tests_failed"),
        *("controlled_tests", "lint_warnings"),
        SETTLED,
    )
) | {"cached": False}


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
        "controlled_tests": None if report.control is None else len(report.control.keys() & report.tests.keys()),
        "lint_warnings": report.lint_warnings,
        SETTLED: known.report.settled,
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
    said = [verdict.note, report.note if report.note not in verdict.note else "", *map(str, report.diagnostics)]
    return _truncated_text(said)


def _truncated_text(lines: Sequence[str]) -> str | None:
    """The lines as one truncated text, without lone surrogates, which tables cannot store."""
    text = "\n".join(line for line in lines if line)[:_MAX_DIAGNOSTICS]
    return text.encode("utf-8", "replace").decode() or None


def _reference(target: Target, validation: ValidationSession) -> tuple[AppliedFix | NotApplied | None, Request | None]:
    """The reference fix as applied and the request for its report, each None where there is none."""
    fix = _reference_fix(target.problem, validation.settings)
    if fix is None:
        return None, None
    applied = apply_fix(target.tree, fix, target.problem, validation.settings.test_edits)
    return applied, validation.request(target, applied) if isinstance(applied, AppliedFix) else None


def _reference_fix(problem: Problem, settings: ValidationSettings) -> Fix | None:
    """The problem's own fix: a file or a block, else a patch."""
    if (problem.reference_fix or "").strip():
        return Fix(problem.reference_fix or "", "block" if settings.apply == "block" else "file")
    return Fix(problem.reference_patch or "", "diff") if (problem.reference_patch or "").strip() else None


def reference_verdict(known: ValidatedProblem, success: Success) -> Verdict | None:
    """The verdict on the reference fix under the configured success rule; None without a reference fix."""
    applied, report = known.applied, known.reference
    if applied is None:
        return None
    if isinstance(applied, NotApplied):
        return Verdict(applied.status, fixed=False, note=applied.reason)
    assert report is not None
    lines = (applied.first_line, applied.last_line)
    return compute_verdict(known.baseline, report, known.target.problem, *lines, success, report)


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
        SETTLED: None,
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
        SETTLED: baseline.settled and (reference is None or reference.status != "timeout"),
    }
