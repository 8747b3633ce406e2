"""From attempts to outcomes: each fix is applied, its report held against the problem's baseline, and the verdict
written down. What is validated how belongs in `validating`; what a verdict is belongs in `verdicts`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from touchstone.config import ValidationSettings
from touchstone.validation.applying import Applied, Fix, NotApplied, apply_fix, choose_fix
from touchstone.validation.protocol import UNDECIDED, Report
from touchstone.validation.targets import NoSubject, Subject
from touchstone.validation.validating import Known, Request, Validation
from touchstone.validation.verdicts import Verdict, judge, targets
from touchstone.vocabulary import Success

_MAX_DIAGNOSTICS = 2000
Row = dict[str, Any]


@dataclass(frozen=True)
class _Planned:
    """What is to be said of an attempt: a request for its report, or an outcome that is clear without one."""

    attempt: Mapping[str, Any]
    subject: Subject | NoSubject
    applied: Applied | NotApplied | NoSubject
    request: Request | None = None


def judge_problems(subjects: Mapping[str, Subject | NoSubject], validation: Validation) -> list[Row]:
    """One row per problem: how its unmodified files and its reference fix fare, and so whether it can be trusted."""
    usable = {oid: subject for oid, subject in subjects.items() if isinstance(subject, Subject)}
    baselines = {oid: validation.request(subject, None) for oid, subject in usable.items()}
    references = {oid: _reference(subject, validation) for oid, subject in usable.items()}
    wanted = [*baselines.values(), *(made for _, made in references.values() if made is not None)]
    reports = validation.reports(wanted, "validating the problems")
    rows = []
    for oid, subject in subjects.items():
        if isinstance(subject, NoSubject):
            rows.append(_untrusted(oid, subject))
            continue
        baseline = reports[baselines[oid].key].report
        applied, request = references[oid]
        report = reports[request.key].report if request else None
        verdict = _reference_verdict(subject, baseline, applied, report, validation.settings.success)
        rows.append(_problem_row(subject, baseline, verdict, validation))
    return rows


def judge_attempts(
    attempts: Iterable[Mapping[str, Any]], subjects: Mapping[str, Subject | NoSubject], validation: Validation
) -> list[Row]:
    """One outcome per attempt, in order. The same file that results from two fixes is validated once."""
    applied: dict[tuple[str, Fix | None], _Planned] = {}
    planned = []
    for attempt in attempts:
        subject = subjects[attempt["oid"]]
        has_range = isinstance(subject, Subject) and subject.problem.line_start is not None
        fix = choose_fix(attempt, validation.settings.apply, has_range)
        known = applied.get((attempt["oid"], fix))
        if known is None:
            known = applied[attempt["oid"], fix] = _plan(attempt, subject, fix, validation)
        planned.append((attempt, known))
    usable = {plan.subject.problem.oid: plan.subject for _, plan in planned if isinstance(plan.subject, Subject)}
    baselines = {oid: validation.request(subject, None) for oid, subject in usable.items()}
    reports = validation.reports(list(baselines.values()), "validating the problems")
    wanted = [plan.request for _, plan in planned if plan.request is not None]
    models = {attempt["model"]: None for attempt, _ in planned}
    reports |= validation.reports(wanted, f"validating {', '.join(models)}")
    return [_outcome(attempt, plan, baselines, reports, validation) for attempt, plan in planned]


def _plan(
    attempt: Mapping[str, Any], subject: Subject | NoSubject, fix: Fix | None, validation: Validation
) -> _Planned:
    if isinstance(subject, NoSubject):
        return _Planned(attempt, subject, subject)
    if fix is None:
        return _Planned(attempt, subject, NotApplied("validator_unavailable", "the file brings no fix"))
    applied = apply_fix(subject.original, fix, subject.problem)
    if isinstance(applied, NotApplied):
        return _Planned(attempt, subject, applied)
    return _Planned(attempt, subject, applied, validation.request(subject, applied.content))


def _outcome(
    attempt: Mapping[str, Any],
    plan: _Planned,
    baselines: Mapping[str, Request],
    reports: Mapping[str, Known],
    validation: Validation,
) -> Row:
    row = {name: attempt[name] for name in ("model", "tier", "oid", "iteration_id")} | _NOTHING
    if plan.request is None:
        assert not isinstance(plan.applied, Applied)
        return row | _not_validated(plan.applied, plan.subject, validation)
    assert isinstance(plan.subject, Subject) and isinstance(plan.applied, Applied)
    known = reports[plan.request.key]
    baseline = reports[baselines[attempt["oid"]].key].report
    applied = plan.applied
    success = validation.settings.success
    if known.report.status == "validator_unavailable" and baseline.decided:
        known = _blamed(known, plan.subject, validation)
    verdict = judge(baseline, known.report, plan.subject.problem, applied.first_line, applied.last_line, success)
    return row | _validated(known, verdict, plan.subject, validation)


def _blamed(known: Known, subject: Subject, validation: Validation) -> Known:
    """A fix that needs what nobody has, such as a provider that it made up, where the problem itself does not."""
    if not validation.available(subject.validator).usable:
        return known
    note = f"the fix needs what the problem does not: {known.report.note}"
    return replace(known, report=replace(known.report, status="no_report", note=note))


_NOTHING: Row = {
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


def _not_validated(why: NotApplied | NoSubject, subject: Subject | NoSubject, validation: Validation) -> Row:
    """A fix that could not be put in place: a failure where that is the model's doing, else undecided."""
    if why.status in UNDECIDED or isinstance(subject, NoSubject):
        return {"status": why.status, "passed": None, "diagnostics": why.reason}
    return {
        "status": why.status,
        "passed": False,
        "diagnostics": why.reason,
        "applied": False,
        "fixed": False,
        "compiled": False,
        **_by_whom(subject, subject_fidelity(subject, validation), validation),
    }


