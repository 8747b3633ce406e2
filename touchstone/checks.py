"""What may be wrong with a run's data: pure functions that judge frames. The asset checks report what they find."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import polars as pl

from touchstone.config import CheckLimits, Scoring
from touchstone.ingest.fixes import ATTEMPT_KEY
from touchstone.metrics.prices import price_name
from touchstone.text import counted, counted_of
from touchstone.vocabulary import CLASSES, FILE_STATUSES, MAX_AMOUNT, PASS_CLASS

# How many classes, files, or models and tiers, a message lists by name.
_MOST_NAMED = 20
_MOST_GROUPS = 5
# When missing scores are held to go with failing: the level of the test, and the pass rate that they hide.
_ALPHA = 0.05
_LEAST_BIAS = 0.01


@dataclass(frozen=True)
class Finding:
    """A verdict in words and figures. An `error` makes the run fail, a `warning` only says so."""

    passed: bool
    message: str
    error: bool = False
    figures: Mapping[str, int | float] = field(default_factory=dict)


def files_readable(quarantine: pl.DataFrame) -> Finding:
    """Every fixes file could be read."""
    broken = quarantine.filter(pl.col("kind") == "unreadable_file").sort("source_file")
    message = "; ".join(broken["reason"].unique(maintain_order=True)) or "every file could be read"
    return Finding(broken.is_empty(), message, error=True, figures={"unreadable_files": broken.height})


def files_accounted_for(sources: pl.DataFrame) -> Finding:
    """Every data file is evaluated, or left out for a reason that the user gave."""
    files = sources.sort("source_file", "model")
    counts = dict(files.group_by("status").agg(pl.col("source_file").n_unique()).iter_rows())
    figures = {f"files_{status}": counts.get(status, 0) for status in FILE_STATUSES}
    unknown, left_out = (_listed(files.filter(pl.col("status") == status)) for status in ("unknown", "left_out"))
    messages = [f"{counted(figures['files_evaluated'], 'file')} evaluated"]
    messages += [f"{counted(figures['files_unknown'], 'data file')} not evaluated: {unknown}"] if unknown else []
    messages += [f"left out by the config: {left_out}"] if left_out else []
    return Finding(not unknown, "; ".join(messages), figures=figures)


def _listed(files: pl.DataFrame) -> str:
    named = [f"{file} ({reason})" for file, reason in files.select("source_file", "reason").iter_rows()]
    more = [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    return "; ".join([*named[:_MOST_NAMED], *more])


def quarantine_share(sources: pl.DataFrame, limits: CheckLimits) -> Finding:
    """No file has more refused rows than allowed."""
    judged = sources.filter(pl.col("rows") > 0).with_columns(share=pl.col("quarantined") / pl.col("rows"))
    worst_first = judged.sort("share", "model", "source_file", descending=[True, False, False])
    over = worst_first.filter(pl.col("share") > limits.max_quarantine_share)
    refused, rows = int(sources["quarantined"].sum()), int(sources["rows"].sum())
    message = f"{counted_of(refused, rows, 'row')} {'is' if refused == 1 else 'are'} in quarantine"
    if over.height:
        named = [
            f"{share:.1%} of {file}" + (f" ({model})" if model else "")
            for share, file, model in over.select("share", "source_file", "model").iter_rows()
        ]
        message += f"; more than {limits.max_quarantine_share:.1%}: {', '.join(named)}"
    worst = worst_first["share"][0] if worst_first.height else 0.0
    figures = {"quarantined_rows": refused, "worst_share": worst, "over": over.height}
    return Finding(over.is_empty(), message, error=True, figures=figures)


def unknown_oids(sources: pl.DataFrame, quarantine: pl.DataFrame, limits: CheckLimits) -> Finding:
    """The fixes speak of problems that the problems file knows."""
    strangers = quarantine.filter(pl.col("kind") == "unknown_oid").sort("source_file", "line")
    rows = int(sources["rows"].sum())
    share = strangers.height / rows if rows else 0.0
    name = "names" if strangers.height == 1 else "name"
    message = f"{counted_of(strangers.height, rows, 'row')} {name} an oid that is not in the problems file"
    if strangers.height:
        file, line, reason = strangers.select("source_file", "line", "reason").row(0)
        message += f" (for example {file}, line {line}: {reason})"
    figures = {"unknown_oids": strangers.height, "share": share}
    return Finding(share <= limits.max_unknown_oid_share, message, figures=figures)


def unique_keys(attempts: pl.LazyFrame, key: list[str]) -> Finding:
    """No two attempts share a key."""
    repeated = (
        attempts.group_by(key).len().filter(pl.col("len") > 1).select(pl.len()).collect(engine="streaming").item()
    )
    message = (
        f"{counted(repeated, 'key stands', 'keys stand')} for more than one attempt"
        if repeated
        else "every key is unique"
    )
    return Finding(repeated == 0, message, error=True, figures={"duplicate_keys": repeated})


def all_decided(outcomes: pl.LazyFrame) -> Finding:
    """Every attempt has an outcome."""
    total, decided = outcomes.select(pl.len(), pl.col("passed").count()).collect().row(0)
    missing = total - decided
    have = "has no outcome and is" if missing == 1 else "have no outcome and are"
    message = f"{counted_of(missing, total, 'attempt')} {have} counted neither way"
    return Finding(total == decided, message, figures={"undecided": total - decided, "attempts": total})


def undecided_share(outcomes: pl.LazyFrame, limits: CheckLimits) -> Finding:
    """Validation decided nearly all that it was given: what it leaves out is not left out by chance."""
    left_out = pl.col("passed").is_null() & pl.col("diagnostics").is_not_null()
    given = outcomes.filter(left_out | pl.col("sandbox").is_not_null())
    total = given.select(pl.len()).collect().item()
    reasons = given.filter(left_out).group_by("status").agg(pl.len(), pl.col("diagnostics").min()).sort("status")
    found = reasons.collect()
    missing = int(found["len"].sum())
    share = missing / total if total else 0.0
    figures = {"undecided": missing, "given": total, "share": share}
    if missing == 0:
        message = f"{counted(total, 'fix was', 'fixes were')} given to validators, and none is undecided"
        return Finding(True, message, error=True, figures=figures)
    shown = "; ".join(f"{status} {count:,}: {why.splitlines()[0]}" for status, count, why in found.iter_rows())
    were = "was" if missing == 1 else "were"
    given_told = counted(total, "fix given to validators", "fixes given to validators")
    message = f"{missing:,} of {given_told} {were} not decided ({shown})"
    message += f"; {_remedies(found['status'])}, or raise checks.max_undecided_share"
    return Finding(share <= limits.max_undecided_share, message, error=True, figures=figures)


def baselines_fail_as_recorded(baselines: pl.DataFrame, limits: CheckLimits) -> Finding:
    """The unmodified problems have the errors that they are about, so that a fix can be told from no fix."""
    wrong = baselines.filter(pl.col("fails_as_recorded").not_().fill_null(False))
    remedy = "correct line_start, line_end and summary of these problems or the files in clones_dir"
    return _trusted(baselines, wrong, "does not show the error that it is about", remedy, limits)


def reference_fixes_pass(baselines: pl.DataFrame, limits: CheckLimits) -> Finding:
    """Every reference fix passes: a validator that refuses a right answer refuses others too."""
    wrong = baselines.filter(pl.col("reference_status") != "passed")
    return _trusted(baselines, wrong, "refuses its own reference fix", _remedies(wrong["reference_status"]), limits)


# What to do about a status that a gate stopped at. Undecided results and timeouts are tried again by every run.
_REMEDIES = {
    "failed": "correct the reference fix (`touchstone validate` shows what is wrong with it)",
    "timeout": "run again while the machine is less busy, or raise validation.limits.seconds",
    "memory_limit": "raise validation.limits.memory_mb",
    "output_limit": "raise validation.limits.output_mb",
    "disk_limit": "raise validation.limits.disk_mb",
    "no_report": "run again, and see with `touchstone validate` where the validator stops",
    "sandbox_error": "run again, and see with `touchstone validators` what works on this machine",
    "validator_unavailable": "set right what is named (`touchstone validators` lists what is installed) and run again",
    "unsafe_input": "take the unsafe files out of clones_dir and run again",
}


def _remedies(statuses: pl.Series) -> str:
    """What to do about these statuses, each remedy once."""
    return "; ".join(_REMEDIES[status] for status in statuses.unique().sort())


def _trusted(baselines: pl.DataFrame, wrong: pl.DataFrame, what: str, remedy: str, limits: CheckLimits) -> Finding:
    share = wrong.height / baselines.height if baselines.height else 0.0
    figures = {"problems": baselines.height, "untrusted": wrong.height, "share": share}
    if wrong.is_empty():
        message = f"{counted(baselines.height, 'problem was', 'problems were')} validated, and none is untrusted"
        return Finding(True, message, error=True, figures=figures)
    oid, said = wrong.sort("oid").select("oid", "diagnostics").row(0)
    example = f"{oid}: {said.splitlines()[0]}" if said else oid
    message = f"{counted_of(wrong.height, baselines.height, 'problem')}: validation {what} (for example {example})"
    message += f"; {remedy}, or raise checks.max_untrusted_share"
    return Finding(share <= limits.max_untrusted_share, message, error=True, figures=figures)


def reports_consistent(outcomes: pl.LazyFrame) -> Finding:
    """A validator's exit code and its report agree."""
    wrong = outcomes.filter(pl.col("consistent").not_().fill_null(False)).select("oid", "diagnostics").collect()
    message = "every exit code agrees with its report"
    if wrong.height:
        oid, said = wrong.row(0)
        contradict = ("report contradicts the exit code and counts", "reports contradict the exit code and count")
        message = f"{counted(wrong.height, *contradict)} as failed (for example {oid}: {said})"
    return Finding(wrong.is_empty(), message, figures={"contradictions": wrong.height})


