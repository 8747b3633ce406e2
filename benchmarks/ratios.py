"""The figures of one `make bench` in one table: each benchmark adds its own to a file, and this prints them.

    TOUCHSTONE_RATIOS=ratios.jsonl python benchmarks/pass_at_k.py; python benchmarks/ratios.py ratios.jsonl

A goal is what the figure should reach; a figure beyond it is marked and asserts nothing. docs/benchmarks.md has the
table of the last measurement.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

PLACE = "TOUCHSTONE_RATIOS"


def add(figure: str, value: float | None, *, at_most: float | None = None, at_least: float | None = None) -> None:
    """Add a figure with its goal, if somebody collects them."""
    if PLACE in os.environ and value is not None:
        with Path(os.environ[PLACE]).open("a") as file:
            print(json.dumps([figure, value, at_most, at_least]), file=file)


def table(lines: list[str]) -> str:
    """The figures as a Markdown table."""
    rows = []
    for figure, value, at_most, at_least in map(json.loads, lines):
        goal = f"≤ {at_most:g}" if at_most is not None else f"≥ {at_least:g}" if at_least is not None else ""
        missed = (at_most is not None and value > at_most) or (at_least is not None and value < at_least)
        rows.append([figure, f"{value:,.2f}", goal, "no" if missed else "yes" if goal else ""])
    return as_markdown(["figure", "measured", "goal", "reached"], rows)


def as_markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, figures to the right."""
    title, *lines = (f"| {' | '.join(line)} |" for line in [headings, *rows])
    return "\n".join([title, "|---|" + "--:|" * (len(headings) - 1), *lines, ""])


if __name__ == "__main__":
    print(table(Path(sys.argv[1]).read_text().splitlines()))
