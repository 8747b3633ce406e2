"""Results as "Every Eval Ever" records (EvalEval coalition, schema 0.3.0): aggregates and instances of each model.

The aggregates are pass@k of every tier with their confidence intervals. An instance is an attempt; the schema has no
attempt number, so that is metadata, and no undecided instances, so these are left out and counted. Inputs and outputs
of the model are not part of Touchstone's results and stay empty.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.publish.interchange.results import Run, undecided_note, write_pieces
from touchstone.storage.files import file_key
from touchstone.vocabulary import VERSION

SCHEMA_VERSION = "0.3.0"
_NAME = "touchstone"


def write_every_eval_ever(run: Run, folder: Path, now: float | None = None) -> list[str]:
    """Write `<model>.json` and `<model>_samples.jsonl` for every model."""
    written_at = str(int(time.time() if now is None else now))
    figures = run.table("pass_at_k").sort("model", "tier", "k").collect()
    stated = run.table("settings").filter(pl.col("key") == "intervals.confidence").collect()
    confidence = float(json.loads(stated["value"].item()))
    for model in run.models():
        evaluation_id = f"{_NAME}/{model}/{written_at}"
        rows, is_decided = run.rows(model), pl.col("passed").is_not_null()
        decided, total = rows.select(is_decided.sum(), total=pl.len()).collect(engine="streaming").row(0)
        samples = folder / f"{file_key(model)}_samples.jsonl"
        instances = (_instance(row, evaluation_id) for row in run.stream(rows.filter(is_decided)))
        write_pieces(samples, "", (json.dumps(each, ensure_ascii=False) + "\n" for each in instances), "", "")
        content = _header(model, evaluation_id, written_at) | {
            "evaluation_results": list(_results(figures.filter(pl.col("model") == model), confidence)),
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": samples.name,
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(samples.read_bytes()).hexdigest(),
                "total_rows": decided,
                "additional_details": {"undecided_attempts_left_out": str(total - decided)},
            },
        }
        text = json.dumps(content, ensure_ascii=False, indent=2)
        (folder / f"{file_key(model)}.json").write_text(text + "\n", encoding="utf-8")
    return undecided_note(run, "Every Eval Ever has no such instances")


def _header(model: str, evaluation_id: str, written_at: str) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "retrieved_timestamp": written_at,
        "source_metadata": {
            "source_name": "Touchstone",
            "source_type": "evaluation_run",
            # Who evaluated whose model is not part of the results.
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": _NAME, "version": VERSION},
        "model_info": {"name": model, "id": model},
    }


def _results(figures: pl.DataFrame, confidence: float) -> Iterator[dict[str, Any]]:
    """pass@k where it is defined, one result per tier and k."""
    for row in figures.drop_nulls("pass_at_k").iter_rows(named=True):
        uncertainty: dict[str, Any] = {"num_samples": row["eligible"]}
        if row["ci_low"] is not None:
            uncertainty["confidence_interval"] = {
                "lower": row["ci_low"],
                "upper": row["ci_high"],
                "confidence_level": confidence,
                "method": row["ci_method"],
            }
        yield {
            "evaluation_result_id": f"{row['tier']}/pass@{row['k']}",
            "evaluation_name": f"{_NAME}/{row['tier']}",
            "source_data": {"dataset_name": _NAME, "source_type": "other"},
            "metric_config": {
                "metric_id": "pass_at_k",
                "metric_name": f"pass@{row['k']}",
                "metric_kind": "pass_rate",
                "metric_unit": "proportion",
                "metric_parameters": {"k": row["k"]},
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": 0,
                "max_score": 1,
            },
            "score_details": {"score": row["pass_at_k"], "uncertainty": uncertainty},
        }


def _instance(row: dict[str, Any], evaluation_id: str) -> dict[str, Any]:
    score = row["weighted_score"]
    named = {name: row[name] for name in ("iteration_id", "tier", "suite", "run_id", "classification")}
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "model_id": row["model"],
        "evaluation_name": f"{_NAME}/{row['tier']}",
        "sample_id": row["oid"],
        "interaction_type": "single_turn",
        "input": {"raw": "", "reference": []},
        "output": {"raw": []},
        "messages": None,
        "answer_attribution": [],
        "evaluation": {"score": float(row["passed"]) if score is None else score, "is_correct": row["passed"]},
        "token_usage": _usage(row),
        "performance": None if row["latency_ms"] is None else {"latency_ms": row["latency_ms"]},
        "error": None,
        "metadata": {name: value for name, value in named.items() if value is not None},
    }


def _usage(row: dict[str, Any]) -> dict[str, Any] | None:
    read, written = row["input_tokens"], row["output_tokens"]
    if read is None or written is None:
        return None
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_tokens_cache_read": row["cache_read_tokens"],
        "input_tokens_cache_write": row["cache_write_tokens"],
    }
