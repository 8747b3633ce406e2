"""One attempt in full, from the tables of a run: the fix, its diff, the diagnostics, every test, tokens, cost and time.

Everything comes from the output folder, so results that were moved, or whose inputs are gone, show the same. What is
not at hand is null and says why in `missing`. Texts are bounded; nothing of a fix is run or parsed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.ingest.attempts import sort_attempts
from touchstone.ingest.fix_columns import FIX_COLUMNS
from touchstone.ingest.sources import NATIVE
from touchstone.metrics.keys import ATTEMPT_KEY
from touchstone.storage.files import PROBLEMS_PART, file_key, name_of_key, parquet_files, refuse_links_out, table_file
from touchstone.text import near
from touchstone.vocabulary import OUTCOME_WORDS

# Longer texts are cut, with a last line that says so.
MAX_CHARACTERS = 200_000

# Columns of the input that hold what the model answered, most specific first.
RESPONSE_COLUMNS = ("raw_response", "response", "llm_response", "completion")

# The texts of an attempt in the order in which a reader wants them, by field, with their titles.
TEXTS = {
    "diff": "Diff of the fix",
    "diagnostics_before": "Diagnostics before the fix",
    "diagnostics_after": "Diagnostics after the fix",
    "fix": "The fix as written",
    "raw_response": "Raw response",
}
# Fixes that are unified diffs themselves.
_DIFF_COLUMNS = ("fixed_diff", "model_patch")

_MESSAGE_CHARACTERS = 200
_SILENT = "the validator said nothing of the unmodified problem"


_MEASURED = ("input_tokens", "output_tokens", "duration_seconds", "latency_ms")
_LISTED = (
    *("run_id", "suite", "status", "passed", "ruling", "classification", "tests_passed", "tests_failed"),
    *("input_tokens", "output_tokens", "cost_usd", "duration_seconds", "latency_ms", "has_fix", "message"),
)


@dataclass(frozen=True)
class TestResult:
    """One test after the fix: `passed`, `failed` or `skipped`, and what it said."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    test: str
    status: str
    message: str = ""


@dataclass(frozen=True)
class AttemptDetail:
    """One attempt. A field that is None (or empty, for `tests`) is explained in `missing`, by its name.

    `fix` is the fix as the model wrote it, `fixed` the problem's file with the fix applied. `duration_seconds` is the
    model's time, `validation_seconds` the validator's. `rulings` are the rows of that table about the attempt,
    `flags` those of `audit_flags`.
    """

    model: str
    tier: str
    oid: str
    iteration_id: str
    suite: str
    status: str
    passed: bool | None
    measured: bool | None = None
    ruling: str | None = None
    rulings: tuple[dict[str, Any], ...] = ()
    flags: tuple[dict[str, Any], ...] = ()
    classification: str | None = None
    run_id: str | None = None
    fix: str | None = None
    fix_sha: str | None = None
    original: str | None = None
    fixed: str | None = None
    diff: str | None = None
    diagnostics_before: str | None = None
    diagnostics_after: str | None = None
    tests: tuple[TestResult, ...] = ()
    raw_response: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    duration_seconds: float | None = None
    latency_ms: float | None = None
    validator: str | None = None
    validator_version: str | None = None
    fidelity: str | None = None
    sandbox: str | None = None
    validation_seconds: float | None = None
    missing: dict[str, str] = field(default_factory=dict)


def attempts_of(folder: Path, model: str, tier: str | None, oid: str) -> pl.DataFrame:
    """The attempts of a model at a problem, one row each, in order; `tier=None` is every tier.

    Columns: the key and `_LISTED`, in which `message` is the first line of the diagnostics.
    """
    tables = _Tables(folder, model)
    of_problem = pl.col("oid") == oid if tier is None else (pl.col("oid") == oid) & (pl.col("tier") == tier)
    message = pl.col("diagnostics").str.split("\n").list.first().str.slice(0, _MESSAGE_CHARACTERS)
    rows = tables.scan("attempts").filter(of_problem).with_columns(has_fix=pl.col("fix_sha").is_not_null())
    rows = rows.select(*ATTEMPT_KEY, "run_id", "suite", *_MEASURED, "has_fix")
    for table, columns in (
        ("outcomes", ["status", "passed", "ruling", "tests_passed", "tests_failed", message.alias("message")]),
        ("attempt_scores", ["classification", "cost_usd"]),
    ):
        of_attempt = tables.scan(table).filter(of_problem).select(*ATTEMPT_KEY, *columns)
        rows = rows.join(of_attempt, on=ATTEMPT_KEY, how="left")
    found = _collected(sort_attempts(rows).select(*ATTEMPT_KEY, *_LISTED))
    if found.is_empty():
        tables.refuse_unknown(tier, oid)
    return found


