"""Logs of half a gigabyte: memory does not grow with the transcripts, and progress is shown."""

import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ingest.adapters.inspect_files import header, sample
from tests.peak_memory import run_measured

SAMPLES = 50_000
TRANSCRIPT_LENGTH = 10_500
MAX_MEMORY_MIB = 512
READ = """
import sys
from pathlib import Path
from touchstone import progress
from touchstone.ingest.adapters import read_adapted

steps = []
class Display:
    show_step = staticmethod(steps.append)
progress.set_display(Display())
table = read_adapted(Path(sys.argv[1]))
print(table.frame["passed"].value_counts(sort=True).rows(), len(steps))
"""


def transcripts() -> Iterator[dict[str, object]]:
    """Samples with transcripts that hardly compress, and with what a careless scan would stumble over."""
    source = random.Random(1)
    noise = source.randbytes(1 << 20).hex()
    for number in range(SAMPLES):
        start = source.randrange(len(noise) - TRANSCRIPT_LENGTH)
        content = noise[start : start + TRANSCRIPT_LENGTH - 40] + '"}]\\ é😀'
        messages = [{"role": "user", "content": content}]
        yield sample(id=f"s{number // 5}", epoch=number % 5 + 1, messages=messages, events=[{"a": [{}]}] * 3)


def write_json(path: Path) -> None:
    with path.open("w") as file:
        file.write(json.dumps(header())[:-1] + ', "samples": [')
        for number, each in enumerate(transcripts()):
            file.write(("," if number else "") + json.dumps(each, ensure_ascii=False))
        file.write("]}")


def write_archive(path: Path) -> None:
    """As of 2024: no usage in the summaries, so that every sample is read."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("_journal/start.json", "{}")
        summaries = []
        for each in transcripts():
            archive.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each, ensure_ascii=False))
            summaries.append({name: each[name] for name in ("id", "epoch", "scores")})
        archive.writestr("summaries.json", json.dumps(summaries))
        archive.writestr("header.json", json.dumps(header()))


@pytest.mark.nightly
@pytest.mark.parametrize("write", [write_json, write_archive])
def test_memory_and_progress(tmp_path: Path, write) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "log.eval"
    write(path)
    assert path.stat().st_size > 500 << 20
    printed, memory = run_measured(READ, str(path))
    path.unlink()
    print(write.__name__, printed, memory)
    outcomes, steps = printed.rsplit(maxsplit=1)
    assert outcomes == f"[('true', {SAMPLES})]"
    assert int(steps) >= 10
    assert memory < MAX_MEMORY_MIB
