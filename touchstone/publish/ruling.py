"""Rulings and comments on attempts of a published run: rulings, from the command line or the dashboard, and comments.

The results say where the file with rulings is, as the run read it. They may come from somebody else, so nothing is
added to a file that is not one of rulings. A comment is one text per attempt, in `comments.json` in the output folder,
which no run touches. Everyone who may open the dashboard may write them. They are text: pages escape them, as they do
everything from others.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.ingest.rulings import EXCLUDE, MOST_CHARACTERS, Ruling, append_rulings, attempt_sha, read_rulings
from touchstone.locations import address_of
from touchstone.metrics.keys import ATTEMPT_KEY
from touchstone.publish.attempt_detail import attempts_of
from touchstone.publish.reported_run import ReportedRun
from touchstone.regular_files import read_bytes, read_json
from touchstone.storage.files import refuse_links_out, replacing
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


COMMENTS = "comments.json"
_LOCK = f".{COMMENTS}.lock"
_MOST_COMMENTS = 10_000
_PATIENCE_SECONDS = 10

AttemptKey = tuple[str, str, str, str]


class Comment(NamedTuple):
    """A comment on an attempt, and the SHA-256 of the fix that it was about, if there was one."""

    text: str
    written_at: str
    fix_sha: str | None = None

    @property
    def mark(self) -> str:
        """Identifies what was written."""
        return hashlib.sha256(f"{self.written_at} {self.text}".encode("utf-8", "replace")).hexdigest()


def read_comments(folder: Path) -> dict[AttemptKey, Comment]:
    """All comments, by model, tier, problem and attempt."""
    refuse_links_out(folder, COMMENTS, _LOCK)
    try:
        found = read_json(folder / COMMENTS)
        return {_key_of(row): Comment(str(row["text"]), str(row["written_at"]), row["fix_sha"]) for row in found}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise TouchstoneError(
            f"{folder / COMMENTS}: cannot be read ({type(error).__name__}); correct it or move it away"
        ) from None


def write_comment(folder: Path, key: AttemptKey, text: str, *, before: str, fix_sha: str | None) -> None:
    """Replace the comment on an attempt, whose mark must still be `before`; an empty text removes it."""
    import filelock

    if address_of(folder) is not None:
        raise TouchstoneError("comments can be written beside local results only, not in object storage")
    refuse_links_out(folder, _LOCK)
    text = text.replace("\r\n", "\n").strip()
    if len(text) > MOST_CHARACTERS:
        raise TouchstoneError(f"a comment has at most {MOST_CHARACTERS:,} characters, this one {len(text):,}")
    try:
        with filelock.FileLock(folder / _LOCK, timeout=_PATIENCE_SECONDS):
            comments = read_comments(folder)
            if (comments[key].mark if key in comments else "") != before:
                raise TouchstoneError("somebody changed this comment meanwhile; go back, reload and write again")
            comments.pop(key, None)
            if text:
                comments[key] = Comment(text, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), fix_sha)
            if len(comments) > _MOST_COMMENTS:
                raise TouchstoneError(f"there are {_MOST_COMMENTS:,} comments already; remove some")
            _write(folder / COMMENTS, comments)
    except (OSError, filelock.Timeout) as error:
        raise TouchstoneError(f"{folder / COMMENTS}: cannot be written ({error})") from None


def _write(path: Path, comments: dict[AttemptKey, Comment]) -> None:
    rows = [dict(zip(ATTEMPT_KEY, key, strict=True)) | comment._asdict() for key, comment in sorted(comments.items())]
    with replacing(path) as scratch:
        scratch.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _key_of(row: Any) -> AttemptKey:
    model, tier, oid, iteration = (str(row[name]) for name in ATTEMPT_KEY)
    return model, tier, oid, iteration