def _validated(known: Known, verdict: Verdict, subject: Subject, validation: Validation) -> Row:
    report = known.report
    decided = verdict.status not in UNDECIDED
    tests = report.tests.values()
    return {
        "status": verdict.status,
        "passed": verdict.status == "passed" if decided else None,
        "cached": known.cached,
        "duration_seconds": report.duration_seconds,
        "diagnostics": _words(report, verdict),
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
        **_by_whom(subject, report.fidelity, validation),
    }


def _compiled(report: Report, verdict: Verdict) -> bool | None:
    """What the validator says; where it could not say, whatever did not finish did not compile either."""
    return report.compiled if report.compiled is not None or verdict.status in ("passed", "failed") else False


def _by_whom(subject: Subject, fidelity: str, validation: Validation) -> Row:
    validator = validation.station.validator(subject.validator)
    return {
        "validator": validator.name,
        "validator_version": validator.version,
        "fidelity": fidelity or subject_fidelity(subject, validation),
        "sandbox": validation.sandbox.name,
    }


def subject_fidelity(subject: Subject, validation: Validation) -> str:
    """How much a verdict on this problem means."""
    return validation.station.validator(subject.validator).fidelity(subject.problem)


def _words(report: Report, verdict: Verdict) -> str | None:
    said = [verdict.note, report.note if report.note != verdict.note else "", *(str(one) for one in report.diagnostics)]
    return _joined(said)


def _joined(lines: Sequence[str]) -> str | None:
    """As one text, cut, and without halves of characters, which no table takes."""
    text = "\n".join(line for line in lines if line)[:_MAX_DIAGNOSTICS]
    return text.encode("utf-8", "replace").decode() or None


def _reference(subject: Subject, validation: Validation) -> tuple[Applied | NotApplied | None, Request | None]:
    text = subject.problem.reference_fix
    if text is None or not text.strip():
        return None, None
    applied = apply_fix(subject.original, _reference_fix(text, validation.settings), subject.problem)
    return applied, validation.request(subject, applied.content) if isinstance(applied, Applied) else None


def _reference_fix(text: str, settings: ValidationSettings) -> Fix:
    return Fix(text, "block" if settings.apply == "block" else "file")


def _reference_verdict(
    subject: Subject, baseline: Report, applied: Applied | NotApplied | None, report: Report | None, success: Success
) -> Verdict | None:
    """What became of the reference fix by the rule that fixes are judged by; None where there is none."""
    if applied is None:
        return None
    if isinstance(applied, NotApplied):
        return Verdict(applied.status, fixed=False, note=applied.reason)
    assert report is not None
    return judge(baseline, report, subject.problem, applied.first_line, applied.last_line, success)


def _untrusted(oid: str, why: NoSubject) -> Row:
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


def _problem_row(subject: Subject, baseline: Report, reference: Verdict | None, validation: Validation) -> Row:
    problem = subject.problem
    failing = baseline.decided and (
        bool(targets(baseline, problem)) if baseline.status in ("passed", "failed") else True
    )
    words: Sequence[str] = [baseline.note, *(str(one) for one in baseline.diagnostics)]
    if reference is not None and reference.status != "passed":
        words = [f"reference fix: {reference.status} ({reference.note})", *words]
    return {
        "oid": problem.oid,
        "validator": subject.validator,
        "fidelity": baseline.fidelity or subject_fidelity(subject, validation),
        "baseline_status": baseline.status,
        "baseline_errors": sum(one.severity == "error" for one in baseline.diagnostics) if baseline.decided else None,
        "fails_as_recorded": failing if baseline.decided else None,
        "reference_status": None if reference is None else reference.status,
        "diagnostics": _joined(words),
    }
