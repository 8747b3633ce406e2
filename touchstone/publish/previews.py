"""The first rows of any table, for the Dagster UI: best or worst first, figures rounded, an interval in one cell.

Tables that are laid out for people are declared in `result_tables`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import polars as pl

from touchstone.text import estimate, markdown_text, significant, visible

ROWS = 10
NO_VALUE = "-"
_DIGITS = 3
_WIDTH = 80
# The header, the line below it, and two rows.
_LEAST_LINES = 4

# Which rows come first where the keys say nothing: those that are read first. A minus sorts descending.
_ORDER = {
    "sources": ("source_file", "model"),
    "quarantine": ("source_file", "line"),
    "reported_figures": ("source_file", "model", "figure"),
    "pass_at_k": ("k", "-pass_at_k", "model", "tier"),
    "tiers": ("-composite_median", "model", "tier"),
    "run_scores": ("-overall_score", "model", "tier"),
    "suite_scores": ("suite", "-score", "model", "tier"),
    "problem_frontier": ("mean_pass_rate", "oid"),
    "economics": ("cost_of_pass", "model", "tier"),
    "routing_policies": ("-saving",),
    "variance_split": ("-standard_error", "model", "tier"),
    "reliability": ("-flip_rate", "model", "tier"),
    "model_comparison": ("p_adjusted", "model_a", "tier_a", "model_b", "tier_b"),
    "baseline_verdicts": ("p_adjusted", "model", "tier"),
    "regressions": ("delta", "model", "tier", "oid"),
    "problem_audit": ("p_value", "tier", "oid"),
    "audited_leaderboard": ("rank_without_suspects", "model", "tier"),
    "mutants": ("-result", "oid", "mutant"),
    "test_strength": ("kill_rate", "oid"),
    "contamination": ("-difference", "model", "tier"),
    "reference_overlap": ("-difference", "model", "tier"),
    "slices": ("column", "value", "-pass_at_1", "model", "tier"),
}


@dataclass(frozen=True)
class Preview:
    """The first rows of a table as text, and how many rows there are."""

    columns: list[str]
    rows: list[list[str]]
    total: int

    def markdown(self, limit: int | None = None) -> str:
        """The rows as a table in Markdown, in which nothing is markup.

        With a limit of characters: as many rows as fit, and all of them where fewer than two would.
        """
        names, *rows = ([markdown_text(cell) for cell in line] for line in [self.columns, *self.rows])
        lines = [f"| {' | '.join(line)} |" for line in [names, ["---"] * len(names), *rows]]
        fits = sum(length <= (limit or 0) for length in accumulate(len(line) + 1 for line in lines))
        return "\n".join(lines[:fits] if fits >= _LEAST_LINES else lines)


def preview(frame: pl.LazyFrame, table: str = "", most: int = ROWS) -> Preview:
    """The first rows of a table, in an order that suits it, without the columns that are empty in all of them.

    >>> preview(pl.LazyFrame({"model": ["m"], "score": [2 / 3], "score_ci_low": [.5], "score_ci_high": [.75]}))
    Preview(columns=['model', 'score'], rows=[['m', '0.667 [0.5, 0.75]']], total=1)
    """
    schema = frame.collect_schema()
    intervals = dict(_intervals(schema))
    hidden = {end for ends in intervals.values() for end in ends}
    total = int(frame.select(pl.len()).collect().item())
    first = _sorted(frame, _ORDER.get(table, ()), schema.names()).head(most).collect()
    empty = {name for name in schema if first.height and first[name].null_count() == first.height}
    shown = [name for name in schema if name not in hidden | empty]
    rows = [
        [_cell(row[name], *(row[end] for end in intervals.get(name, ()))) for name in shown]
        for row in first.iter_rows(named=True)
    ]
    return Preview([visible(name) for name in shown], rows, total)


def _intervals(schema: pl.Schema) -> Iterator[tuple[str, tuple[str, str]]]:
    """The figures that have a confidence interval: the one that it is named after, else the one before it."""
    names = schema.names()
    for place, low in enumerate(names):
        prefix, found, _ = low.rpartition("ci_low")
        figure = prefix.removesuffix("_") or names[place - 1]
        if found and f"{prefix}ci_high" in schema and schema.get(figure) == pl.Float64:
            yield figure, (low, f"{prefix}ci_high")


def _sorted(frame: pl.LazyFrame, order: Sequence[str], names: Sequence[str]) -> pl.LazyFrame:
    keys = [key for key in order if key.removeprefix("-") in names]
    if not keys:
        return frame
    descending = [key.startswith("-") for key in keys]
    return frame.sort([key.removeprefix("-") for key in keys], descending=descending, nulls_last=True)


def _cell(value: Any, low: float | None = None, high: float | None = None) -> str:
    if isinstance(value, float):
        return estimate(value, low, high, lambda end: significant(end, _DIGITS))
    if value is None:
        return NO_VALUE
    if isinstance(value, bool):
        return "true" if value else "false"
    text = visible(re.sub(r"[\r\n]+", " ", str(value)[: 2 * _WIDTH]))
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
