"""Checks of figures and scores."""

from collections.abc import Mapping
from itertools import islice, takewhile
from typing import Any

import numpy as np
import polars as pl

from touchstone.config import CheckLimits, IntervalSettings
from touchstone.config.scoring import Scoring
from touchstone.inference.grouping import intraclass_correlation
from touchstone.inference.hypergeometric import fisher_p
from touchstone.inference.units import own_cluster
from touchstone.metrics.attempts import price_name
from touchstone.metrics.pass_at_k import problem_counts
from touchstone.metrics.suites import empty_suites
from touchstone.storage.batches import by_key
from touchstone.tables import TABLES
from touchstone.tables.checks import CheckResult
from touchstone.text import counted, counted_of, some_of
from touchstone.vocabulary import CLASSES, MAX_AMOUNT, PASS_CLASS

# How many classes, or models and tiers, a message lists by name.
_MOST_NAMED = 20
_MOST_GROUPS = 5
# `missing_scores`: the significance level of the test, and the bias of the pass rate below which it is ignored.
_ALPHA = 0.05
_LEAST_BIAS = 0.01
# `units_independent`: the probability of a false alarm.
_FOLDER_ALPHA = 0.001
_INDEPENDENT = "problems of one folder pass no more alike than chance explains"
_ALL_PRICED = "every attempt has a cost"
_ALL_OR_NONE_SCORED = "every attempt or none has a judge's score"
_CLASSES_AGREE = "every class agrees with its outcome"


def coverage(pass_at_k: pl.LazyFrame, limits: CheckLimits) -> CheckResult:
    """Every model and tier attempted enough of the problems."""
    share = pl.col("attempted") / pl.col("problems")
    groups = pass_at_k.lazy().unique(["model", "tier"]).with_columns(share=share).collect()
    thin = groups.filter(pl.col("share") < limits.min_coverage).sort("share", "model", "tier")
    shown = ", ".join(
        f"{model} {tier}: {attempted} of {problems}"
        for model, tier, attempted, problems in thin.select("model", "tier", "attempted", "problems")
        .head(5)
        .iter_rows()
    )
    how_many = counted_of(thin.height, groups.height, "model and tier", "models and tiers")
    message = f"{how_many} attempted too few problems ({shown})"
    lowest = groups.select(pl.col("share").min()).item()
    figures = {"thin": thin.height, "lowest_coverage": lowest or 0.0}
    return CheckResult(thin.is_empty(), message if thin.height else "every problem was attempted", figures=figures)


def enough_samples(pass_at_k: pl.LazyFrame) -> CheckResult:
    """Every attempted problem has at least k decided attempts for every k."""
    short = pass_at_k.lazy().filter(pl.col("eligible") < pl.col("attempted")).sort("model", "tier", "k").collect()
    shown = ", ".join(
        f"{model} {tier}: {missing} at k={k}"
        for model, tier, k, missing in short.select("model", "tier", "k", pl.col("attempted") - pl.col("eligible"))
        .head(5)
        .iter_rows()
    )
    message = f"problems with fewer than k attempts are left out of pass@k ({shown})"
    figures = {"figures_affected": short.height}
    return CheckResult(short.is_empty(), message if short.height else "n >= k everywhere", figures=figures)


def units_independent(
    problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings
) -> CheckResult:
    """Problems, or clusters, of one folder do not pass more alike than chance explains.

    Mean pass rates over models, compared within suites (`inference.grouping`), by the outermost folder of `filename` in
    which they differ and by the innermost one. A false alarm in one run of a thousand, `_FOLDER_ALPHA` over both tests.
    """
    if not _any(problems, "filename"):
        return CheckResult(True, _INDEPENDENT)
    rate = (pl.col("c") / pl.col("n")).sort_by("model", "tier").mean()
    rates = problem_counts(problem_pass_at_k).filter(pl.col("n") > 0).group_by("oid").agg(rate=rate)
    path = pl.col("filename").str.replace_all("\\", "/", literal=True).str.split("/")
    folders = path.list.head(path.list.len() - 1)
    listed = problems.select("oid", "suite", "cluster", folders=folders).join(rates, on="oid").sort("oid").collect()
    names = listed["folders"].list.join("/")
    ends = zip(str(names.min()).split("/"), str(names.max()).split("/"), strict=False)
    depth = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends)) + 1
    # A cluster has a folder if all of its problems are there.
    folder = pl.when(pl.col("folder").n_unique() == 1).then(pl.col("folder").first())
    levels = {"outermost": pl.col("folders").list.head(depth), "innermost": pl.col("folders")}
    for level, parts in levels.items():
        units = (
            listed.with_columns(own_cluster(), folder=parts.list.join("/"))
            .group_by("cluster", maintain_order=True)
            .agg(folder.alias("folder"), pl.col("suite").first(), pl.col("rate").mean())
            .drop_nulls("folder")
        )
        places, suites = (units[name].rank("dense").to_numpy().astype(np.int64) for name in ("folder", "suite"))
        found = intraclass_correlation(units["rate"].to_numpy(), places, suites, settings.seed) if len(places) else None
        if found is not None and found.p_value <= _FOLDER_ALPHA / len(levels):
            many = counted(units["folder"].n_unique(), "folder")
            message = (
                f"problems of one folder pass alike (correlation {found.correlation:.2f} within {many}, the {level} of "
                "'filename'), so intervals that take them as independent are too narrow; give problems a 'cluster', or "
                "name a column in 'cluster_columns'"
            )
            return CheckResult(False, message, figures={"correlation": found.correlation})
    return CheckResult(True, _INDEPENDENT)


