"""Output folders and input files from elsewhere: no link is followed out, no reader is kept waiting."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Command, Folder, nightly_but
from tests.pipelines.test_run import evaluate
from touchstone.errors import TouchstoneError
from touchstone.evaluation import load_results
from touchstone.storage.snapshots import list_snapshots, pins, prune
from touchstone.storage.store import Store
from touchstone.validation import cache as cache_module
from touchstone.validation.cache import ReportCache, find_cache, owner
from touchstone.validation.protocol import Report


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A file and a folder of the user's own, which must stay as they are."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    yield folder
    assert [path.name for path in folder.rglob("*")] == ["precious"]
    assert (folder / "precious").read_text() == "precious"


def replace_by_link(path: Path, target: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize(
    "place",
    nightly_but(
        [".store", ".store/draft/tables/problems", "cache", "snapshots/pins.json"],
        [
            ".store",
            ".store/lock",
            ".store/lock.holder",
            ".store/draft",
            ".store/draft/tables/problems",
            ".store/draft/stamps/problems/problems.json",
            ".store/published",
            ".store/unpublished",
            ".store/current",
            "cache",
            "cache/reports.sqlite",
            "snapshots",
            "snapshots/pins.json",
            "snapshots/new",
        ],
    ),
)
def test_a_run_follows_no_link_in_its_output_folder(
    touchstone: Command, evaluated: Folder, outside: Path, place: str
) -> None:
    target = outside / "precious" if "." in Path(place).name.lstrip(".") or place.endswith("lock") else outside
    replace_by_link(evaluated.output / place, target)
    done = touchstone("run", "--config", evaluated.config)
    assert done.returncode == 2
    assert f"{evaluated.output / place}: is a link" in done.stderr


@pytest.mark.parametrize(
    "place",
    nightly_but(
        ["tables", "tables/pass_at_k"], ["tables", "tables/pass_at_k", ".store/current/tables", ".store/published"]
    ),
)
def test_no_command_follows_a_link_to_read_tables(
    touchstone: Command, evaluated: Folder, tmp_path: Path, place: str
) -> None:
    link = evaluated.output / place
    elsewhere = shutil.move(link.resolve(), tmp_path / "elsewhere")
    link.unlink(missing_ok=True)
    link.symlink_to(elsewhere)
    commands: list[tuple[object, ...]] = [("sql", "SELECT * FROM pass_at_k"), ("export", "pass_at_k")]
    if place != "tables/pass_at_k":  # which they do not read
        commands += [("show", "m", "a"), ("compare", evaluated.output, evaluated.output), ("plan", "--detect", "0.1")]
    for command in commands:
        data = () if command[0] == "compare" else ("--data", evaluated.output)
        done = touchstone(*command, *data)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (command, done.stderr)
        assert "a link, which is not followed" in done.stderr
    with pytest.raises(TouchstoneError, match="a link, which is not followed"):
        load_results(evaluated.output)["pass_at_k"]


PUBLISHED = ("tables", "warehouse.duckdb", "report.html", "csv", "comparison.md")


@pytest.mark.parametrize("name", nightly_but(["tables", "report.html"], PUBLISHED))
def test_a_run_replaces_no_link_of_others(touchstone: Command, evaluated: Folder, outside: Path, name: str) -> None:
    replace_by_link(evaluated.output / name, outside / ("precious" if "." in name else ""))
    done = touchstone("run", "--config", evaluated.config, "--force")
    assert done.returncode == 2
    assert f"{evaluated.output / name}: leads out of the folder by a link" in done.stderr


def test_nor_waits_for_a_pipe_in_it(touchstone: Command, evaluated: Folder) -> None:
    os.mkfifo(evaluated.output / ".store" / "draft" / "pipe")
    done = touchstone("run", "--config", evaluated.config)
    assert done.returncode == 2
    assert "pipe: is not a regular file" in done.stderr


def test_the_links_of_a_run_are_no_strangers(evaluated: Folder) -> None:
    with Store(evaluated.output).lock():
        pass
    assert (evaluated.output / ".store" / "current").is_symlink()


class TestSnapshots:
    def test_a_linked_snapshot_is_neither_read_nor_deleted(self, evaluated: Folder, tmp_path: Path) -> None:
        (real,) = (evaluated.output / "snapshots").glob("2*")
        moved = tmp_path / "elsewhere"
        real.rename(moved)
        real.symlink_to(moved)
        assert list_snapshots(evaluated.output) == prune(evaluated.output, 0) == []
        assert (moved / "manifest.json").is_file()

    def test_a_linked_folder_of_snapshots_is_refused(self, evaluated: Folder, tmp_path: Path) -> None:
        (evaluated.output / "snapshots").rename(tmp_path / "elsewhere")
        (evaluated.output / "snapshots").symlink_to(tmp_path / "elsewhere")
        for use in (list_snapshots, pins, lambda root: prune(root, 0)):
            with pytest.raises(TouchstoneError, match="snapshots: is a link"):
                use(evaluated.output)

    def test_an_id_is_no_path(self, evaluated: Folder, outside: Path) -> None:
        (manifest,) = (evaluated.output / "snapshots").glob("2*/manifest.json")
        told = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**told, "id": str(outside / "x")}))
        assert evaluate(evaluated).exit_code == 0
        assert [snapshot.id for snapshot in list_snapshots(evaluated.output)] == [manifest.parent.name]

    def test_a_malformed_manifest_is_named(self, touchstone: Command, evaluated: Folder) -> None:
        (manifest,) = (evaluated.output / "snapshots").glob("2*/manifest.json")
        good = json.loads(manifest.read_text())
        changes = {
            "inputs": {"a": 1},
            "rows": {"a": "b"},
            "versions": {"validators": []},
            "validation": [3],
            "made_at": 1,
        }
        for key, value in changes.items():
            manifest.write_text(json.dumps(good | {key: value}))
            done = touchstone("snapshots", "list", "--data", evaluated.output)
            assert f"cannot be read ({key}: expected" in done.stderr and "Error:" not in done.stderr

    def test_malformed_pins_are_one_line(self, touchstone: Command, evaluated: Folder) -> None:
        for text in ("[1]", '{"a": 1}', "{", "[" * 100_000):
            (evaluated.output / "snapshots" / "pins.json").write_text(text)
            done = touchstone("snapshots", "list", "--data", evaluated.output)
            assert done.returncode == 2
            assert "pins.json: cannot be read (" in done.stderr and "correct or delete it" in done.stderr


STAMPS = ["{", "[]", "{}", '{"rows": "x"}', "[" * 100_000]


@pytest.mark.parametrize("stamp", nightly_but(["{}"], STAMPS), ids=lambda text: text[:8])
def test_a_damaged_stamp_makes_its_part_anew(evaluated: Folder, stamp: str) -> None:
    draft = evaluated.output / ".store" / "draft"
    for path in (draft / "stamps" / "problems" / "problems.json", draft / "hashes.json", draft / "csv_stamps.json"):
        path.write_text(stamp)
    assert evaluate(evaluated).exit_code == 0


WITHOUT_END = (
    "WITH RECURSIVE n(made) AS (SELECT 1.0 UNION ALL SELECT made + 1 FROM n) SELECT made, 1 AS name, 2 AS key, "
    "3 AS owner, 4 AS validator, 5 AS report, 6 AS signature, 7 AS used FROM n"
)


class TestCache:
    @pytest.mark.parametrize("name", ["reports.sqlite", "reports.sqlite-wal", "reports.sqlite-shm"])
    def test_a_linked_database_is_refused(self, tmp_path: Path, outside: Path, name: str) -> None:
        folder = tmp_path / "results" / "cache"
        ReportCache(folder).__exit__()
        replace_by_link(folder / name, outside / "precious")
        with pytest.raises(TouchstoneError, match=f"{name}: is not a regular file"):
            find_cache(tmp_path / "results")

    def test_a_linked_folder_is_refused(self, tmp_path: Path) -> None:
        ReportCache(tmp_path / "real").__exit__()
        (tmp_path / "cache").symlink_to(tmp_path / "real")
        with pytest.raises(TouchstoneError, match="cache: is a link"):
            find_cache(tmp_path)

    @pytest.mark.parametrize("plain", ["[]", "{", "[" * 100_000, '{"diagnostics": [], "status": 3, "more": 1}'])
    @pytest.mark.parametrize("signed", [True, False])
    def test_a_malformed_report_is_validated_again(self, tmp_path: Path, plain: str, signed: bool) -> None:
        with ReportCache(tmp_path) as cache:
            cache.keep("a", "python", Report("passed", "full"))
            signature = owner().sign("a", plain if signed else "")
            cache._database.execute("UPDATE reports SET report = ?, signature = ?", (plain, signature))
            assert cache.find(["a"]) == {}
            cache.keep("a", "python", Report("failed", "full"))
            assert cache.find(["a"]) == {"a": Report("failed", "full")}

    @pytest.mark.parametrize(
        "edit",
        [
            "UPDATE reports SET report = replace(report, 'failed', 'passed')",
            "UPDATE reports SET report = (SELECT report FROM reports WHERE key = 'b')",
            "UPDATE reports SET report = r.report, signature = r.signature FROM reports AS r WHERE r.key = 'b'",
            "UPDATE reports SET signature = x'00'",
            "UPDATE reports SET signature = ''",
        ],
    )
    def test_an_edited_verdict_is_not_believed(self, tmp_path: Path, edit: str) -> None:
        with ReportCache(tmp_path) as cache:
            cache.keep("a", "python", Report("failed", "full"))
            cache.keep("b", "python", Report("passed", "full"))
            cache._database.execute(edit)
            assert "a" not in cache.find(["a"]) and cache.ignored == 1
            cache.keep("a", "python", Report("failed", "full", note="again"))
            assert cache.find(["a"])["a"].note == "again"

    def test_reports_of_others_are_left_alone_and_counted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, touchstone: Command
    ) -> None:
        editions = set()
        for name, status in (("their" * 4, "passed"), ("mine" * 4, "failed")):
            monkeypatch.setenv("TOUCHSTONE_CACHE_KEY", name)
            with ReportCache(tmp_path) as cache:
                assert cache.find(["a"]) == {}
                assert cache.ignored == (status == "failed")
                editions.add(cache.edition)
                cache.keep("a", "python", Report(status, "full"))
                cache.forget(["b"])
        assert len(editions) == 2
        shown = touchstone("cache", "stats", "--data", tmp_path).stdout
        assert "2 reports, 1 of them signed by others and not used" in shown
        monkeypatch.setenv("TOUCHSTONE_CACHE_KEY", "their" * 4)
        with ReportCache(tmp_path) as cache:
            assert cache.find(["a"]) == {"a": Report("passed", "full")} and cache.ignored == 0

    def test_unsigned_reports_of_an_old_version_are_dropped(self, tmp_path: Path) -> None:
        with sqlite3.connect(tmp_path / "reports.sqlite") as database:
            database.execute(cache_module._UNSIGNED)
            plain = json.dumps(Report("passed", "full").to_plain())
            database.execute("INSERT INTO reports VALUES ('a', 'python', ?, 1.0, 1.0)", (plain,))
        database.close()
        with ReportCache(tmp_path) as cache:
            assert cache.find(["a"]) == {} and cache.statistics().entries == 0

    @pytest.mark.services
    def test_the_key_is_private_and_the_same_in_every_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("TOUCHSTONE_CACHE_KEY", raising=False)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        code = "from touchstone.validation.cache import owner; print(owner().name)"
        start = [sys.executable, "-c", code]
        both = [subprocess.Popen(start, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        assert {process.communicate()[0].strip() for process in both} == {owner().name}
        (key,) = (tmp_path / "touchstone").iterdir()
        assert key.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("home", ["/dev/null", "relative"])
    def test_without_a_place_for_the_key_the_processes_of_one_run_share_one(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("TOUCHSTONE_CACHE_KEY", "")
        monkeypatch.setenv("XDG_STATE_HOME", home)
        assert owner() == owner() and len(os.environ["TOUCHSTONE_CACHE_KEY"]) == 64
        assert not any(tmp_path.iterdir()), "nothing is made in the current folder"

    def test_a_short_key_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOUCHSTONE_CACHE_KEY", "secret")
        with pytest.raises(TouchstoneError, match="TOUCHSTONE_CACHE_KEY: the key is too short"):
            ReportCache(tmp_path)

    @pytest.mark.parametrize(
        "statements",
        [
            ["CREATE TABLE reports (x)"],
            ["CREATE VIEW reports AS SELECT 1 AS key"],
            [f"CREATE VIEW reports AS {WITHOUT_END}"],
            [f"CREATE VIEW edition AS {WITHOUT_END}"],
            ["CREATE TABLE other (x)", f"CREATE TRIGGER t INSERT ON other BEGIN {WITHOUT_END}; END"],
        ],
        ids=str,
    )
    def test_a_database_of_another_make_is_one_line(
        self, touchstone: Command, tmp_path: Path, statements: list[str]
    ) -> None:
        with sqlite3.connect(tmp_path / "reports.sqlite") as database:
            for statement in statements:
                database.execute(statement)
        database.close()
        done = touchstone("cache", "stats", "--data", tmp_path)
        assert done.returncode == 2
        assert "the validation cache cannot be used" in done.stderr


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [pipe, endless])
class TestReaders:
    def test_inputs_that_never_end_are_refused(
        self, touchstone: Command, folder: Folder, make: Callable[[Path], None]
    ) -> None:
        make(folder.config)
        done = touchstone("run", "--config", folder.config)
        assert done.returncode == 2 and "not a regular file" in done.stderr
        problems = folder.root / "odd.csv"
        make(problems)
        done = touchstone("pass-at-k", "--problems-csv", problems, "--fixes-csv", problems)
        assert done.returncode == 2 and "not a regular file" in done.stderr
        done = touchstone("compare", "--baseline", problems, "--current", problems)
        assert done.returncode == 2 and "Error" not in done.stderr

    def test_results_that_never_end_are_refused(
        self, touchstone: Command, evaluated: Folder, make: Callable[[Path], None]
    ) -> None:
        make(evaluated.output / "tables" / "pass_at_k" / "more.parquet")
        for command in (["sql", "SELECT 1"], ["tables"], ["export", "pass_at_k"]):
            done = touchstone(*command, "--data", evaluated.output)
            assert done.returncode == 2
            assert "more.parquet: is not a regular file" in done.stderr

    def test_manifests_and_pins_that_never_end_are_named(
        self, touchstone: Command, evaluated: Folder, make: Callable[[Path], None]
    ) -> None:
        (manifest,) = (evaluated.output / "snapshots").glob("2*/manifest.json")
        make(manifest)
        done = touchstone("snapshots", "list", "--data", evaluated.output)
        assert "this snapshot is skipped" in done.stderr
        make(evaluated.output / "snapshots" / "pins.json")
        done = touchstone("snapshots", "list", "--data", evaluated.output)
        assert done.returncode == 2 and "not a regular file" in done.stderr
