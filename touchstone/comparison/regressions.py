"""Which cases got worse or better between two evaluations. A case is one problem attempted by a model at a tier.

`case_scores` reduces the scores of a case's attempts to one; `regressions` joins the cases of two evaluations;
`compare_cases` does both and adds the probability that each case regresses by chance. Whether a model as a whole got
worse is tested in `pairs`.

How many regressions to expect by chance is a permutation argument per case. Under the null hypothesis that a case did
not change, its attempts are exchangeable: every assignment of the pooled attempts to baseline and current that keeps
their numbers is equally likely. The probability that a random assignment makes the case regress is its chance of
regression; the sum over cases is the expected number of regressions. Conditioning on the pooled attempts makes that sum
unbiased under the null hypothesis even with a single attempt on either side, where rates estimated per case would halve
it.
"""

import math
from collections.abc import Callable
from typing import Literal, get_args

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.inference.exact import exact_mean
from touchstone.metrics.keys import MODEL_TIER, PROBLEM_KEY

KINDS = ("regression", "improvement", "new", "removed", "unchanged", "lost", "unscored")
CATEGORIES = ("compilation", "tests", "lint", "outcome", "score")
# Floating-point error: a drop of exactly the threshold may come out a little larger.
TOLERANCE = 1e-9

ScoreMethod = Literal["auto", "best", "mean", "composite", "code", "pass_rate"]

_DETAILED_SCORES = ("code_score", "composite_score")
_ALL_SCORES = (*_DETAILED_SCORES, "pass_rate")
# Columns of `attempt_scores` that are read here.
SCORE_COLUMNS = (*_ALL_SCORES, "compilation_score", "test_score", "lint_score", "ran_tests", "lint_measured")

_COMPONENTS = CATEGORIES[:-1]
_SCORE_OF_METHOD = {"composite": "composite_score", "code": "code_score", "pass_rate": "pass_rate"}


