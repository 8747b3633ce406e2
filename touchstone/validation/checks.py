"""Checks of the validation. Most are gates: no figure is computed from outcomes that they reject."""

from collections.abc import Mapping

import polars as pl

from touchstone.config import CheckLimits, IntervalSettings
from touchstone.inference.units import mean_intervals, unit_sums
from touchstone.tables.checks import CheckResult
from touchstone.text import counted, counted_of, visible
from touchstone.vocabulary import WARNING_NOT_SHOWN

_MOST_RULINGS = 5


def all_decided(outcomes: pl.LazyFrame) -> CheckResult:
    """Every attempt has an outcome."""
    counted_rows = outcomes.filter(pl.col("ruling").ne_missing(pl.lit("exclude")))
    total, decided = counted_rows.select(pl.len(), pl.col("passed").count()).collect().row(0)
    missing = total - decided
    have = "has no outcome and is" if missing == 1 else "have no outcome and are"
    message = f"{counted_of(missing, total, 'attempt')} {have} counted neither as passed nor as failed"
    return CheckResult(total == decided, message, figures={"undecided": total - decided, "attempts": total})


def undecided_share(outcomes: pl.LazyFrame, limits: CheckLimits) -> CheckResult:
    """Validation decided nearly all fixes: undecided ones are not missing at random."""
    # What a person decided is not missing.
    open_still = (
        pl.col("measured").is_null() & pl.col("passed").is_null() & pl.col("ruling").ne_missing(pl.lit("exclude"))
    )
    left_out = open_still & pl.col("diagnostics").is_not_null()
    # A whole problem that a validator cannot show is out of its scope, whatever the fix: no fix is missing.
    in_scope = outcomes.filter(pl.col("diagnostics").ne_missing(WARNING_NOT_SHOWN))
    given = in_scope.filter(left_out | pl.col("sandbox").is_not_null())
    reasons = given.filter(left_out).group_by("status").agg(pl.len(), pl.col("diagnostics").min()).sort("status")
    # Together, so that the outcomes are read once.
    counted_rows, found = pl.collect_all([given.select(pl.len()), reasons], engine="streaming")
    total = counted_rows.item()
    missing = int(found["len"].sum())
    share = missing / total if total else 0.0
    figures = {"undecided": missing, "given": total, "share": share}
    if missing == 0:
        message = f"{counted(total, 'fix was', 'fixes were')} given to validators; none is undecided"
        return CheckResult(True, message, error=True, figures=figures)
    shown = "; ".join(f"{status} {count:,}: {why.splitlines()[0]}" for status, count, why in found.iter_rows())
    were = "was" if missing == 1 else "were"
    given_told = counted(total, "fix given to validators", "fixes given to validators")
    message = f"{missing:,} of {given_told} {were} not decided ({shown})"
    message += f"; {_remedies(found['status'])}, or raise checks.max_undecided_share"
    return CheckResult(share <= limits.max_undecided_share, message, error=True, figures=figures)


def rulings_applied(rulings: pl.LazyFrame) -> CheckResult:
    """Every ruling of a person is applied."""
    rows = rulings.sort("line").collect()
    left_out = rows.filter(~pl.col("applied"))
    figures = {"applied": rows.height - left_out.height, "not_applied": left_out.height}
    if left_out.is_empty():
        return CheckResult(True, f"{counted(rows.height, 'ruling is', 'rulings are')} applied", figures=figures)
    named = [
        visible(f"line {row['line']}{_about(row)}: {row['why_not']}")
        for row in left_out.head(_MOST_RULINGS).iter_rows(named=True)
    ]
    more = [f"{left_out.height - _MOST_RULINGS:,} more"] if left_out.height > _MOST_RULINGS else []
    message = f"{counted_of(left_out.height, rows.height, 'ruling is', 'rulings are')} not applied"
    return CheckResult(False, f"{message}: {'; '.join([*named, *more])}", figures=figures)


def _about(row: Mapping[str, str | None]) -> str:
    names = [row[name] for name in ("model", "tier", "oid", "iteration_id")]
    return f" ({' '.join(name for name in names if name)})" if any(names) else ""


def _counting(baselines: pl.LazyFrame, problems: pl.LazyFrame) -> pl.DataFrame:
    """The baselines of the problems that no ruling excludes."""
    return baselines.join(problems.filter("excluded"), on="oid", how="anti").collect()


def baselines_fail_as_recorded(baselines: pl.LazyFrame, problems: pl.LazyFrame, limits: CheckLimits) -> CheckResult:
    """The unmodified problems show their recorded errors, so that a fix can be distinguished from no fix."""
    found = _counting(baselines, problems)
    wrong = found.filter(pl.col("fails_as_recorded").not_().fill_null(False))
    columns = "line_start, line_end, summary, fail_to_pass or pass_to_pass"
    remedy = f"correct {columns} of these problems or the files in clones_dir"
    return _trusted(found, wrong, "does not show the recorded error", remedy, limits)


