"""Files parsed by workers: the same tables, notes and refusals as if each had been read here, one after the other."""

import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import PROJECT, Folder
from tests.workers.conftest import Cluster
from touchstone.config import InputLimits, load_config
from touchstone.ingest import limits, parallel_reading
from touchstone.ingest.adapters import ReadOptions
from touchstone.ingest.csv_rows import LINE
from touchstone.ingest.discovery import Discovery, discover
from touchstone.ingest.parallel_reading import FileToRead, Reader, ReadFile, read_file
from touchstone.workers.processes import SerialWorkers

FILES = PROJECT / "tests" / "ingest" / "adapters" / "files"


class PicklingWorkers(SerialWorkers):
    """Workers here, whose items and results are sent as to another process."""

    def map(self, function: Callable[[Any, Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        for place, result in super().map(function, pickle.loads(pickle.dumps(items))):
            yield place, pickle.loads(pickle.dumps(result)) if not isinstance(result, BaseException) else result


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """The small files of every tool, one of them damaged, and no file too small to be worth a worker."""
    monkeypatch.setattr(parallel_reading, "_LEAST_BYTES", 0)
    folder = Folder(tmp_path)
    shutil.copytree(FILES, tmp_path / "fixes", ignore=shutil.ignore_patterns("limits*", "killed*", "aborted*", "dict*"))
    (tmp_path / "fixes" / "damaged_failproof.jsonl").write_text('{"case_id": "c", "model_id": "m", "class')
    return folder


def plain(found: Discovery) -> dict[str, object]:
    """All that was found, as values to compare."""
    tables = {
        str(path): (table.frame.to_dict(as_series=False), table.columns, table.figures, table.notes, table.files)
        for path, table in found.adapter_tables.items()
    }
    raw = {
        str(path): table.raw(set(table.rows.select(pl.col(LINE).head(2)).collect()[LINE]))
        for path, table in found.adapter_tables.items()
    }
    return {"tables": tables, "raw": raw, "sources": found.sources, "others": found.not_evaluated}


def read(folder: Folder, **workers: object) -> dict[str, object]:
    tools = [path.name for path in (folder.root / "fixes").iterdir()]
    return plain(discover(load_config(folder.configure(workers=workers, inputs=sorted(tools)))))


@pytest.mark.services
def test_tables_of_workers_are_those_of_this_process(many: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    here = read(many, kind="in_process")
    asked: list[object] = []
    monkeypatch.setattr(
        parallel_reading, "_workers", lambda settings: asked.append(settings) or PicklingWorkers(Reader, (True,))
    )
    assert read(many, kind="processes") == here
    assert len(asked) == 1 and len(here["tables"]) > 10  # type: ignore[arg-type]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["processes", "dask"])
def test_so_are_those_of_real_workers(many: Folder, cluster: Cluster, kind: str) -> None:
    workers = {"kind": kind, **({"address": cluster.address} if kind == "dask" else {"count": 2})}
    assert read(many, **workers) == read(many, kind="in_process")


def test_another_file_at_the_same_path_elsewhere_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"oid": "a", "passed": true}')
    there = read_file(Reader(elsewhere=True), FileToRead(file, "jsonl", ReadOptions(), InputLimits()))
    assert parallel_reading._is_ours(there)
    file.write_text('{"oid": "a", "passed": false}')
    assert not parallel_reading._is_ours(there)


def test_workers_keep_to_the_limits_of_the_configuration(many: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_in_use", InputLimits())
    monkeypatch.setattr(parallel_reading, "_workers", lambda settings: PicklingWorkers(Reader))
    used = []

    def read_as_another_process(reader: Reader, item: FileToRead) -> ReadFile:
        limits.use_limits(InputLimits())
        read = read_file(reader, item)
        used.append(limits.limits())
        return read

    monkeypatch.setattr(parallel_reading, "read_file", read_as_another_process)
    own = InputLimits(cell_mb=1)
    tools = sorted(path.name for path in (many.root / "fixes").iterdir())
    discover(load_config(many.configure(inputs=tools, input_limits=own.model_dump())))
    assert len(used) > 10 and all(each == own for each in used)
