"""The gate: a run held against the snapshot that is pinned as its baseline, before anything is published.

It makes the tables `baseline_verdicts`, `regressions` and `regression_counts` and the report `comparison.md` in the
output folder, and decides by the configuration whether a worse model or a regressed or lost case is ignored, warned
about, or blocks publishing.
Comparing itself is in `touchstone.compare.compare`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from touchstone.checks import Finding
from touchstone.compare.compare import CompareOptions, changed_cases, compare_models, verdict_lines
from touchstone.compare.inputs import ComparisonInput, open_input
from touchstone.compare.pairs import ComparisonSettings, PairResult, sentence
from touchstone.compare.regressions import KINDS
from touchstone.compare.report import ComparisonReport, format_report
from touchstone.compare.validation_differences import validation_differences, validators_used
from touchstone.config import ComparisonConfig, EvaluationConfig
from touchstone.contracts import TABLES
from touchstone.evaluation import Evaluation
from touchstone.inference.exact import exact_sum
from touchstone.storage.files import replacing
from touchstone.storage.snapshots import (
    RESERVED,
    Snapshot,
    explain_unreadable,
    find,
    list_snapshots,
    pins,
    unreadable_snapshots,
)
from touchstone.storage.store import Part
from touchstone.text import counted

REPORT = "comparison.md"
_READS = ["attempt_scores", "problems"]
_MADE = ("baseline_verdicts", "regressions", "regression_counts")
_MOST_TOLD = 3


@dataclass(frozen=True)
class Held:
    """A run held against its baseline: what was found, and the report in Markdown where there is one."""

    finding: Finding
    report: str | None = None
    path: Path | None = None
    baseline: str | None = None


def comparison_settings(config: EvaluationConfig) -> ComparisonSettings:
    """The statistics' settings as the configuration has them."""
    wanted, intervals = config.comparison, config.intervals
    return ComparisonSettings(
        alpha=wanted.alpha,
        relevant=wanted.relevant,
        power=wanted.power,
        permutations=wanted.permutations,
        seed=intervals.seed,
        confidence=intervals.confidence,
        family=wanted.family,
        baseline_model=wanted.baseline_model,
    )


def pinned_baseline(evaluation: Evaluation) -> Snapshot | None:
    """The snapshot that the configuration names; none where nothing has that name yet."""
    root, name = evaluation.store.root, evaluation.config.comparison.baseline
    broken = unreadable_snapshots(root)
    ids = [*broken, *(snapshot.id for snapshot in list_snapshots(root))]
    known = name in pins(root) or name in ids or (name in RESERVED and ids)
    return find(root, name) if known else None


def judge_models(evaluation: Evaluation) -> Part:
    """Bring `baseline_verdicts` up to date: every model and tier that the baseline has too, against it."""
    baseline, settings = pinned_baseline(evaluation), comparison_settings(evaluation.config)
    empty = pl.LazyFrame(schema=TABLES["baseline_verdicts"].dtypes)

    def make(scores: pl.LazyFrame, problems: pl.LazyFrame) -> pl.LazyFrame:
        if baseline is None:
            return empty
        judged = compare_models(
            _frozen(baseline), ComparisonInput("this run", scores, problems), CompareOptions(), settings
        )
        rows = [_row(model, tier, baseline, result) for (model, tier), result in judged.items()]
        return pl.LazyFrame(rows, schema=empty.collect_schema())

    return evaluation.refresh("baseline_verdicts", _READS, [_identity(baseline), vars(settings)], make)


def find_regressions(evaluation: Evaluation) -> Part:
    """Bring `regressions` and the report up to date: every case that differs from the baseline."""
    baseline, store = pinned_baseline(evaluation), evaluation.store
    report = store.root / REPORT
    if baseline is None:
        report.unlink(missing_ok=True)
        nothing = pl.LazyFrame(schema=TABLES["regressions"].dtypes)
        return _refresh(evaluation, baseline, "regressions", lambda scores, problems: nothing)
    evaluation.require(*_READS, "baseline_verdicts")
    cases = _cases(evaluation, baseline, *(store.scan(name) for name in _READS))
    with replacing(report) as scratch:
        scratch.write_text(_report(evaluation, baseline, cases))
    # Both tables from one comparison; the asset of the second finds it made.
    _refresh(evaluation, baseline, "regression_counts", lambda scores, problems: counts_by_model(cases).lazy())
    changed = cases.lazy().filter(pl.col("kind") != "unchanged")
    return _refresh(evaluation, baseline, "regressions", lambda scores, problems: changed)


