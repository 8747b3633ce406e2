"""Figures by the rules of other tools, to show that a file was read as the tool itself reads it.

Touchstone's own figures do not come from here: `touchstone.metrics.pass_at_k` also handles undecided attempts.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from touchstone.ingest.adapters.json_files import number_of
from touchstone.ingest.adapters.table import AdapterTable, Record, ReportedFigure
from touchstone.ingest.csv_rows import ROW_ERROR_KIND

# The attempts and the passed attempts of each problem.
Counts = Collection[tuple[int, int]]


def mean(values: Sequence[float]) -> float | None:
    """The plain mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def estimate(attempts: int, passed: int, k: int) -> float:
    """The unbiased pass@k of Chen et al. (2021), 1 - C(n - c, k) / C(n, k); like their function, 1 if n < k.

    >>> estimate(3, 1, 1), estimate(3, 1, 2), estimate(1, 0, 5)
    (0.33333333333333337, 0.6666666666666667, 1.0)
    """
    if attempts - passed < k:
        return 1.0
    return 1.0 - math.comb(attempts - passed, k) / math.comb(attempts, k)


def pass_at_k(counts: Counts, k: int) -> float | None:
    """The mean of `estimate` over the problems with at least `k` attempts.

    >>> pass_at_k([(2, 1), (2, 0), (1, 1)], 2)
    0.5
    """
    return mean([estimate(attempts, passed, k) for attempts, passed in counts if attempts >= k])


def count_by_problem(attempts: Iterable[tuple[str | None, bool]]) -> Counts:
    """The counts of attempts that are given as the problem and whether it was solved."""
    counts: dict[str | None, tuple[int, int]] = {}
    for problem, solved in attempts:
        total, passed = counts.get(problem, (0, 0))
        counts[problem] = (total + 1, passed + solved)
    return list(counts.values())


def counts_of_records(records: Iterable[Record], suite: str | None = None) -> Counts:
    """The counts of the accepted records, of one suite if one is named."""
    return count_by_problem(
        (record.cells["oid"], record.cells["passed"] == "true")
        for record in records
        if record.kind is None and suite in (None, record.cells.get("suite"))
    )


def counts_of_table(table: AdapterTable, suite: str | None = None) -> Counts:
    """The counts of the accepted rows, of one suite if one is named."""
    rows = table.rows.filter(pl.col(ROW_ERROR_KIND).is_null())
    rows = rows if suite is None else rows.filter(pl.col("suite") == suite)
    solved = (pl.col("passed") == "true").sum()
    with table.reading():
        counts = rows.group_by("oid").agg(attempts=pl.len(), solved=solved).collect(engine="streaming")
    return list(counts.select("attempts", "solved").iter_rows())


def pass_at_k_figures(
    model: str,
    counts: Counts,
    ks: Collection[int],
    stated: Mapping[str, float | None] | None = None,
    suite: str | None = None,
) -> list[ReportedFigure]:
    """pass@k for every k that each problem has attempts for, as the tools do, beside the `stated` values."""
    fewest = min((attempts for attempts, _ in counts), default=0)
    return [
        ReportedFigure(model, f"pass@{k}", (stated or {}).get(f"pass@{k}"), pass_at_k(counts, k), suite)
        for k in ks
        if k <= fewest
    ]


def reported_pass_at_k(stated: object) -> Mapping[int, float]:
    """The figures of an object such as `{"2": 0.5}`, by k."""
    if not isinstance(stated, dict):
        return {}
    figures = ((key, number_of(value)) for key, value in stated.items())
    # A k of more than four digits is none, and could make the formula above run for hours.
    return {int(key): value for key, value in figures if value is not None and key.isdecimal() and len(key) < 5}


def tokens_without_cache(prompt: str | None, *cached: str | None) -> str | None:
    """The prompt tokens of a tool that counts those read from and written to a cache among them.

    >>> tokens_without_cache("100", "30", None), tokens_without_cache("100", "300"), tokens_without_cache("x", "1")
    ('70', '100', 'x')
    """
    counts = [number_of(each) or 0 for each in cached]
    total = number_of(prompt)
    # More cached tokens than there are in total were counted apart.
    if total is None or not any(counts) or sum(counts) > total:
        return prompt
    return f"{total - sum(counts):.0f}"
