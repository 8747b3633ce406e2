"""Results as evalplus writes them: `<model>_eval_results.json` with the samples of every task and their status.

Attempts that came from evalplus at `base/<task>` and `plus/<task>` are put together again. Any other problem is a task
with a base status only, in a file of its own, because evalplus has plus statuses in all of a file or nowhere. evalplus
has no undecided samples and no tiers: undecided attempts are left out, and every tier gets its own file.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import polars as pl

from touchstone.ingest.adapters.exported import KEY
from touchstone.publish.interchange.results import NUMBER, FileNames, Row, Run, carried, undecided_note, write_pieces

_BASE, _PLUS = "base", "plus"
_ORDER = ("task", NUMBER, "iteration_id", "oid")


def write_evalplus(run: Run, folder: Path) -> list[str]:
    """Write one or two files per model and tier."""
    names = FileNames()
    for model in run.models():
        head = {"date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "hash": None, KEY: {"model": model}}
        for file, rows in run.files(_samples(run.attempts(model)), ["tier", "paired"], _ORDER):
            # evalplus writes the slash in a model's name so.
            name = names.new(*run.label(model.replace("/", "--"), file["tier"]), end="_eval_results.json")
            start = json.dumps(head)[:-1] + ', "eval": {\n'
            write_pieces(folder / name, start, _tasks(rows), "\n}}\n")
    return undecided_note(run, "evalplus has no such status")


def _samples(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The decided attempts with their task and part, and whether the other part of the same sample is among them."""
    # Only evalplus names its suites so; elsewhere the slash belongs to the name.
    part = pl.col("oid").str.extract(r"^(base|plus)/.", 1)
    part = pl.when(part == pl.col("suite")).then(part)
    rest = pl.col("oid").str.slice(len("base/"))
    sample = ["tier", "iteration_id", rest]
    base, plus = (pl.col("passed").filter(part == name).first().over(sample) for name in (_BASE, _PLUS))
    # A sample that fails base fails plus, too, whatever its status: evalplus cannot say otherwise.
    paired = part.is_not_null() & base.is_not_null() & plus.is_not_null() & (base | ~plus).fill_null(False)
    own = {
        "paired": paired,
        "part": part.fill_null(_BASE),
        "task": pl.when(paired | (part == _BASE)).then(rest).otherwise("oid"),
    }
    return rows.filter(pl.col("passed").is_not_null()).with_columns(**own)


def _tasks(rows: Iterator[Row]) -> Iterator[str]:
    for task, own in groupby(rows, key=lambda row: row["task"]):
        samples = groupby(own, key=lambda row: (row["iteration_id"], None if row["paired"] else row["oid"]))
        yield f"{json.dumps(task)}: {json.dumps([_sample(list(parts)) for _, parts in samples])}"


def _sample(parts: list[Row]) -> Row:
    first = parts[0]
    sample = {"task_id": first["task"], "solution": first["fix"] or "", "base_status": None, "plus_status": None}
    named = [(row["part"] if row["paired"] else _BASE, row) for row in parts]
    sample |= {f"{part}_status": _status(row["passed"], row["classification"]) for part, row in named}
    sample |= {f"{part}_fail_tests": [] for part, _ in named}
    return sample | {KEY: {part: carried(row) for part, row in named}}


def _status(passed: bool, classification: str | None) -> str:
    if passed:
        return "pass"
    return "timeout" if classification == "timeout" else "fail"
