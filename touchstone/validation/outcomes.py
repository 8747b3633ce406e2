"""The rows of the tables that validation makes: apply each fix, get its report, and compute its verdict.

`baselines` and `outcomes` have the verdicts. `problem_files` and `validated_fixes` keep texts for people to look at,
each with at most `validation.kept_characters` characters. A column that a row lacks is null. Getting reports belongs in
`session`; deciding a verdict belongs in `judging`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from touchstone.config.validation import ValidationSettings
from touchstone.validation.files.working_copy import is_executable
from touchstone.validation.fixes.apply_fix import AppliedFix, Fix, NotApplied, apply_fix, choose_fix
from touchstone.validation.fixes.line_diff import diff_lines
from touchstone.validation.judging.known_tests import hold_to_known_tests
from touchstone.validation.judging.verdicts import (
    Verdict,
    compute_verdict,
    missing_need,
    needs_leak_detection,
    new_doubts,
    only_judged,
    target_diagnostics,
    unlike_recorded,
)
from touchstone.validation.protocol import RETRIED, SETTLED, UNDECIDED, NoTarget, Problem, Report
from touchstone.validation.session import CachedReport, Request, ValidationSession
from touchstone.validation.targets import Target
from touchstone.vocabulary import MAX_DIAGNOSTICS, Success

# As a terminal shows them.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MAX_KEPT_TESTS = 2_000
_MAX_KEPT_MESSAGE = 500
_FROM_VERDICT = (
    *("fixed", "introduced_block", "introduced_file", "introduced_module"),
    *("introduced_errors", "block_errors", "module_errors"),
)
# Beside the columns of an outcome: the columns that `validated_fixes` has besides the key, if the fix was applied.
KEPT = "kept"
Row = dict[str, Any]
# Tests that do not count, by problem.
ExcludedTests = Mapping[str, frozenset[str]]
NONE_EXCLUDED: ExcludedTests = {}


@dataclass(frozen=True)
class ValidatedProblem:
    """A problem with the reports that its fixes are compared with: unmodified, and with its reference fix."""

    target: Target
    baseline: Report
    applied: AppliedFix | NotApplied | None
    reference: Report | None
    excluded: frozenset[str] = frozenset()

    @property
    def judged(self) -> Problem:
        """The problem as fixes are judged: without the excluded tests among those that it names."""
        problem, left_out = self.target.problem, self.excluded
        lists = (problem.fail_to_pass, problem.pass_to_pass)
        fail_to_pass, pass_to_pass = (tuple(name for name in names if name not in left_out) for names in lists)
        return replace(problem, fail_to_pass=fail_to_pass, pass_to_pass=pass_to_pass)


@dataclass(frozen=True)
class PlannedFix:
    """A fix of a problem with the request for its report, or without one if its outcome needs no report."""

    target: Target | NoTarget
    applied: AppliedFix | NotApplied | NoTarget
    request: Request | None = None
    # What `validated_fixes` says of the fix, once it is known.
    kept: Row = field(default_factory=dict)


# Problems


def baseline_rows(
    targets: Mapping[str, Target | NoTarget], validation: ValidationSession, excluded: ExcludedTests = NONE_EXCLUDED
) -> list[Row]:
    """One row per problem: the results for its unmodified files and its reference fix, to tell if it can be trusted."""
    problems = validate_problems(targets, validation, excluded)
    return [
        {"oid": oid, "baseline_status": known.status, "diagnostics": known.reason}
        if isinstance(known, NoTarget)
        else _problem_row(known, validation)
        for oid, known in problems.items()
    ]


def validate_problems(
    targets: Mapping[str, Target | NoTarget], validation: ValidationSession, excluded: ExcludedTests = NONE_EXCLUDED
) -> dict[str, ValidatedProblem | NoTarget]:
    """Validate problems and their reference fixes. `excluded` tests do not count."""
    usable = {oid: target for oid, target in targets.items() if isinstance(target, Target)}
    baselines = {oid: validation.request(target, None) for oid, target in usable.items()}
    applied = {oid: _applied_reference(target, validation.settings) for oid, target in usable.items()}
    references = {
        oid: validation.request(usable[oid], fix) for oid, fix in applied.items() if isinstance(fix, AppliedFix)
    }
    reports = validation.problem_reports([*baselines.values()], [*references.values()])
    found: dict[str, ValidatedProblem | NoTarget] = {}
    for oid, target in targets.items():
        if isinstance(target, NoTarget):
            found[oid] = target
            continue
        baseline = reports[baselines[oid].key].report
        reference = reports[references[oid].key].report if oid in references else None
        known = ValidatedProblem(target, baseline, applied[oid], reference)
        found[oid] = exclude_tests(known, excluded[oid]) if oid in excluded else known
    return found


def exclude_tests(known: ValidatedProblem, names: frozenset[str]) -> ValidatedProblem | NoTarget:
    """The problem as the other tests show it; no target if none of them shows its errors."""
    reference = None if known.reference is None else known.reference.without_tests(names)
    left = replace(known, baseline=known.baseline.without_tests(names), reference=reference, excluded=names)
    if _shows_its_errors(known) and not _shows_its_errors(left):
        reason = "every test that shows its errors is flaky and left out (validation.exclude_flaky)"
        return NoTarget("validator_unavailable", f"{reason}: {', '.join(sorted(names))}")
    return left


def _shows_its_errors(known: ValidatedProblem) -> bool:
    """Whether the unmodified problem shows its errors; it shows none if every test that it names is left out."""
    if known.target.problem.judged_tests and not known.judged.judged_tests:
        return False
    return bool(target_diagnostics(only_judged(known.baseline, known.judged), known.judged))


def _applied_reference(target: Target, settings: ValidationSettings) -> AppliedFix | NotApplied | None:
    """The problem's own fix, a file or a block, else a patch, as applied; None without one."""
    text, patch = target.problem.reference_fix or "", target.problem.reference_patch or ""
    if text.strip():
        fix = Fix(text, "block" if settings.apply == "block" else "file")
    elif patch.strip():
        fix = Fix(patch, "diff")
    else:
        return None
    return apply_fix(target.tree, fix, target.problem, settings.test_edits)


