"""One validation in full, for `touchstone validate`: the diff, both reports and the verdict."""

import difflib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from touchstone.config import EvaluationConfig, find_problems_csv
from touchstone.errors import TouchstoneError
from touchstone.ingest.problems import read_problems
from touchstone.regular_files import read_bytes
from touchstone.validation.apply_fix import AppliedFix, Fix, FixKind, NotApplied, apply_fix, choose_fix
from touchstone.validation.outcomes import reference_request
from touchstone.validation.protocol import Report
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import COLUMNS, NoTarget, Target, Targets
from touchstone.validation.terraform_choice import choose_terraform_validator, is_terraform
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


def validate_files(
    config: EvaluationConfig, oid: str, fixes: list[Path], kind: FixKind | None
) -> list[ValidationDetail]:
    """Validate each file as a fix of the problem, with the evaluation's sandbox and cache."""
    settings = config.validation
    rows = _problems(config, oid)
    how = kind or settings.apply
    cache_dir = settings.cache_dir or config.output_dir / "cache"
    with (
        tempfile.TemporaryDirectory(prefix="touchstone-") as scratch,
        ValidationSession(settings, cache_dir, Path(scratch) / "validation") as validation,
    ):
        target = _target(config, oid, rows, validation)
        has_range = target.problem.line_start is not None
        return [_validate(validation, target, path, _fix(path, how, has_range)) for path in fixes]


def _problems(config: EvaluationConfig, oid: str) -> dict[str, dict[str, Any]]:
    """All problems by oid, among them this one."""
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        path = find_problems_csv(config)
        problems = read_problems(path, Path(scratch) / "problems.parquet", config.problem_key).problems
        present = [name for name in COLUMNS if name in problems.collect_schema()]
        rows = {row["oid"]: row for row in problems.select("oid", *present).sort("oid").collect().iter_rows(named=True)}
    if oid not in rows:
        raise TouchstoneError(f"{path}: there is no problem '{oid}'")
    return rows


def _target(
    config: EvaluationConfig, oid: str, rows: dict[str, dict[str, Any]], validation: ValidationSession
) -> Target:
    settings = config.validation
    if is_terraform(rows[oid]):
        settings = choose_terraform_validator(rows.values(), config.clones_dir, validation).applied_to(settings)
    found = Targets(config.clones_dir, settings).find([rows[oid]])[oid]
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
        return read_bytes(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TouchstoneError(f"{path}: cannot be read ({error})") from None


def _validate(validation: ValidationSession, target: Target, path: Path, fix: Fix) -> ValidationDetail:
    applied = apply_fix(target.original, fix, target.problem)
    before = validation.request(target, None)
    after = validation.request(target, applied.content) if isinstance(applied, AppliedFix) else None
    _, reference = reference_request(target, validation)
    known = validation.reports([made for made in (before, after, reference) if made], "validating")
    baseline = known[before.key].report
    if isinstance(applied, NotApplied):
        verdict = Verdict(applied.status, fixed=False, plausible=False, note=applied.reason)
    else:
        assert after is not None
        lines = (applied.first_line, applied.last_line)
        verdict = compute_verdict(
            baseline,
            known[after.key].report,
            target.problem,
            *lines,
            validation.settings.success,
            known[reference.key].report if reference else None,
        )
    return ValidationDetail(
        fix=path,
        target=target,
        sandbox=validation.sandbox.name,
        fidelity=baseline.fidelity,
        diff=_diff(target, applied) if isinstance(applied, AppliedFix) else "",
        baseline=baseline,
        report=known[after.key].report if after else None,
        cached=known[after.key].cached if after else False,
        verdict=verdict,
        success=validation.settings.success,
    )


def _diff(target: Target, applied: AppliedFix) -> str:
    name = target.problem.path
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (target.original, applied.content))
    return "\n".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm=""))
