"""Validator noise: the same files validated several times, to find tests that pass only sometimes.

The report that counts, which may come from the cache, is the first run. The further runs bypass the cache in both
directions and change no verdict. Which results differ from run to run belongs here; what that means for a model's
figures belongs in `touchstone.metrics.validator_variance`.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from touchstone.inference.uncertainty import wilson
from touchstone.validation.fixes.apply_fix import AppliedFix, NotApplied
from touchstone.validation.judging.verdicts import compute_verdict
from touchstone.validation.outcomes import (
    PlannedFix,
    Row,
    ValidatedProblem,
    judge_fix,
    plan_attempts,
    validate_problems,
)
from touchstone.validation.protocol import UNDECIDED, NoTarget, Report
from touchstone.validation.session import Request, ValidationSession
from touchstone.validation.targets import Target

# A test that flips with a fix may flip because of the fix, so only these can show that the test is to blame.
_WRITTEN_BY_NO_MODEL = ("baseline", "reference")


@dataclass(frozen=True)
class Subject:
    """Files to validate several times: whose they are, their first report, and the verdict on any report on them."""

    key: Mapping[str, str | None]
    request: Request
    first: Report
    verdict: Callable[[Report], str]
    # The tests that count; empty if nothing is known about them.
    tests: frozenset[str] = frozenset()


def noise_rows(
    targets: Mapping[str, Target | NoTarget],
    sample: Iterable[Mapping[str, Any]],
    validation: ValidationSession,
    confidence: float,
) -> list[Row]:
    """The rows of the table `validator_noise`: all problems and their reference fixes, and a sample of fixes."""
    settings = validation.settings
    problems = validate_problems(targets, validation)
    planned = plan_attempts(sample, problems, validation)
    subjects = [
        *(one for known in problems.values() for one in problem_subjects(known, validation)),
        *_fix_subjects(planned, problems, validation),
    ]
    rows = repeated_rows(subjects, validation, settings.repeat)
    # A fix that cannot be applied fails every time, without a validator.
    rows += [
        _row(_fix_key(attempt), None, settings.repeat, 0)
        for attempt, plan in planned
        if isinstance(plan.applied, NotApplied) and plan.applied.status not in UNDECIDED
    ]
    excluded = _tests_to_exclude(rows) if settings.exclude_flaky else set()
    return [{**row, **_interval(row, confidence), "excluded": (row["oid"], row["test"]) in excluded} for row in rows]


def _interval(row: Row, confidence: float) -> dict[str, float]:
    return dict(zip(("ci_low", "ci_high"), wilson(row["passes"] / row["runs"], row["runs"], confidence), strict=True))


def _tests_to_exclude(rows: Iterable[Row]) -> set[tuple[str, str]]:
    """The problem and name of every test that flips without any model's doing."""
    flaky = (row for row in rows if row["flaky"] and row["test"] is not None)
    return {(row["oid"], row["test"]) for row in flaky if row["validated"] in _WRITTEN_BY_NO_MODEL}


def problem_subjects(known: ValidatedProblem | NoTarget, validation: ValidationSession) -> Iterator[Subject]:
    """The unmodified files and the reference fix of a problem, as far as they can be validated."""
    if isinstance(known, NoTarget):
        return
    problem, success, fix = known.target.problem, validation.settings.success, known.applied
    unmodified = validation.request(known.target, None)
    yield Subject(_key(problem.oid, "baseline"), unmodified, known.baseline, lambda report: report.status)
    if isinstance(fix, AppliedFix) and known.reference is not None:

        def verdict(report: Report) -> str:
            return compute_verdict(known.baseline, report, problem, *fix.lines, success, report).status

        yield Subject(_key(problem.oid, "reference"), validation.request(known.target, fix), known.reference, verdict)


def fix_subject(
    key: Mapping[str, str | None],
    request: Request,
    first: Report,
    applied: AppliedFix,
    problem: ValidatedProblem,
    validation: ValidationSession,
) -> Subject:
    """A fix, judged as in every run: by comparison with the first report on the unmodified problem."""
    known = (problem.baseline, problem.reference)
    tests = frozenset(name for report in known if report is not None for name in report.tests)
    return Subject(key, request, first, lambda report: judge_fix(report, applied, problem, validation)[1].status, tests)


def _fix_subjects(
    planned: Sequence[tuple[Mapping[str, Any], PlannedFix]],
    problems: Mapping[str, ValidatedProblem | NoTarget],
    validation: ValidationSession,
) -> Iterator[Subject]:
    wanted = [plan.request for _, plan in planned if plan.request is not None]
    reports = validation.reports(wanted, "validating a sample of fixes")
    for attempt, plan in planned:
        problem = problems[attempt["oid"]]
        if plan.request is not None and isinstance(plan.applied, AppliedFix) and isinstance(problem, ValidatedProblem):
            first = reports[plan.request.key].report
            yield fix_subject(_fix_key(attempt), plan.request, first, plan.applied, problem, validation)


def repeated_rows(subjects: Sequence[Subject], validation: ValidationSession, repeat: int) -> list[Row]:
    """One row per test of each subject, and one for its verdict, over `repeat` runs."""
    again = validation.repeats((one.request for one in subjects), repeat - 1)
    return [row for one in subjects for row in _subject_rows(one, [one.first, *again.get(one.request.key, ())])]


def _subject_rows(subject: Subject, reports: Sequence[Report]) -> Iterator[Row]:
    statuses = [status for status in map(subject.verdict, reports) if status not in UNDECIDED]
    if statuses:
        yield _row(subject.key, None, len(statuses), statuses.count("passed"))
    # Where tests did not get to run, the verdict shows it; no single test does.
    finished = [report for report in reports if report.finished and report.compiled is not False]
    names = {name for report in finished for name in report.tests}
    for test in sorted(names & subject.tests if subject.tests else names):
        yield _row(subject.key, test, len(finished), sum(report.tests.get(test, False) for report in finished))


def _row(key: Mapping[str, str | None], test: str | None, runs: int, passes: int) -> Row:
    return {**key, "test": test, "runs": runs, "passes": passes, "flaky": 0 < passes < runs}


def _key(oid: str, validated: str) -> dict[str, str | None]:
    return {"oid": oid, "validated": validated, "model": None, "tier": None, "iteration_id": None}


def _fix_key(attempt: Mapping[str, Any]) -> dict[str, str | None]:
    return {**_key(attempt["oid"], "fix"), **{name: attempt[name] for name in ("model", "tier", "iteration_id")}}


def sample_fixes(fixes: pl.LazyFrame, at_most: int, seed: int) -> pl.DataFrame:
    """At most so many fixes per model and tier, at random, one of each problem before a second of any.

    The choice depends on the ids and the seed alone, not on the order of rows.
    """
    key = ["model", "tier", "oid", "iteration_id"]
    attempts = fixes.select(key).collect()
    draws = [hashlib.sha256("\0".join((str(seed), *row)).encode()).hexdigest() for row in attempts.iter_rows()]
    chosen = (
        attempts.with_columns(draw=pl.Series(draws, dtype=pl.String))
        .with_columns(turn=pl.col("draw").rank("ordinal").over(key[:3]))
        .sort("turn", "draw")
        .group_by(key[:2], maintain_order=True)
        .head(at_most)
    )
    return fixes.join(chosen.lazy().select(key), on=key, how="semi").sort(key).collect()
