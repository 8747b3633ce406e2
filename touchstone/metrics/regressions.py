"""What got worse and what got better between two evaluations, case by case.

A case is a model at a tier with a problem. `case_scores` makes one score per case from the scores of its attempts;
`regressions` sets two such tables side by side. Whether the differences together mean anything is a question for
statistics, which are not made here.
"""

import math
from typing import Literal, get_args

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.inference.exact import exact_mean

KEY = ["model", "tier", "oid"]
KINDS = ("regression", "improvement", "new", "removed", "unchanged", "unscored")
CATEGORIES = ("compilation", "tests", "lint", "outcome", "score")
# Scores are sums and quotients of floats: a drop of exactly the threshold may come out a little larger.
TOLERANCE = 1e-9

How = Literal["best", "mean", "composite", "code", "pass_rate"]

_GROUP = ["model", "tier"]
_PARTS = CATEGORIES[:-1]
_BASES = ("code_score", "composite_score", "pass_rate")
_FIXED = {"composite": "composite_score", "code": "code_score", "pass_rate": "pass_rate"}


def case_scores(attempt_scores: pl.LazyFrame, how: How, beside: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """One row per model, tier and problem: its score and the parts that explain it; undefined is null.

    `best` and `mean` take the code score where the model has any at the tier, else the composite score, else the pass
    rate; `basis` says which. Where the attempt scores of the other side are given in `beside`, they take the first
    that both sides have, so that like is compared with like.

    >>> attempts = pl.LazyFrame({"model": "m", "tier": "T0", "oid": "a", "pass_rate": [1.0, 0.0],
    ...     "code_score": [1.0, 0.5], "composite_score": None, "compilation_score": 1.0, "test_score": [1.0, 0.0],
    ...     "lint_score": 1.0, "ran_tests": True, "lint_measured": True})
    >>> [case_scores(attempts, how).collect()["score"].item() for how in ("best", "mean", "pass_rate", "composite")]
    [1.0, 0.75, 0.5, None]
    """
    if how not in get_args(How):
        raise TouchstoneError(f"there is no score '{how}'; choose one of {', '.join(get_args(How))}")
    attempts = _with_basis(attempt_scores, how, beside).select(
        *KEY, "basis", score=_of_basis(), outcome=pl.col("pass_rate"), **_code_parts()
    )
    return (_best(attempts) if how == "best" else _means(attempts)).sort(KEY)


def regressions(baseline: pl.LazyFrame, current: pl.LazyFrame, threshold: float = 0.05) -> pl.LazyFrame:
    """Every case of either side once, with what became of it: `kind`, and for a change what changed: `category`.

    A case regresses where its score drops by more than the threshold; a drop of exactly the threshold is none.

    >>> parts = dict.fromkeys(["compilation", "tests", "lint", "outcome"], 1.0)
    >>> before = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a"], "score": 1.0, **parts})
    >>> after = before.with_columns(score=pl.lit(0.6), tests=pl.lit(0.2))
    >>> regressions(before, after).select("oid", "delta", "category", "kind").collect().rows()
    [('a', -0.4, 'tests', 'regression')]
    """
    if not (math.isfinite(threshold) and threshold >= 0):
        raise TouchstoneError(f"the threshold must be a number of at least 0, got {threshold}")
    joined = _side(baseline, "baseline").join(_side(current, "current"), on=KEY, how="full", coalesce=True)
    compared = (
        joined.with_columns(delta=_delta()).with_columns(kind=_kind(threshold)).with_columns(category=_category())
    )
    return compared.sort(_rank(), "delta", *KEY, nulls_last=True).select(
        *KEY, "baseline_score", "current_score", "delta", "category", "kind"
    )


# Scores of cases


def _with_basis(attempt_scores: pl.LazyFrame, how: How, beside: pl.LazyFrame | None) -> pl.LazyFrame:
    if how in _FIXED:
        return attempt_scores.with_columns(basis=pl.lit(_FIXED[how]))
    present = _present(attempt_scores)
    if beside is not None:
        # A model or tier that the other side lacks is compared with nothing, so anything will do.
        both = present.join(_present(beside), on=_GROUP, how="left", suffix="_beside")
        present = both.select(*_GROUP, *(pl.col(name) & pl.col(f"{name}_beside").fill_null(True) for name in _BASES))
    basis = pl.coalesce(pl.when(pl.col(name)).then(pl.lit(name)) for name in _BASES)
    return attempt_scores.join(present.select(*_GROUP, basis=basis), on=_GROUP, how="left")


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
        pl.col("basis", "score", "compilation", "tests", "lint").first(), outcome=exact_mean(pl.col("outcome"))
    )


def _means(attempts: pl.LazyFrame) -> pl.LazyFrame:
    return attempts.group_by(KEY).agg(
        pl.col("basis").first(),
        *(exact_mean(pl.col(name)).alias(name) for name in ("score", "compilation", "tests", "lint", "outcome")),
    )


# Two sides


def _side(cases: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """A side's columns under its own names, so that nothing is mixed up in the join."""
    told = {f"{name}_{column}": pl.col(column).cast(pl.Float64).fill_nan(None) for column in ("score", *_PARTS)}
    basis = pl.col("basis") if "basis" in cases.collect_schema() else pl.lit(None, pl.String)
    return cases.select(*KEY, **told, **{f"{name}_basis": basis, f"in_{name}": pl.lit(True)})


def _delta() -> pl.Expr:
    """Current less baseline; null where a side has no score or the two are scores of different things."""
    other = (pl.col("baseline_basis") != pl.col("current_basis")).fill_null(False)
    return pl.when(~other).then(pl.col("current_score") - pl.col("baseline_score"))


def _kind(threshold: float) -> pl.Expr:
    delta, limit = pl.col("delta"), threshold + TOLERANCE
    return (
        pl.when(pl.col("in_baseline").is_null())
        .then(pl.lit("new"))
        .when(pl.col("in_current").is_null())
        .then(pl.lit("removed"))
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