def every_model_priced(attempts: pl.LazyFrame, scores: pl.LazyFrame, scoring: Scoring) -> CheckResult:
    """Every attempt of a model with tokens or costs has a cost: given, or from the model's price."""
    if not _any(scores, "cost_usd", "total_tokens"):
        return CheckResult(True, _ALL_PRICED, figures={"unpriced_attempts": 0})
    key, no_cost = TABLES["attempts"].key, pl.col("cost_usd").is_null()
    counts = scores.group_by("model").agg(
        attempts=pl.len(),
        missing=no_cost.sum(),
        costs=pl.col("cost_usd").count(),
        tokens=pl.col("total_tokens").count(),
    )
    affected = counts.filter((pl.col("missing") > 0) & (pl.col("costs") + pl.col("tokens") > 0)).sort("model")
    found = affected.with_columns(price=price_name(pl.col("model"), scoring)).collect()
    without_price = (pl.col("costs") == 0) & pl.col("price").is_null()
    names = ", ".join(found.filter(without_price)["model"])
    messages = [f"no price for {names}: add one to 'scoring.prices' in the config"] if names else []
    for row in found.filter(~without_price).iter_rows(named=True):
        keys = scores.filter((pl.col("model") == row["model"]) & no_cost).select(key)
        rows = attempts.join(keys, on=key, how="semi")
        have = "has" if row["missing"] == 1 else "have"
        why = _why_no_cost(rows, row["price"], scoring)
        missing = counted_of(row["missing"], row["attempts"], "attempt")
        messages.append(f"{row['model']}: {missing} {have} no cost ({why})")
    figures = {"unpriced_attempts": int(found["missing"].sum())}
    return CheckResult(found.is_empty(), "; ".join(messages) or _ALL_PRICED, figures=figures)


def _why_no_cost(attempts: pl.LazyFrame, name: str | None, scoring: Scoring) -> str:
    if name is None:
        return "cost_usd is missing"
    of_model = scoring.all_prices[name]
    first, day = of_model[0].valid_from, pl.col("attempted_on")
    uncounted = pl.col("input_tokens").is_null() | pl.col("output_tokens").is_null()
    uncached = any(price.cache_read is None for price in of_model)
    reason = (
        pl.when(uncounted)
        .then(pl.lit("input_tokens or output_tokens is missing"))
        .when(day.is_null() & pl.lit(first is not None))
        .then(pl.lit(f"every price of '{name}' has a date, and the attempt has none, such as 'started_at'"))
        .when(day < str(first or ""))
        .then(pl.lit(f"the first price of '{name}' is valid from {first}"))
        .when((pl.col("cache_read_tokens") > 0) & pl.lit(uncached))
        .then(pl.lit(f"the price '{name}' has no 'cache_read'"))
        .otherwise(pl.lit(f"the price '{name}' gives more than ${MAX_AMOUNT:,}"))
    )
    return ", or ".join(attempts.select(reason.alias("reason").unique().sort()).collect()["reason"])


