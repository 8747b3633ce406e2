"""Results as evalplus writes them: `<model>_eval_results.json` with the samples of every task and their status.

Problems that came from evalplus as `base/<task>` and `plus/<task>` are put together again; any other problem is a task
with a base status only. evalplus has no undecided samples and no tiers: undecided attempts are left out, and with
several tiers every tier gets its own file.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.ingest.fix_columns import FIX_COLUMNS
from touchstone.names import file_key
from touchstone.publish.interchange.results import Run, undecided_note

_BASE = "base"


def write_evalplus(run: Run, folder: Path, now: datetime | None = None) -> list[str]:
    """Write one file per model and tier."""
    written_at = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M")
    tiers = run.table("attempts").select(pl.col("tier").n_unique()).collect(engine="streaming").item()
    undecided = total = 0
    for model in run.models():
        own = _chosen(run.rows(model)).collect()
        total += own.height
        undecided += own["passed"].null_count()
        for (tier,), part in own.drop_nulls("passed").group_by("tier", maintain_order=True):
            # evalplus writes the slash in a model's name so.
            name = file_key(model.replace("/", "--")) + (f"@{file_key(str(tier))}" if tiers > 1 else "")
            content = {"date": written_at, "hash": None, "eval": _samples(part)}
            (folder / f"{name}_eval_results.json").write_text(json.dumps(content), encoding="utf-8")
    return undecided_note(undecided, total, "evalplus has no such status, so they are left out")


def _chosen(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The task and the part of its tests that each attempt is about, its solution and its outcome."""
    present = rows.collect_schema().names()
    part = pl.col("oid").str.extract(r"^(base|plus)/.", 1)
    # Only evalplus names its suites so; elsewhere the slash belongs to the name.
    is_part = (part == pl.col("suite")).fill_null(False)
    return rows.select(
        "tier",
        "iteration_id",
        "passed",
        "classification",
        pl.when(is_part).then(part).otherwise(pl.lit(_BASE)).alias("part"),
        pl.when(is_part).then(pl.col("oid").str.slice(len("base/"))).otherwise("oid").alias("task"),
        pl.coalesce(*(pl.col(name) for name in FIX_COLUMNS if name in present), pl.lit("")).alias("solution"),
    )


def _samples(rows: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The samples of each task in order of their attempts."""
    tasks: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        new = {"task_id": row["task"], "solution": row["solution"], "base_status": None, "plus_status": None}
        sample = tasks.setdefault(row["task"], {}).setdefault(row["iteration_id"], new)
        sample[f"{row['part']}_status"] = _status(row["passed"], row["classification"])
        sample[f"{row['part']}_fail_tests"] = []
    return {task: list(samples.values()) for task, samples in tasks.items()}


def _status(passed: bool, classification: str | None) -> str:
    if passed:
        return "pass"
    return "timeout" if classification == "timeout" else "fail"
