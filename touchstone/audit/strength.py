"""Would a problem's tests notice a wrong fix? Mutants of its reference fix, validated like any other fix.

A mutant that the tests reject is killed, one that they pass survives: a wrong fix of that kind would count as a pass.
Some survivors mean the same as the reference fix, which no tool can decide, so a kill rate below 1 is a reason to look
and not a proof. How mutants are made and validated belongs in `mutations`.
"""

from typing import Any

import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.uncertainty import wilson
from touchstone.storage.code_version import table_code_version
from touchstone.storage.store import Part, digest
from touchstone.tables import TABLES
from touchstone.tables.checks import CheckResult
from touchstone.text import counted, counted_of, some_of, visible
from touchstone.validation.protocol import SETTLED
from touchstone.validation.stage import ValidationStage, content_digest

Row = dict[str, Any]
# More survivors than this, and the tests of the problem are weak.
MAX_SURVIVING = 1 / 3
_MOST_NAMED = 5


def write_mutants(stage: ValidationStage) -> Part:
    """The table `mutants`: every mutant of a reference fix that passes, and whether the tests noticed it."""
    store, code, most = stage.store, table_code_version("mutants"), stage.config.validation.mutants
    targets = stage.problem_targets() if most else {}
    excluded = stage.excluded_tests() if targets else {}
    validated_by = stage.session.fingerprint(targets) if targets else None
    made_from = digest(["mutants", validated_by, most, {oid: sorted(names) for oid, names in excluded.items()}, code])
    current = store.current("mutants", made_from)
    if current is not None and current.settled:
        return current
    rows: list[Row] = []
    if targets:
        from touchstone.audit.mutations import mutant_rows

        rows = list(mutant_rows(targets, stage.session, excluded, most))
    frame = pl.DataFrame(rows, schema={**TABLES["mutants"].dtypes, SETTLED: pl.Boolean()})
    settled, frame = bool(frame[SETTLED].all()), frame.drop(SETTLED)
    return store.write("mutants", frame.lazy(), made_from, fingerprint=content_digest(frame), settled=settled)


def test_strength(
    mutants: pl.LazyFrame, baselines: pl.LazyFrame, most: int, intervals: IntervalSettings
) -> pl.LazyFrame:
    """The table `test_strength`: how many mutants of each reference fix the tests kill; empty if mutants are off.

    >>> mutants = pl.LazyFrame({"oid": ["a"] * 4, "result": ["killed", "killed", "killed", "survived"]})
    >>> baselines = pl.LazyFrame({"oid": ["a", "b"], "reference_status": ["passed", None]})
    >>> table = test_strength(mutants, baselines, 4, IntervalSettings()).collect()
    >>> table.select("oid", "killed", "survived", "kill_rate", "weak", "reason").rows()
    [('a', 3, 1, 0.75, False, None), ('b', 0, 0, None, None, 'no reference fix')]
    """
    schema = TABLES["test_strength"].dtypes
    if not most:
        return pl.LazyFrame(schema=schema)
    results = {name: (pl.col("result") == name).sum().cast(pl.Int64) for name in ("killed", "survived", "undecided")}
    counts = mutants.group_by("oid").agg(mutants=pl.len().cast(pl.Int64), **results)
    joined = baselines.select("oid", "reference_status").join(counts, on="oid", how="left").sort("oid").collect()
    rows = (_kill_rate(row, intervals) for row in joined.fill_null(0).iter_rows(named=True))
    return pl.LazyFrame(list(rows), schema=schema)


def _kill_rate(row: Row, intervals: IntervalSettings) -> Row:
    decided = row["killed"] + row["survived"]
    rate = row["killed"] / decided if decided else None
    low, high = (None, None) if rate is None else wilson(rate, decided, intervals.confidence)
    return {name: row[name] for name in ("oid", "mutants", "killed", "survived", "undecided")} | {
        "kill_rate": rate,
        "ci_low": low,
        "ci_high": high,
        "weak": None if rate is None else row["survived"] > decided * MAX_SURVIVING,
        "reason": None if decided else _not_judged(row),
    }


def _not_judged(row: Row) -> str:
    status = row["reference_status"]
    if status is None:
        return "no reference fix"
    if status != "passed":
        return f"the reference fix does not pass: {status}"
    return "no mutant was decided" if row["mutants"] else "nothing to change: no Python code in or around the fix"


def tests_notice(test_strength: pl.LazyFrame) -> CheckResult:
    """Tests reject at least two of three mutants of the reference fix, for every problem that could be judged."""
    found = test_strength.collect()
    judged = found.filter(pl.col("kill_rate").is_not_null())
    if found.is_empty():
        return CheckResult(True, "off: validation.mutants is 0, or no fixes were validated here")
    if judged.is_empty():
        reasons = ", ".join(sorted(found["reason"].drop_nulls().unique()))
        return CheckResult(True, f"no problem could be judged: {reasons}")
    weak = judged.filter(pl.col("weak")).sort("kill_rate", "oid")
    totals = judged.select(pl.col("killed", "survived").sum()).row(0, named=True)
    rate = totals["killed"] / (totals["killed"] + totals["survived"])
    figures = {"judged": judged.height, "weak": weak.height, "kill_rate": rate, **totals}
    message = f"{counted_of(judged.height, found.height, 'problem')} judged; tests killed {rate:.0%} of the mutants"
    if weak.height:
        named = [
            f"{visible(oid)} ({survived} of {killed + survived})"
            for oid, killed, survived in weak.select("oid", "killed", "survived").iter_rows()
        ]
        weakly_tested = counted(weak.height, "problem")
        message += f"; the tests of {weakly_tested} let more than a third survive: {some_of(named, _MOST_NAMED)}"
    return CheckResult(weak.is_empty(), message, figures=figures)
