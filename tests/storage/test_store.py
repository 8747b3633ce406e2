"""The output folder: whole or not at all, one writer at a time, and no stamp of another version."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from touchstone.errors import TouchstoneError
from touchstone.storage.store import SUMMARY, Store
from touchstone.tables import TABLES

PROBLEM = pl.LazyFrame(
    {"oid": ["a"], "filename": ["f"], "suite": ["s"], "cluster": ["c"], "only_tier": [None], "excluded": [False]}
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "out")
    made.write("problems", PROBLEM, "first")
    (made.draft / SUMMARY).write_text("first")
    return made


def published(store: Store) -> tuple[str, int]:
    tables = pl.read_parquet(store.root / "tables" / "problems" / "*.parquet")
    return (store.root / SUMMARY).read_text(), tables.height


def test_a_part_is_current_only_for_its_own_fingerprint(store: Store) -> None:
    assert store.current("problems", "first") is not None
    assert store.current("problems", "second") is None
    assert store.current("pass_at_k", "first") is None


def test_a_write_that_dies_before_its_stamp_does_not_count(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("touchstone.storage.store.json.dumps", die)
    with pytest.raises(KeyboardInterrupt):
        store.write("problems", PROBLEM, "second")
    assert store.part("problems") is None


def sources(*models: str, rows: int = 1) -> pl.LazyFrame:
    named = {"source_file": "f", "status": "evaluated", "rows": rows, "accepted": 1, "quarantined": rows - 1}
    return pl.DataFrame([{"model": model, **named} for model in models], schema=TABLES["sources"].dtypes).lazy()


def test_models_are_written_at_once_and_each_has_its_part(store: Store) -> None:
    made_from = {"n": "1", "empty": "2", "m": "3"}
    parts = store.write_models("sources", sources("m", "m", "n"), made_from, {"m": {"f": "sha"}})
    assert {model: part.rows for model, part in parts.items()} == {"n": 1, "empty": 0, "m": 2}
    for model, part in parts.items():
        assert store.current("sources", made_from[model], model) == part
        assert set(pl.read_parquet(part.path)["model"]) <= {model}
    assert store.part("sources", "m").inputs == {"f": "sha"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pl.concat([sources("m", rows=2), sources("n", rows=-1)]), "violates its contract"),
        (sources("m", "n", "m"), "not all together"),
        (sources("m", "stranger"), "not asked for: stranger"),
    ],
)
def test_if_one_of_several_models_cannot_be_written_none_is(store: Store, rows: pl.LazyFrame, message: str) -> None:
    before = store.write_models("sources", sources("m", "n"), {"m": "old", "n": "old"})
    with pytest.raises(ValueError, match=message):
        store.write_models("sources", rows, {"m": "new", "n": "new"})
    assert {model: store.current("sources", "old", model) for model in before} == before
    assert len(list((store.draft / "tables" / "sources").iterdir())) == 2


def test_the_rows_of_a_large_model_are_never_in_memory_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    heights: list[int] = []
    collect = pl.LazyFrame.collect

    def note(frame: pl.LazyFrame, **options: Any) -> pl.DataFrame:
        found = collect(frame, **options)
        heights.append(found.height)
        return found

    monkeypatch.setattr(pl.LazyFrame, "collect", note)
    assert store.write_models("sources", sources(*["m"] * 50), {"m": "1"}, in_memory=False)["m"].rows == 50
    assert max(heights) == 1


def test_models_whose_stamps_are_not_written_do_not_count(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write_models("sources", sources("m", "n"), {"m": "old", "n": "old"})
    stamped = iter([True])

    def die_after_one(value: object, **options: Any) -> str:
        if options or next(stamped, False):  # a hash is made with options
            return json.JSONEncoder(**options).encode(value)
        raise KeyboardInterrupt

    monkeypatch.setattr("touchstone.storage.store.json.dumps", die_after_one)
    with pytest.raises(KeyboardInterrupt):
        store.write_models("sources", sources("m", "n", rows=2), {"m": "new", "n": "new"})
    assert store.parts("sources") == ["m"]


def test_nothing_is_visible_until_it_is_published(store: Store) -> None:
    assert not (store.root / "tables").exists()
    store.publish(lambda generation: None)
    assert published(store) == ("first", 1)
    store.write("problems", pl.concat([PROBLEM, PROBLEM.with_columns(oid=pl.lit("b"))]), "second")
    (store.draft / SUMMARY).unlink()
    (store.draft / SUMMARY).write_text("second")
    assert published(store) == ("first", 1)
    store.publish(lambda generation: None)
    assert published(store) == ("second", 2)


def test_a_failure_while_publishing_leaves_the_last_results(store: Store) -> None:
    store.publish(lambda generation: None)

    def fail(generation: Path) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.publish(fail)
    assert published(store) == ("first", 1)
    store.publish(lambda generation: None)
    assert published(store) == ("first", 1)


def test_old_generations_are_removed(store: Store) -> None:
    for _ in range(5):
        store.publish(lambda generation: None)
    assert len(list((store.root / ".store" / "published").iterdir())) == 2


def test_a_folder_of_somebody_elses_is_not_replaced(store: Store) -> None:
    (store.root / "tables").mkdir()
    with pytest.raises(TouchstoneError, match="this folder was not created by touchstone"):
        store.publish(lambda generation: None)


def test_another_process_is_refused_while_the_lock_is_held(store: Store) -> None:
    code = (
        "import sys; from pathlib import Path; from touchstone.storage.store import Store\n"
        "with Store(Path(sys.argv[1])).lock(): print('got it')"
    )
    command = [sys.executable, "-c", code, str(store.root)]
    with store.lock(), store.lock():
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "another run is writing here (process " in refused.stderr
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "got it\n"


def test_a_part_with_the_columns_of_another_version_is_not_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    row = {"oid": ["a"], "filename": ["f"], "suite": ["s"], "cluster": [None], "only_tier": [None], "excluded": [False]}
    store.write("problems", pl.LazyFrame(row), "made from this")
    (stamp,) = (store.draft / "stamps" / "problems").glob("*.json")
    (stored,) = (store.draft / "tables" / "problems").glob("*.parquet")
    assert store.current("problems", "made from this") is not None
    store = Store(tmp_path)
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"columns": "of old"}))
    pl.DataFrame(row).drop("only_tier").write_parquet(stored)
    assert store.current("problems", "made from this") is None
    assert store.scan("problems").collect().is_empty(), "old columns must not break the reading of the others"


@pytest.mark.parametrize("change", ["truncated", "other bytes", "copied"])
def test_a_part_that_somebody_damaged_is_not_there(store: Store, change: str) -> None:
    (path,) = (store.draft / "tables" / "problems").glob("*.parquet")
    content = path.read_bytes()
    changed = {"truncated": content[:-1], "other bytes": bytes(len(content)), "copied": content}[change]
    path.write_bytes(changed)
    os.utime(path, (0, 0))
    assert (Store(store.root).part("problems") is not None) == (change == "copied")


def test_what_another_store_wrote_or_removed_is_seen_once_the_lock_is_taken(store: Store) -> None:
    other = Store(store.root)
    assert store.fingerprint("problems") == other.fingerprint("problems")
    other.write("problems", PROBLEM, "by another")
    with store.lock():
        assert store.current("problems", "by another") is not None
    other.remove("problems", "problems")
    with store.lock(), pytest.raises(TouchstoneError, match="there is no table 'problems' yet"):
        store.require("problems")


def test_the_store_knows_what_it_wrote_and_removed_itself(store: Store) -> None:
    first = store.fingerprint("problems")
    store.write("problems", PROBLEM, "other")
    assert store.fingerprint("problems") != first
    store.write("problems", PROBLEM, "first", "a part")
    assert store.scan("problems").collect().height == 2
    assert store.remove_other_parts("problems", ["a part"]) == ["problems"]
    assert store.parts("problems") == ["a part"]


def test_the_lock_removes_what_killed_runs_left_but_not_what_others_are_writing(store: Store) -> None:
    left = store.draft / ".part.parquet.0a1b2c3d.tmp"
    writing = [
        store.content_hashes.with_name(".hashes.json.0a1b2c3d.tmp"),
        store.root / "snapshots" / ".pins.json.0.tmp",
    ]
    for path in (left, *writing):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    with store.lock():
        assert not left.exists() and all(path.exists() for path in writing)
    os.utime(writing[0], (0, 0))
    with store.lock():
        assert [path.exists() for path in writing] == [False, True]