def funnel_is_monotone(outcomes: pl.LazyFrame) -> Finding:
    """Attempted >= applied >= compiled >= passed among the attempts that were validated here."""
    validated = outcomes.filter(pl.col("applied").is_not_null() & pl.col("passed").is_not_null())
    passed = pl.col("passed")
    counts = validated.select(
        attempted=pl.len(),
        applied=pl.col("applied").sum(),
        compiled=pl.col("compiled").sum(),
        passed=passed.sum(),
        unapplied=(passed & ~pl.col("applied")).sum(),
        uncompiled=(passed & ~pl.col("compiled").fill_null(True)).sum(),
    )
    figures = counts.collect().row(0, named=True)
    wrong = figures.pop("unapplied") + figures.pop("uncompiled")
    shown = ", ".join(f"{name} {count:,}" for name, count in figures.items())
    message = shown
    if wrong:
        message = f"{counted(wrong, 'attempt')} passed without being applied or compiled ({shown}); "
        message += (
            "a validator contradicts itself: correct it, then `touchstone run --fresh` validates everything again"
        )
    return Finding(wrong == 0, message, error=True, figures=figures)


def one_fidelity(outcomes: pl.LazyFrame) -> Finding:
    """No figure mixes verdicts that mean different things."""
    decided = outcomes.filter(pl.col("passed").is_not_null())
    kinds = decided.group_by("model", "tier").agg(pl.col("fidelity").unique().sort())
    mixed = kinds.filter(pl.col("fidelity").list.len() > 1).sort("model", "tier").collect()
    message = "every figure rests on verdicts of one fidelity"
    if mixed.height:
        model, tier, fidelities = mixed.row(0)
        message = (
            f"{counted(mixed.height, 'model and tier mixes', 'models and tiers mix')} fidelities "
            f"(for example {model} {tier}: {', '.join(fidelities)}); "
            "evaluate them apart, each with a config of its own"
        )
    return Finding(mixed.is_empty(), message, error=True, figures={"mixed": mixed.height})


