"""Which validation results are final, and whether a retry changed them."""

import hashlib

import polars as pl

from touchstone.validation.protocol import RETRIED

_STATUSES = ("status", "baseline_status", "reference_status")
_VARYING = ("cached", "duration_seconds")


# A column beside those of the table: whether a timeout is final.
SETTLED = "settled"


def is_settled(results: pl.DataFrame) -> bool:
    """Whether no result needs a retry. Rows without a validator follow from the inputs alone and are final.

    >>> outcomes = pl.DataFrame({"validator": ["hcl", None], "status": ["passed", "validator_unavailable"]})
    >>> is_settled(outcomes), is_settled(outcomes.with_columns(validator=pl.lit("hcl")))
    (True, False)
    >>> endless = pl.DataFrame({"validator": ["hcl"], "status": ["timeout"], "settled": [True]})
    >>> is_settled(endless), is_settled(endless.drop("settled"))
    (True, False)
    """
    present = [name for name in _STATUSES if name in results.columns]
    statuses = [status for status in RETRIED if status != "timeout"]
    retried = pl.any_horizontal(pl.col(name).is_in(statuses).fill_null(False) for name in present)
    timed_out = pl.any_horizontal((pl.col(name) == "timeout").fill_null(False) for name in present)
    final = pl.col(SETTLED).fill_null(False) if SETTLED in results.columns else pl.lit(False)
    return results.filter(pl.col("validator").is_not_null(), retried | (timed_out & ~final)).is_empty()


def content_digest(results: pl.DataFrame) -> str:
    """A hash of the results, ignoring duration and whether they were cached.

    >>> first = pl.DataFrame({"oid": ["a"], "status": ["passed"], "duration_seconds": [0.5]})
    >>> content_digest(first) == content_digest(first.with_columns(duration_seconds=pl.lit(0.7)))
    True
    """
    text = results.drop(_VARYING, strict=False).write_csv(null_value="\0")
    return hashlib.sha256(text.encode()).hexdigest()