def missing_scores(scores: pl.LazyFrame, missing: str) -> CheckResult:
    """Attempts without a judge's score, which are not graded, do not fail more often than the others.

    Fisher's exact test per model and tier, one-sided, at 5% over all of them (Bonferroni). It assumes independent
    attempts, which is good enough for a warning. A bias of the pass rate below one percentage point is ignored.
    """
    if not _any(scores, "impl_rate"):
        return CheckResult(True, _ALL_OR_NONE_SCORED, figures={"unscored_attempts": 0})
    scored, failed = pl.col("impl_rate").is_not_null(), pl.col("pass_rate") == 0
    groups = (
        scores.filter(pl.col("pass_rate").is_not_null())
        .group_by("model", "tier")
        .agg(attempts=pl.len(), failed=failed.sum(), unscored=(~scored).sum(), lost=(~scored & failed).sum())
        .filter(pl.col("unscored").is_between(1, pl.col("attempts") - 1))
        .sort("model", "tier")
        .collect()
    )
    figures = {"unscored_attempts": int(groups["unscored"].sum())}
    if groups.is_empty() or missing == "zero":
        message = "missing judge's scores count as 0" if groups.height else _ALL_OR_NONE_SCORED
        return CheckResult(True, message, figures=figures)
    gone = [row for row in groups.iter_rows(named=True) if _missing_with_failing(row, groups.height)]
    if not gone:
        return CheckResult(
            True, "judge's scores are missing about as often for passed as for failed attempts", figures=figures
        )
    shown = "; ".join(_survivors(row) for row in gone[:_MOST_GROUPS])
    more = f"; and {len(gone) - _MOST_GROUPS} more" if len(gone) > _MOST_GROUPS else ""
    return CheckResult(
        False, f'{shown}{more}; set scoring.composite.missing to "zero" to count missing scores as 0', figures=figures
    )


def _any(rows: pl.LazyFrame, *columns: str) -> bool:
    """Whether any row has a value: few runs have a judge, classes or costs, and finding none takes no time."""
    return any(rows.select(pl.col(columns).count()).collect(engine="streaming").row(0))


def _missing_with_failing(row: Mapping[str, int], tests: int) -> bool:
    if _scored_pass_rate(row) - _pass_rate(row) < _LEAST_BIAS:
        return False
    scored = row["attempts"] - row["unscored"]
    return fisher_p(scored, row["failed"] - row["lost"], row["unscored"], row["lost"]) * tests <= _ALPHA


def _pass_rate(row: Mapping[str, int]) -> float:
    return 1 - row["failed"] / row["attempts"]


def _scored_pass_rate(row: Mapping[str, int]) -> float:
    return 1 - (row["failed"] - row["lost"]) / (row["attempts"] - row["unscored"])


def _survivors(row: Mapping[str, Any]) -> str:
    attempts, unscored, lost = row["attempts"], row["unscored"], row["lost"]
    how_many = f"all {lost:,}" if lost == unscored else f"{lost:,} of the {unscored:,}"
    have = f"{counted_of(unscored, attempts, 'attempt')} {'has' if unscored == 1 else 'have'}"
    return (
        f"{row['model']} {row['tier']}: {have} no judge's score and {how_many} "
        f"failed, so composite, grade and uplift describe the {attempts - unscored:,} others (pass rate "
        f"{_scored_pass_rate(row):.3f} instead of {_pass_rate(row):.3f})"
    )


def known_classes(scores: pl.LazyFrame) -> CheckResult:
    """Every class is known; unknown classes score 0."""
    name = pl.col("classification")
    counts = scores.filter(name.is_not_null() & ~name.is_in(CLASSES)).group_by(name).len()
    unknown = dict(counts.sort("len", name, descending=[True, False]).collect(engine="streaming").iter_rows())
    if not unknown:
        return CheckResult(True, "every class is known", figures={"unknown_class_attempts": 0})
    total, found = scores.select(pl.len()).collect().item(), sum(unknown.values())
    shown = some_of([f"{each} {count:,}" for each, count in unknown.items()], _MOST_NAMED)
    message = (
        f"{counted_of(found, total, 'attempt')} "
        f"{'has an unknown class and scores' if found == 1 else 'have an unknown class and score'} 0: {shown}; "
        f"known classes: {', '.join(CLASSES)}"
    )
    figures = {f"class {each}": count for each, count in islice(unknown.items(), _MOST_NAMED)}
    return CheckResult(False, message, figures={"unknown_class_attempts": found} | figures)


