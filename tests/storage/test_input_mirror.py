"""Inputs in object storage: what changed is downloaded, what vanished is removed, what changes meanwhile is noticed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import nightly_but
from tests.storage.s3 import BUCKET, Server
from touchstone.errors import TouchstoneError
from touchstone.locations import input_location, output_location
from touchstone.storage.input_mirror import fetch
from touchstone.storage.object_store import Bucket, Object


def at(name: str) -> Path:
    return input_location(f"s3://{BUCKET}/{name}")


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_only_what_changed_is_downloaded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kept.csv", "changed.csv", "gone.csv", "logs/a.json"):
        server.put(f"one/{name}", "old")
    fetch([at("one")])
    assert files(at("one")) == dict.fromkeys(("changed.csv", "gone.csv", "kept.csv", "logs/a.json"), "old")

    downloaded: list[str] = []
    download = Bucket.download

    def noted(bucket: Bucket, wanted: Object, target: Path) -> str:
        downloaded.append(wanted.key)
        return download(bucket, wanted, target)

    monkeypatch.setattr(Bucket, "download", noted)
    server.put("one/changed.csv", "new")
    server.delete("one/gone.csv")
    server.delete("one/logs/a.json")
    server.put("one/logs", "a file now")
    fetch([at("one")])
    assert files(at("one")) == {"changed.csv": "new", "kept.csv": "old", "logs": "a file now"}
    assert sorted(downloaded) == ["one/changed.csv", "one/logs"]

    downloaded.clear()
    fetch([at("one")])
    assert not downloaded, "an unchanged bucket is only listed"
    (at("one") / "kept.csv").write_text("edited")
    (at("one") / "stray_fixes.csv").write_text("left by a killed process")
    fetch([at("one")])
    assert files(at("one")) == {"changed.csv": "new", "kept.csv": "old", "logs": "a file now"}


NAMES = ["a b.csv", "a%41.csv", "q?x#y.csv", "modèle é.csv", "back\\slash.csv", "*[x].csv"]


@pytest.mark.parametrize("name", nightly_but(["a%41.csv", "modèle é.csv"], NAMES))
def test_any_name_of_an_object_is_the_name_of_a_file(server: Server, name: str) -> None:
    server.put(f"names/{name}", name)
    fetch([at("names") / name])
    assert (at("names") / name).read_text() == name


def test_only_what_is_named_is_downloaded(server: Server) -> None:
    for name in ("part/a.csv", "part/b/c.csv", "part_two/d.csv", "other.csv"):
        server.put(f"named/{name}", "x")
    fetch([at("named/part"), at("named/other.csv")], optional=[at("named/problems.csv")])
    assert list(files(at("named"))) == ["other.csv", "part/a.csv", "part/b/c.csv"]


def test_an_output_folder_inside_is_not_mirrored(server: Server) -> None:
    for name in ("m_fixes.csv", "out/manifest.json", "out/versions/1/x", "outer.csv"):
        server.put(f"around/{name}", "x")
    fetch([at("around")], left_out=output_location(f"s3://{BUCKET}/around/out"))
    assert list(files(at("around"))) == ["m_fixes.csv", "outer.csv"]


def test_threads_of_one_process_take_turns(server: Server) -> None:
    """The sensor and the schedule look at the same bucket."""
    for number in range(10):
        server.put(f"threads/{number}.csv", str(number))
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda _: fetch([at("threads")]), range(4)):
            assert len(files(at("threads"))) == 10


def test_nothing_there(server: Server) -> None:
    with pytest.raises(TouchstoneError, match=f"s3://{BUCKET}/nowhere: no such object or folder in the bucket"):
        fetch([at("nowhere")])


@pytest.mark.parametrize("times", [1, 2])
def test_an_object_that_changes_while_it_is_downloaded(
    server: Server, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It is downloaded again; if it changes again, the run ends."""
    server.put(f"changing-{times}/m_fixes.csv", "0")
    download, left = Bucket.download, list(range(times))

    def changing(bucket: Bucket, wanted: Object, target: Path) -> str:
        if left:
            server.put(wanted.key, f"version {left.pop()}")
        return download(bucket, wanted, target)

    monkeypatch.setattr(Bucket, "download", changing)
    folder = at(f"changing-{times}")
    if times == 1:
        fetch([folder])
        assert files(folder) == {"m_fixes.csv": "version 0"}
    else:
        with pytest.raises(TouchstoneError, match=r"m_fixes.csv: changed twice while it was downloaded; run again"):
            fetch([folder])
        assert files(folder) == {}


def test_a_key_that_is_no_file_name(server: Server) -> None:
    server.put("both/a", "a file")
    server.put("both/a/b", "in a folder of the same name")
    with pytest.raises(TouchstoneError, match="an object and a folder of objects have this name; rename one"):
        fetch([at("both")])