def attempt_detail(folder: Path, model: str, tier: str, oid: str, iteration_id: str) -> AttemptDetail:
    """One attempt in full; an error that names near ones if there is no such attempt."""
    tables = _Tables(folder, model)
    key: dict[str, Any] = {"tier": tier, "oid": oid, "iteration_id": iteration_id}
    attempt = tables.row("attempts", key)
    if attempt is None:
        known = attempts_of(folder, model, tier, oid)["iteration_id"].to_list()
        raise TouchstoneError(
            f"{model}, {tier}, {oid}: there is no attempt '{iteration_id}' ({near(iteration_id, known)})"
        )
    outcome, scores = tables.row("outcomes", key) or {}, tables.row("attempt_scores", key) or {}
    texts, missing = _texts(tables, key, attempt, outcome)
    measured = {name: attempt[name] for name in _MEASURED}
    validated: dict[str, Any] = {
        name: outcome.get(name) for name in ("validator", "validator_version", "fidelity", "sandbox")
    }
    return AttemptDetail(
        model=model,
        **key,
        suite=attempt["suite"],
        run_id=attempt["run_id"],
        status=outcome.get("status", "validator_unavailable"),
        passed=outcome.get("passed"),
        measured=outcome.get("measured", outcome.get("passed")),
        ruling=outcome.get("ruling"),
        rulings=tables.rulings(key),
        flags=tables.flags(key),
        classification=scores.get("classification") or attempt["classification"],
        fix_sha=attempt["fix_sha"],
        **texts,
        cost_usd=scores.get("cost_usd", attempt["cost_usd"]),
        **measured,
        **validated,
        validation_seconds=outcome.get("duration_seconds"),
        missing=missing | _unmeasured(measured | {"cost_usd": scores.get("cost_usd", attempt["cost_usd"])}),
    )


def _unmeasured(figures: dict[str, Any]) -> dict[str, str]:
    reasons = {"cost_usd": "the input states no cost, and tokens or prices to compute it are missing"}
    return {name: reasons.get(name, "not in the input") for name, value in figures.items() if value is None}


def outcome_words(row: Mapping[str, Any]) -> str:
    """How an attempt counts, and what was measured if a person ruled; else its status if that says more.

    >>> outcome_words({"passed": False, "status": "passed", "ruling": "failed", "measured": True})
    'failed by ruling (measured: passed)'
    >>> outcome_words({"passed": False, "status": "timeout", "ruling": None, "measured": False})
    'failed (timeout)'
    """
    counts, status = OUTCOME_WORDS[row["passed"]], row["status"]
    if row.get("ruling"):
        counts = "excluded" if row["ruling"] == "exclude" else counts
        return f"{counts} by ruling (measured: {OUTCOME_WORDS[row['measured']]})"
    return counts if status in (None, counts) else f"{counts} ({status.replace('_', ' ')})"


def bounded(text: str | None, limit: int = MAX_CHARACTERS) -> str | None:
    """The text, cut after so many characters with a last line that says so.

    >>> bounded("abcdef", 4)
    'abcd\\n[cut: 4 of 6 characters]'
    """
    if text is None or len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {limit:,} of {len(text):,} characters]"


def flag_words(row: Mapping[str, Any]) -> str:
    """A flag of the audit on one line.

    >>> flag_words({"rule": "ends_process", "severity": "high", "place": "a.py:3", "evidence": "os._exit(0)"})
    'ends_process (high) at a.py:3: os._exit(0)'
    """
    return f"{row['rule']} ({row['severity']}) at {row['place']}: {row['evidence']}"


