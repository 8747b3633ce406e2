"""Publishing to object storage: all or nothing, one of two writers, and nothing removed that is still of use."""

import hashlib
import json
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from tests.storage.s3 import BUCKET, KILLED, Server
from touchstone.errors import TouchstoneError
from touchstone.storage.published_objects import LocalFile, PublishedObjects


def objects(name: str, tmp_path: Path) -> PublishedObjects:
    return PublishedObjects(f"s3://{BUCKET}/{name}", tmp_path / "blobs")


def local_files(root: Path, **contents: str) -> dict[str, LocalFile]:
    made = {}
    for name, content in contents.items():
        path = root / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        made[f"tables/{name}"] = LocalFile(path, hashlib.sha256(content.encode()).hexdigest())
    return made


def test_unchanged_files_keep_their_objects(server: Server, tmp_path: Path) -> None:
    published = objects("kept", tmp_path)
    first = published.publish(local_files(tmp_path, a="1", b="2"), None, None)
    second = published.publish(local_files(tmp_path, a="1", b="3"), first, None)
    assert second.files["tables/a"].key == first.files["tables/a"].key
    assert second.files["tables/b"].key != first.files["tables/b"].key
    assert server.assert_complete("kept") == {"tables/a": b"1", "tables/b": b"3"}
    assert published.publish(local_files(tmp_path, a="1", b="3"), second, None) is second


def test_of_many_writers_exactly_one_wins(server: Server, tmp_path: Path) -> None:
    base = objects("race", tmp_path).publish(local_files(tmp_path, a="0"), None, None)
    ready, ends = threading.Barrier(4), list[str]()

    def write(number: int) -> None:
        files = local_files(tmp_path, a=str(number))
        ready.wait()
        try:
            objects("race", tmp_path).publish(files, base, None)
            ends.append(str(number))
        except TouchstoneError as error:
            ends.append(str(error))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lost = f"s3://{BUCKET}/race: another run has published here in the meantime, and its results are kept; "
    assert sum(end.startswith(lost) for end in ends) == 3
    winner = next(end for end in ends if end.isdigit())
    assert server.assert_complete("race") == {"tables/a": winner.encode()}


def test_of_two_first_writers_one_wins(server: Server, tmp_path: Path) -> None:
    objects("first", tmp_path).publish(local_files(tmp_path, a="1"), None, None)
    with pytest.raises(TouchstoneError, match="another run has published here in the meantime"):
        objects("first", tmp_path).publish(local_files(tmp_path, a="2"), None, None)
    assert server.assert_complete("first") == {"tables/a": b"1"}


def test_results_that_are_removed_during_a_run(server: Server, tmp_path: Path) -> None:
    base = objects("gone", tmp_path).publish(local_files(tmp_path, a="1"), None, None)
    server.delete("gone/manifest.json")
    with pytest.raises(TouchstoneError, match=f"s3://{BUCKET}/gone: the published results were removed during the run"):
        objects("gone", tmp_path).publish(local_files(tmp_path, a="2"), base, None)


def test_a_log_that_is_completed_meanwhile_is_no_other_run(server: Server, tmp_path: Path) -> None:
    published = objects("log", tmp_path)
    base = published.publish(local_files(tmp_path, a="1", **{"run_log/l": "begun"}), None, None)
    (log,) = local_files(tmp_path, **{"run_log/l": "complete"}).values()
    published.publish_log(base.version, log)
    assert server.assert_complete("log") == {"tables/a": b"1", "tables/run_log/l": b"complete"}
    assert server.manifest("log")["version"] == base.version
    second = published.publish(local_files(tmp_path, a="2", **{"run_log/l": "begun"}), base, None)
    published.publish_log(base.version, log)
    assert server.assert_complete("log") == {"tables/a": b"2", "tables/run_log/l": b"begun"}, "that of another version"
    assert second.version != base.version


