"""The gate: a run held against the snapshot that is pinned as its baseline, before anything is published.

It makes the tables `baseline_verdicts` and `regressions` and the report `comparison.md` in the output folder, and
decides by the configuration whether a model that got worse, or a case that did, is ignored, told, or stops the run.
Comparing itself is in `touchstone.comparing`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from touchstone.checks import Finding
from touchstone.comparing import CompareOptions, changed_cases, judge, verdict_lines
from touchstone.comparison_sides import Side, open_side
from touchstone.config import ComparisonConfig, EvaluationConfig
from touchstone.contracts import TABLES
from touchstone.evaluation import Evaluation
from touchstone.files import replacing
from touchstone.metrics.comparison import ComparisonSettings, PairResult, sentence
from touchstone.publish.comparison_report import Comparison, render
from touchstone.snapshots import RESERVED, Snapshot, find, list_snapshots, pins
from touchstone.store import Part

REPORT = "comparison.md"
_READS = ["attempt_scores", "problems"]
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
    )


def pinned_baseline(evaluation: Evaluation) -> Snapshot | None:
    """The snapshot that the configuration names; none where nothing has that name yet."""
    root, name = evaluation.store.root, evaluation.config.comparison.baseline
    snapshots = list_snapshots(root)
    known = name in pins(root) or (name in RESERVED and snapshots) or any(name == each.id for each in snapshots)
    return find(root, name) if known else None


def judge_models(evaluation: Evaluation) -> Part:
    """Bring `baseline_verdicts` up to date: every model and tier that the baseline has too, against it."""
    baseline, settings = pinned_baseline(evaluation), comparison_settings(evaluation.config)
    empty = pl.LazyFrame(schema=TABLES["baseline_verdicts"].dtypes)

    def make(scores: pl.LazyFrame, problems: pl.LazyFrame) -> pl.LazyFrame:
        if baseline is None:
            return empty
        judged = judge(_frozen(baseline), Side("this run", scores, problems), CompareOptions(), settings)
        rows = [_row(model, tier, baseline, result) for (model, tier), result in judged.items()]
        return pl.LazyFrame(rows, schema=empty.collect_schema())

    return evaluation.refresh("baseline_verdicts", _READS, [_identity(baseline), vars(settings)], make)


def find_regressions(evaluation: Evaluation) -> Part:
    """Bring `regressions` and the report up to date: every case that differs from the baseline."""
    baseline, wanted, store = pinned_baseline(evaluation), evaluation.config.comparison, evaluation.store
    settings = [_identity(baseline), wanted.threshold, wanted.score]
    report = store.root / REPORT
    if baseline is None:
        report.unlink(missing_ok=True)
        nothing = pl.LazyFrame(schema=TABLES["regressions"].dtypes)
        return evaluation.refresh("regressions", _READS, settings, lambda scores, problems: nothing)
    evaluation.require(*_READS, "baseline_verdicts")
    this_run = Side("this run", store.scan("attempt_scores"), store.scan("problems"))
    cases = changed_cases(_frozen(baseline), this_run, CompareOptions(wanted.threshold, wanted.score)).collect()
    with replacing(report) as scratch:
        scratch.write_text(_report(evaluation, baseline, cases))
    changed = cases.lazy().filter(pl.col("kind") != "unchanged")
    return evaluation.refresh("regressions", _READS, settings, lambda scores, problems: changed)


def hold(evaluation: Evaluation) -> Held:
    """Whether the run holds against its baseline, with the report of what changed."""
    baseline, store = pinned_baseline(evaluation), evaluation.store
    if baseline is None:
        return Held(_nothing_pinned(evaluation))
    evaluation.require("baseline_verdicts", "regressions")
    wanted = evaluation.config.comparison
    if evaluation.accept:
        wanted = wanted.model_copy(
            update={name: "warn" for name in ("on_worse", "on_regression") if getattr(wanted, name) == "fail"}
        )
    found = judge_changes(store.scan("baseline_verdicts").collect(), store.scan("regressions").collect(), wanted)
    report = store.root / REPORT
    if found.error:
        what_to_do = f"see {report}; where this is meant, run again with --accept and pin the new baseline"
        found = replace(found, message=f"{found.message}; {what_to_do}")
    return Held(found, report.read_text() if report.is_file() else None, report, baseline.id)


def judge_changes(verdicts: pl.DataFrame, cases: pl.DataFrame, wanted: ComparisonConfig) -> Finding:
    """What the verdicts and the changed cases mean by the configuration: all well, a warning or an error."""
    worse = verdicts.filter(pl.col("verdict") == "worse").sort("model", "tier")
    counts: Mapping[str, int] = {
        "worse": worse.height,
        "better": verdicts.filter(pl.col("verdict") == "better").height,
        **{name: cases.filter(pl.col("kind") == kind).height for name, kind in _KINDS.items()},
    }
    answers = {wanted.on_worse: counts["worse"] > 0}
    answers[wanted.on_regression] = answers.get(wanted.on_regression, False) or counts["regressions"] > 0
    fails, warns = answers.get("fail", False), answers.get("warn", False)
    told = [f"{model} {tier}: {words}" for model, tier, words in worse.select("model", "tier", "sentence").iter_rows()]
    more = [f"{len(told) - _MOST_TOLD} more models and tiers are worse"] if len(told) > _MOST_TOLD else []
    cases_told = f"{counts['regressions']:,} cases regressed, {counts['improvements']:,} improved"
    parts = [*told[:_MOST_TOLD], *more] or ["no model is worse than the baseline"]
    return Finding(not (fails or warns), "; ".join([*parts, cases_told]), error=fails, figures=counts)


_KINDS = {"regressions": "regression", "improvements": "improvement", "new": "new", "removed": "removed"}


def _nothing_pinned(evaluation: Evaluation) -> Finding:
    name = evaluation.config.comparison.baseline
    command = f"touchstone snapshots pin latest {name} --data {evaluation.store.root}"
    return Finding(True, f"no snapshot is pinned as '{name}', so nothing was compared; to pin one: {command}")


def _identity(baseline: Snapshot | None) -> str | None:
    return baseline.id if baseline is not None else None


def _frozen(baseline: Snapshot) -> Side:
    return open_side(str(baseline.folder))


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
    return render(Comparison(label, "this run", wanted.threshold, wanted.score, cases, lines), "markdown")