class _Tables:
    """The tables of one model in an output folder."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder, self.model = folder / "tables", model
        refuse_links_out(folder, "tables")
        if not self.folder.is_dir():
            raise TouchstoneError(f"{folder}: no results here (no folder 'tables'); run `touchstone run` first")
        if not self._part("attempts").is_file():
            known = [name_of_key(file.stem) for file in parquet_files(self.folder / "attempts")]
            if not known:
                raise TouchstoneError(f"{folder}: the results hold no attempts; snapshots and exports leave them out")
            raise TouchstoneError(f"there is no model '{model}' ({near(model, known)})")

    def _part(self, table: str) -> Path:
        return table_file(self.folder / table / f"{file_key(self.model)}.parquet")

    def scan(self, table: str) -> pl.LazyFrame:
        """The model's rows of a table."""
        return pl.scan_parquet(self._part(table), glob=False)

    def row(self, table: str, key: dict[str, str]) -> dict[str, Any] | None:
        """One row of the model's part of a table; None if there is none."""
        if not self._part(table).is_file():
            return None
        return _first(self.scan(table), key)

    def problem(self, table: str, oid: str) -> dict[str, Any] | None:
        """One row of a table by problem; None if there is none."""
        files = [table_file(self.folder / table / f"{part}.parquet") for part in (table, PROBLEMS_PART)]
        file = next((file for file in files if file.is_file()), None)
        return None if file is None else _first(pl.scan_parquet(file, glob=False), {"oid": oid})

    def rulings(self, key: dict[str, str]) -> tuple[dict[str, Any], ...]:
        """The rulings about an attempt or its problem."""
        about = pl.all_horizontal(pl.col(name).is_null() | (pl.col(name) == value) for name, value in key.items())
        files = [self._part("rulings"), table_file(self.folder / "rulings" / f"{PROBLEMS_PART}.parquet")]
        of_model = pl.col("oid").is_not_null() & (pl.col("model").is_null() | (pl.col("model") == self.model))
        found = [pl.scan_parquet(file, glob=False).filter(of_model, about) for file in files if file.is_file()]
        return tuple(_collected(pl.concat(found).sort("line")).to_dicts()) if found else ()

    def flags(self, key: dict[str, str]) -> tuple[dict[str, Any], ...]:
        """The flags of the audit on an attempt."""
        file = table_file(self.folder / "audit_flags" / "audit_flags.parquet")
        if not file.is_file():
            return ()
        own = pl.all_horizontal(pl.col(name) == value for name, value in {"model": self.model, **key}.items())
        return tuple(_collected(pl.scan_parquet(file, glob=False).filter(own)).to_dicts())

    def unread(self, what: str) -> str | None:
        """Why a text is missing if the attempts come from files of other tools, of which not every text is read."""
        if not self._part("sources").is_file():
            return None
        formats = _collected(self.scan("sources").select("format").unique())["format"].drop_nulls().sort().to_list()
        others = [name for name in formats if name != NATIVE]
        return f"no {what} was read from the {' and '.join(others)} file" if others else None

    def refuse_unknown(self, tier: str | None, oid: str) -> None:
        """Raise an error that says which part of a key is wrong."""
        keys = self.scan("attempts").select("tier", "oid").unique().collect()
        if oid not in keys["oid"]:
            raise TouchstoneError(f"{self.model}: no attempt at problem '{oid}' ({near(oid, _names(keys, 'oid'))})")
        tiers = _names(keys.filter(pl.col("oid") == oid), "tier")
        raise TouchstoneError(f"{self.model}, {oid}: no attempt of tier '{tier}' (tiers: {', '.join(tiers)})")


def _names(keys: pl.DataFrame, column: str) -> list[str]:
    return keys[column].unique().sort().to_list()


def _first(rows: pl.LazyFrame, key: dict[str, str]) -> dict[str, Any] | None:
    wanted = pl.all_horizontal(pl.col(name) == value for name, value in key.items())
    found = _collected(rows.filter(wanted).head(1))
    return found.row(0, named=True) if found.height else None


def _collected(rows: pl.LazyFrame) -> pl.DataFrame:
    try:
        return rows.collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0].partition("; valid columns")[0]
        raise TouchstoneError(f"the tables cannot be read ({reason}); run again") from None