# Publishes three files; is killed before or after request number `sys.argv[1]`, the last of which switches.
WRITER = f"""
{KILLED}
from pathlib import Path
from touchstone.storage.published_objects import PublishedObjects
from tests.storage.test_published_objects import local_files

objects = PublishedObjects(sys.argv[3], Path(sys.argv[4]) / "blobs")
objects.publish(local_files(Path(sys.argv[4]), a="new", b="new b", c="new c"), objects.manifest(), None)
"""
MOMENTS = [(request, side) for request in range(1, 5) for side in ("before", "after")]


@pytest.mark.parametrize(
    ("request_number", "side"),
    [moment if moment == (4, "before") else pytest.param(*moment, marks=pytest.mark.nightly) for moment in MOMENTS],
)
def test_a_killed_writer_leaves_the_last_results(
    server: Server, tmp_path: Path, request_number: int, side: str
) -> None:
    name = f"killed-{request_number}-{side}"
    objects(name, tmp_path).publish(local_files(tmp_path, a="old", b="old b"), None, None)
    command = [sys.executable, "-c", WRITER, str(request_number), side, f"s3://{BUCKET}/{name}", str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    switched = (request_number, side) == (4, "after")
    new = {"tables/a": b"new", "tables/b": b"new b", "tables/c": b"new c"}
    assert server.assert_complete(name) == (new if switched else {"tables/a": b"old", "tables/b": b"old b"})


def test_a_sweep_removes_only_old_objects_that_are_not_published(server: Server, tmp_path: Path) -> None:
    published = objects("swept", tmp_path)
    first = published.publish(local_files(tmp_path, a="1", b="2"), None, None)
    published.publish(local_files(tmp_path, a="1", b="3"), first, None)
    server.put("swept/notes.txt", "not of touchstone")
    assert published.sweep() == 0, "what is young may belong to a run that is about to be published"
    assert published.sweep(timedelta(seconds=-5)) == 1
    assert first.files["tables/b"].key not in " ".join(server.keys("swept"))
    assert server.assert_complete("swept") == {"tables/a": b"1", "tables/b": b"3"}
    assert server.get("swept/notes.txt") == b"not of touchstone"


def test_a_damaged_object_is_noticed(server: Server, tmp_path: Path) -> None:
    published = objects("damaged", tmp_path)
    manifest = published.publish(local_files(tmp_path, a="123"), None, None)
    for damage in ("124", None):
        key = f"damaged/{manifest.files['tables/a'].key}"
        server.put(key, damage) if damage is not None else server.delete(key)
        with pytest.raises(TouchstoneError, match="missing or damaged; try again"):
            published.fetch(manifest, lambda path: True)
        assert not list((tmp_path / "blobs").iterdir())


GOOD = {"key": "versions/1/a", "size": 1, "sha256": "0" * 64, "modified_ns": 0}


@pytest.mark.parametrize(
    "content",
    [
        "not JSON",
        "[]",
        json.dumps({"format": 1, "version": "1", "files": {"../a": GOOD}}),
        json.dumps({"format": 1, "version": "1", "files": {"/a": GOOD}}),
        json.dumps({"format": 1, "version": "../1", "files": {"a": GOOD}}),
        json.dumps({"format": 1, "version": "1", "files": {"a": GOOD | {"key": "versions/../../b"}}}),
        json.dumps({"format": 1, "version": "1", "files": {"a": GOOD | {"key": "other/b"}}}),
        json.dumps({"format": 1, "version": "1", "files": {"a": GOOD | {"sha256": "../x"}}}),
        json.dumps({"format": 1, "version": "1", "files": {"a": GOOD | {"size": "1"}}}),
        json.dumps({"format": 2, "version": "1", "files": {}}),
    ],
)
def test_a_manifest_of_somebody_else_is_refused(server: Server, tmp_path: Path, content: str) -> None:
    server.put("foreign/manifest.json", content)
    with pytest.raises(
        TouchstoneError, match=f"s3://{BUCKET}/foreign/manifest.json: (not a Touchstone manifest|format 2)"
    ):
        objects("foreign", tmp_path).manifest()
