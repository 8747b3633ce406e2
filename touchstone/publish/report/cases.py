"""The cases whose attempts the page shows: those that regressed, that flip, and the hardest.

A case is a model and tier at a problem. Which are picked depends on the tables alone. How many fit into the page is
decided in `page`, by their size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Any

import polars as pl

from touchstone.metrics.keys import ATTEMPT_KEY, PROBLEM_KEY
from touchstone.publish.attempt_detail import TEXTS, AttemptDetail, attempt_detail, flag_words, outcome_words
from touchstone.publish.reported_run import ReportedRun, Row
from touchstone.tables.presentation import dollars, number
from touchstone.text import counted, visible, visible_lines

_MAX_REGRESSED = 40
_MAX_OF_KIND = 12
_LEADERS = 3
_MAX_ATTEMPTS = 20
# Attempts of a case that are shown in full: the first that failed, and the first that passed.
_MAX_CHARACTERS = 8_000
_FACTS = {"classification": "class", "validator": "decided by", "fidelity": "fidelity", "fix_sha": "SHA-256 of the fix"}

CaseKey = tuple[str, str, str]


@dataclass(frozen=True)
class Attempt:
    """One attempt: what is known in one line, and its texts by title if it is shown in full."""

    iteration: str
    status: str
    figures: Sequence[str]
    tests: Sequence[tuple[str, str, str]] = ()
    facts: Sequence[tuple[str, str]] = ()
    texts: Sequence[tuple[str, str]] = ()
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class Case:
    """A model at a problem: why it is shown, and its attempts. `more` attempts are left out."""

    key: CaseKey
    why: str
    attempts: Sequence[Attempt] = field(default=())
    more: int = 0

    @property
    def title(self) -> str:
        """Problem, model and tier."""
        model, tier, oid = map(visible, self.key)
        return f"{oid} · {model} · {tier}"


def pick(run: ReportedRun) -> list[tuple[CaseKey, str]]:
    """The cases to show and why, the most important first: regressed and lost, then flipping and hardest by turns."""
    by_turns = chain.from_iterable(zip_longest(_hardest(run), _flipping(run)))
    found: dict[CaseKey, str] = {}
    for each in chain(_regressed(run), by_turns):
        if each is not None:
            found.setdefault(*each)
    return list(found.items())


def _regressed(run: ReportedRun) -> Iterator[tuple[CaseKey, str]]:
    rows = run.table("regressions").filter(pl.col("kind").is_in(["regression", "lost"]))
    for row in rows.sort("delta", *PROBLEM_KEY, nulls_last=True).head(_MAX_REGRESSED).iter_rows(named=True):
        if row["kind"] == "lost":
            yield _key(row), "lost: judged in the baseline, no decided attempt now"
        else:
            yield _key(row), f"regressed: {number(row['baseline_score'])} to {number(row['current_score'])}"


def _flipping(run: ReportedRun) -> Iterator[tuple[CaseKey, str]]:
    """Of the best models, the problems on which their attempts disagree most."""
    if not run.sides:
        return
    rows = _statistics(run, run.sides[:_LEADERS]).filter(pl.col("c") > 0, pl.col("c") < pl.col("n"))
    balance = ((pl.col("c") / pl.col("n")) - 0.5).abs()
    for row in rows.sort(balance, *PROBLEM_KEY).head(_MAX_OF_KIND).collect(engine="streaming").iter_rows(named=True):
        yield _key(row), f"flips: {row['c']:,} of {counted(row['n'], 'attempt')} passed"


def _hardest(run: ReportedRun) -> Iterator[tuple[CaseKey, str]]:
    """The best model at the problems that the fewest attempts solve."""
    if not run.sides:
        return
    mean = run.scan("problem_frontier").select("oid", "mean_pass_rate")
    rows = _statistics(run, run.sides[:1]).filter(pl.col("n") > 0).join(mean, on="oid")
    for row in (
        rows.sort("mean_pass_rate", *PROBLEM_KEY).head(_MAX_OF_KIND).collect(engine="streaming").iter_rows(named=True)
    ):
        yield _key(row), f"hard: mean pass rate of all models {number(row['mean_pass_rate'])}"


def _statistics(run: ReportedRun, sides: Sequence[tuple[str, str]]) -> pl.LazyFrame:
    wanted = pl.LazyFrame(sides, schema=["model", "tier"], orient="row")
    return run.scan("problem_statistics").select(*PROBLEM_KEY, "n", "c").join(wanted, on=["model", "tier"])


def _key(row: Row) -> CaseKey:
    return row["model"], row["tier"], row["oid"]


# Their attempts


def with_attempts(run: ReportedRun, picked: Sequence[tuple[CaseKey, str]]) -> Iterator[Case]:
    """The picked cases with their attempts, read together."""
    if not picked:
        return
    rows = _attempt_rows(run, [key for key, _ in picked])
    for key, why in picked:
        attempts = rows.get(key, [])
        full = _shown_in_full(attempts)
        yield Case(
            key,
            why,
            [_attempt(run, row, in_full=row["iteration_id"] in full) for row in attempts[:_MAX_ATTEMPTS]],
            max(len(attempts) - _MAX_ATTEMPTS, 0),
        )


def _attempt_rows(run: ReportedRun, keys: Sequence[CaseKey]) -> dict[CaseKey, list[Row]]:
    wanted = pl.LazyFrame(keys, schema=list(PROBLEM_KEY), orient="row")
    each = ATTEMPT_KEY
    tokens = ("input_tokens", "output_tokens", "fix_sha")
    models = {model for model, _, _ in keys}
    # Filtered where the files are read: their tables may have millions of rows, of which a few are shown.
    problem = pl.col("oid").is_in(sorted({oid for _, _, oid in keys}))
    attempts, outcomes, scores = (
        run.scan(table, models).filter(problem).join(wanted, on=PROBLEM_KEY)
        for table in ("attempts", "outcomes", "attempt_scores")
    )
    rows = (
        attempts.select(*each, *tokens)
        .join(outcomes.drop("duration_seconds"), on=each, how="left")
        .join(scores.select(*each, "cost_usd", "duration_seconds", "classification"), on=each, how="left")
        .sort(*PROBLEM_KEY, pl.col("iteration_id").cast(pl.Int64, strict=False), "iteration_id")
    )
    found: dict[Any, list[Row]] = rows.collect(engine="streaming").rows_by_key(
        PROBLEM_KEY, named=True, include_key=True
    )
    return found


def _shown_in_full(rows: Sequence[Row]) -> set[str]:
    """The first attempt that did not pass, and the first that did."""
    first = {bool(row["passed"]): row["iteration_id"] for row in reversed(rows[:_MAX_ATTEMPTS])}
    return set(first.values())


def _attempt(run: ReportedRun, row: Row, *, in_full: bool) -> Attempt:
    tests = row["tests_passed"], row["tests_failed"]
    seconds = row["duration_seconds"]
    tokens = [row["input_tokens"], row["output_tokens"]]
    figures = [
        "-" if None in tests else f"{tests[0]:,} of {sum(tests):,}",
        *("-" if count is None else f"{count:,}" for count in tokens),
        dollars(row["cost_usd"]),
        "-" if seconds is None else f"{seconds:.1f} s",
    ]
    short = Attempt(visible(row["iteration_id"]), outcome_words(row), figures)
    # Where the input has neither fixes nor diagnostics, there is nothing more to show.
    if not in_full or (row["fix_sha"] is None and row["diagnostics"] is None):
        return short
    return _full(short, attempt_detail(run.folder, *_key(row), row["iteration_id"]))


def _full(attempt: Attempt, detail: AttemptDetail) -> Attempt:
    texts = {"Flags of the audit": "\n".join(map(flag_words, detail.flags))}
    texts |= {title: getattr(detail, name) for name, title in TEXTS.items() if name != "fix" or not detail.diff}
    return replace(
        attempt,
        tests=[(visible(test.test), visible(test.status), visible_lines(test.message)) for test in detail.tests],
        facts=[(title, visible(fact)) for name, title in _FACTS.items() if (fact := getattr(detail, name))],
        texts=[(title, _cut(body)) for title, body in texts.items() if body],
        missing=[f"{TEXTS[name]}: {why}" for name, why in detail.missing.items() if name in ("diff", "raw_response")],
    )


def _cut(text: str) -> str:
    """Text with visible control characters, cut with a line that says so."""
    shown = visible_lines(text[:_MAX_CHARACTERS])
    rest = len(text) - _MAX_CHARACTERS
    return f"{shown}\n[cut: {_MAX_CHARACTERS:,} of {len(text):,} characters]" if rest > 0 else shown
