"""What got worse and what got better between two evaluations, case by case.

A case is a model at a tier with a problem. `case_scores` makes one score per case from the scores of its attempts;
`regressions` joins two such tables; `compare_cases` does both, with the probability that chance alone would have made
each case regress (`chance`). Whether the differences together mean anything is decided in `comparison`.
"""

import math
from typing import Literal, get_args

import polars as pl

from touchstone.compare.chance import chance_of_regression
from touchstone.errors import TouchstoneError
from touchstone.inference.exact import exact_mean

KEY = ["model", "tier", "oid"]
KINDS = ("regression", "improvement", "new", "removed", "unchanged", "lost", "unscored")
CATEGORIES = ("compilation", "tests", "lint", "outcome", "score")
# Scores are sums and quotients of floats: a drop of exactly the threshold may come out a little larger.
TOLERANCE = 1e-9

How = Literal["best", "mean", "composite", "code", "pass_rate"]

_GROUP = ["model", "tier"]
_PARTS = CATEGORIES[:-1]
_RICHER = ("code_score", "composite_score")
_BASES = (*_RICHER, "pass_rate")
_FIXED = {"composite": "composite_score", "code": "code_score", "pass_rate": "pass_rate"}


def compare_cases(
    baseline: pl.LazyFrame,
    current: pl.LazyFrame,
    how: How = "best",
    threshold: float = 0.05,
    listed: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """`regressions` of two sides' attempt scores, with the column `chance_of_regression`.

    `listed` holds the problems of the current side: see `regressions`.
    """
    old, new = _scored(baseline, how, beside=current), _scored(current, how, beside=baseline)
    rows = regressions(_cases(old, how), _cases(new, how), threshold, listed).collect()
    chance = chance_of_regression(old, new, rows, best=how == "best", limit=threshold + TOLERANCE)
    return rows.join(chance, on=KEY, how="left", maintain_order="left")


def case_scores(attempt_scores: pl.LazyFrame, how: How, beside: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """One row per model, tier and problem: its score and the parts that explain it; undefined is null.

    `best` and `mean` take the code score where the model has any at the tier, else the composite score, else the pass
    rate; `basis` says which. Where the attempt scores of the other side are given in `beside`, a score that both sides
    have goes first. `complete` is false where a decided attempt has no such score.

    >>> attempts = pl.LazyFrame({"model": "m", "tier": "T0", "oid": "a", "pass_rate": [1.0, 0.0],
    ...     "code_score": [1.0, 0.5], "composite_score": None, "compilation_score": 1.0, "test_score": [1.0, 0.0],
    ...     "lint_score": 1.0, "ran_tests": True, "lint_measured": True})
    >>> [case_scores(attempts, how).collect()["score"].item() for how in ("best", "mean", "pass_rate", "composite")]
    [1.0, 0.75, 0.5, None]
    """
    return _cases(_scored(attempt_scores, how, beside), how)


def regressions(
    baseline: pl.LazyFrame, current: pl.LazyFrame, threshold: float = 0.05, listed: pl.LazyFrame | None = None
) -> pl.LazyFrame:
    """Every case of either side once, with what became of it: `kind`, and for a change what changed: `category`.

    A case regresses where its score drops by more than the threshold; a drop of exactly the threshold is none.

    Both sides of a case are compared by the same score. Where a side lacks it, both fall back to the pass rate (the
    share of decided attempts that passed) and `fallback` is true; so they do where only some attempts lack the score
    and the pass rate changed by more than the threshold. A judge often scores only what passed: the scores that are
    left would hide the passes that were lost.

    `lost` is a case that had a score or pass rate in the baseline and has none now: its attempts are undecided or,
    where `listed` still names its problem and the model was run at that tier, there are none. A case that is missing
    otherwise is `removed`. `unscored` is a case that could not be judged in the baseline either.

    >>> parts = dict.fromkeys(["compilation", "tests", "lint", "outcome"], 1.0)
    >>> before = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a"], "score": 1.0, **parts})
    >>> after = before.with_columns(score=pl.lit(0.6), tests=pl.lit(0.2))
    >>> regressions(before, after).select("oid", "delta", "category", "kind").collect().rows()
    [('a', -0.4, 'tests', 'regression')]
    """
    if not (math.isfinite(threshold) and threshold >= 0):
        raise TouchstoneError(f"the threshold must be a number of at least 0, got {threshold}")
    limit = threshold + TOLERANCE
    joined = _side(baseline, "baseline").join(_side(current, "current"), on=KEY, how="full", coalesce=True)
    compared = (
        joined.with_columns(expected=_is_expected(current, listed), scored=_is_scored())
        .with_columns(fallback=_falls_back(limit))
        .with_columns(_compared_score("baseline"), _compared_score("current"), basis=_basis())
        .with_columns(delta=_delta())
        .with_columns(kind=_kind(limit))
        .with_columns(category=_category())
    )
    return compared.sort(_rank(), "delta", *KEY, nulls_last=True).select(
        *KEY, "baseline_score", "current_score", "delta", "category", "kind", "basis", "fallback"
    )


# Scores of cases


def _scored(attempt_scores: pl.LazyFrame, how: How, beside: pl.LazyFrame | None) -> pl.LazyFrame:
    """Attempts with the score that their case is compared by, whether they passed, and the parts of the score."""
    if how not in get_args(How):
        raise TouchstoneError(f"there is no score '{how}'; choose one of {', '.join(get_args(How))}")
    return _with_basis(attempt_scores, how, beside).select(
        *KEY, "basis", score=_of_basis().fill_nan(None), outcome=pl.col("pass_rate"), **_code_parts()
    )


def _cases(scored: pl.LazyFrame, how: How) -> pl.LazyFrame:
    return (_best(scored) if how == "best" else _means(scored)).sort(KEY)


def _with_basis(attempt_scores: pl.LazyFrame, how: How, beside: pl.LazyFrame | None) -> pl.LazyFrame:
    if how in _FIXED:
        return attempt_scores.with_columns(basis=pl.lit(_FIXED[how]))
    present = _present(attempt_scores)
    # A model or tier that the other side lacks is compared with nothing, so its own scores decide.
    other = _present(beside if beside is not None else attempt_scores)
    sides = present.join(other, on=_GROUP, how="left", suffix="_beside")
    here, there = ({name: pl.col(name + end) for name in _RICHER} for end in ("", "_beside"))
    both = [pl.when(here[name] & there[name].fill_null(True)).then(pl.lit(name)) for name in _RICHER]
    either = [pl.when(here[name] | there[name].fill_null(False)).then(pl.lit(name)) for name in _RICHER]
    basis = pl.coalesce(*both, *either, pl.when("pass_rate").then(pl.lit("pass_rate")))
    return attempt_scores.join(sides.select(*_GROUP, basis=basis), on=_GROUP, how="left")


def _present(attempt_scores: pl.LazyFrame) -> pl.LazyFrame:
    """Per model and tier, which scores there are at all."""
    return attempt_scores.group_by(_GROUP).agg(pl.col(name).is_not_null().any() for name in _BASES)


def _of_basis() -> pl.Expr:
    return pl.coalesce(pl.when(pl.col("basis") == name).then(pl.col(name).cast(pl.Float64)) for name in _BASES)


def _code_parts() -> dict[str, pl.Expr]:
    """The parts of the code score. Tests and lint have a value also where nobody looked: there they say nothing."""
    compiled = pl.col("compilation_score")
    return {
        "compilation": compiled.cast(pl.Float64),
        "tests": pl.when(compiled.is_not_null() | pl.col("ran_tests")).then("test_score"),
        "lint": pl.when(compiled.is_not_null() | pl.col("lint_measured")).then("lint_score"),
    }


def _best(attempts: pl.LazyFrame) -> pl.LazyFrame:
    """The best attempt's score and parts; of equal ones the one with the better parts, whatever the order of rows."""
    ranked = attempts.sort("score", "compilation", "tests", "lint", descending=True, nulls_last=True)
    return ranked.group_by(KEY).agg(
        pl.col("basis", "score", "compilation", "tests", "lint").first(),
        outcome=exact_mean(pl.col("outcome")),
        complete=_is_complete(),
    )


def _means(attempts: pl.LazyFrame) -> pl.LazyFrame:
    return attempts.group_by(KEY).agg(
        pl.col("basis").first(),
        *(exact_mean(pl.col(name)).alias(name) for name in ("score", "compilation", "tests", "lint", "outcome")),
        complete=_is_complete(),
    )


def _is_complete() -> pl.Expr:
    return (pl.col("score").is_not_null() | pl.col("outcome").is_null()).all()


# Two sides


def _side(cases: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """A side's columns under its own names, so that nothing is mixed up in the join."""
    told = {f"{name}_{column}": pl.col(column).cast(pl.Float64).fill_nan(None) for column in ("score", *_PARTS)}
    known = cases.collect_schema()
    basis = pl.col("basis") if "basis" in known else pl.lit(None, pl.String)
    complete = pl.col("complete") if "complete" in known else pl.lit(True)
    return cases.select(
        *KEY, **told, **{f"{name}_basis": basis, f"{name}_complete": complete, f"in_{name}": pl.lit(True)}
    )


def _is_expected(current: pl.LazyFrame, listed: pl.LazyFrame | None) -> pl.Expr:
    """Whether the current side should have the case: its problem is listed and the model was run at the tier."""
    if listed is None:
        return pl.lit(False)
    oids = listed.select("oid").unique().collect()["oid"]
    groups = current.select(pl.struct(_GROUP).alias("group")).unique().collect()["group"]
    return pl.col("oid").is_in(oids.implode()) & pl.struct(_GROUP).is_in(groups.implode())


def _is_scored() -> pl.Expr:
    """Whether both sides have the chosen score, and it is the same one."""
    same = (pl.col("baseline_basis") == pl.col("current_basis")).fill_null(True)
    return pl.col("baseline_score").is_not_null() & pl.col("current_score").is_not_null() & same


def _falls_back(limit: float) -> pl.Expr:
    """Whether the pass rate is compared in place of the chosen score."""
    change = pl.col("current_outcome") - pl.col("baseline_outcome")
    complete = pl.col("baseline_complete") & pl.col("current_complete")
    return (change.is_not_null() & (~pl.col("scored") | (~complete & (change.abs() > limit)))).fill_null(False)


def _compared_score(side: str) -> pl.Expr:
    """The score that is compared, or of a case that cannot be compared the score that there is."""
    score, outcome = pl.col(f"{side}_wilson_bounds"), pl.col(f"{side}_outcome")
    return pl.when("fallback").then(outcome).otherwise(pl.coalesce(score, outcome)).alias(f"{side}_wilson_bounds")


def _basis() -> pl.Expr:
    """What the compared scores are; of a case that cannot be compared, what the first side has that has any."""
    found = [
        pl.when(pl.col(f"{side}_wilson_bounds").is_not_null())
        .then(f"{side}_basis")
        .when(pl.col(f"{side}_outcome").is_not_null())
        .then(pl.lit("pass_rate"))
        for side in ("baseline", "current")
    ]
    return pl.when("fallback").then(pl.lit("pass_rate")).otherwise(pl.coalesce(found))


def _delta() -> pl.Expr:
    """Current less baseline; null where a side has no score or the two are scores of different things."""
    comparable = pl.col("scored") | pl.col("fallback")
    return pl.when(comparable).then(pl.col("current_score") - pl.col("baseline_score"))


def _kind(limit: float) -> pl.Expr:
    delta = pl.col("delta")
    missing, was_judged = pl.col("in_current").is_null(), pl.col("baseline_score").is_not_null()
    return (
        pl.when(pl.col("in_baseline").is_null())
        .then(pl.lit("new"))
        .when(missing & ~(was_judged & pl.col("expected")))
        .then(pl.lit("removed"))
        .when(delta.is_null() & was_judged)
        .then(pl.lit("lost"))
        .when(delta.is_null())
        .then(pl.lit("unscored"))
        .when(delta < -limit)
        .then(pl.lit("regression"))
        .when(delta > limit)
        .then(pl.lit("improvement"))
        .otherwise(pl.lit("unchanged"))
    )


def _category() -> pl.Expr:
    """The most basic part that went the way of the score."""
    change = {name: pl.col(f"current_{name}") - pl.col(f"baseline_{name}") for name in _PARTS}
    fell = [pl.when(part < -TOLERANCE).then(pl.lit(name)) for name, part in change.items()]
    rose = [pl.when(part > TOLERANCE).then(pl.lit(name)) for name, part in change.items()]
    kind = pl.col("kind")
    return (
        pl.when(kind == "regression")
        .then(pl.coalesce(*fell, pl.lit("score")))
        .when(kind == "improvement")
        .then(pl.coalesce(*rose, pl.lit("score")))
    )


def _rank() -> pl.Expr:
    return pl.col("kind").replace_strict(list(KINDS), list(range(len(KINDS))), return_dtype=pl.Int8)
