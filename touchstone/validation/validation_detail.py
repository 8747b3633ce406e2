"""One validation in full, for `touchstone validate`: the diff, both reports and the verdict."""

import difflib
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from touchstone.config import EvaluationConfig, find_problems_csv
from touchstone.errors import TouchstoneError
from touchstone.ingest.problems import read_problems
from touchstone.validation.apply_fix import AppliedFix, Fix, FixKind, NotApplied, apply_fix, choose_fix
from touchstone.validation.noise import fix_subject, problem_subjects, repeated_rows
from touchstone.validation.outcomes import ValidatedProblem, comparable_report, validate_problems
from touchstone.validation.protocol import Report
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import COLUMNS, NoTarget, Target, Targets
from touchstone.validation.verdicts import Verdict, compute_verdict
from touchstone.vocabulary import Success


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


@dataclass(frozen=True)
class RepeatedResult:
    """How often a test of the unmodified problem, its reference fix or a fix passed; `test=None` is the verdict."""

    validated: str
    test: str | None
    runs: int
    passes: int
    flaky: bool


def validate_files(
    config: EvaluationConfig, oid: str, fixes: list[Path], kind: FixKind | None, repeat: int = 1
) -> tuple[list[ValidationDetail], list[RepeatedResult]]:
    """Validate each file as a fix of the problem, with the evaluation's sandbox and cache.

    If `repeat` is more than 1, the problem, its reference fix and the files are validated so many times, uncached.
    """
    target = _target(config, oid)
    settings = config.validation
    how = kind or settings.apply
    has_range = target.problem.line_start is not None
    cache_dir = settings.cache_dir or config.output_dir / "cache"
    with (
        tempfile.TemporaryDirectory(prefix="touchstone-") as scratch,
        ValidationSession(settings, cache_dir, Path(scratch) / "validation") as validation,
    ):
        problem = validate_problems({oid: target}, validation, references=repeat > 1)[oid]
        if isinstance(problem, NoTarget):
            raise TouchstoneError(f"problem '{oid}' cannot be validated: {problem.status}: {problem.reason}")
        given = [(path, _fix(path, how, has_range)) for path in fixes]
        details = [_validate(validation, problem, path, fix) for path, fix in given]
        return details, _repeat(validation, problem, given, repeat) if repeat > 1 else []


def _repeat(
    validation: ValidationSession, problem: ValidatedProblem, fixes: Iterable[tuple[Path, Fix]], repeat: int
) -> list[RepeatedResult]:
    target = problem.target
    subjects = list(problem_subjects(problem, validation))
    for path, fix in fixes:
        applied = apply_fix(target.original, fix, target.problem)
        if isinstance(applied, AppliedFix):
            request = validation.request(target, applied.content)
            first = validation.reports([request], "validating")[request.key].report
            subjects.append(fix_subject({"validated": str(path)}, request, first, applied, problem, validation))
    rows = repeated_rows(subjects, validation, repeat)
    return [RepeatedResult(row["validated"], row["test"], row["runs"], row["passes"], row["flaky"]) for row in rows]


def _target(config: EvaluationConfig, oid: str) -> Target:
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        path = find_problems_csv(config)
        problems = read_problems(path, Path(scratch) / "problems.parquet", config.problem_key).problems
        present = [name for name in COLUMNS if name in problems.collect_schema()]
        rows = problems.filter(pl.col("oid") == oid).select("oid", *present).collect().rows(named=True)
    if not rows:
        raise TouchstoneError(f"{path}: there is no problem '{oid}'")
    found = Targets(config.clones_dir, config.validation).find(rows)[oid]
    if isinstance(found, NoTarget):
        raise TouchstoneError(f"problem '{oid}' cannot be validated: {found.status}: {found.reason}")
    return found


def _fix(path: Path, how: Literal["auto", "file", "block"], has_range: bool) -> Fix:
    """The file's text as a fix: by default a block if the problem has lines, else the whole file."""
    fix = choose_fix({"fixed_code": _read(path)}, how, has_range)
    assert fix is not None
    return fix


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TouchstoneError(f"{path}: cannot be read ({error})") from None


def _validate(validation: ValidationSession, problem: ValidatedProblem, path: Path, fix: Fix) -> ValidationDetail:
    target, baseline = problem.target, problem.baseline
    applied = apply_fix(target.original, fix, target.problem)
    after = validation.request(target, applied.content) if isinstance(applied, AppliedFix) else None
    known = validation.reports([after], "validating")[after.key] if after is not None else None
    report = comparable_report(known.report, problem) if known is not None else None
    if isinstance(applied, NotApplied):
        verdict = Verdict(applied.status, fixed=False, plausible=False, note=applied.reason)
    else:
        assert report is not None
        lines = (applied.first_line, applied.last_line)
        verdict = compute_verdict(baseline, report, target.problem, *lines, validation.settings.success)
    return ValidationDetail(
        fix=path,
        target=target,
        sandbox=validation.sandbox.name,
        fidelity=baseline.fidelity,
        diff=_diff(target, applied) if isinstance(applied, AppliedFix) else "",
        baseline=baseline,
        report=report,
        cached=known.cached if known is not None else False,
        verdict=verdict,
        success=validation.settings.success,
    )


def _diff(target: Target, applied: AppliedFix) -> str:
    name = target.problem.path
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (target.original, applied.content))
    return "\n".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm=""))
