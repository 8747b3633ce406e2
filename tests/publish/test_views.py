"""Views over real Parquet files, and the SQL macros against the estimator."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.conftest import nightly_but
from touchstone.errors import TouchstoneError
from touchstone.metrics.pass_at_k import pass_at_k_of, pass_hat_k_of
from touchstone.publish.views import create_views
from touchstone.publish.views import macros as statements
from touchstone.storage.files import replacing

ESTIMATORS = {"pass_at_k": pass_at_k_of, "pass_hat_k": pass_hat_k_of}


@pytest.fixture(scope="module")
def macros() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for macro in statements({}):
            connection.execute(macro)
        yield connection


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple]:
    return connection.execute(sql).fetchall()


def write(tables: Path, table: str, part: str, frame: pl.DataFrame) -> Path:
    path = tables / table / f"{part}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path)
    return path


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("pass_at_k(10, 5, 1)", 0.5),
        ("pass_at_k(10, 3, 5)", 0.9166666667),
        ("pass_at_k(200, 13, 100)", 0.9999194972),
        ("pass_at_k(2, 0, 5)", None),
        ("pass_at_k(5, 0, 5)", 0.0),
        ("pass_at_k(5, 5, 1)", 1.0),
        ("pass_at_k(0, 0, 1)", None),
        ("pass_at_k(NULL, 1, 1)", None),
        ("pass_at_k(10, NULL, 1)", None),
        ("pass_at_k(10, 1, NULL)", None),
        ("pass_hat_k(4, 2, 2)", 1 / 6),
        ("pass_hat_k(4, 4, 4)", 1.0),
        ("pass_hat_k(4, 1, 2)", 0.0),
        ("pass_hat_k(4, 4, 5)", None),
        ("pass_hat_k(NULL, 1, 1)", None),
        ("pass_at_k('10', '5', '1')", 0.5),
        ("pass_at_k((SELECT 10), (SELECT 5), 1)", 0.5),
    ],
)
def test_known_values(macros: duckdb.DuckDBPyConnection, call: str, expected: float | None) -> None:
    assert rows(macros, f"SELECT {call}") == [(expected if expected is None else pytest.approx(expected, abs=1e-10),)]


def test_macros_agree_with_the_estimator_on_every_small_case(macros: duckdb.DuckDBPyConnection) -> None:
    cases = [(n, c, k) for n in range(10) for c in range(n + 1) for k in range(1, 12)]
    macros.execute("CREATE OR REPLACE TEMP TABLE cases(n BIGINT, c BIGINT, k BIGINT)")
    macros.executemany("INSERT INTO cases VALUES (?, ?, ?)", cases)
    found = rows(macros, "SELECT n, c, k, pass_at_k(n, c, k), pass_hat_k(n, c, k) FROM cases")
    assert len(found) == len(cases)
    for n, c, k, at, hat in found:
        agree(at, pass_at_k_of(n, c, k))
        agree(hat, pass_hat_k_of(n, c, k))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ESTIMATORS)
def test_macros_agree_with_the_estimator_on_large_cases(macros: duckdb.DuckDBPyConnection, name: str) -> None:
    n = 100_000
    pairs = [*itertools.product([0, 1, 300, n - 300, n - 1, n], [1, 10, 300]), (n // 10, n // 10), (1, n), (n, n)]
    for c, k in pairs:
        agree(rows(macros, f"SELECT {name}({n}, {c}, {k})")[0][0], ESTIMATORS[name](n, c, k))


def test_macros_agree_with_the_estimator_anywhere(macros: duckdb.DuckDBPyConnection) -> None:
    chosen = random.Random(7)
    for _ in range(80):
        n = round(10 ** chosen.uniform(0, 5))
        c, k = chosen.randint(0, n), round(10 ** chosen.uniform(0, 3))
        [(at, hat)] = rows(macros, f"SELECT pass_at_k({n}, {c}, {k}), pass_hat_k({n}, {c}, {k})")
        agree(at, pass_at_k_of(n, c, k))
        agree(hat, pass_hat_k_of(n, c, k))


def agree(found: float | None, expected: float | None) -> None:
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("10, 5, 0", "k must be at least 1, got 0"),
        ("10, 5, -2", "k must be at least 1, got -2"),
        ("10, 11, 1", "there cannot be 11 passes among 10 attempts"),
        ("10, -1, 1", "there cannot be -1 passes among 10 attempts"),
    ],
)
def test_impossible_arguments_are_an_error(
    macros: duckdb.DuckDBPyConnection, name: str, arguments: str, reason: str
) -> None:
    with pytest.raises(duckdb.Error, match=reason):
        rows(macros, f"SELECT {name}({arguments})")


def test_macros_take_columns_of_any_name_and_aggregates(macros: duckdb.DuckDBPyConnection) -> None:
    assert rows(macros, "SELECT pass_at_k(pair, i, 1) FROM (VALUES (10, 5), (4, 1)) t(pair, i)") == [(0.5,), (0.25,)]
    assert rows(macros, "SELECT pass_at_k(k, n, c) FROM (VALUES (10, 5, 1)) t(k, n, c)") == [(0.5,)]
    passes = "(VALUES (true), (false), (false), (false)) t(passed)"
    assert rows(macros, f"SELECT pass_at_k(count(*), sum(passed::INT), 2) FROM {passes}") == [(pytest.approx(0.5),)]


def test_a_view_unites_files_with_differing_columns(tmp_path: Path) -> None:
    write(tmp_path, "attempts", "b", pl.DataFrame({"model": ["b"], "extra": [7]}))
    write(tmp_path, "attempts", "a", pl.DataFrame({"note": ["x"], "model": ["a"]}))
    write(tmp_path, "problems", "problems", pl.DataFrame({"oid": ["p"]}))
    with duckdb.connect() as connection:
        assert create_views(connection, tmp_path) == ["attempts", "problems"]
        found = rows(connection, "SELECT model, note, extra FROM attempts")
    assert found == [("a", "x", None), ("b", None, 7)]


def test_only_tables_with_finished_files_become_views(tmp_path: Path) -> None:
    write(tmp_path, "order", "part", pl.DataFrame({"a": [1]}))
    write(tmp_path, "order", ".unfinished", pl.DataFrame({"a": [2]}))
    write(tmp_path, "only_hidden", ".part", pl.DataFrame({"a": [3]}))
    write(tmp_path, 'x"; DROP VIEW "order', "part", pl.DataFrame({"a": [4]}))
    write(tmp_path, "Upper", "part", pl.DataFrame({"a": [5]}))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.parquet").write_bytes(b"")
    with duckdb.connect() as connection:
        assert create_views(connection, tmp_path) == ["order"]
        assert rows(connection, 'SELECT a FROM "order"') == [(1,)]


def test_views_are_replaced(tmp_path: Path) -> None:
    write(tmp_path, "t", "one", pl.DataFrame({"a": [1]}))
    with duckdb.connect() as connection:
        create_views(connection, tmp_path)
        write(tmp_path, "t", "two", pl.DataFrame({"b": [2]}))
        create_views(connection, tmp_path)
        assert rows(connection, "SELECT a, b FROM t") == [(1, None), (None, 2)]


@pytest.mark.parametrize(
    "folder",
    nightly_but(
        ["it's", "a[b]c", "**", "a{b,c}", "run=5"],
        ["it's", "a[b]c", "a[b", "a*b", "**", "a?b", "a{b,c}", "back\\slash", "run=5", "sp ace", "ünï", "a]b;--"],
    ),
)
def test_odd_paths(tmp_path: Path, folder: str) -> None:
    # Neighbours that an unescaped pattern would take for the folder.
    for number, name in enumerate(["abc", "ab", "aXb", folder]):
        write(tmp_path / name / "tables", "t", "part", pl.DataFrame({"a": [number]}))
    with duckdb.connect() as connection:
        assert create_views(connection, tmp_path / folder / "tables") == ["t"]
        assert rows(connection, "FROM t") == [(3,)]


def test_odd_file_names(tmp_path: Path) -> None:
    for number, name in enumerate(["gpt-4[1]", "gpt-41", "a*", "it's", "ü?"]):
        write(tmp_path, "t", name, pl.DataFrame({"a": [number]}))
    with duckdb.connect() as connection:
        create_views(connection, tmp_path)
        assert sorted(rows(connection, "FROM t")) == [(0,), (1,), (2,), (3,), (4,)]


def test_no_tables_folder_means_no_views(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        assert create_views(connection, tmp_path / "nowhere") == []


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, "t", "good", pl.DataFrame({"a": [1]}))
    (tmp_path / "t" / "broken.parquet").write_bytes(b"not parquet at all")
    with duckdb.connect() as connection, pytest.raises(TouchstoneError, match=r"table 't' cannot be read: .*broken"):
        create_views(connection, tmp_path)


def test_replacing_keeps_the_old_file_when_the_block_fails(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target) as scratch:
        scratch.write_text("half")
        raise RuntimeError
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"target": "old"}
