"""Outcomes that no validator decides: recorded in the input, or ruled by people.

An attempt without a recorded outcome stays undecided: it counts neither as passed nor as failed. Where people ruled,
`passed` is what they said, and `measured` what it was before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from touchstone.ingest.rulings import Ruling, RulingsFile, attempt_sha
from touchstone.tables import TABLES
from touchstone.text import near
from touchstone.vocabulary import MAX_DIAGNOSTICS

Row = dict[str, Any]
_KEY = list(TABLES["attempts"].key)
_COUNTS_AS = {"passed": True, "failed": False}
# Columns of the input that say why an attempt failed.
REASONS = ("error",)


def recorded_outcomes(attempts: pl.LazyFrame) -> pl.LazyFrame:
    """One outcome per attempt, from the verdict recorded in the input.

    >>> attempts = pl.LazyFrame({"model": ["m"], "tier": ["T0"], "oid": ["a"], "iteration_id": ["1"],
    ...     "passed": [None], "compiled": [None], "tests_passed": [None], "tests_failed": [None],
    ...     "lint_warnings": [None]}, schema_overrides={"passed": pl.Boolean})
    >>> recorded_outcomes(attempts).collect()["status"].item()
    'validator_unavailable'
    """
    decided = pl.col("passed").is_not_null()
    status = pl.when("passed").then(pl.lit("passed")).otherwise(pl.lit("failed"))
    given = {
        **{name: pl.col(name) for name in (*TABLES["attempts"].key, "passed", "compiled", "lint_warnings")},
        **{name: pl.col(name) for name in ("tests_passed", "tests_failed")},
        "measured": pl.col("passed"),
        "status": pl.when(decided).then(status).otherwise(pl.lit("validator_unavailable")),
        "validator": pl.when(decided).then(pl.lit("recorded")),
        "fidelity": pl.when(decided).then(pl.lit("recorded")),
        "cached": pl.lit(False),
    }
    said = [pl.col(name).str.slice(0, MAX_DIAGNOSTICS) for name in REASONS if name in attempts.collect_schema()]
    if "classification" in attempts.collect_schema():
        classes = pl.col("classification")
        said.append(pl.when(~classes.str.to_lowercase().is_in(["pass", "fail"])).then(classes))
    if said:
        given["diagnostics"] = pl.when(~pl.col("passed")).then(pl.coalesce(said))
    columns = TABLES["outcomes"].dtypes.items()
    return attempts.select(given.get(name, pl.lit(None, dtype)).alias(name) for name, dtype in columns)


def apply_rulings(
    outcomes: pl.DataFrame, attempts: pl.LazyFrame, rulings: Mapping[str, Mapping[int, Ruling]]
) -> tuple[pl.DataFrame, dict[str, list[Row]]]:
    """The outcomes with what people ruled, and the rows of the table `rulings` by model.

    `rulings` has those that may concern each model. An excluded problem counts for nobody, whatever else was ruled.
    """
    rows: dict[str, list[Row]] = {}
    ruled: dict[tuple[str, ...], str] = {}
    for model, concerning in rulings.items():
        own = _Attempts(model, outcomes, attempts, {each.problem for each in concerning.values()})
        problems_last = sorted(concerning.items(), key=lambda item: (item[1].model is None, item[0]))
        found = [row for line, ruling in problems_last for row in own.judge(line, ruling)]
        deciding = {tuple(row[name] for name in _KEY): row for row in found if row["applied"]}
        ruled |= {key: row["ruling"] for key, row in deciding.items()}
        rows[model] = [_superseded(row, deciding) for row in found if row["of_model"]]
    if not ruled:
        return outcomes, rows
    words = pl.DataFrame([(*key, word) for key, word in ruled.items()], schema=[*_KEY, "ruling"], orient="row")
    joined = outcomes.drop("ruling").join(words, on=_KEY, how="left", maintain_order="left")
    counts_as = pl.col("ruling").replace_strict(_COUNTS_AS, default=None, return_dtype=pl.Boolean)
    passed = pl.when(pl.col("ruling").is_null()).then("passed").otherwise(counts_as)
    return joined.with_columns(passed=passed).select(outcomes.columns), rows


def _superseded(row: Row, deciding: Mapping[tuple[str, ...], Row]) -> Row:
    """The row, not applied if another line decides about its attempt."""
    other = deciding.get(tuple(row[name] for name in _KEY), row)
    if row["applied"] and other["line"] != row["line"]:
        reason = "excludes the problem" if not other["of_model"] else f"says {other['ruling']}"
        row = row | {"applied": False, "why_not": f"line {other['line']} {reason}"}
    return row


class _Attempts:
    """The attempts of a model at the problems that rulings are about."""

    def __init__(self, model: str, outcomes: pl.DataFrame, attempts: pl.LazyFrame, problems: Iterable[str]) -> None:
        self._model, self._all = model, attempts.filter(pl.col("model") == model)
        about = (pl.col("model") == model) & pl.col("oid").is_in(list(problems))
        stated = self._all.filter(about).select(*_KEY, "fix_sha", pl.col("passed").alias("recorded"))
        measured = outcomes.lazy().filter(about).select(*_KEY, "measured")
        rows = stated.join(measured, on=_KEY, how="left", maintain_order="left").collect()
        self._by_problem: dict[Any, list[Row]] = rows.rows_by_key("oid", named=True, include_key=True)

    def judge(self, line: int, ruling: Ruling) -> Iterator[Row]:
        """A row for each attempt that a ruling is about; one that says why if there is none."""
        row = ruling_row(line, ruling)
        at_problem = self._by_problem.get(ruling.problem, [])
        about = [
            each
            for each in at_problem
            if ruling.tier in (None, each["tier"]) and ruling.attempt in (None, each["iteration_id"])
        ]
        if not about:
            yield row | {"model": self._model, "applied": False, "why_not": self._missing(ruling, at_problem)}
        for each in about:
            changed = ruling.attempt_sha not in (None, attempt_sha(each["fix_sha"], each["recorded"]))
            why_not = "the attempt has changed since" if changed else None
            named = {name: each[name] for name in (*_KEY, "measured")}
            yield row | named | {"applied": not changed, "why_not": why_not}

    def _missing(self, ruling: Ruling, at_problem: list[Row]) -> str:
        if at_problem:
            known = [f"{each['tier']} {each['iteration_id']}" for each in at_problem]
            return f"there is no such attempt ({near(f'{ruling.tier} {ruling.attempt}', known)})"
        problems = self._all.select(pl.col("oid").unique().sort()).collect()["oid"]
        return f"{self._model} has no attempt at this problem ({near(ruling.problem, problems)})"


def ruling_row(line: int, ruling: Ruling) -> Row:
    """A row of the table `rulings`, before it is known whether the ruling is applied."""
    stated = asdict(ruling)
    named = {"oid": stated.pop("problem"), "iteration_id": stated.pop("attempt")}
    return {"line": line, "of_model": ruling.model is not None, "measured": None, **stated, **named}


def rows_without_model(rulings: RulingsFile, models: Iterable[str], problems: Iterable[str]) -> list[Row]:
    """The rows of the table `rulings` about no model: excluded problems, unknown models, and refused lines."""
    known, listed = list(models), set(problems)
    rows: list[Row] = [{"line": line, "applied": False, "why_not": reason} for line, reason in rulings.refused.items()]
    for line, ruling in rulings.rulings.items():
        reason = None
        if ruling.model is None and ruling.problem not in listed:
            reason = f"there is no such problem ({near(ruling.problem, sorted(listed))})"
        if ruling.model is not None and ruling.model not in known:
            reason = f"there is no such model ({near(ruling.model, known)})"
        if ruling.model is None or reason:
            rows.append(ruling_row(line, ruling) | {"applied": reason is None, "why_not": reason})
    return sorted(rows, key=lambda row: row["line"])


def rulings_frame(rows: Iterable[Row]) -> pl.LazyFrame:
    """Rows as a part of the table `rulings`."""
    return pl.LazyFrame(list(rows), schema=TABLES["rulings"].dtypes).sort("line", *_KEY)
