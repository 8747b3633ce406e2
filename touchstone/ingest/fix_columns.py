"""The columns of a fixes file that decide or describe an attempt. Their meaning belongs in `attempts`."""

from collections.abc import Collection

OUTCOME_COLUMNS = ("plausible_fix", "passed")
# The outcome only in a file without those: beside them it says less, that the reported error is gone.
LAST_OUTCOME_COLUMN = "is_fixed"
CLASS_COLUMN = "classification"
IMPLIED_OUTCOME_COLUMNS = ("compiled", "tests_passed", "tests_failed")
FIX_COLUMNS = (
    "fixed_file",
    "fixed_block_content",
    "fixed_code",
    "fixed_diff",
    "model_patch",
    "fixed_files",
    "fixed_edits",
)
COUNT_COLUMNS = ("tests_passed", "tests_failed", "lint_warnings")
TOKEN_COLUMNS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
AMOUNT_COLUMNS = ("cost_usd", "duration_seconds", "latency_ms")
TIME_COLUMNS = ("start_time", "end_time")
# The first of these that states a time says on which day an attempt was made.
DATE_COLUMNS = ("started_at", "start_time", "timestamp_utc", "timestamp", "completed_at", "end_time")
DATE_COLUMN = "attempted_on"
SCORE_COLUMNS = ("weighted_score", "impl_rate")
SHARE_COLUMN = "structure_score"


def outcome_columns(columns: Collection[str]) -> list[str]:
    """The columns of a file that state the outcome.

    >>> outcome_columns(["oid", "is_fixed"]), outcome_columns(["passed", "is_fixed"])
    (['is_fixed'], ['passed'])
    """
    stated = [name for name in OUTCOME_COLUMNS if name in columns]
    return stated or [name for name in (LAST_OUTCOME_COLUMN,) if name in columns]


def has_attempts(columns: Collection[str]) -> bool:
    """Whether rows with these columns have an outcome or a fix."""
    return has_outcomes(columns) or not set(FIX_COLUMNS).isdisjoint(columns)


def has_outcomes(columns: Collection[str]) -> bool:
    """Whether rows with these columns state or imply an outcome."""
    states = outcome_columns(columns) or CLASS_COLUMN in columns
    return bool(states) or set(IMPLIED_OUTCOME_COLUMNS).issubset(columns)


# Names that an unrelated key of another tool must not fill.
NATIVE_COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "model",
    "fix_sha",
    "tier",
    "suite",
    "cluster",
    "run_id",
    CLASS_COLUMN,
    *OUTCOME_COLUMNS,
    *IMPLIED_OUTCOME_COLUMNS,
    *COUNT_COLUMNS,
    *FIX_COLUMNS,
    *SCORE_COLUMNS,
    SHARE_COLUMN,
    *TOKEN_COLUMNS,
    *AMOUNT_COLUMNS,
    *TIME_COLUMNS,
)