def coverage(pass_at_k: pl.DataFrame, limits: CheckLimits) -> Finding:
    """Every model and tier attempted enough of the problems."""
    groups = pass_at_k.unique(["model", "tier"]).with_columns(share=pl.col("attempted") / pl.col("problems"))
    thin = groups.filter(pl.col("share") < limits.min_coverage).sort("share", "model", "tier")
    shown = ", ".join(
        f"{model} {tier}: {attempted} of {problems}"
        for model, tier, attempted, problems in thin.select("model", "tier", "attempted", "problems")
        .head(5)
        .iter_rows()
    )
    thin_told = counted_of(thin.height, groups.height, "model and tier", "models and tiers")
    message = f"{thin_told} attempted too few problems ({shown})"
    lowest = groups.select(pl.col("share").min()).item()
    figures = {"thin": thin.height, "lowest_coverage": lowest or 0.0}
    return Finding(thin.is_empty(), message if thin.height else "every problem was attempted", figures=figures)


def enough_samples(pass_at_k: pl.DataFrame) -> Finding:
    """Every attempted problem has at least k decided attempts for every k."""
    short = pass_at_k.filter(pl.col("eligible") < pl.col("attempted")).sort("model", "tier", "k")
    shown = ", ".join(
        f"{model} {tier}: {missing} at k={k}"
        for model, tier, k, missing in short.select("model", "tier", "k", pl.col("attempted") - pl.col("eligible"))
        .head(5)
        .iter_rows()
    )
    message = f"problems with fewer than k attempts are left out of pass@k ({shown})"
    figures = {"figures_affected": short.height}
    return Finding(short.is_empty(), message if short.height else "n >= k everywhere", figures=figures)