def reference_verdict(known: ValidatedProblem, success: Success) -> Verdict | None:
    """The verdict on the reference fix under the configured success rule; None without a reference fix."""
    applied, report = known.applied, known.reference
    if applied is None:
        return None
    if isinstance(applied, NotApplied):
        return Verdict(applied.status, fixed=False, note=applied.reason)
    assert report is not None
    return compute_verdict(known.baseline, report, known.judged, *applied.lines, success, report)


def _problem_row(known: ValidatedProblem, validation: ValidationSession) -> Row:
    target, problem = known.target, known.judged
    baseline = only_judged(known.baseline, problem)
    reference = reference_verdict(known, validation.settings.success)
    unlike = unlike_recorded(known.baseline, problem, known.reference) if baseline.finished else ""
    failing = not baseline.finished or (bool(target_diagnostics(baseline, problem)) and not unlike)
    words = [unlike, baseline.note, *map(str, baseline.diagnostics)]
    if reference is not None and reference.status != "passed":
        words.insert(0, f"reference fix: {reference.status} ({reference.note})")
    return {
        "oid": problem.oid,
        "validator": target.validator,
        "fidelity": _fidelity(baseline.fidelity, target, validation),
        "files_sha": target.hashed.hash_of(target.tree),
        "baseline_status": baseline.status,
        "baseline_errors": sum(one.severity == "error" for one in baseline.diagnostics) if baseline.decided else None,
        "fails_as_recorded": failing if baseline.decided else None,
        "reference_status": None if reference is None else reference.status,
        "diagnostics": _truncated_text(words),
        # A reference fix that timed out is tried again by every run.
        SETTLED: baseline.settled and (reference is None or reference.status not in RETRIED),
    }


# Fixes


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
    models = {attempt["model"]: None for attempt in attempts}
    reports = validation.reports(wanted, f"validating {', '.join(models)}")
    return [_outcome(attempt, plan, problems[attempt["oid"]], reports, validation) for attempt, plan in planned]


def plan_attempts(
    attempts: Iterable[Mapping[str, Any]],
    problems: Mapping[str, ValidatedProblem | NoTarget],
    validation: ValidationSession,
) -> list[tuple[Mapping[str, Any], PlannedFix]]:
    """Each attempt with its fix applied. Equal fixes of a problem are applied once."""
    applied: dict[tuple[str, Fix | None], PlannedFix] = {}
    planned = []
    for attempt in attempts:
        problem = problems[attempt["oid"]]
        target = problem if isinstance(problem, NoTarget) else problem.target
        has_range = isinstance(target, Target) and target.problem.has_block
        fix = choose_fix(attempt, validation.settings.apply, has_range)
        known = applied.get((attempt["oid"], fix))
        if known is None:
            known = applied[attempt["oid"], fix] = plan_fix(target, fix, validation)
        planned.append((attempt, known))
    return planned


def plan_fix(target: Target | NoTarget, fix: Fix | None, validation: ValidationSession) -> PlannedFix:
    """A fix as applied, with the request for its report."""
    if isinstance(target, NoTarget):
        return PlannedFix(target, target)
    if fix is None:
        return PlannedFix(target, NotApplied("validator_unavailable", "the file brings no fix"))
    applied = apply_fix(target.tree, fix, target.problem, validation.settings.test_edits)
    return PlannedFix(target, applied, validation.request(target, applied) if isinstance(applied, AppliedFix) else None)


