"""Two runs or two models side by side: the verdict, and the cases that changed. The statistics are in `compare`."""

from dataclasses import dataclass, replace

import polars as pl

from touchstone.comparison.compare import (
    CompareOptions,
    changed_cases,
    compare_models,
    validation_remarks,
    verdict_lines,
)
from touchstone.comparison.inputs import ComparisonInput, open_input
from touchstone.comparison.pairs import comparison_settings, sentence
from touchstone.errors import TouchstoneError
from touchstone.publish.dashboard.selection import Filters, RunTables, Selection


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a run, or one model of it."""

    run: RunTables
    model: str | None = None


@dataclass(frozen=True)
class SideBySide:
    """What differs: a sentence per verdict, remarks on how the sides were validated, counts by kind, changed cases."""

    verdicts: list[str]
    remarks: list[str]
    counts: dict[str, int]
    cases: pl.DataFrame


def side_by_side(before: Side, after: Side, filters: Filters) -> SideBySide:
    """Compare two sides on the attempts that the filters choose, with the settings of the run on the side `after`."""
    if before == after:
        raise TouchstoneError("both sides are the same; choose another run or another model on one side")
    name = _common_name(before, after)
    old, new = (_input(side, filters, name) for side in (before, after))
    config, one = after.run.config, name or after.model
    options = CompareOptions(
        threshold=config.comparison.threshold,
        score=config.comparison.score,
        models=(one,) if one is not None else filters.models,
        tiers=filters.tiers,
    )
    cases = changed_cases(old, new, options)
    if cases.is_empty():
        raise TouchstoneError("nothing to compare: neither side has an attempt under these filters")
    settings = replace(comparison_settings(config), same_model=name is None)
    results = compare_models(old, new, options, settings)
    lines = verdict_lines(
        (result.verdict, *key, sentence(result, "baseline", "current")) for key, result in results.items()
    )
    if not results:
        lines = ["The two sides have no model and tier in common, so there is no verdict."]
    counts = {str(kind): int(count) for kind, count in cases.group_by("kind").len().sort("kind").iter_rows()}
    changed = cases.filter(pl.col("kind") != "unchanged").sort("delta", "model", "tier", "oid", nulls_last=True)
    return SideBySide(lines, validation_remarks(old, new, options), counts, changed)


def _common_name(before: Side, after: Side) -> str | None:
    """The name under which two different models are paired, tier by tier."""
    if before.model == after.model:
        return None
    if before.model is None or after.model is None:
        raise TouchstoneError("choose a model on both sides, or all models on both")
    return f"{after.model} against {before.model}"


def _input(side: Side, filters: Filters, name: str | None) -> ComparisonInput:
    """The attempts of a side; those of its model under another name if there is one."""
    chosen = Selection(side.run, filters.of_attempts)
    opened = replace(
        open_input(str(side.run.folder)),
        attempt_scores=chosen.frame("attempt_scores"),
        problems=chosen.frame("problems"),
    )
    if name is None:
        return opened
    renamed, own = pl.lit(name).alias("model"), pl.col("model") == side.model
    validators = opened.validators
    return replace(
        opened,
        attempt_scores=opened.attempt_scores.filter(own).with_columns(renamed),
        validators=validators.filter(own).with_columns(renamed) if validators is not None else None,
    )