def reference_fixes_pass(baselines: pl.LazyFrame, problems: pl.LazyFrame, limits: CheckLimits) -> CheckResult:
    """Every reference fix passes: a validator that rejects one correct fix may reject others."""
    found = _counting(baselines, problems)
    wrong = found.filter(pl.col("reference_status") != "passed")
    return _trusted(found, wrong, "rejects the reference fix", _remedies(wrong["reference_status"]), limits)


_LIMIT_STATUSES = ("timeout", "memory_limit", "output_limit", "disk_limit")
# What to do about a status that failed a gate. Every run retries undecided results and timeouts.
_REMEDIES = {
    "failed": "correct the reference fix (`touchstone validate` shows what is wrong with it)",
    "timeout": "run again while the machine is less busy, or raise validation.limits.seconds",
    "memory_limit": "raise validation.limits.memory_mb",
    "output_limit": "raise validation.limits.output_mb",
    "disk_limit": "raise validation.limits.disk_mb",
    "no_report": "run again (`touchstone validate` shows where the validator stops)",
    "sandbox_error": "run again (`touchstone validators` shows what works on this machine)",
    "validator_unavailable": "install or configure what is named (see `touchstone validators`) and run again",
    "unsafe_input": "remove the unsafe files from clones_dir and run again",
}


def baselines_within_limits(baselines: pl.LazyFrame, problems: pl.LazyFrame) -> CheckResult:
    """No unmodified problem reaches a limit of time or memory, which may be too low for its tests.

    A reference fix that passes shows that it is not.
    """
    found = _counting(baselines, problems)
    reached = pl.col("baseline_status").is_in(_LIMIT_STATUSES) & pl.col("reference_status").ne_missing("passed")
    wrong = found.filter(reached).sort("oid")
    figures: dict[str, int | float] = {"problems": found.height, "at_a_limit": wrong.height}
    if wrong.is_empty():
        return CheckResult(True, "no unmodified problem reaches a limit", figures=figures)
    oid, status = wrong.select("oid", "baseline_status").row(0)
    message = (
        f"{counted_of(wrong.height, found.height, 'unmodified problem')} reached a limit (for example {oid}: {status})"
    )
    remedy = f"if that is too low for the tests, {_remedies(wrong['baseline_status'])}"
    return CheckResult(False, f"{message}, and a fix that does too has failed; {remedy}", figures=figures)


def _remedies(statuses: pl.Series) -> str:
    """Remedies for these statuses, each once."""
    return "; ".join(_REMEDIES[status] for status in statuses.unique().sort())


def _trusted(baselines: pl.DataFrame, wrong: pl.DataFrame, what: str, remedy: str, limits: CheckLimits) -> CheckResult:
    share = wrong.height / baselines.height if baselines.height else 0.0
    figures = {"problems": baselines.height, "untrusted": wrong.height, "share": share}
    if wrong.is_empty():
        message = f"{counted(baselines.height, 'problem was', 'problems were')} validated; none is untrusted"
        return CheckResult(True, message, error=True, figures=figures)
    oid, said = wrong.sort("oid").select("oid", "diagnostics").row(0)
    example = f"{oid}: {said.splitlines()[0]}" if said else oid
    message = f"{counted_of(wrong.height, baselines.height, 'problem')}: validation {what} (for example {example})"
    message += f"; {remedy}, or raise checks.max_untrusted_share"
    return CheckResult(share <= limits.max_untrusted_share, message, error=True, figures=figures)


def reports_consistent(outcomes: pl.LazyFrame) -> CheckResult:
    """A validator's exit code and its report agree."""
    inconsistent = outcomes.filter(pl.col("consistent").not_().fill_null(False)).select("oid", "diagnostics")
    wrong = inconsistent.collect(engine="streaming")
    message = "every exit code agrees with its report"
    if wrong.height:
        oid, said = wrong.row(0)
        said = (said or "").partition("\n")[0]
        contradict = ("report contradicts the exit code and counts", "reports contradict the exit code and count")
        message = f"{counted(wrong.height, *contradict)} as failed (for example {oid}: {said})"
    return CheckResult(wrong.is_empty(), message, figures={"contradictions": wrong.height})


def funnel_is_monotone(outcomes: pl.LazyFrame) -> CheckResult:
    """Attempted >= applied >= compiled >= passed among the attempts that were validated here."""
    passed = pl.col("measured")
    validated = outcomes.filter(pl.col("applied").is_not_null() & passed.is_not_null())
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
    return CheckResult(wrong == 0, message, error=True, figures=figures)


def one_fidelity(outcomes: pl.LazyFrame) -> CheckResult:
    """No figure mixes verdicts of different fidelity."""
    decided = outcomes.filter(pl.col("measured").is_not_null())
    mixed = _mixed_fidelities(decided)
    message = "every figure is based on verdicts of one fidelity"
    if mixed:
        model, tier, fidelities = mixed[0]
        message = (
            f"{counted(len(mixed), 'model and tier mixes', 'models and tiers mix')} fidelities "
            f"(for example {model} {tier}: {', '.join(fidelities)}); "
            "evaluate them separately, each with its own config"
        )
    return CheckResult(not mixed, message, error=True, figures={"mixed": len(mixed)})