def every_model_priced(attempts: pl.LazyFrame, scores: pl.LazyFrame, scoring: Scoring) -> Finding:
    """Every attempt of a model that brings tokens or costs has a cost: given, or by the model's price."""
    no_cost = pl.col("cost_usd").is_null()
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
        keys = scores.filter((pl.col("model") == row["model"]) & no_cost).select("model", *ATTEMPT_KEY)
        rows = attempts.join(keys, on=["model", *ATTEMPT_KEY], how="semi")
        have = "has" if row["missing"] == 1 else "have"
        why = _why_no_cost(rows, row["price"], scoring)
        missing = counted_of(row["missing"], row["attempts"], "attempt")
        messages.append(f"{row['model']}: {missing} {have} no cost ({why})")
    figures = {"unpriced_attempts": int(found["missing"].sum())}
    return Finding(found.is_empty(), "; ".join(messages) or "every attempt has a cost", figures=figures)


def _why_no_cost(attempts: pl.LazyFrame, price_name: str | None, scoring: Scoring) -> str:
    if price_name is None:
        return "cost_usd is missing"
    uncounted = pl.col("input_tokens").is_null() | pl.col("output_tokens").is_null()
    unpriced = (pl.col("cache_read_tokens") > 0) & pl.lit(scoring.all_prices[price_name].cache_read is None)
    reason = (
        pl.when(uncounted)
        .then(pl.lit("input_tokens or output_tokens is missing"))
        .when(unpriced)
        .then(pl.lit(f"the price '{price_name}' has no 'cache_read'"))
        .otherwise(pl.lit(f"the price '{price_name}' gives more than ${MAX_AMOUNT:,}"))
    )
    return ", or ".join(attempts.select(reason.alias("reason").unique().sort()).collect()["reason"])


def missing_scores(scores: pl.LazyFrame, missing: str) -> Finding:
    """Attempts without a judge's score do not fail more often than the others, whose scores alone are graded.

    Per model and tier by Fisher's exact test, one-sided, at 5% over all of them (Bonferroni). It takes attempts for
    independent, which is good enough for a warning. What moves the pass rate by less than a point is left alone.
    """
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
        message = "missing judge's scores count as 0" if groups.height else "every attempt or none has a judge's score"
        return Finding(True, message, figures=figures)
    gone = [row for row in groups.iter_rows(named=True) if _missing_with_failing(row, groups.height)]
    if not gone:
        return Finding(True, "judge's scores are missing about as often where attempts pass", figures=figures)
    shown = "; ".join(_survivors(row) for row in gone[:_MOST_GROUPS])
    more = f"; and {len(gone) - _MOST_GROUPS} more" if len(gone) > _MOST_GROUPS else ""
    return Finding(False, f'{shown}{more}; scoring.composite.missing = "zero" counts them in', figures=figures)


