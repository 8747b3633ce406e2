"""`touchstone blame`: the cases that changed between two snapshots, since when, and whose change it was.

Snapshots keep no fixes, only the beginning of each one's digest. A fix that both sides have and that was judged
differently is the grader's doing; if both judged it alike, or fixes were judged here and nothing that grades changed,
the change is the model's. Otherwise it is undecided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import polars as pl

from touchstone.comparison.compare import changed_cases
from touchstone.comparison.inputs import ComparisonInput, open_input
from touchstone.errors import TouchstoneError
from touchstone.inference.exact import exact_mean
from touchstone.metrics.keys import PROBLEM_KEY
from touchstone.storage.snapshots import Snapshot, find, list_snapshots
from touchstone.trends.causes import Cause, causes, describe_causes

DUE_TO = ("model", "grader", "flaky grader", "undecided")
_CHANGED = ("regression", "lost", "improvement")


@dataclass(frozen=True)
class Step:
    """A snapshot before which something was changed, and the number of cases since then, by kind and whose they are.

    `differences` has the change of mean pass rate by model and tier, over the snapshots to the steps before and after.
    """

    snapshot: str
    made_at: str
    changed: str
    cases: dict[str, int]
    differences: dict[str, float]


@dataclass(frozen=True)
class Blame:
    """Changes from one snapshot to another. `steps` without a snapshot are all those without a recorded change."""

    before: str
    after: str
    snapshots: int
    counts: dict[str, int]
    expected_by_chance: float
    steps: list[Step]
    cases: pl.DataFrame


def blame(root: Path, first: str, last: str, problem_history: pl.LazyFrame) -> Blame:
    """The cases that changed between two snapshots of an output folder, by what changed in between."""
    every = list_snapshots(root)
    before, after = find(root, first), find(root, last)
    start, end = every.index(before), every.index(after)
    if start >= end:
        raise TouchstoneError(f"--from {first} is not before --to {last}; see `touchstone snapshots list`")
    between = every[start : end + 1]
    old, new = (open_input(str(each.folder)) for each in (before, after))
    compared = changed_cases(old, new)
    found = {each.id: causes(earlier, each) for earlier, each in pairwise(between)}
    grading = any(cause.grading for each in found.values() for cause in each)
    cases = compared.filter(pl.col("kind").is_in(_CHANGED)).select(
        *PROBLEM_KEY, "kind", before="baseline_score", after="current_score"
    )
    same_files = {model for model, digest in before.attempts.items() if after.attempts.get(model) == digest}
    elsewhere = {row.get("model") for each in between for row in each.validation if row.get("validator") == "recorded"}
    cases = _with_due_to(cases, _judged_twice(old, new), same_files, pl.lit(grading) | pl.col("model").is_in(elsewhere))
    nights = problem_history.filter(pl.col("snapshot").is_in([each.id for each in between])).drop_nulls("pass_rate")
    rates = nights.sort("made_at", "snapshot").collect()
    cases = cases.join(_since(rates, cases), on=PROBLEM_KEY, how="left", maintain_order="left")
    cases = cases.with_columns(pl.col("since").fill_null(after.id), change=pl.col("after") - pl.col("before"))
    kinds = dict(compared.group_by("kind").len().iter_rows())
    return Blame(
        before.id,
        after.id,
        len(between),
        {kind: kinds.get(kind, 0) for kind in (*_CHANGED, "new", "removed", "unchanged")},
        float(compared["chance_of_regression"].sum()),
        _steps(cases, rates, between[1:], found),
        cases.sort("change", *PROBLEM_KEY, nulls_last=False),
    )


def _judged_twice(old: ComparisonInput, new: ComparisonInput) -> pl.DataFrame:
    """Per case the fixes that both sides have, and how many of them were judged differently."""
    sides = []
    for side in (old, new):
        known = "fix_sha" in side.attempt_scores.collect_schema().names()
        fix = pl.col("fix_sha") if known else pl.lit(None, pl.String)
        rows = side.attempt_scores.select(*PROBLEM_KEY, "pass_rate", fix=fix).drop_nulls(["fix", "pass_rate"])
        sides.append(rows.group_by(*PROBLEM_KEY, "fix").agg(rate=pl.col("pass_rate").mean()))
    both = sides[0].join(sides[1], on=[*PROBLEM_KEY, "fix"])
    differs = pl.col("rate") != pl.col("rate_right")
    return both.group_by(PROBLEM_KEY).agg(shared=pl.len(), differing=differs.sum()).collect()


def _with_due_to(cases: pl.DataFrame, fixes: pl.DataFrame, same_files: set[str], graded: pl.Expr) -> pl.DataFrame:
    """Cases with `due_to`: whose change it is. `graded` is whether what grades them changed, or may have."""
    judged_otherwise = (pl.col("differing") > 0) | pl.col("model").is_in(same_files)
    due_to = (
        pl.when(judged_otherwise)
        .then(pl.when(graded).then(pl.lit("grader")).otherwise(pl.lit("flaky grader")))
        .when(~graded | (pl.col("shared") > 0))
        .then(pl.lit("model"))
        .otherwise(pl.lit("undecided"))
    )
    joined = cases.join(fixes, on=PROBLEM_KEY, how="left", maintain_order="left")
    return joined.with_columns(due_to=due_to).drop("differing").with_columns(pl.col("shared").fill_null(0))


def _since(rates: pl.DataFrame, cases: pl.DataFrame) -> pl.DataFrame:
    """Since which snapshot each case is different: where its pass rates before and after differ most."""
    rows = rates.join(cases, on=PROBLEM_KEY, how="semi", maintain_order="left")
    before, total, earlier = pl.int_range(1, pl.len() + 1), pl.len(), pl.col("pass_rate").cum_sum()
    gap = ((pl.col("pass_rate").sum() - earlier) / (total - before) - earlier / before).abs()
    sized = rows.select(
        *PROBLEM_KEY,
        since=pl.col("snapshot").shift(-1).over(PROBLEM_KEY),
        size=(gap * (before * (total - before) / total).sqrt()).over(PROBLEM_KEY),
    )
    largest = sized.drop_nulls("since").sort("size", descending=True, maintain_order=True)
    return largest.unique(PROBLEM_KEY, keep="first", maintain_order=True).drop("size")


def _steps(
    cases: pl.DataFrame, rates: pl.DataFrame, snapshots: Sequence[Snapshot], found: dict[str, list[Cause]]
) -> list[Step]:
    """A step for each snapshot with a recorded change, the largest difference first, and one for all others."""
    steps = []
    changed = [each for each in snapshots if found[each.id]]
    edges = ["", *(each.made_at for each in changed), "~"]
    for start, step, end in zip(edges, changed, edges[2:], strict=False):
        near, after = rates.filter(pl.col("made_at").is_between(pl.lit(start), pl.lit(end), "left")), step.made_at
        sides = [near.filter(pl.col("made_at") < after), near.filter(pl.col("made_at") >= after)]
        old, new = (dict(_mean_rates(side).iter_rows()) for side in sides)
        moved = {key: new[key] - old[key] for key in sorted(old) if key in new}
        rows = cases.filter(pl.col("since") == step.id)
        steps.append(Step(step.id, step.made_at, describe_causes(found[step.id]), _counts(rows), moved))
    steps.sort(key=lambda step: -max(map(abs, step.differences.values()), default=0))
    rest = cases.filter(~pl.col("since").is_in([each.id for each in changed]))
    quiet = Step("", "", describe_causes([], new_attempts=True), _counts(rest), {})
    return [*steps, *([quiet] if rest.height else [])]


def _mean_rates(rates: pl.DataFrame) -> pl.DataFrame:
    """The mean pass rate over problems and snapshots of each model and tier."""
    side = pl.concat_str("model", "tier", separator=" ").alias("side")
    return rates.group_by(side).agg(exact_mean(pl.col("pass_rate")))


def _counts(cases: pl.DataFrame) -> dict[str, int]:
    kinds, owners = (dict(cases.group_by(name).len().iter_rows()) for name in ("kind", "due_to"))
    return {kind: kinds.get(kind, 0) for kind in _CHANGED} | {whose: owners.get(whose, 0) for whose in DUE_TO}
