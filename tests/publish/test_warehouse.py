"""The warehouse file, read by plain DuckDB: wherever it is, whatever became of the folder it was made in."""

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.conftest import Folder, copy_of, query_here, small_folder
from tests.pipelines.test_run import evaluate
from tests.publish.test_views import rows, write
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation, run
from touchstone.publish.views import table_files
from touchstone.publish.warehouse import Warehouse, build_warehouse, publish_warehouse
from touchstone.tables import TABLES


def ask(warehouse: Path, sql: str) -> list[tuple]:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        return rows(connection, sql)


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """An output folder with tables and a warehouse."""
    home = tmp_path / "original"
    for part, n in (("a", 10), ("b", 4)):
        write(home / "tables", "problem_pass_at_k", part, pl.DataFrame({"model": part, "n": [n], "c": [n // 2]}))
    build_warehouse(home / "warehouse.duckdb", home / "tables", {})
    return home


QUERY = "SELECT model, n, c, pass_at_k(n, c, 1) FROM problem_pass_at_k ORDER BY model"
ANSWER = [("a", 10, 5, 0.5), ("b", 4, 2, 0.5)]


def test_a_copied_folder_answers_for_itself_and_not_for_the_original(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    write(original / "tables", "problem_pass_at_k", "a", pl.DataFrame({"model": "a", "n": [99], "c": [0]}))
    build_warehouse(original / "warehouse.duckdb", original / "tables", {})
    assert ask(copy / "warehouse.duckdb", QUERY) == ANSWER
    assert ask(original / "warehouse.duckdb", QUERY)[0] == ("a", 99, 0, 0.0)


def test_the_file_alone_is_enough_also_by_a_relative_path_and_another_program(original: Path, tmp_path: Path) -> None:
    shutil.copy(original / "warehouse.duckdb", tmp_path / "alone.duckdb")
    shutil.rmtree(original)
    code = f"import duckdb; print(duckdb.connect('alone.duckdb', read_only=True).sql({QUERY!r}).fetchall())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(ANSWER)


def test_types_columns_and_order_are_those_of_the_parquet_files(tmp_path: Path) -> None:
    first = pl.DataFrame({"model": ["b", "a"], "n": [2, 1], "share": [0.1, None], "passed": [True, None]})
    second = pl.DataFrame({"model": ["c"], 'my "odd" column': ["x" * 100_000]})
    write(tmp_path / "tables", "attempts", "one", first)
    write(tmp_path / "tables", "attempts", "two", second)
    build_warehouse(tmp_path / "w.duckdb", tmp_path / "tables", {})
    files = [str(file) for file in table_files(tmp_path / "tables")["attempts"]]
    expected = f"FROM read_parquet({files}, union_by_name = true)"
    assert ask(tmp_path / "w.duckdb", "FROM attempts") == ask(tmp_path / "w.duckdb", expected)
    assert ask(tmp_path / "w.duckdb", "DESCRIBE attempts") == ask(tmp_path / "w.duckdb", f"DESCRIBE {expected}")


def test_long_text_does_not_swell_the_file(tmp_path: Path) -> None:
    texts = [f"line {number}\n" + "resource block\n" * 200 for number in range(2_000)]
    file = write(tmp_path / "tables", "attempts", "m", pl.DataFrame({"oid": map(str, range(2_000)), "fix": texts}))
    build_warehouse(tmp_path / "w.duckdb", tmp_path / "tables", {})
    assert ask(tmp_path / "w.duckdb", "SELECT sum(length(fix)) FROM attempts") == [(sum(map(len, texts)),)]
    assert (tmp_path / "w.duckdb").stat().st_size < file.stat().st_size + 2**20


LEFT_OUT_QUERIES = [
    "FROM attempts",
    "SELECT count(*) FROM attempts",
    "SELECT count(*) FROM attempts WHERE false",
    "FROM attempts LIMIT 0",
    "SELECT a FROM t WHERE a NOT IN (SELECT a FROM attempts)",
    "SELECT a FROM t LEFT JOIN attempts USING (a)",
    "SELECT a FROM t WHERE EXISTS (FROM attempts AS other WHERE other.a > t.a)",
]


def test_a_table_left_out_for_its_size_is_an_error_and_never_an_empty_answer(tmp_path: Path) -> None:
    write(tmp_path / "tables", "attempts", "m", pl.DataFrame({"a": range(1_001)}))
    write(tmp_path / "tables", "t", "t", pl.DataFrame({"a": range(1_000)}))
    made = build_warehouse(tmp_path / "w.duckdb", tmp_path / "tables", {"attempts": 1_001})
    assert made == Warehouse(["t"], {"attempts": 1_001})
    assert ask(tmp_path / "w.duckdb", "SELECT count(*) FROM t") == [(1_000,)]
    told = r"attempts is not in this file \(1,001 rows\): use `touchstone sql`"
    for sql in LEFT_OUT_QUERIES:
        with pytest.raises(duckdb.CatalogException, match=told):
            pytest.fail(f"{sql}: {ask(tmp_path / 'w.duckdb', sql)}")


@pytest.mark.nightly
def test_a_run_leaves_out_the_tables_with_more_rows_than_configured(tmp_path: Path) -> None:
    folder = small_folder(tmp_path)
    folder.configure(publish={"warehouse_max_rows": 3})
    evaluation = Evaluation.load(folder.config)
    run(evaluation)
    rows_of = {name: evaluation.store.scan_published(name).collect().height for name in TABLES}
    left_out = {name for name, count in rows_of.items() if count > 3}
    assert rows_of["attempts"] == 4 and rows_of["sources"] <= 3
    tables = "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
    assert {name for (name,) in ask(folder.output / "warehouse.duckdb", tables)} == TABLES.keys() - left_out
    with pytest.raises(duckdb.CatalogException, match=r"attempts is not in this file \(4 rows\)"):
        ask(folder.output / "warehouse.duckdb", "FROM attempts")


def test_a_run_writes_one_if_it_is_wanted_and_else_removes_the_last(
    finished_with_warehouse: Folder, tmp_path: Path
) -> None:
    folder = copy_of(finished_with_warehouse, tmp_path / "copy")
    folder.configure()
    evaluate(folder)
    assert not list(folder.output.glob("warehouse.duckdb*")) and (folder.output / "tables").is_dir()
    assert "warehouse" in query_here(folder.output / "tables", "SELECT stage FROM run_log")["stage"].to_pylist()


def test_the_last_warehouse_is_linked_while_nothing_changed(original: Path, tmp_path: Path) -> None:
    def publish(number: int, last: Path, made_from: str = "x", left_out: dict[str, int] | None = None) -> Path:
        place = tmp_path / str(number) / "warehouse.duckdb"
        place.parent.mkdir()
        publish_warehouse(place, original / "tables", last, made_from, left_out or {})
        assert ask(place, QUERY) == ANSWER
        return place

    first = publish(1, original / "warehouse.duckdb")
    second = publish(2, first)
    assert first.samefile(second)
    other_input = publish(3, second, made_from="y")
    other_limit = publish(4, other_input, made_from="y", left_out={"attempts": 5})
    with duckdb.connect(str(other_limit)) as somebody:
        somebody.execute("DELETE FROM problem_pass_at_k")
    repaired = publish(5, other_limit, made_from="y", left_out={"attempts": 5})
    repaired.with_name("warehouse.duckdb.json").write_text('{"made_from": 3}')
    unstamped = publish(6, repaired, made_from="y", left_out={"attempts": 5})
    assert len({place.stat().st_ino for place in (second, other_input, other_limit, repaired, unstamped)}) == 5


def test_the_warehouse_is_replaced_even_while_someone_reads_the_last_one(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse.duckdb"
    write(tmp_path / "tables", "t", "x", pl.DataFrame({"a": [1]}))
    build_warehouse(warehouse, tmp_path / "tables", {})
    write(tmp_path / "tables", "u", "x", pl.DataFrame({"a": [2]}))
    with duckdb.connect(str(warehouse), read_only=True) as reader:
        assert build_warehouse(warehouse, tmp_path / "tables", {}).tables == ["t", "u"]
        assert rows(reader, "FROM t") == [(1,)]
    with duckdb.connect(str(warehouse), read_only=True) as reader:
        assert rows(reader, "FROM u") == [(2,)]


def test_a_warehouse_that_cannot_be_built_leaves_the_last_one(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse.duckdb"
    write(tmp_path / "tables", "t", "x", pl.DataFrame({"a": [1]}))
    build_warehouse(warehouse, tmp_path / "tables", {})
    before = warehouse.read_bytes()
    (tmp_path / "tables" / "t" / "x.parquet").write_bytes(b"broken")
    with pytest.raises(TouchstoneError):
        build_warehouse(warehouse, tmp_path / "tables", {})
    assert warehouse.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables", "warehouse.duckdb"]


def test_a_log_left_by_a_killed_process_does_not_break_the_new_warehouse(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse.duckdb"
    write(tmp_path / "tables", "t", "x", pl.DataFrame({"a": [1]}))
    build_warehouse(warehouse, tmp_path / "tables", {})
    killed = (
        "import duckdb, os, sys; connection = duckdb.connect(sys.argv[1]); "
        "connection.execute('CREATE TABLE mine AS SELECT 1'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", killed, warehouse], check=False)
    assert (tmp_path / "warehouse.duckdb.wal").exists()
    build_warehouse(warehouse, tmp_path / "tables", {})
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        assert rows(connection, "FROM t") == [(1,)]
