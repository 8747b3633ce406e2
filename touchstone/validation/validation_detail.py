"""One validation in full, for `touchstone validate`: the diff, both reports, each test and the verdict."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from touchstone.config import EvaluationConfig
from touchstone.errors import TouchstoneError
from touchstone.ingest.discovery import require_problems_csv
from touchstone.regular_files import read_bytes
from touchstone.validation.fixes.apply_fix import AppliedFix, Fix, FixKind
from touchstone.validation.judging.verdicts import Verdict, only_judged
from touchstone.validation.noise import fix_subject, problem_subjects, repeated_rows
from touchstone.validation.outcomes import (
    PlannedFix,
    Row,
    ValidatedProblem,
    applied_diff,
    judge_fix,
    plan_fix,
    validate_problems,
    with_judge_note,
)
from touchstone.validation.protocol import NoTarget, Problem, Report
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Target, Targets, problem_rows
from touchstone.validation.terraform_choice import choose_terraform_validator, is_terraform
from touchstone.vocabulary import Success

_DIFFS = (".diff", ".patch")


@dataclass(frozen=True)
class TestChange:
    """One test before and after the fix: True passed, False failed, None did not report. `group` names its list."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    name: str
    before: bool | None
    after: bool | None
    group: str


@dataclass(frozen=True)
class ValidationDetail:
    """The validation of one fix. `report` is None if the fix could not be applied."""

    fix: Path
    target: Target
    sandbox: str
    fidelity: str
    diff: str
    baseline: Report
    report: Report | None
    cached: bool
    verdict: Verdict
    success: Success

    @property
    def tests(self) -> list[TestChange]:
        """Every test in either report: first those that the problem names, then by name."""
        problem = self.target.problem
        before, after = self.baseline.tests, self.report.tests if self.report is not None else {}
        groups = dict.fromkeys(problem.pass_to_pass, "pass_to_pass")
        groups |= dict.fromkeys(problem.fail_to_pass, "fail_to_pass")
        names = [*problem.judged_tests, *sorted((before.keys() | after.keys()) - groups.keys())]
        return [TestChange(name, before.get(name), after.get(name), groups.get(name, "")) for name in names]


def validate_files(
    config: EvaluationConfig, oid: str, fixes: list[Path], kind: FixKind | None, repeat: int = 1
) -> tuple[list[ValidationDetail], list[Row]]:
    """Validate each file as a fix of the problem, with the evaluation's sandbox and cache.

    If `repeat` is more than 1, the problem, its reference fix and the files are validated so many times, uncached: the
    rows say how often each test and verdict passed.
    """
    settings = config.validation
    rows = problem_rows(config)
    if oid not in rows:
        raise TouchstoneError(f"{require_problems_csv(config)}: there is no problem '{oid}'")
    cache_dir = settings.cache_dir or config.output_dir / "cache"
    with (
        tempfile.TemporaryDirectory(prefix="touchstone-") as scratch,
        ValidationSession(settings, cache_dir, Path(scratch) / "validation") as validation,
    ):
        problem = validate_problems({oid: _target(config, oid, rows, validation)}, validation)[oid]
        if isinstance(problem, NoTarget):
            raise TouchstoneError(f"problem '{oid}' cannot be validated: {problem.status}: {problem.reason}")
        texts = {path: _fix(path, kind, settings.apply, problem.target.problem) for path in fixes}
        plans = {path: plan_fix(problem.target, fix, validation) for path, fix in texts.items()}
        details = [_validate(validation, problem, path, plan) for path, plan in plans.items()]
        return details, _repeat(validation, problem, plans, repeat) if repeat > 1 else []


def _repeat(
    validation: ValidationSession, problem: ValidatedProblem, plans: Mapping[Path, PlannedFix], repeat: int
) -> list[Row]:
    subjects = list(problem_subjects(problem, validation))
    for path, plan in plans.items():
        if plan.request is not None and isinstance(plan.applied, AppliedFix):
            first = validation.reports([plan.request], "validating")[plan.request.key].report
            key = {"validated": str(path)}
            subjects.append(fix_subject(key, plan.request, first, plan.applied, problem, validation))
    return repeated_rows(subjects, validation, repeat)


def _target(
    config: EvaluationConfig, oid: str, rows: dict[str, dict[str, Any]], validation: ValidationSession
) -> Target | NoTarget:
    settings = config.validation
    if is_terraform(rows[oid]):
        settings = choose_terraform_validator(rows.values(), config.clones_dir, validation)
    return Targets(config.clones_dir, settings).find([rows[oid]])[oid]


def _fix(path: Path, kind: FixKind | None, apply: Literal["auto", "file", "block"], problem: Problem) -> Fix:
    """The file's text as a fix: by default a diff if it is named so, a block if the problem has lines, else a file."""
    usual: FixKind = ("block" if problem.has_block else "file") if apply == "auto" else apply
    return Fix(_read(path), kind or ("diff" if path.suffix in _DIFFS else usual))


def _read(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TouchstoneError(f"{path}: cannot be read ({error})") from None


def _validate(
    validation: ValidationSession, problem: ValidatedProblem, path: Path, plan: PlannedFix
) -> ValidationDetail:
    target, settings, applied = problem.target, validation.settings, plan.applied
    report, cached = None, False
    if isinstance(applied, AppliedFix) and plan.request is not None:
        known = validation.reports([plan.request], "validating")[plan.request.key]
        (report, verdict), cached = judge_fix(known.report, applied, problem, validation), known.cached
        verdict = with_judge_note(verdict, applied, settings)
    else:
        assert not isinstance(applied, AppliedFix)
        verdict = Verdict(applied.status, fixed=False, plausible=False, note=applied.reason)
    return ValidationDetail(
        fix=path,
        target=target,
        sandbox=validation.sandbox.name,
        fidelity=problem.baseline.fidelity,
        diff="\n".join(applied_diff(target, applied)) if isinstance(applied, AppliedFix) else "",
        baseline=only_judged(problem.baseline, target.problem),
        report=only_judged(report, target.problem) if report is not None else None,
        cached=cached,
        verdict=verdict,
        success=settings.success,
    )
