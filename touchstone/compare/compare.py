"""Two evaluations side by side: the cases that changed, and what may be said of the whole.

Behind `touchstone compare`, and behind the gate that holds a run against its pinned baseline.

What a side can be is in `comparison_sides`, which cases changed in `metrics.regressions`, the statistics in
`metrics.comparison`, and how it is written in `publish.comparison_report`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from touchstone.compare.inputs import Side, open_side
from touchstone.compare.pairs import ComparisonSettings, PairResult, compare_pairs, sentence
from touchstone.compare.regressions import How, compare_cases
from touchstone.compare.report import Comparison
from touchstone.compare.validation_differences import validation_differences
from touchstone.errors import TouchstoneError
from touchstone.storage.snapshots import explain_unreadable, find
from touchstone.text import explain_refusals
from touchstone.vocabulary import VERDICTS

if TYPE_CHECKING:
    from touchstone.config import EvaluationConfig, Scoring

_GROUP = ["model", "tier"]
Group = tuple[str, str]


@dataclass(frozen=True)
class Compared:
    """The report, the verdict on each model and tier that both sides have, and what the reader must know besides."""

    report: Comparison
    verdicts: dict[Group, str]
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
    scoring: "Scoring | None" = None
    problem_key: str = "oid"


def configured_options(config: "EvaluationConfig") -> CompareOptions:
    """The options as a configuration has them. Scoring, problems and their key matter for sides that are files."""
    from touchstone.config import first_problems_csv

    return CompareOptions(
        threshold=config.comparison.threshold,
        score=config.comparison.score,
        problems_csv=config.problems_csv or first_problems_csv(config),
        data=config.output_dir,
        scoring=config.scoring,
        problem_key=config.problem_key,
    )


def compare(baseline: str, current: str, options: CompareOptions, settings: ComparisonSettings) -> Compared:
    """Compare two sides, each a path or the name of a snapshot in `options.data`."""
    before, after = (_opened(name, options) for name in (baseline, current))
    cases = changed_cases(before, after, options)
    if cases.is_empty():
        raise TouchstoneError("there is nothing to compare: no model and tier that was asked for is on either side")
    judged = judge(before, after, options, settings)
    told = ((result.verdict, *key, sentence(result, "baseline", "current")) for key, result in judged.items())
    remarks = validation_remarks(before, after, options)
    lines = verdict_lines(told)
    report = Comparison(before.label, after.label, options.threshold, options.score, cases, lines, remarks)
    notes = [*_unread_snapshots(baseline, current, options), *explain_refusals([*before.quarantine, *after.quarantine])]
    if not judged:
        notes.append("the two sides have no model and tier in common; a file's model is its name less _fixes.csv")
    return Compared(report, {key: result.verdict for key, result in judged.items()}, notes)


def changed_cases(before: Side, after: Side, options: CompareOptions) -> pl.DataFrame:
    """What became of every case of either side."""
    old, new = (_chosen(side, options) for side in (before, after))
    return compare_cases(old, new, options.score, options.threshold, listed=after.problems)


def validation_remarks(before: Side, after: Side, options: CompareOptions) -> list[str]:
    """Where the outcomes of the two sides were not decided alike, a line that says so."""
    old, new = (
        _only(side.validators.lazy(), options).collect() if side.validators is not None else None
        for side in (before, after)
    )
    return validation_differences(old, new)


def judge(before: Side, after: Side, options: CompareOptions, settings: ComparisonSettings) -> dict[Group, PairResult]:
    """The current side against the baseline, for every model and tier that both have.

    They are corrected for looking at all of them, so that many models raise no more false alarms than one.
    """
    old, new = (_chosen(side, options) for side in (before, after))
    pairs = _pairs(old, new, after.problems if after.problems is not None else before.problems)
    results = zip(pairs, compare_pairs(list(pairs.values()), settings), strict=True)
    same = _ended_alike(old, new)
    return {key: replace(result, same_attempts=key in same) for key, result in results}


def verdict_lines(judged: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """Verdict, model, tier and sentence as lines, what is worse first. Models are named where there are several.

    >>> verdict_lines([("no evidence", "a", "T0", "the same"), ("worse", "b", "T0", "worse"),
    ...                ("no evidence", "c", "T0", "the same")])
    ['b T0: worse', 'a T0, c T0: the same']
    """
    ordered = sorted(judged, key=lambda row: (VERDICTS.index(row[0]), *row[1:]))
    speaking: dict[str, list[str]] = {}
    for _, model, tier, words in ordered:
        speaking.setdefault(words, []).append(f"{model} {tier}")
    return [f"{', '.join(names)}: " * (len(ordered) > 1) + words for words, names in speaking.items()]


def _opened(name: str, options: CompareOptions) -> Side:
    """A path that exists is that; else the name may be that of a snapshot."""
    if _is_snapshot_name(name, options) and options.data is not None:
        snapshot = find(options.data, name)
        label = name if name == snapshot.id else f"{name} ({snapshot.id})"
        return replace(open_side(str(snapshot.folder)), label=label)
    if name.strip() and not Path(name).exists():
        raise TouchstoneError(f"{name}: no such file or folder; for a snapshot by its name add --data DIR")
    return open_side(name, options.problems_csv, options.scoring, options.problem_key)


def _is_snapshot_name(name: str, options: CompareOptions) -> bool:
    return options.data is not None and not Path(name).exists()


def _unread_snapshots(baseline: str, current: str, options: CompareOptions) -> list[str]:
    """`latest` and `previous` may mean other snapshots than one expects where some cannot be read."""
    if options.data is None or not any(_is_snapshot_name(name, options) for name in (baseline, current)):
        return []
    return explain_unreadable(options.data)


def _chosen(side: Side, options: CompareOptions) -> pl.LazyFrame:
    return _only(side.attempt_scores, options)


def _only(rows: pl.LazyFrame, options: CompareOptions) -> pl.LazyFrame:
    """The rows of the models and tiers that were asked for."""
    if options.models:
        rows = rows.filter(pl.col("model").is_in(options.models))
    return rows.filter(pl.col("tier").is_in(options.tiers)) if options.tiers else rows


def _pairs(old: pl.LazyFrame, new: pl.LazyFrame, problems: pl.LazyFrame | None) -> dict[Group, pl.DataFrame]:
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


def _ended_alike(old: pl.LazyFrame, new: pl.LazyFrame) -> set[Group]:
    """The models and tiers whose attempts are the same on both sides, one by one, and ended alike."""
    attempt = pl.struct("oid", "iteration_id", "pass_rate").hash()
    both = [side.group_by(_GROUP).agg(attempts=pl.len(), outcomes=attempt.sum()) for side in (old, new)]
    same = both[0].join(both[1], on=[*_GROUP, "attempts", "outcomes"], how="inner").select(_GROUP).collect()
    return {(str(model), str(tier)) for model, tier in same.iter_rows()}
