"""Commands on large Inspect logs: memory depends on the number of samples, not on the length of their transcripts."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ingest.adapters.inspect_files import header, sample

SAMPLES = 1000
MAX_GROWTH_MIB = 40
MIB = 1 << 20


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


def peak_memory(command: str, *logs: Path) -> int:
    """The MiB that a command needs at most, in a process of its own."""
    start = "import sys; from touchstone.cli.main import main; main()"
    arguments = [sys.executable, "-c", start, command, *map(str, logs)]
    child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return usage.ru_maxrss // 1024


@pytest.mark.nightly
@pytest.mark.parametrize(("command", "inputs"), [("inspect-files", 1), ("run", 1), ("compare", 2)])
def test_memory_does_not_grow_with_the_transcripts(tmp_path: Path, command: str, inputs: int) -> None:
    peaks = []
    for size in (50 * MIB, 150 * MIB):
        logs = [write_log(tmp_path / f"{size}-{place}.json", size) for place in range(inputs)]
        assert all(log.stat().st_size > size for log in logs)
        peaks.append(peak_memory(command, *logs))
        for log in logs:
            log.unlink()
    assert peaks[1] < peaks[0] + MAX_GROWTH_MIB, peaks