def _missing_with_failing(row: Mapping[str, int], tests: int) -> bool:
    # Loading scipy's distributions takes half a second, and few runs lack scores.
    from scipy.stats import hypergeom  # type: ignore[import-untyped]

    if _scored_pass_rate(row) - _pass_rate(row) < _LEAST_BIAS:
        return False
    chance = hypergeom.sf(row["lost"] - 1, row["attempts"], row["failed"], row["unscored"])
    return bool(chance * tests <= _ALPHA)


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


def known_classes(scores: pl.LazyFrame) -> Finding:
    """Every class is one of the known ones; any other scores 0."""
    name = pl.col("classification")
    total = scores.select(pl.len()).collect().item()
    counts = scores.filter(name.is_not_null() & ~name.is_in(CLASSES)).group_by(name).len()
    unknown = dict(counts.sort("len", name, descending=[True, False]).collect().iter_rows())
    found = sum(unknown.values())
    if not unknown:
        return Finding(True, "every class is known", figures={"unknown_class_attempts": 0})
    shown = ", ".join(f"{each} {count:,}" for each, count in islice(unknown.items(), _MOST_NAMED))
    more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
    message = (
        f"{counted_of(found, total, 'attempt')} "
        f"{'has an unknown class and scores' if found == 1 else 'have an unknown class and score'} 0: {shown}{more}; "
        f"known classes: {', '.join(CLASSES)}"
    )
    figures = {f"class {each}": count for each, count in islice(unknown.items(), _MOST_NAMED)}
    return Finding(False, message, figures={"unknown_class_attempts": found} | figures)


def classes_match_outcomes(attempts: pl.LazyFrame, outcomes: pl.LazyFrame) -> Finding:
    """Where a validator decided here, it agrees with the class in the file."""
    key = ["model", "tier", "oid", "iteration_id"]
    classed = attempts.filter(pl.col("classification").is_not_null()).select(*key, "classification")
    said_pass, passed = pl.col("classification") == PASS_CLASS, pl.col("passed")
    lost, won = (
        classed.join(outcomes.select(*key, "passed"), on=key)
        .select(lost=(said_pass & ~passed).sum(), won=(~said_pass & passed).sum())
        .collect()
        .row(0)
    )
    message = (
        f"{counted(lost + won, 'attempt was', 'attempts were')} validated here with another outcome than "
        f"{'its' if lost + won == 1 else 'their'} class says ({lost:,} of class "
        f"{PASS_CLASS} failed, {won:,} of another class passed); the validator's outcome counts"
    )
    figures = {"contradicted_classes": lost + won}
    return Finding(lost + won == 0, message if lost + won else "every class agrees with its outcome", figures=figures)


def classes_add_up(suite_scores: pl.DataFrame) -> Finding:
    """The counts per class of a suite add up to its cases."""
    total = pl.sum_horizontal(pl.col("^class_.*$"))
    wrong = suite_scores.filter(total != pl.col("cases")).height
    message = (
        f"{counted(wrong, 'suite has', 'suites have')} class counts that do not add up"
        if wrong
        else "every case is in one class"
    )
    return Finding(wrong == 0, message, error=True, figures={"suites": suite_scores.height, "wrong": wrong})


def no_empty_suite(empty: pl.DataFrame) -> Finding:
    """Every suite of the problems file has a decided case."""
    names = ", ".join(empty["suite"])
    message = f"left out, because no case is decided: {names}" if names else "every suite has cases"
    return Finding(empty.is_empty(), message, figures={"empty_suites": empty.height})


def within_bounds(pass_at_k: pl.DataFrame) -> Finding:
    """Every figure lies in [0, 1] and inside its interval."""
    shares = ["pass_at_k", "ci_low", "ci_high", "pass_at_k_all", "pass_hat_k"]
    outside = pl.any_horizontal(~pl.col(name).is_between(0, 1) for name in shares)
    crossed = (pl.col("ci_low") > pl.col("pass_at_k")) | (pl.col("pass_at_k") > pl.col("ci_high"))
    wrong = pass_at_k.filter(outside.fill_null(False) | crossed.fill_null(False))
    message = f"{counted(wrong.height, 'figure lies', 'figures lie')} outside [0, 1] or outside the interval"
    figures = {"figures": pass_at_k.height, "wrong": wrong.height}
    return Finding(
        wrong.is_empty(),
        message if wrong.height else "every figure is in bounds",
        error=True,
        figures=figures,
    )