def judge_fix(
    report: Report, applied: AppliedFix, problem: ValidatedProblem, validation: ValidationSession
) -> tuple[Report, Verdict]:
    """The report on a fix as it is compared with its problem's, and the verdict."""
    target, baseline, success = problem.target, problem.baseline, validation.settings.success
    undecided = report.status in ("validator_unavailable", "unsafe_input")
    if undecided and baseline.decided and validation.available(target.validator).usable:
        # Only the fix needs what is missing, such as an invented provider or room, so it has failed.
        report = replace(report, status="no_report", note=f"the fix needs what the problem does not: {report.note}")
    report = _comparable_report(report, applied, problem)
    files = (target.problem.path, *target.tree.files)
    missing = missing_need(baseline, report, problem.reference, files)
    # A fix of another language could say so itself, to be left out of the figures instead of failing.
    if target.validator == "command" and needs_leak_detection(report, problem.reference):
        missing = "leak detection (or ASAN_OPTIONS=detect_leaks=0 in validation.command.environment)"
    if missing:
        note = f"neither the unmodified problem nor the fix can be tested without {missing}"
        report = replace(report, status="validator_unavailable", note=f"{note} where the tests run")
    verdict = compute_verdict(baseline, report, problem.judged, *applied.lines, success, problem.reference)
    return report, replace(verdict, note="\n".join(filter(None, (verdict.note, *applied.notes))))


def _comparable_report(report: Report, applied: AppliedFix, problem: ValidatedProblem) -> Report:
    """A fix's report without excluded tests, held to what is known of the problem's tests if pytest ran them."""
    report, tree = report.without_tests(problem.excluded), problem.target.tree
    if problem.target.validator == "python":
        report = hold_to_known_tests(report, problem.baseline, problem.reference, applied.changes, tree)
    if report.doubts:
        originals = (tree.read(path) for path in tree.files if path.endswith((".tf", ".tf.json", ".tofu", ".py")))
        report = replace(report, doubts=new_doubts(report, problem.baseline, originals))
    return report


def with_judge_note(verdict: Verdict, applied: AppliedFix, settings: ValidationSettings) -> Verdict:
    """The verdict with a note of what the fix changed besides the source."""
    changed = "changed on the judge's side" if settings.test_edits == "allow" else "put back"
    said = {changed: applied.judge_files, "changed, though tests may rely on it": applied.flagged}
    notes = [f"{what}: {', '.join(files)}" for what, files in said.items() if files]
    return replace(verdict, note="; ".join(filter(None, (verdict.note, *notes))))


def _outcome(
    attempt: Mapping[str, Any],
    plan: PlannedFix,
    problem: ValidatedProblem | NoTarget,
    reports: Mapping[str, CachedReport],
    validation: ValidationSession,
) -> Row:
    row: Row = {name: attempt[name] for name in ("model", "tier", "oid", "iteration_id")} | {"cached": False}
    if isinstance(plan.applied, NoTarget):
        return row | _not_validated_columns(plan.applied, plan.target, validation)
    row["changed_judge_files"] = _plain_text("\n".join(plan.applied.judge_files))
    if isinstance(plan.applied, NotApplied):
        return row | _not_validated_columns(plan.applied, plan.target, validation)
    row["flagged_files"] = _plain_text("\n".join(plan.applied.flagged))
    assert plan.request is not None and isinstance(problem, ValidatedProblem)
    known = reports[plan.request.key]
    report, verdict = judge_fix(known.report, plan.applied, problem, validation)
    judged = only_judged(report, problem.judged)
    if not plan.kept:  # once for the attempts that share the fix
        before, limit = only_judged(problem.baseline, problem.judged), validation.settings.kept_characters
        plan.kept.update(fix_columns(problem.target, plan.applied, judged, before, limit))
    row |= {KEPT: plan.kept, "cached": known.cached, SETTLED: is_final(verdict.status, report)}
    verdict = with_judge_note(verdict, plan.applied, validation.settings)
    return row | _validated_columns(judged, verdict, problem.target, validation)


def is_final(status: str, report: Report) -> bool:
    """Whether the next run need not try again for another status. Timeouts are final as far as their reports are.

    >>> is_final("timeout", Report("timeout", "full", cpu_used=True)), is_final("timeout", Report("timeout", "full"))
    (True, False)
    """
    return status not in RETRIED or (status == "timeout" and report.settled)


def _not_validated_columns(why: NotApplied | NoTarget, target: Target | NoTarget, validation: ValidationSession) -> Row:
    """The columns of a fix that could not be applied: failed if the model caused it, else undecided."""
    columns: Row = {"status": why.status, "passed": None, "diagnostics": why.reason}
    if why.status in UNDECIDED or isinstance(target, NoTarget):
        return columns
    failed = dict.fromkeys(("passed", "applied", "fixed", "compiled"), False)
    return columns | failed | _validator_columns(target, "", validation)


