"""Results as logs of Inspect AI (version 2, JSON), one per model, tier, suite and run.

A suite is the task, a problem a sample and an attempt an epoch. An undecided attempt is a sample with an error, which
Inspect leaves out of its accuracy, too.
"""

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from touchstone.inference.exact import exact_mean
from touchstone.ingest.adapters.exported import KEY
from touchstone.publish.interchange.results import (
    STATUS,
    FileNames,
    Row,
    Run,
    carried,
    name_in_suite,
    place_over,
    write_pieces,
)

_BY = ["tier", "suite", "run_id"]
_SCORE = "passed"
_USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "input_tokens_cache_read": "cache_read_tokens",
    "input_tokens_cache_write": "cache_write_tokens",
    "total_cost": "cost_usd",
}


def write_inspect(run: Run, folder: Path) -> list[str]:
    """Write the logs."""
    names, now = FileNames(), datetime.now(UTC)
    for model in run.models():
        rows = run.attempts(model).with_columns(place=place_over(*_BY, "oid"), sample=name_in_suite(_BY))
        figures = _figures(rows)
        for log, samples in run.files(rows, _BY):
            head = _header(model, log | figures[log["tier"], log["suite"], log["run_id"]], now)
            # Inspect lists only logs whose names begin with a time, and takes an underscore for the end of a part.
            stem = names.new(log["suite"], *run.label(model, log["tier"])).replace("_", "-")
            write_pieces(
                folder / f"{now:%Y-%m-%dT%H-%M-%S-00-00}_{stem}_{head['eval']['task_id']}.json",
                json.dumps(head)[:-1] + ', "samples": [\n',
                (json.dumps(_sample(row)) for row in samples),
                "\n]}\n",
            )
    return []


def _figures(rows: pl.LazyFrame) -> dict[tuple[str | None, ...], Row]:
    """The accuracy of each log, its problems, and the most attempts at one: as Inspect, the mean over their means."""
    problems = rows.group_by(*_BY, "oid").agg(pl.col("passed").mean(), pl.col("place").max())
    figures = problems.group_by(_BY).agg(
        exact_mean(pl.col("passed")).alias("accuracy"), pl.len().alias("problems"), pl.col("place").max()
    )
    return {tuple(row[name] for name in _BY): row for row in figures.collect().iter_rows(named=True)}


def _header(model: str, log: Row, now: datetime) -> Row:
    metric = {"name": "accuracy", "value": log["accuracy"], "params": {}}
    metrics = {} if log["accuracy"] is None else {"accuracy": metric}
    log_id, time = uuid.uuid4().hex, now.isoformat()
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": log_id,
            "run_id": log["run_id"] or "",
            "created": time,
            "task": log["suite"],
            "task_id": log_id,
            "task_args": {"tier": log["tier"]},
            "dataset": {"name": log["suite"], "samples": log["problems"]},
            "model": model,
            "config": {"epochs": log["place"], "fail_on_error": False},
            "metadata": {KEY: {"model": model}},
        },
        "plan": {},
        "results": {
            "total_samples": log["total"],
            "completed_samples": log["passes"] + log["failures"],
            "scores": [{"name": _SCORE, "scorer": _SCORE, "params": {}, "metrics": metrics}],
        },
        "stats": {"started_at": time, "completed_at": time},
    }


def _sample(row: Row) -> Row:
    usage = {name: row[column] for name, column in _USAGE.items() if row[column] is not None}
    if {"input_tokens", "output_tokens"} <= usage.keys():
        usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    sample = {
        "id": row["sample"],
        "epoch": row["place"],
        "input": "",
        "target": "",
        "metadata": {KEY: carried(row)},
        "model_usage": {row["model"]: usage} if usage else {},
    }
    if row["duration_seconds"] is not None:
        sample["total_time"] = row["duration_seconds"]
    if row["fix"] is not None:
        choice = {"message": {"role": "assistant", "content": row["fix"]}, "stop_reason": "stop"}
        sample["output"] = {"model": row["model"], "choices": [choice], "completion": row["fix"]}
    if row["passed"] is None:
        message = row["error"] or row[STATUS] or "undecided"
        return sample | {"error": {"message": message, "traceback": "", "traceback_ansi": ""}}
    return sample | {"scores": {_SCORE: {"value": "C" if row["passed"] else "I", "explanation": row["error"]}}}