def classes_match_outcomes(attempts: pl.LazyFrame, outcomes: pl.LazyFrame) -> CheckResult:
    """If a validator decided, its outcome agrees with the class in the file."""
    # One that the file states agrees, or ingest refused it.
    judged = outcomes.filter(pl.col("validator") != "recorded")
    if not (_any(judged, "measured") and _any(attempts, "classification")):
        return CheckResult(True, _CLASSES_AGREE, figures={"contradicted_classes": 0})
    rows = int(attempts.select(pl.len()).collect(engine="streaming").item())
    parts = by_key(rows, TABLES["attempts"].key)
    contradicted = [_contradicted(attempts.filter(part), judged.filter(part)) for part in parts]
    lost, won = (sum(counts) for counts in zip(*contradicted, strict=True))
    message = (
        f"{counted(lost + won, 'attempt was', 'attempts were')} validated with an outcome that contradicts "
        f"{'its' if lost + won == 1 else 'their'} class ({lost:,} of class "
        f"{PASS_CLASS} failed, {won:,} of another class passed); the validator's outcome counts"
    )
    if lost + won == 0:
        message = _CLASSES_AGREE
    return CheckResult(lost + won == 0, message, figures={"contradicted_classes": lost + won})


def _contradicted(attempts: pl.LazyFrame, outcomes: pl.LazyFrame) -> tuple[int, int]:
    """The attempts of class `pass` that failed, and those of another class that passed. The join is in memory."""
    key = TABLES["attempts"].key
    classed = attempts.filter(pl.col("classification").is_not_null()).select(*key, "classification")
    said_pass, passed = pl.col("classification") == PASS_CLASS, pl.col("measured")
    joined = classed.join(outcomes.select(*key, "measured"), on=key)
    counts = joined.select(lost=(said_pass & ~passed).sum(), won=(~said_pass & passed).sum())
    lost, won = counts.collect(engine="streaming").row(0)
    return lost, won


def classes_add_up(suite_scores: pl.LazyFrame) -> CheckResult:
    """The counts per class of a suite add up to its cases."""
    suites = suite_scores.lazy().collect()
    wrong = suites.filter(pl.sum_horizontal(pl.col("^class_.*$")) != pl.col("cases")).height
    message = (
        f"{counted(wrong, 'suite has', 'suites have')} class counts that do not add up"
        if wrong
        else "every case is in one class"
    )
    return CheckResult(wrong == 0, message, error=True, figures={"suites": suites.height, "wrong": wrong})


def slices_add_up(slices: pl.LazyFrame, pass_at_k: pl.LazyFrame) -> CheckResult:
    """The problems of a slice add up to those of the benchmark, for every model and tier."""
    whole = pass_at_k.lazy().select("model", "tier", pl.col("problems").alias("whole")).unique()
    sums = slices.lazy().group_by("model", "tier", "column").agg(pl.col("problems").sum())
    found = sums.join(whole, on=["model", "tier"], how="left").collect()
    wrong = found.filter(pl.col("problems").ne_missing(pl.col("whole"))).height
    message = f"the problems of {counted(wrong, 'slice')} do not add up" if wrong else "every problem is in one value"
    return CheckResult(wrong == 0, message, error=True, figures={"slices": found.height, "wrong": wrong})


def no_empty_suite(problems: pl.LazyFrame, suite_scores: pl.LazyFrame) -> CheckResult:
    """Every suite of the problems file has a decided case."""
    empty = empty_suites(problems, suite_scores).collect()
    names = ", ".join(empty["suite"])
    message = f"suites left out because no case is decided: {names}" if names else "every suite has cases"
    return CheckResult(empty.is_empty(), message, figures={"empty_suites": empty.height})


def within_bounds(pass_at_k: pl.LazyFrame) -> CheckResult:
    """Every figure is in [0, 1] and inside its confidence interval."""
    found = pass_at_k.lazy().collect()
    shares = ["pass_at_k", "ci_low", "ci_high", "pass_at_k_all", "pass_hat_k"]
    outside = pl.any_horizontal(~pl.col(name).is_between(0, 1) for name in shares)
    crossed = (pl.col("ci_low") > pl.col("pass_at_k")) | (pl.col("pass_at_k") > pl.col("ci_high"))
    wrong = found.filter(outside.fill_null(False) | crossed.fill_null(False))
    message = f"{counted(wrong.height, 'figure is', 'figures are')} outside [0, 1] or outside the confidence interval"
    figures = {"figures": found.height, "wrong": wrong.height}
    return CheckResult(
        wrong.is_empty(), message if wrong.height else "every figure is in bounds", error=True, figures=figures
    )