def _texts(
    tables: _Tables, key: dict[str, str], attempt: dict[str, Any], outcome: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The texts of an attempt and its tests by field, and why one is not at hand."""
    kept, file = tables.row("validated_fixes", key) or {}, tables.problem("problem_files", key["oid"]) or {}
    baseline = tables.problem("baselines", key["oid"]) or {}
    recorded, original, applied_diff = outcome.get("validator") == "recorded", file.get("text"), kept.get("diff")

    def given(columns: Sequence[str]) -> str | None:
        texts = (attempt.get(name) for name in columns)
        return next((text for text in texts if text and text.strip()), None)

    def not_applied() -> str:
        if recorded:
            return "the outcome was recorded in the input, so the fix was not applied here"
        if attempt["fix_sha"] is None and outcome.get("applied") is None:
            return "the input has no text of the fix"
        if outcome.get("applied"):
            return "the run that made these results kept no diffs; run again"
        return f"the fix was not applied: {outcome.get('diagnostics') or 'it was not validated'}"

    def not_kept() -> str:
        if not file:
            return "the run read no files of this problem"
        size = file["bytes"]
        kept = "it is empty" if not size else f"with {size:,} bytes it is longer than validation.kept_characters"
        return f"{file['path']} was not kept: {kept}"

    def not_fixed() -> str:
        if not kept:
            return not_applied()
        if original is None or applied_diff is None:
            return "the original or the diff was not kept"
        return f"the diff does not apply to {file['path']} alone"

    def no_diff() -> str:
        return f"its {kept['diff_characters']:,} characters are more than validation.kept_characters"

    def no_response() -> str:
        return tables.unread("response") or f"the input has no column {' or '.join(RESPONSE_COLUMNS)}"

    tests, unread = _tests(kept)
    whole = original is not None and applied_diff is not None
    fixed = patched(file["path"], str(original), str(applied_diff)) if whole else None
    # Each text, and what says why there is none.
    found: dict[str, tuple[str | None, Callable[[], str]]] = {
        "fix": (given(FIX_COLUMNS), lambda: tables.unread("text of the fix") or "the input has no text of the fix"),
        "original": (original, not_kept),
        # The original, changed by the diff.
        "fixed": (fixed, not_fixed),
        # As it was applied; else as the fix states it itself, if it is a diff.
        "diff": (given(_DIFF_COLUMNS) if applied_diff is None else applied_diff, no_diff if kept else not_applied),
        "diagnostics_before": (
            baseline.get("diagnostics"),
            lambda: _SILENT if baseline else "the problem was not validated in this run",
        ),
        "diagnostics_after": (
            outcome.get("diagnostics"),
            lambda: "the outcome was recorded in the input" if recorded else "the validator said nothing",
        ),
        "tests": (None if unread else kept.get("tests"), lambda: unread or ("no test ran" if kept else not_applied())),
        "raw_response": (given(RESPONSE_COLUMNS), no_response),
    }
    missing = {name: reason() for name, (text, reason) in found.items() if text is None}
    texts: dict[str, Any] = {name: bounded(text) for name, (text, _) in found.items()}
    return texts | {"tests": tests}, missing


def _tests(kept: dict[str, Any]) -> tuple[tuple[TestResult, ...], str]:
    """Every test, those that did not pass first, and why not all of those that ran are there."""
    try:
        stored = json.loads(kept["tests"]) if kept.get("tests") else []
        tests = tuple(TestResult(one["test"], one["status"], one["message"]) for one in stored)
    except (ValueError, TypeError, LookupError):
        return (), "what the run kept of them is damaged; run again"
    left_out = kept["tests_left_out"] if kept.get("tests") is not None else 0
    return tests, f"{left_out:,} further tests were left out" if left_out else ""


def patched(path: str, original: str, diff: str) -> str | None:
    r"""The file after a diff that a run kept; None if the diff is not of this file alone.

    >>> patched("a.py", "x = 1\n", "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2")
    'x = 2\n'
    """
    from touchstone.validation.fixes.patching import apply_patches
    from touchstone.validation.fixes.unified_diff import PatchError, parse_diff
    from touchstone.validation.protocol import Tree

    try:
        changes = apply_patches(Tree(Path(), (path,), {path: original.encode()}), parse_diff(diff)).files
    except PatchError:
        return None
    content = changes.get(path) if changes.keys() == {path} else None
    return None if content is None else content.decode("utf-8", "replace")
