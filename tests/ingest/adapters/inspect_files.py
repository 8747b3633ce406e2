"""Inspect logs for tests: samples with any content, as an archive or as one JSON file."""

import json
import zipfile
from pathlib import Path

REAL = Path(__file__).parent / "files" / "inspect"

SPEC: dict[str, object] = {
    "task": "fix",
    "model": "acme/model",
    "run_id": "run-1",
    "eval_id": "eval-1",
    "dataset": {"name": "tiny"},
    "config": {"epochs": 1},
}


def sample(**changes: object) -> dict[str, object]:
    """A sample that passed, as both a summary and a JSON log have it."""
    return {
        "id": "a",
        "epoch": 1,
        "scores": {"tests": {"value": "C", "answer": "x = 1"}},
        "metadata": {"difficulty": "hard", "files": ["a.py"]},
        "model_usage": {"acme/model": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, "total_cost": 0.25}},
        "total_time": 1.50,
        "uuid": "u1",
    } | changes


def scored(value: object, **changes: object) -> dict[str, object]:
    return sample(scores={"tests": {"value": value}}, **changes)


def header(*names: str, **changes: object) -> dict[str, object]:
    """A header that reports a mean accuracy for these scores."""
    metrics = {"accuracy": {"name": "accuracy", "value": 0.5, "params": {}}}
    scores = [{"name": name, "scorer": name, "metrics": metrics} for name in names or ("tests",)]
    return {"version": 2, "status": "success", "eval": SPEC, "results": {"scores": scores}} | changes


def write_json(path: Path, samples: list[object], head: dict[str, object] | None = None) -> Path:
    path.write_text(json.dumps((head or header()) | {"samples": samples}))
    return path


def write_archive(path: Path, members: list[tuple[str, object]], method: int = zipfile.ZIP_DEFLATED) -> Path:
    """An archive with these members; names may repeat, and bytes are written as they are."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def write_eval(path: Path, samples: list[object], head: dict[str, object] | None = None) -> Path:
    """An archive with summaries only."""
    return write_archive(
        path, [("_journal/start.json", {}), ("summaries.json", samples), ("header.json", head or header())]
    )