def compare_cases(
    baseline: pl.LazyFrame,
    current: pl.LazyFrame,
    method: ScoreMethod = "auto",
    threshold: float = 0.05,
    listed: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """The `regressions` between two tables of attempt scores, with their attempts and `chance_of_regression`.

    `auto` is the best attempt, or the mean of the cases that have more attempts on one side: the best of more is
    higher by chance. `listed` holds the problems of the current evaluation; see `regressions`.
    """
    old, new = _scored(baseline, method, other_side=current), _scored(current, method, other_side=baseline)
    attempts = _numbers_of_attempts(old, new)
    averaged = attempts.filter(is_unequal()) if method == "auto" else None
    rows = regressions(_cases(old, method, averaged), _cases(new, method, averaged), threshold, listed).collect()
    rows = rows.join(attempts, on=PROBLEM_KEY, how="left", maintain_order="left")
    best = {"auto": ~is_unequal(), "best": pl.lit(True)}.get(method, pl.lit(False))
    chance = chance_of_regression(old, new, rows.with_columns(best=best), limit=threshold + TOLERANCE)
    return rows.join(chance, on=PROBLEM_KEY, how="left", maintain_order="left")


def is_unequal() -> pl.Expr:
    """Whether a case has more attempts on one side than on the other."""
    return (pl.col("baseline_attempts") != pl.col("current_attempts")).fill_null(False)


def _numbers_of_attempts(old: pl.LazyFrame, new: pl.LazyFrame) -> pl.DataFrame:
    """How often each case was attempted, decided or not: an undecided attempt must not change the method."""
    sides = {"baseline_attempts": old, "current_attempts": new}
    counts = [
        side.group_by(PROBLEM_KEY).agg(pl.len().cast(pl.Int64).alias(name)).collect() for name, side in sides.items()
    ]
    return counts[0].join(counts[1], on=PROBLEM_KEY, how="full", coalesce=True)


def case_scores(
    attempt_scores: pl.LazyFrame, method: ScoreMethod, other_side: pl.LazyFrame | None = None
) -> pl.LazyFrame:
    """One row per model, tier and problem with its score and the components of the score; undefined is null.

    `best` and `mean` use the code score if the model has any at the tier, else the composite score, else the pass rate;
    `basis` says which. With the attempt scores of the other evaluation in `other_side`, a score that both have takes
    precedence. `complete` is false if a decided attempt lacks the score.

    >>> attempts = pl.LazyFrame({"model": "m", "tier": "T0", "oid": "a", "pass_rate": [1.0, 0.0],
    ...     "code_score": [1.0, 0.5], "composite_score": None, "compilation_score": 1.0, "test_score": [1.0, 0.0],
    ...     "lint_score": 1.0, "ran_tests": True, "lint_measured": True})
    >>> methods = ("best", "mean", "pass_rate", "composite")
    >>> [case_scores(attempts, method).collect()["score"].item() for method in methods]
    [1.0, 0.75, 0.5, None]
    """
    return _cases(_scored(attempt_scores, method, other_side), method).sort(PROBLEM_KEY)


def regressions(
    baseline: pl.LazyFrame, current: pl.LazyFrame, threshold: float = 0.05, listed: pl.LazyFrame | None = None
) -> pl.LazyFrame:
    """One row per case of either evaluation: the `kind` of change and, for a changed score, the `category`.

    A case regresses if its score drops by more than the threshold; a drop of exactly the threshold is `unchanged`.

    Baseline and current are compared by the same score. If either lacks it, both fall back to the pass rate (the share
    of decided attempts that passed) and `fallback` is true. The same happens if only some attempts lack the score and
    the pass rate changed by more than the threshold: LLM judges often score only passing attempts, and comparing the
    remaining scores would hide the attempts that no longer pass.

    `lost`: scored in the baseline, but now undecided, or without attempts although `listed` still has the problem and
    the model was run at that tier. `removed`: missing for any other reason. `unscored`: no score in the baseline
    either.

    >>> parts = dict.fromkeys(["compilation", "tests", "lint", "outcome"], 1.0)
    >>> before = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a"], "score": 1.0, **parts})
    >>> after = before.with_columns(score=pl.lit(0.6), tests=pl.lit(0.2))
    >>> regressions(before, after).select("oid", "delta", "category", "kind").collect().rows()
    [('a', -0.4, 'tests', 'regression')]
    """
    if not (math.isfinite(threshold) and threshold >= 0):
        raise TouchstoneError(f"threshold must be a finite number of at least 0, got {threshold}")
    limit = threshold + TOLERANCE
    joined = _prefixed(baseline, "baseline").join(
        _prefixed(current, "current"), on=PROBLEM_KEY, how="full", coalesce=True
    )
    compared = (
        joined.with_columns(expected=_is_expected(current, listed), scored=_is_scored())
        .with_columns(fallback=_falls_back(limit))
        .with_columns(_compared_score("baseline"), _compared_score("current"), basis=_basis())
        .with_columns(delta=_delta())
        .with_columns(kind=_kind(limit))
        .with_columns(category=_category())
    )
    rank = pl.col("kind").replace_strict(list(KINDS), list(range(len(KINDS))), return_dtype=pl.Int8)
    return compared.sort(rank, "delta", *PROBLEM_KEY, nulls_last=True).select(
        *PROBLEM_KEY, "baseline_score", "current_score", "delta", "category", "kind", "basis", "fallback"
    )


# Scores of cases


def _scored(attempt_scores: pl.LazyFrame, method: ScoreMethod, other_side: pl.LazyFrame | None) -> pl.LazyFrame:
    """Attempts with the score that their case is compared by, their outcome, and the components of the score."""
    if method not in get_args(ScoreMethod):
        raise TouchstoneError(f"unknown score '{method}'; choose one of {', '.join(get_args(ScoreMethod))}")
    scores = (pl.when(pl.col("basis") == name).then(pl.col(name).cast(pl.Float64)) for name in _ALL_SCORES)
    return _with_basis(attempt_scores, method, other_side).select(
        *PROBLEM_KEY,
        "basis",
        score=pl.coalesce(scores).fill_nan(None),
        outcome=pl.col("pass_rate"),
        **_score_components(),
    )


def _cases(scored: pl.LazyFrame, method: ScoreMethod, averaged: pl.DataFrame | None = None) -> pl.LazyFrame:
    """The score of each case; the mean of those in `averaged`, whatever the method."""
    if method not in ("auto", "best"):
        return _means(scored)
    if averaged is None or averaged.is_empty():
        return _best(scored)
    means, best = (scored.join(averaged.lazy(), on=PROBLEM_KEY, how=how) for how in ("semi", "anti"))
    return pl.concat([_means(means), _best(best)])


def _with_basis(attempt_scores: pl.LazyFrame, method: ScoreMethod, other_side: pl.LazyFrame | None) -> pl.LazyFrame:
    if method in _SCORE_OF_METHOD:
        return attempt_scores.with_columns(basis=pl.lit(_SCORE_OF_METHOD[method]))
    present = _available_scores(attempt_scores)
    # A model and tier that the other evaluation lacks is compared with nothing, so its own scores decide.
    other = _available_scores(other_side if other_side is not None else attempt_scores)
    sides = present.join(other, on=MODEL_TIER, how="left", suffix="_other")
    here, there = ({name: pl.col(name + end) for name in _DETAILED_SCORES} for end in ("", "_other"))
    both = [pl.when(here[name] & there[name].fill_null(True)).then(pl.lit(name)) for name in _DETAILED_SCORES]
    either = [pl.when(here[name] | there[name].fill_null(False)).then(pl.lit(name)) for name in _DETAILED_SCORES]
    basis = pl.coalesce(*both, *either, pl.when("pass_rate").then(pl.lit("pass_rate")))
    return attempt_scores.join(sides.select(*MODEL_TIER, basis=basis), on=MODEL_TIER, how="left")


def _available_scores(attempt_scores: pl.LazyFrame) -> pl.LazyFrame:
    """Per model and tier, which scores any attempt has."""
    return attempt_scores.group_by(MODEL_TIER).agg(pl.col(name).is_not_null().any() for name in _ALL_SCORES)


def _score_components() -> dict[str, pl.Expr]:
    """Components of the code score. Tests and lint have a default where they were not measured, which is dropped."""
    compiled = pl.col("compilation_score")
    return {
        "compilation": compiled.cast(pl.Float64),
        "tests": pl.when(compiled.is_not_null() | pl.col("ran_tests")).then("test_score"),
        "lint": pl.when(compiled.is_not_null() | pl.col("lint_measured")).then("lint_score"),
    }


def _best(attempts: pl.LazyFrame) -> pl.LazyFrame:
    """The best attempt per case. Ties are broken by the components, so the order of rows does not matter."""
    ranked = attempts.sort("score", "compilation", "tests", "lint", descending=True, nulls_last=True)
    return ranked.group_by(PROBLEM_KEY).agg(
        pl.col("basis", "score", "compilation", "tests", "lint").first(),
        outcome=exact_mean(pl.col("outcome")),
        complete=_is_complete(),
    )


def _means(attempts: pl.LazyFrame) -> pl.LazyFrame:
    return attempts.group_by(PROBLEM_KEY).agg(
        pl.col("basis").first(),
        *(exact_mean(pl.col(name)).alias(name) for name in ("score", "compilation", "tests", "lint", "outcome")),
        complete=_is_complete(),
    )


def _is_complete() -> pl.Expr:
    return (pl.col("score").is_not_null() | pl.col("outcome").is_null()).all()


# Joining baseline and current


def _prefixed(cases: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """Prefix the columns with `baseline` or `current`, so that they stay apart in the join."""
    values = {f"{name}_{column}": pl.col(column).cast(pl.Float64).fill_nan(None) for column in ("score", *_COMPONENTS)}
    known = cases.collect_schema()
    basis = pl.col("basis") if "basis" in known else pl.lit(None, pl.String)
    complete = pl.col("complete") if "complete" in known else pl.lit(True)
    return cases.select(
        *PROBLEM_KEY, **values, **{f"{name}_basis": basis, f"{name}_complete": complete, f"in_{name}": pl.lit(True)}
    )


def _is_expected(current: pl.LazyFrame, listed: pl.LazyFrame | None) -> pl.Expr:
    """Whether the current evaluation should have the case: its problem is listed and the model ran at the tier."""
    if listed is None:
        return pl.lit(False)
    oids = listed.select("oid").unique().collect()["oid"]
    groups = current.select(pl.struct(MODEL_TIER).alias("group")).unique().collect()["group"]
    return pl.col("oid").is_in(oids.implode()) & pl.struct(MODEL_TIER).is_in(groups.implode())


def _is_scored() -> pl.Expr:
    """Whether baseline and current both have the chosen score, on the same basis."""
    same = (pl.col("baseline_basis") == pl.col("current_basis")).fill_null(True)
    return pl.col("baseline_score").is_not_null() & pl.col("current_score").is_not_null() & same


def _falls_back(limit: float) -> pl.Expr:
    """Whether pass rates are compared instead of the chosen score."""
    change = pl.col("current_outcome") - pl.col("baseline_outcome")
    complete = pl.col("baseline_complete") & pl.col("current_complete")
    return (change.is_not_null() & (~pl.col("scored") | (~complete & (change.abs() > limit)))).fill_null(False)


def _compared_score(side: str) -> pl.Expr:
    """The score that is compared; for a case that cannot be compared, whichever score it has."""
    score, outcome = pl.col(f"{side}_score"), pl.col(f"{side}_outcome")
    return pl.when("fallback").then(outcome).otherwise(pl.coalesce(score, outcome)).alias(f"{side}_score")


def _basis() -> pl.Expr:
    """Name of the compared score; for a case that cannot be compared, that of the first score it has."""
    found = [
        pl.when(pl.col(f"{side}_score").is_not_null())
        .then(f"{side}_basis")
        .when(pl.col(f"{side}_outcome").is_not_null())
        .then(pl.lit("pass_rate"))
        for side in ("baseline", "current")
    ]
    return pl.when("fallback").then(pl.lit("pass_rate")).otherwise(pl.coalesce(found))


def _delta() -> pl.Expr:
    """Current minus baseline; null if either has no score or they differ in basis."""
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
    """The most basic component that changed in the direction of the score."""
    change = {name: pl.col(f"current_{name}") - pl.col(f"baseline_{name}") for name in _COMPONENTS}
    fell = [pl.when(part < -TOLERANCE).then(pl.lit(name)) for name, part in change.items()]
    rose = [pl.when(part > TOLERANCE).then(pl.lit(name)) for name, part in change.items()]
    kind = pl.col("kind")
    return (
        pl.when(kind == "regression")
        .then(pl.coalesce(*fell, pl.lit("score")))
        .when(kind == "improvement")
        .then(pl.coalesce(*rose, pl.lit("score")))
    )


# Regressions by chance


def chance_of_regression(
    baseline: pl.LazyFrame, current: pl.LazyFrame, cases: pl.DataFrame, limit: float
) -> pl.DataFrame:
    """Per compared case, the probability that its score drops by more than `limit` under random assignment.

    `baseline` and `current` hold attempts with `score` and `outcome` (1 passed, 0 failed); `cases` is the result of
    `regressions`, with whether each is compared by its `best` attempt. Exact for the best score and for pass rates; for
    means of other scores, the normal approximation to the permutation distribution.
    """
    sized = _sizes(baseline, current, cases, limit)
    # With one attempt on either side the mean is the best, for which the probability is exact.
    takes_best = (pl.col("best") & ~pl.col("fallback")) | ((pl.col("n_baseline") == 1) & (pl.col("n_current") == 1))
    is_rate = pl.col("basis") == "pass_rate"
    kinds = [
        (takes_best, "top", lambda n_a, n_b, top: _all_on_baseline(n_a, n_b, int(top))),
        (~takes_best & is_rate, "passes", lambda n_a, n_b, passes: _rate_drops(n_a, n_b, int(passes), limit)),
        (~takes_best & ~is_rate, "variance", lambda n_a, n_b, variance: _mean_drops(n_a, n_b, variance, limit)),
    ]
    return pl.concat(_evaluated(sized.filter(which), column, probability) for which, column, probability in kinds)


def _sizes(baseline: pl.LazyFrame, current: pl.LazyFrame, cases: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Sufficient statistics of the pooled attempts per compared case.

    `top` counts the attempts within `limit` of the best one.
    """
    compared = cases.lazy().filter(pl.col("delta").is_not_null()).select(*PROBLEM_KEY, "basis", "fallback", "best")
    sides = [
        side.select(*PROBLEM_KEY, "score", "outcome", is_current=pl.lit(place == 1))
        for place, side in enumerate((baseline, current))
    ]
    value = pl.when("fallback").then("outcome").otherwise("score")
    pooled = pl.concat(sides).join(compared, on=PROBLEM_KEY, how="inner").with_columns(value=value).drop_nulls("value")
    sized = pooled.group_by(PROBLEM_KEY).agg(
        pl.col("basis", "fallback", "best").first(),
        n_baseline=(~pl.col("is_current")).sum().cast(pl.Int64),
        n_current=pl.col("is_current").sum().cast(pl.Int64),
        top=(pl.col("value") >= pl.col("value").max() - limit).sum().cast(pl.Int64),
        passes=pl.col("outcome").sum().cast(pl.Int64),
        # Rounded because the last digits depend on the order of rows.
        variance=pl.col("value").var().round(12).fill_null(0.0),
    )
    return sized.sort(PROBLEM_KEY).collect()


def _evaluated(sized: pl.DataFrame, column: str, probability: Callable[[int, int, float], float]) -> pl.DataFrame:
    """Evaluate each distinct combination of statistics once: there are few of them, however many cases."""
    sizes = ["n_baseline", "n_current", column]
    distinct = sized.select(sizes).unique()
    chances = [probability(*row) for row in distinct.iter_rows()]
    known = distinct.with_columns(pl.Series("chance_of_regression", chances, pl.Float64))
    return sized.join(known, on=sizes, how="left").select(*PROBLEM_KEY, "chance_of_regression")


def _all_on_baseline(n_baseline: int, n_current: int, top: int) -> float:
    """The probability that all `top` attempts are assigned to the baseline.

    Exactly then is the current best below the baseline's by more than the limit.

    >>> _all_on_baseline(1, 1, 1), _all_on_baseline(2, 2, 2), _all_on_baseline(3, 3, 4)
    (0.5, 0.16666666666666666, 0.0)
    """
    total, chance = n_baseline + n_current, 1.0
    for place in range(top):
        chance *= max(n_baseline - place, 0) / (total - place)
        if chance == 0:
            break
    return chance


def _rate_drops(n_baseline: int, n_current: int, passes: int, limit: float) -> float:
    """The probability that the pass rate drops by more than the limit: a hypergeometric tail.

    >>> [round(_rate_drops(*sizes, 0.05), 6) for sizes in ((1, 1, 1), (2, 2, 2), (3, 3, 6))]
    [0.5, 0.166667, 0.0]
    """
    total = n_baseline + n_current
    chances = [
        math.exp(_log_comb(n_baseline, kept) + _log_comb(n_current, passes - kept) - _log_comb(total, passes))
        for kept in range(max(passes - n_current, 0), min(n_baseline, passes) + 1)
        if (passes - kept) / n_current - kept / n_baseline < -limit
    ]
    return min(math.fsum(chances), 1.0)


def _mean_drops(n_baseline: int, n_current: int, variance: float, limit: float) -> float:
    """The normal approximation to the probability that the mean drops by more than the limit.

    >>> _mean_drops(5, 5, 0.0, 0.05), round(_mean_drops(50, 50, 0.25, 0.0), 3)
    (0.0, 0.5)
    """
    standard_error = math.sqrt(variance * (1 / n_baseline + 1 / n_current))
    return 0.5 * math.erfc(limit / (standard_error * math.sqrt(2))) if standard_error > 0 else 0.0


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
