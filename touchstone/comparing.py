"""`touchstone compare`: two evaluations side by side, with the cases that changed and what may be said of the whole.

What a side can be is in `comparison_sides`, which cases changed in `metrics.regressions`, the statistics in
`metrics.comparison`, and how it is written in `publish.comparison_report`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from touchstone.comparison_sides import Side, open_side
from touchstone.errors import TouchstoneError
from touchstone.metrics.comparison import ComparisonSettings, PairResult, compare_pair, holm, sentence, verdict
from touchstone.metrics.regressions import How, case_scores, regressions
from touchstone.plain_text import explain_refusals
from touchstone.publish.comparison_report import Comparison
from touchstone.snapshots import find

_GROUP = ["model", "tier"]


@dataclass(frozen=True)
class Compared:
    """The report, the verdict on each model and tier that both sides have, and what the reader must know besides."""

    report: Comparison
    verdicts: dict[tuple[str, str], str]
    notes: list[str]


@dataclass(frozen=True)
class CompareOptions:
    """What is compared, and how."""

    threshold: float = 0.05
    score: How = "best"
    models: Sequence[str] = ()
    tiers: Sequence[str] = ()
    problems_csv: Path | None = None
    data: Path | None = None


def compare(baseline: str, current: str, options: CompareOptions, settings: ComparisonSettings) -> Compared:
    """Compare two sides, each a path or the name of a snapshot in `options.data`."""
    before, after = (_opened(name, options) for name in (baseline, current))
    old, new = (_chosen(side, options) for side in (before, after))
    cases = regressions(
        case_scores(old, options.score, beside=new), case_scores(new, options.score, beside=old), options.threshold
    ).collect()
    if cases.is_empty():
        raise TouchstoneError("there is nothing to compare: no model and tier that was asked for is on either side")
    pairs = _pairs(old, new, after.problems if after.problems is not None else before.problems)
    judged = _judged({key: compare_pair(counts, settings) for key, counts in pairs.items()}, settings)
    lines = [_line(key, result, many=len(judged) > 1) for key, result in judged.items()]
    report = Comparison(before.label, after.label, options.threshold, options.score, cases, lines)
    notes = explain_refusals([*before.quarantine, *after.quarantine])
    if not judged:
        notes.append("the two sides have no model and tier in common; a file's model is its name less _fixes.csv")
    return Compared(report, {key: result.verdict for key, result in judged.items()}, notes)


def _opened(name: str, options: CompareOptions) -> Side:
    """A path that exists is that; else the name may be that of a snapshot."""
    if options.data is not None and not Path(name).exists():
        snapshot = find(options.data, name)
        label = name if name == snapshot.id else f"{name} ({snapshot.id})"
        return replace(open_side(str(snapshot.folder)), label=label)
    return open_side(name, options.problems_csv)


def _chosen(side: Side, options: CompareOptions) -> pl.LazyFrame:
    scores = side.attempt_scores
    if options.models:
        scores = scores.filter(pl.col("model").is_in(options.models))
    return scores.filter(pl.col("tier").is_in(options.tiers)) if options.tiers else scores


def _pairs(old: pl.LazyFrame, new: pl.LazyFrame, problems: pl.LazyFrame | None) -> dict[tuple[str, str], pl.DataFrame]:
    """Attempts and passes per problem on both sides, for each model and tier that both have."""
    joined = _counts(old, "a").join(_counts(new, "b"), on=[*_GROUP, "oid"], how="full", coalesce=True)
    clusters = problems.select("oid", "cluster") if problems is not None else None
    named = (
        joined.join(clusters, on="oid", how="left")
        if clusters is not None
        else joined.with_columns(cluster=pl.lit(None, pl.String))
    )
    both = named.sort(*_GROUP, "oid").collect()
    found = {}
    for key, rows in both.group_by(_GROUP, maintain_order=True):
        if rows["n_a"].count() and rows["n_b"].count():
            model, tier = (str(part) for part in key)
            found[model, tier] = rows.drop(_GROUP)
    return dict(sorted(found.items()))


def _counts(scores: pl.LazyFrame, side: str) -> pl.LazyFrame:
    decided = scores.filter(pl.col("pass_rate").is_not_null()).group_by(*_GROUP, "oid")
    return decided.agg(
        pl.len().cast(pl.Int64).alias(f"n_{side}"), pl.col("pass_rate").sum().cast(pl.Int64).alias(f"c_{side}")
    )


def _judged(
    results: dict[tuple[str, str], PairResult], settings: ComparisonSettings
) -> dict[tuple[str, str], PairResult]:
    """With Holm's correction over all models and tiers, so that many of them raise no more false alarms than one."""
    adjusted = holm([result.p_value for result in results.values()])
    return {
        key: replace(
            result,
            p_adjusted=p,
            pairs=len(results),
            verdict=verdict(result, p, settings.alpha, settings.relevant),
        )
        for (key, result), p in zip(results.items(), adjusted, strict=True)
    }


def _line(key: tuple[str, str], result: PairResult, *, many: bool) -> str:
    model, tier = key
    return f"{model} {tier}: " * many + sentence(result, "baseline", "current")
