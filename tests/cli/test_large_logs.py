"""Commands on large Inspect logs: memory depends on the number of samples, not on the length of their transcripts."""

import json
import random
from pathlib import Path

import pytest

from tests.ingest.adapters.inspect_files import header, sample
from tests.peak_memory import run_measured

SAMPLES = 1000
MAX_GROWTH_MIB = 40
MIB = 1 << 20
START = "from touchstone.cli.main import main; main()"


def write_log(path: Path, size: int) -> Path:
    """A log of about this size, all of it but a few hundred bytes per sample transcripts."""
    source = random.Random(size)
    with path.open("w") as file:
        file.write(json.dumps(header())[:-1] + ', "samples": [')
        for number in range(SAMPLES):
            messages = [{"role": "user", "content": source.randbytes(size // SAMPLES // 2).hex()}]
            each = sample(id=f"s{number // 5}", epoch=number % 5 + 1, messages=messages, uuid=f"u{number}")
            file.write(("," if number else "") + json.dumps(each))
        file.write("]}")
    return path


@pytest.mark.nightly
@pytest.mark.parametrize(("command", "inputs"), [("inspect-files", 1), ("run", 1), ("compare", 2)])
def test_memory_does_not_grow_with_the_transcripts(tmp_path: Path, command: str, inputs: int) -> None:
    peaks = []
    for size in (50 * MIB, 150 * MIB):
        logs = [write_log(tmp_path / f"{size}-{place}.json", size) for place in range(inputs)]
        assert all(log.stat().st_size > size for log in logs)
        peaks.append(run_measured(START, command, *map(str, logs))[1])
        for log in logs:
            log.unlink()
    assert peaks[1] < peaks[0] + MAX_GROWTH_MIB, peaks
