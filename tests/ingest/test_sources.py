"""When a file counts as changed."""

import os
import time
from pathlib import Path

from touchstone.ingest.sources import ContentHashes


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("one")
    memory = tmp_path / "hashes.json"
    hashes = ContentHashes(memory)
    before = hashes.of(path)
    # Saved as if long after the last change, so that the hash counts as settled.
    hashes.save(time.time_ns() + 10_000_000_000)
    stamp = path.stat()
    path.write_text("two")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert ContentHashes(memory).of(path) != before


def test_an_untouched_file_is_not_read_again(tmp_path: Path) -> None:
    path, memory = tmp_path / "f.csv", tmp_path / "hashes.json"
    path.write_text("one")
    hashes = ContentHashes(memory)
    known = hashes.of(path)
    hashes.save(time.time_ns() + 10_000_000_000)
    forged = memory.read_text().replace(known, "f" * 64)
    memory.write_text(forged)
    assert ContentHashes(memory).of(path) == "f" * 64


def test_a_file_that_changed_a_moment_ago_is_not_remembered(tmp_path: Path) -> None:
    path, memory = tmp_path / "f.csv", tmp_path / "hashes.json"
    path.write_text("one")
    hashes = ContentHashes(memory)
    hashes.of(path)
    hashes.save(time.time_ns())
    assert memory.read_text() == "{}"
