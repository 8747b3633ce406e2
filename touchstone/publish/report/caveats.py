"""What not to trust in a run: every reservation that its tables and checks give reason for, one sentence each."""

from collections.abc import Iterator

import polars as pl

from touchstone.publish.report.run import ReportedRun
from touchstone.text import counted, counted_of, some_of
from touchstone.vocabulary import STATIC_AGREEMENT, STATIC_FIDELITIES

_MOST_NAMED = 3
# Below this many independent units, a textbook calls a sample small.
_FEW_UNITS = 30
_WHOLE = ("full", "recorded")


def caveats(run: ReportedRun) -> list[str]:
    """The sentences; if there is no reservation, one that says what that rests on."""
    found = [
        sentence
        for of in (_warnings, _outcomes, _small, _intervals, _refused, _flaky, _costs, _fidelity, _controls)
        for sentence in of(run)
    ]
    well = run.table("pass_at_k").height and all(check.passed for check in run.checks)
    return found or ([_all_well(run)] if well else [])


def _all_well(run: ReportedRun) -> str:
    passed = f"{counted_of(len(run.checks), len(run.checks), 'check')} passed, " if run.checks else ""
    return f"Nothing speaks against these figures: {passed}no row was refused, and every attempt was decided."


def failed_checks(run: ReportedRun) -> Iterator[str]:
    """A sentence on the checks that failed the run."""
    yield from _unpassed(run, "failed", ": read why before you trust the figures", error=True)


def _warnings(run: ReportedRun) -> Iterator[str]:
    yield from _unpassed(run, "warned", "", error=False)


def _unpassed(run: ReportedRun, words: str, advice: str, *, error: bool) -> Iterator[str]:
    names = [check.name for check in run.checks if not check.passed and check.error == error]
    if names:
        yield f"{counted(len(names), 'check')} {words} ({some_of(names, _MOST_NAMED)}){advice}."


def _outcomes(run: ReportedRun) -> Iterator[str]:
    counts = run.outcome_counts
    total, undecided = int(counts["len"].sum()), int(counts.filter(pl.col("passed").is_null())["len"].sum())
    if undecided:
        share = f"{100 * undecided / total:.1f}%" if undecided / total >= 0.0005 else "less than 0.1%"
        yield (
            f"{counted_of(undecided, total, 'attempt')} ({share}) could not be decided and "
            f"{'counts' if undecided == 1 else 'count'} neither as passed nor as failed."
        )
    rows = run.table("pass_at_k")
    short = rows.filter(pl.col("attempted") < pl.col("problems")).select("model", "tier").unique().height
    if short:
        whole = run.table("pass_at_k").select("model", "tier").unique().height
        noun = "model and tier has" if run.has_tiers else "model has"
        plural = "models and tiers have" if run.has_tiers else "models have"
        yield f"{short:,} of {counted(whole, noun, plural)} problems without a decided attempt, which are left out."


def _small(run: ReportedRun) -> Iterator[str]:
    rows = run.table("pass_at_k").filter(pl.col("pass_at_k").is_not_null())
    if rows.height and (units := int(rows["ci_units"].min())) < _FEW_UNITS:  # type: ignore[arg-type]
        yield (
            f"The sample is small: some figures rest on {counted(units, 'independent unit')} "
            "(problems, each cluster counted once)."
        )


def _intervals(run: ReportedRun) -> Iterator[str]:
    rows = run.table("pass_at_k").filter(pl.col("pass_at_k").is_not_null())
    without = rows.filter(pl.col("ci_low").is_null() | pl.col("ci_high").is_null()).height
    if without:
        yield f"{counted_of(without, rows.height, 'pass@k figure')} {_has(without)} no confidence interval."


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _refused(run: ReportedRun) -> Iterator[str]:
    refused = run.scan("quarantine").select(pl.len()).collect().item()
    if refused:
        yield f"{counted(refused, 'row was', 'rows were')} refused and {'is' if refused == 1 else 'are'} not counted."
    unread = run.table("sources").filter(pl.col("status") == "refused")["source_file"].unique().sort().to_list()
    if unread:
        yield f"{counted(len(unread), 'file')} could not be read: {some_of(unread, _MOST_NAMED)}."


def _flaky(run: ReportedRun) -> Iterator[str]:
    flaky = run.scan("validator_noise").filter(pl.col("flaky"), pl.col("test").is_not_null())
    tests = flaky.select("oid", "test").unique().collect()
    if tests.height:
        where = counted(tests["oid"].n_unique(), "problem")
        yield f"{counted(tests.height, 'test')} of {where} {'is' if tests.height == 1 else 'are'} flaky."


def _costs(run: ReportedRun) -> Iterator[str]:
    rows = run.table("model_statistics")
    unpriced = rows.filter(pl.col("unpriced_attempts") > 0)["model"].n_unique()
    if unpriced:
        yield f"Costs are unknown for {unpriced:,} of {counted(rows['model'].n_unique(), 'model')}."


def _fidelity(run: ReportedRun) -> Iterator[str]:
    counts = run.outcome_counts.filter(pl.col("passed").is_not_null())
    total = int(counts["len"].sum())
    if not total:
        return
    recorded = int(counts.filter(pl.col("validator") == "recorded")["len"].sum())
    if recorded == total:
        yield "All outcomes are as the input files state them; nothing was validated here."
    elif recorded:
        yield f"{counted_of(recorded, total, 'outcome')} {'is' if recorded == 1 else 'are'} as the input files state."
    partial = counts.filter(~pl.col("fidelity").is_in(_WHOLE))
    if partial.height:
        kinds = ", ".join(sorted(partial["fidelity"].unique()))
        some = int(partial["len"].sum())
        yield f"{counted_of(some, total, 'outcome')} {'comes' if some == 1 else 'come'} from a partial check ({kinds})."
    if partial["fidelity"].is_in(STATIC_FIDELITIES).any():
        yield f"{STATIC_AGREEMENT[0].upper()}{STATIC_AGREEMENT[1:]}."


def _controls(run: ReportedRun) -> Iterator[str]:
    """Passes of Python fixes whose tests were not, or not all, run again with their expectations made false."""
    if run.outcome_counts.filter(pl.col("passed"), validator="python").is_empty():
        return
    passes = run.scan("outcomes").filter(pl.col("passed"), validator="python")
    tests, controlled = pl.col("tests_passed"), pl.col("controlled_tests")
    counts = passes.select(pl.len(), off=controlled.is_null().sum(), some=(controlled < tests).sum()).collect()
    total, off, some = counts.row(0)
    if off:
        yield f"{counted_of(off, total, 'pass', 'passes')} of Python fixes {_has(off)} no negative control."
    if some:
        yield f"{counted_of(some, total, 'pass', 'passes')} of Python fixes rest on a test without a negative control."