def _validated_columns(report: Report, verdict: Verdict, target: Target, validation: ValidationSession) -> Row:
    decided = verdict.status not in UNDECIDED
    tests = report.tests.values()
    found = [report.note, *map(str, report.diagnostics)]
    said = [verdict.note, *(each for each in found if each not in verdict.note)]
    return {
        "status": verdict.status,
        "passed": verdict.status == "passed" if decided else None,
        "duration_seconds": report.duration_seconds,
        "diagnostics": _truncated_text(said),
        "applied": True,
        **{name: getattr(verdict, name) for name in _FROM_VERDICT},
        "consistent": report.consistent,
        "compiled": _compiled(report, verdict) if decided else None,
        "tests_passed": sum(tests) if report.tests else None,
        "tests_failed": len(tests) - sum(tests) if report.tests else None,
        "controlled_tests": None if report.control is None else len(report.control.keys() & report.tests.keys()),
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
        "fidelity": _fidelity(fidelity, target, validation),
        "sandbox": validation.sandbox.name,
    }


def _fidelity(reported: str, target: Target, validation: ValidationSession) -> str:
    """The fidelity of a report; without any, that of the target's validator for this problem."""
    return reported or validation.registry.validator(target.validator).fidelity(target.problem)


def _truncated_text(lines: Sequence[str]) -> str | None:
    return _plain_text(_COLOURS.sub("", "\n".join(filter(None, lines)))[:MAX_DIAGNOSTICS])


def _plain_text(text: str) -> str | None:
    """The text without lone surrogates, which tables cannot store; None if it is empty."""
    return text.encode("utf-8", "replace").decode() or None


# Texts for people


def problem_file_rows(targets: Mapping[str, Target | NoTarget], settings: ValidationSettings) -> Iterator[Row]:
    """One row per problem with files: the file that it is about, as it is validated, and what the reference changes."""
    limit = settings.kept_characters
    for oid, target in targets.items():
        if isinstance(target, Target) and target.problem.path in target.tree.files:
            content = target.tree.read(target.problem.path)
            text = content.decode("utf-8", "replace")
            kept = text if 0 < len(text) <= limit else None
            applied = _applied_reference(target, settings)
            diff = _diff_text(target, applied) if isinstance(applied, AppliedFix) else ""
            row = {"oid": oid, "path": target.problem.path, "bytes": len(content), "text": kept}
            yield row | {"reference_diff": diff if 0 < len(diff) <= limit else None}


def fix_columns(target: Target, applied: AppliedFix, report: Report, baseline: Report, limit: int) -> Row:
    """Details of an applied fix that are kept: its diff, if it is not too long, and the result of each test."""
    diff = _diff_text(target, applied)
    tests = list(_test_results(report, baseline))
    return {
        "diff": diff if len(diff) <= limit else None,
        "diff_characters": len(diff),
        "tests": json.dumps(tests[:_MAX_KEPT_TESTS]) if tests else None,
        "tests_left_out": max(len(tests) - _MAX_KEPT_TESTS, 0),
    }


def _diff_text(target: Target, applied: AppliedFix) -> str:
    return _plain_text("\n".join(applied_diff(target, applied))) or ""


def applied_diff(target: Target, applied: AppliedFix) -> Iterator[str]:
    """The lines of a unified diff of all changed files."""
    files = set(target.tree.files)
    for path, content in applied.changes.items():
        old = target.tree.read(path) if path in files else None
        executable = applied.executable.get(path) if content is not None else None
        if executable is not None and not (path in files and is_executable(target.tree, path) == executable):
            yield f"new mode {'100755' if executable else '100644'} {path}"
        yield from diff_lines(path, old, content)


def _test_results(report: Report, baseline: Report) -> Iterator[dict[str, str]]:
    """Every test, those that did not pass first. A test of the unmodified problem may have lost its result."""

    def short(text: str) -> str:
        return _plain_text(_COLOURS.sub("", text)[:_MAX_KEPT_MESSAGE]) or ""

    # The summary only repeats the name of the test.
    messages = {found.test: short(found.detail or found.summary) for found in report.diagnostics if found.test}
    results = dict.fromkeys([*baseline.tests, *baseline.skipped], "no result")
    results |= dict.fromkeys(report.skipped, "skipped")
    results |= {name: "passed" if passed else "failed" for name, passed in report.tests.items()}
    for name, status in sorted(results.items(), key=lambda item: (item[1] == "passed", item[0])):
        yield {"test": short(name), "status": status, "message": messages.get(name, "") if status != "passed" else ""}