def count_regressions(evaluation: Evaluation) -> Part:
    """Bring `regression_counts` up to date: the cases of each kind per model and tier."""
    baseline = pinned_baseline(evaluation)

    def make(scores: pl.LazyFrame, problems: pl.LazyFrame) -> pl.LazyFrame:
        if baseline is None:
            return pl.LazyFrame(schema=TABLES["regression_counts"].dtypes)
        return counts_by_model(_cases(evaluation, baseline, scores, problems)).lazy()

    return _refresh(evaluation, baseline, "regression_counts", make)


def counts_by_model(cases: pl.DataFrame) -> pl.DataFrame:
    """How many cases of each kind there are per model and tier, and how many regressions to expect by chance."""
    names = {kind: {"regression": "regressions", "improvement": "improvements"}.get(kind, kind) for kind in KINDS}
    return (
        cases.group_by("model", "tier")
        .agg(
            *((pl.col("kind") == kind).sum().cast(pl.Int64).alias(name) for kind, name in names.items()),
            expected_by_chance=exact_sum(pl.col("chance_of_regression")),
            compared_by_pass_rate=pl.col("fallback").sum().cast(pl.Int64),
        )
        .sort("model", "tier")
    )


def hold(evaluation: Evaluation) -> Held:
    """Whether the run holds against its baseline, with the report of what changed."""
    baseline, store = pinned_baseline(evaluation), evaluation.store
    unreadable = explain_unreadable(store.root)
    if baseline is None:
        return Held(_with_remarks(_nothing_pinned(evaluation), unreadable))
    evaluation.require(*_MADE)
    wanted = evaluation.config.comparison
    if evaluation.accept:
        wanted = wanted.model_copy(
            update={name: "warn" for name in ("on_worse", "on_regression") if getattr(wanted, name) == "fail"}
        )
    verdicts, cases, counts = (store.scan(name).collect() for name in _MADE)
    found = judge_changes(verdicts, cases, counts, wanted)
    found = _with_remarks(found, unreadable, *_validation_remarks(evaluation, baseline))
    report = store.root / REPORT
    if found.error:
        what_to_do = f"see {report}; where this is meant, run again with --accept and pin the new baseline"
        found = replace(found, message=f"{found.message}; {what_to_do}")
    return Held(found, report.read_text() if report.is_file() else None, report, baseline.id)


def judge_changes(
    verdicts: pl.DataFrame, cases: pl.DataFrame, counted_cases: pl.DataFrame, wanted: ComparisonConfig
) -> Finding:
    """What the verdicts and the changed cases mean by the configuration: all well, a warning or an error.

    A case that was judged in the baseline and has no decided attempt now cannot be shown to hold, so it counts like a
    regression.
    """
    worse = verdicts.filter(pl.col("verdict") == "worse").sort("model", "tier")
    counts: dict[str, int | float] = {
        "worse": worse.height,
        "better": verdicts.filter(pl.col("verdict") == "better").height,
        **{name: int(counted_cases[name].sum()) for name in _COUNTS},
        "expected_by_chance": float(counted_cases["expected_by_chance"].sum()),
    }
    answers = {wanted.on_worse: worse.height > 0}
    holds_not = counts["regressions"] + counts["lost"] > 0
    answers[wanted.on_regression] = answers.get(wanted.on_regression, False) or holds_not
    fails, warns = answers.get("fail", False), answers.get("warn", False)
    told = [f"{model} {tier}: {words}" for model, tier, words in worse.select("model", "tier", "sentence").iter_rows()]
    more_worse = counted(len(told) - _MOST_TOLD, "more model and tier is worse", "more models and tiers are worse")
    more = [more_worse] if len(told) > _MOST_TOLD else []
    parts = [*told[:_MOST_TOLD], *more] or ["no model is worse than the baseline"]
    parts += [_changes_told(counts), *_lost_told(cases.filter(pl.col("kind") == "lost"))]
    return Finding(not (fails or warns), "; ".join(parts), error=fails, figures=counts)


