"""Results as lm-eval logs them: a folder per model and tier, with the samples of every task and attempt.

A suite is a task. Attempts are runs of it, which lm-eval tells apart by their time; here they are a second apart.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from touchstone.ingest.adapters.exported import KEY
from touchstone.publish.interchange.results import (
    FileNames,
    Row,
    Run,
    carried,
    name_in_suite,
    undecided_note,
    write_pieces,
)
from touchstone.storage.files import name_of_key

_METRIC, _FILTER = "acc", "none"


def write_lm_eval(run: Run, folder: Path) -> list[str]:
    """Write `<model>/samples_<task>_<time>.jsonl`, and the aggregates of each time beside them."""
    folders, now, documents = FileNames(), datetime.now(UTC), _document_numbers(run)
    names, tasks = FileNames(), dict[str, str]()
    for model in run.models():
        decided = run.attempts(model).filter(pl.col("passed").is_not_null())
        rows = decided.join(documents, on=["suite", "oid"], how="left")
        places: dict[str, Path] = {}
        results: dict[Path, dict[str, Row]] = {}
        for file, samples in run.files(rows, ["tier", "place", "suite"]):
            if file["tier"] not in places:
                # lm-eval writes the slash in a model's name so.
                places[file["tier"]] = folder / folders.new(*run.label(model.replace("/", "__"), file["tier"]))
                places[file["tier"]].mkdir()
            if file["suite"] not in tasks:
                tasks[file["suite"]] = names.new(file["suite"])
            place, task = places[file["tier"]], tasks[file["suite"]]
            time = f"{now + timedelta(seconds=file['place']):%Y-%m-%dT%H-%M-%S.%f}"
            results.setdefault(place / f"results_{time}.json", {})[name_of_key(task)] = file
            lines = (json.dumps(_sample(row)) for row in samples)
            write_pieces(place / f"samples_{task}_{time}.jsonl", "", lines, "\n", "\n")
        for path, found in results.items():
            path.write_text(json.dumps(_results(model, found, now), indent=2) + "\n", encoding="utf-8")
    return undecided_note(run, "lm-eval scores every document")


def _document_numbers(run: Run) -> pl.LazyFrame:
    """The number of each problem in its suite: the one in its name if all have one, else its place."""
    number = name_in_suite(["suite"]).cast(pl.Int64, strict=False)
    is_number = (number.is_not_null() & (number >= 0)).all().over("suite") & number.is_unique().all().over("suite")
    place = pl.col("oid").rank("dense").over("suite").cast(pl.Int64) - 1
    problems = run.table("attempts").select("suite", "oid").unique()
    return problems.with_columns(document=pl.when(is_number).then(number).otherwise(place))


def _sample(row: Row) -> Row:
    fix = row["fix"] or ""
    return {
        "doc_id": row["document"],
        "doc": {"oid": row["oid"]},
        "target": "",
        "arguments": {},
        "resps": [[fix]],
        "filtered_resps": [fix],
        "filter": _FILTER,
        "metrics": [_METRIC],
        _METRIC: float(row["passed"]),
        KEY: carried(row),
    }


def _results(model: str, tasks: dict[str, Row], now: datetime) -> Row:
    metric = {"metric": _METRIC, "aggregation": "mean", "higher_is_better": True}
    return {
        "results": {
            task: {"alias": task, f"{_METRIC},{_FILTER}": file["passes"] / file["total"]}
            for task, file in tasks.items()
        },
        "configs": {task: {"task": task, "metric_list": [metric]} for task in tasks},
        "versions": dict.fromkeys(tasks, "Yaml"),
        "n-samples": {task: {"original": file["total"], "effective": file["total"]} for task, file in tasks.items()},
        "config": {"model": "touchstone"},
        "date": now.timestamp(),
        "model_name": model,
        KEY: {"model": model},
    }