def _mixed_fidelities(decided: pl.LazyFrame) -> list[tuple[str, str, list[str]]]:
    """The models and tiers with verdicts of several fidelities, sorted."""
    # Streamed: to compare each row with the one before is quicker, and holds all rows in memory.
    found = decided.select("model", "tier", "fidelity").unique().collect(engine="streaming")
    kinds = found.group_by("model", "tier").agg(pl.col("fidelity").fill_null("none").unique().sort())
    return kinds.filter(pl.col("fidelity").list.len() > 1).sort("model", "tier").rows()


_SHOWN_FLAKY = 5


def no_flaky_tests(validator_noise: pl.LazyFrame, problems: pl.LazyFrame, settings: IntervalSettings) -> CheckResult:
    """Every repeated test and verdict gave the same result on the same files (`validation.repeat`)."""
    noise = validator_noise.collect()
    tests = noise.filter(pl.col("test").is_not_null())
    without_fix = pl.col("flaky") & (pl.col("validated") != "fix")
    by_test = tests.group_by("oid", "test").agg(pl.col("flaky", "excluded").any(), without_fix=without_fix.any())
    flaky, excluded = (int(by_test[name].sum()) for name in ("flaky", "excluded"))
    verdicts = noise.filter(pl.col("test").is_null())
    changing = int(verdicts["flaky"].sum())
    figures: dict[str, int | float] = {"tests": by_test.height, "flaky": flaky, "excluded": excluded}
    figures |= {"verdicts": verdicts.height, "flaky_verdicts": changing}
    if noise.is_empty():
        return CheckResult(True, "nothing was validated more than once (validation.repeat)", figures=figures)
    repeated = f"{counted(by_test.height, 'test')} and {counted(verdicts.height, 'verdict')}, each up to "
    repeated += counted(int(noise["runs"].max() or 0), "run")  # type: ignore[arg-type]
    if flaky + changing == 0:
        return CheckResult(True, f"the same results every time: {repeated}", figures=figures)
    if by_test.height:
        rated = by_test.select("oid", share=pl.col("flaky").cast(pl.Float64)).lazy()
        units = unit_sums(rated.with_columns(all=pl.lit(0)), problems, ["all"], ["share"])
        low, high = mean_intervals(units, ["all"], "share", settings).select("ci_low", "ci_high").row(0)
        figures |= {"flaky_share": flaky / by_test.height, "flaky_share_ci_low": low, "flaky_share_ci_high": high}
    message = f"{_flaky_share(figures, settings.confidence)}{_flaky_examples(noise)}; {repeated}"
    return CheckResult(False, message + _flaky_remedy(by_test, excluded), figures=figures)


def _flaky_remedy(by_test: pl.DataFrame, excluded: int) -> str:
    without_fix = int(by_test["without_fix"].sum())
    only_with_fixes = int(by_test["flaky"].sum()) - without_fix
    words = f"; {counted(excluded, 'test is', 'tests are')} left out of all verdicts" if excluded else ""
    if without_fix and not excluded:
        words = "; correct the tests, or set validation.exclude_flaky"
    flip = counted(only_with_fixes, "test flips", "tests flip")
    return words + (f"; {flip} only with fixes, which may be to blame" if only_with_fixes else "")


def _flaky_share(figures: Mapping[str, int | float], confidence: float) -> str:
    verdicts = f"{counted_of(int(figures['flaky_verdicts']), int(figures['verdicts']), 'verdict')} changed"
    if not figures["flaky"]:
        return f"{verdicts} from run to run, and no test did"
    low, high = (f"{figures[f'flaky_share_ci_{end}']:.1%}" for end in ("low", "high"))
    share = f"{figures['flaky_share']:.1%}, {confidence:.0%} CI {low} to {high}"
    are = "is" if figures["flaky"] == 1 else "are"
    return f"{counted_of(int(figures['flaky']), int(figures['tests']), 'test')} ({share}) {are} flaky, and {verdicts}"


def _flaky_examples(noise: pl.DataFrame) -> str:
    """The first flaky tests, each with the files on which it passed some runs; verdicts if no test is to blame."""
    flaky = noise.filter("flaky")
    tests = flaky.filter(pl.col("test").is_not_null())
    shown = (tests if tests.height else flaky).unique(["oid", "test"], keep="first", maintain_order=True)
    named = [
        f"{oid} {visible(test or 'verdict')} (passed {passes} of {runs} runs of the {_VALIDATED_AS[validated]})"
        for oid, test, validated, passes, runs in shown.select("oid", "test", "validated", "passes", "runs").rows()
    ]
    more = f", and {len(named) - _SHOWN_FLAKY:,} more" if len(named) > _SHOWN_FLAKY else ""
    return f": {', '.join(named[:_SHOWN_FLAKY])}{more}"


_VALIDATED_AS = {"baseline": "unmodified problem", "reference": "reference fix", "fix": "same fix"}
