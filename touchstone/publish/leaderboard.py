"""The leaderboard as a few lines of plain text, for Python's prompt and notebooks."""

import polars as pl

from touchstone.publish.figures import with_interval


def leaderboard_text(pass_at_k: pl.DataFrame) -> str:
    """Models with their pass@k and confidence intervals, best first.

    >>> row = {"model": "m", "tier": "T0", "k": 1, "pass_at_k": 0.5, "ci_low": 0.25, "ci_high": 0.75}
    >>> print(leaderboard_text(pl.DataFrame([row])))
    model  tier  pass@1
    m      T0    0.500 [0.250, 0.750]
    """
    ks = pass_at_k["k"].unique().sort().to_list()
    lines = [["model", "tier", *(f"pass@{k}" for k in ks)]]
    best_first = pass_at_k.sort(
        "k", "pass_at_k", "model", "tier", descending=[False, True, False, False], nulls_last=True
    )
    for (model, tier), rows in best_first.rows_by_key(["model", "tier"], named=True).items():
        lines.append([model, tier, *(with_interval(row, "pass_at_k", "", "{:.3f}") for row in rows)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
