"""Writes Inspect logs of any size for the benchmarks, laid out as by Inspect: summaries, samples and a header."""

import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

MODEL = "acme/model"
SCORER = "tests"
_CREATED = "2026-01-01T00:00:00+00:00"
_NOISE_BYTES = 1 << 19


def write_log(
    path: Path, samples: int, epochs: int, *, transcript: int = 4000, solved: float = 0.6, seed: int = 1
) -> None:
    """Write a `.eval` archive; each sample has its own chance to be solved, the same in every log that is written.

    `transcript` is the number of characters of each sample's messages, which hardly compress.
    """
    summaries = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": _spec(samples, epochs), "plan": {}}))
        for each in _samples(samples, epochs, transcript, solved, seed):
            archive.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
            summaries.append({name: value for name, value in each.items() if name != "messages"})
        archive.writestr("summaries.json", json.dumps(summaries))
        archive.writestr("header.json", json.dumps(_header(samples, epochs)))


def write_json_log(path: Path, samples: int, epochs: int, *, transcript: int = 4000, seed: int = 1) -> None:
    """Write the same as one JSON file, in which the transcripts cannot be skipped."""
    with path.open("w") as file:
        file.write(json.dumps(_header(samples, epochs))[:-1] + ', "samples": [')
        for number, each in enumerate(_samples(samples, epochs, transcript, 0.6, seed)):
            file.write(("," if number else "") + json.dumps(each))
        file.write("]}")


def _samples(samples: int, epochs: int, transcript: int, solved: float, seed: int) -> Iterator[dict[str, object]]:
    difficulty, source = random.Random(0), random.Random(seed)
    noise = source.randbytes(_NOISE_BYTES).hex()
    for number in range(samples):
        chance = min(1.0, max(0.0, difficulty.gauss(solved, 0.3)))
        for epoch in range(1, epochs + 1):
            start = source.randrange(len(noise) - transcript)
            content = noise[start : start + transcript]
            yield {
                "id": f"s{number}",
                "epoch": epoch,
                "input": f"Fix problem {number}",
                "target": "ok",
                "messages": [{"role": "user", "content": content}],
                "scores": {SCORER: {"value": "C" if source.random() < chance else "I", "answer": "x = 1"}},
                "metadata": {"difficulty": "hard" if chance < solved else "easy"},
                "model_usage": {MODEL: {"input_tokens": 900, "output_tokens": 150, "total_tokens": 1050}},
                "total_time": 2.5,
                "working_time": 2.0,
                "uuid": f"{seed}-{number}-{epoch}",
            }


def _spec(samples: int, epochs: int) -> dict[str, object]:
    return {
        "run_id": "run",
        "created": _CREATED,
        "task": "fix",
        "task_id": "fix-1",
        "dataset": {"name": "problems", "samples": samples},
        "model": MODEL,
        "config": {"epochs": epochs},
        "eval_id": "eval",
    }


def _header(samples: int, epochs: int) -> dict[str, object]:
    total = samples * epochs
    score = {"name": SCORER, "scorer": SCORER, "metrics": {}}
    return {
        "version": 2,
        "status": "success",
        "eval": _spec(samples, epochs),
        "plan": {"name": "plan", "steps": []},
        "results": {"total_samples": total, "completed_samples": total, "scores": [score]},
        "stats": {"started_at": _CREATED, "completed_at": _CREATED},
    }