_COUNTS = ("regressions", "improvements", "new", "removed", "lost", "compared_by_pass_rate")


def _changes_told(counts: Mapping[str, int | float]) -> str:
    regressed = counted(int(counts["regressions"]), "case regressed", "cases regressed")
    chance = f" ({counts['expected_by_chance']:,.1f} expected by chance alone)" if counts["regressions"] else ""
    removed = f", {counts['removed']:,} removed" if counts["removed"] else ""
    return f"{regressed}{chance}, {counts['improvements']:,} improved{removed}"


def _lost_told(lost: pl.DataFrame) -> list[str]:
    if lost.is_empty():
        return []
    named = lost.sort("model", "tier", "oid").head(_MOST_TOLD).select("oid", "model", "tier").iter_rows()
    names = ", ".join(f"{oid} of {model} at {tier}" for oid, model, tier in named)
    more = f" and {lost.height - _MOST_TOLD:,} more" if lost.height > _MOST_TOLD else ""
    return [f"{counted(lost.height, 'case')} lost: no decided attempt now ({names}{more})"]


def _nothing_pinned(evaluation: Evaluation) -> Finding:
    name = evaluation.config.comparison.baseline
    command = f"touchstone snapshots pin latest {name} --data {evaluation.store.root}"
    return Finding(True, f"no snapshot is pinned as '{name}', so nothing was compared; to pin one: {command}")


def _with_remarks(found: Finding, unreadable: list[str], *remarks: str) -> Finding:
    """With what else must be said. A snapshot that cannot be read is at least a warning: it may be the baseline."""
    told = "; ".join([found.message, *remarks, *unreadable])
    return replace(found, message=told, passed=found.passed and not unreadable)


def _identity(baseline: Snapshot | None) -> str | None:
    return baseline.id if baseline is not None else None


def _cases(evaluation: Evaluation, baseline: Snapshot, scores: pl.LazyFrame, problems: pl.LazyFrame) -> pl.DataFrame:
    """Every case of the run or of the baseline, with what became of it."""
    wanted = evaluation.config.comparison
    this_run = ComparisonInput("this run", scores, problems)
    return changed_cases(_frozen(baseline), this_run, CompareOptions(wanted.threshold, wanted.score))


def _refresh(evaluation: Evaluation, baseline: Snapshot | None, table: str, make: Callable[..., pl.LazyFrame]) -> Part:
    wanted = evaluation.config.comparison
    return evaluation.refresh(table, _READS, [_identity(baseline), wanted.threshold, wanted.score], make)


def _validation_remarks(evaluation: Evaluation, baseline: Snapshot) -> list[str]:
    return validation_differences(
        _frozen(baseline).validators, validators_used(evaluation.store.scan("outcomes")), current="this run"
    )


def _frozen(baseline: Snapshot) -> ComparisonInput:
    return open_input(str(baseline.folder))


def _row(model: str, tier: str, baseline: Snapshot, result: PairResult) -> dict[str, object]:
    renamed = {
        "only_baseline": result.problems_only_a,
        "only_current": result.problems_only_b,
        "rate_baseline": result.rate_a,
        "rate_current": result.rate_b,
        "ci_method": result.method,
        "ci_units": result.units,
    }
    same = {name: value for name, value in vars(result).items() if name in TABLES["baseline_verdicts"].dtypes}
    words = sentence(result, "the baseline", "this run")
    return {"model": model, "tier": tier, "baseline": baseline.id, "sentence": words, **renamed, **same}


def _report(evaluation: Evaluation, baseline: Snapshot, cases: pl.DataFrame) -> str:
    """The comparison as it may stand in a pull request."""
    wanted = evaluation.config.comparison
    judged = evaluation.store.scan("baseline_verdicts").select("verdict", "model", "tier", "sentence").collect()
    lines = verdict_lines(judged.iter_rows())
    label = f"{wanted.baseline} ({baseline.id})"
    remarks = _validation_remarks(evaluation, baseline)
    return format_report(
        ComparisonReport(label, "this run", wanted.threshold, wanted.score, cases, lines, remarks), "markdown"
    )
