"""Write a ruling about attempts or a problem of a published run, from the command line or the dashboard.

The results say where the file with rulings is, as the run read it. They may come from somebody else, so nothing is
added to a file that is not one of rulings.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.ingest.rulings import EXCLUDE, Ruling, append_rulings, attempt_sha, read_rulings
from touchstone.locations import address_of
from touchstone.metrics.keys import ATTEMPT_KEY
from touchstone.publish.attempt_detail import attempts_of
from touchstone.publish.reported_run import ReportedRun
from touchstone.regular_files import read_bytes
from touchstone.storage.store import Store
from touchstone.text import near
from touchstone.vocabulary import OUTCOME_WORDS


def rulings_file(results: Path) -> Path:
    """The file with the rulings that a run applied or would have applied."""
    if address_of(results) is not None:
        raise TouchstoneError("rulings can be written for local results only, not for those in object storage")
    try:
        place = read_bytes(Store(results).rulings_place).decode()
    except (OSError, ValueError):
        raise TouchstoneError(f"{results}: not known where rulings are kept; run this evaluation again") from None
    return Path(os.path.normpath(results.resolve() / place))


def is_writable(results: Path) -> bool:
    """Whether a ruling can be written."""
    try:
        file = rulings_file(results)
    except TouchstoneError:
        return False
    return os.access(file if file.exists() else file.parent, os.W_OK)


def rule_on_problem(results: Path, problem: str, ruling: str, reason: str, by: str) -> list[Ruling]:
    """Exclude a problem from every figure."""
    if ruling != EXCLUDE:
        raise TouchstoneError(f"'{ruling}' is about attempts, so name the model too: MODEL PROBLEM {ruling}")
    known = ReportedRun(results).scan("problems").select(pl.col("oid").sort()).collect()["oid"]
    if problem not in known:
        raise TouchstoneError(f"there is no problem '{problem}' ({near(problem, known)})")
    return _written(results, [Ruling(problem=problem, ruling=ruling, reason=reason, by=by)])


def rule_on_attempts(
    results: Path, model: str, tier: str | None, problem: str, attempt: str | None, ruling: str, reason: str, by: str
) -> list[Ruling]:
    """Rule on an attempt, or on all attempts of a model at a problem; an error names near ones if there is none."""
    listed = attempts_of(results, model, tier, problem)
    if attempt is not None and attempt not in listed["iteration_id"]:
        raise TouchstoneError(
            f"{model}, {problem}: there is no attempt '{attempt}' ({near(attempt, listed['iteration_id'])})"
        )
    about = listed if attempt is None else listed.filter(pl.col("iteration_id") == attempt)
    if attempt is not None and about.height > 1:
        tiers = " or ".join(about["tier"].sort())
        raise TouchstoneError(f"attempt '{attempt}' exists in several tiers; add --tier {tiers}")
    run = ReportedRun(results)
    stated = run.scan("attempts", [model]).select(*ATTEMPT_KEY, "fix_sha", pl.col("passed").alias("recorded"))
    found = about.select(*ATTEMPT_KEY, "passed").join(
        stated.collect(), on=ATTEMPT_KEY, how="left", maintain_order="left"
    )
    rulings = [
        Ruling(
            model=model,
            tier=row["tier"],
            problem=problem,
            attempt=row["iteration_id"],
            ruling=ruling,
            reason=reason,
            by=by,
            was=OUTCOME_WORDS[row["passed"]],
            attempt_sha=attempt_sha(row["fix_sha"], row["recorded"]),
        )
        for row in found.iter_rows(named=True)
    ]
    return _written(results, rulings)


def _written(results: Path, rulings: Sequence[Ruling]) -> list[Ruling]:
    file = rulings_file(results)
    known = read_rulings(file)
    if known.refused and not known.rulings:
        raise TouchstoneError(f"{file}: has no line that is a ruling, so nothing is added to it; move it away")
    append_rulings(file, rulings)
    return list(rulings)
