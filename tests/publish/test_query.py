"""People's SQL: what it may read, what it is refused, and what stops it."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.conftest import Command
from tests.peak_memory import run_measured
from touchstone.errors import TouchstoneError
from touchstone.publish.query import (
    DEFAULT_LIMITS,
    QueryLimits,
    _failure,
    _unique_names,
    list_tables,
    locked_connection,
    require_select,
    run_query,
)
from touchstone.publish.result_formats import iter_rows

GIB = 2**30


def make_tables(root: Path) -> Path:
    """Two tables, and beside them files that no query may read."""
    made = root / "out" / "tables"
    (made / "attempts").mkdir(parents=True)
    (made / "problem_pass_at_k").mkdir()
    pl.DataFrame({"model": ["m"], "cost": [0.5]}).write_parquet(made / "attempts" / "m.parquet")
    pl.DataFrame({"model": ["o"], "note": ["="]}).write_parquet(made / "attempts" / "o.parquet")
    pl.DataFrame({"n": [10, 4], "c": [5, 1]}).write_parquet(made / "problem_pass_at_k" / "x.parquet")
    pl.DataFrame({"secret": ["hidden treasure"]}).write_parquet(root / "outside.parquet")
    (root / "secret.txt").write_text("hidden treasure")
    return made


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return make_tables(tmp_path)


@dataclass
class Locked:
    """Tables with the connection that a query gets, and a look at whether any file changed."""

    tables: Path
    connection: duckdb.DuckDBPyConnection

    def place(self, sql: str) -> str:
        return sql.replace("{tables}", str(self.tables)).replace("{outside}", str(self.tables.parent.parent))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = fingerprint(self.tables.parent.parent)
        yield
        assert fingerprint(self.tables.parent.parent) == before


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    tables = make_tables(tmp_path_factory.mktemp("locked"))
    with locked_connection(tables, GIB) as connection:
        yield Locked(tables, connection)


def fingerprint(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def refusal(tables: Path, sql: str, **limits: float) -> str:
    """The one line that a query is refused with, after a look that nothing changed."""
    before = fingerprint(tables.parent.parent)
    with pytest.raises(TouchstoneError) as refused:
        run_query(tables, sql, limits=QueryLimits(**limits))
    assert fingerprint(tables.parent.parent) == before
    line = str(refused.value)
    assert "\n" not in line and "Traceback" not in line and "hidden treasure" not in line
    return line


def test_a_select_over_the_views(tables: Path) -> None:
    result = run_query(tables, "SELECT model, cost, note FROM attempts ORDER BY model;")
    assert result.to_pylist() == [{"model": "m", "cost": 0.5, "note": None}, {"model": "o", "cost": None, "note": "="}]


MANY = "SELECT i, 'text ' || i AS t, i / 7 AS x FROM range({}) AS r(i)"
COMMAND = "import sys; from touchstone.cli.main import main; sys.argv[1:1] = ['sql']; main()"


@pytest.mark.nightly
@pytest.mark.parametrize("fmt", ["csv", "json", "markdown", "parquet"])
def test_a_result_is_written_without_being_held_in_memory(tables: Path, tmp_path: Path, fmt: str) -> None:
    peaks = []
    for rows in (1_000, 600_000):
        options = ["--data", str(tables.parent), "--format", fmt, "--save-to", str(tmp_path / f"{rows}.{fmt}")]
        peaks.append(run_measured(COMMAND, MANY.format(rows), *options)[1])
    assert peaks[1] - peaks[0] < 100, peaks


@pytest.mark.services
def test_a_large_result_waits_in_a_file_and_long_ones_are_shown_in_part(
    touchstone: Command, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("touchstone.publish.query._IN_MEMORY", 1_000)
    monkeypatch.setattr("touchstone.cli.results._MOST_ROWS", 30)
    asked = ("sql", MANY.format(50_000), "--data", tables.parent, "--format")
    lines = touchstone(*asked, "csv").stdout.splitlines()
    assert len(lines) == 50_001 and lines[-1] == "49999,text 49999,7142.714285714285"
    records = json.loads(touchstone(*asked, "json").stdout)
    assert len(records) == 50_000 and records[-1]["t"] == "text 49999"
    shown = touchstone(*asked, "table").stdout
    assert "text 29" in shown and "text 30" not in shown and "30 of 50,000 rows; --format csv prints all" in shown


@pytest.mark.nightly
def test_the_macros_are_there_and_duplicate_names_are_told_apart(tables: Path) -> None:
    sql = "SELECT pass_at_k(n, c, 1) AS p, pass_hat_k(n, c, 1) AS p, sum(n) OVER () AS p FROM problem_pass_at_k"
    result = run_query(tables, sql)
    assert result.column_names == ["p", "p_1", "p_2"]
    assert list(iter_rows(result)) == [(0.5, 0.5, Decimal(14)), (0.25, 0.25, Decimal(14))]


@pytest.mark.nightly
def test_a_folder_with_an_odd_name_can_be_queried_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "it's [a] *? run=5" / "tables"
    (folder / "t").mkdir(parents=True)
    pl.DataFrame({"a": [1]}).write_parquet(folder / "t" / "x.parquet")
    (tmp_path / "duckdb.py").write_text("raise SystemExit('the wrong duckdb')")
    monkeypatch.chdir(tmp_path)
    assert run_query(folder.relative_to(tmp_path), "FROM t").to_pylist() == [{"a": 1}]


@pytest.mark.nightly
def test_an_empty_result_keeps_its_columns(tables: Path) -> None:
    result = run_query(tables, "SELECT model FROM attempts WHERE false")
    assert (result.num_rows, result.column_names) == (0, ["model"])


READING = [
    "FROM attempts",
    "; SELECT 1;",
    "/* why */ SELECT 1 -- because",
    "VALUES (1)",
    "WITH x AS (SELECT 1) FROM x UNION ALL SELECT 2 EXCEPT SELECT 3",
    "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3) FROM r",
    "SELECT (SELECT max(n) FROM problem_pass_at_k), unnest([1, 2]) FROM range(3)",
    "SELECT list_transform([1], lambda x: x + 1) FROM generate_series(1, 2)",
    "PIVOT problem_pass_at_k ON c IN (1, 5) USING max(n)",
    "UNPIVOT problem_pass_at_k ON n, c",
    "DESCRIBE attempts",
    "SUMMARIZE attempts",
    "SHOW TABLES",
    "EXPLAIN SELECT 1",
    "explain analyze FROM attempts",
    "SELECT " + " + ".join(["1"] * 200),
]


@pytest.mark.parametrize("sql", READING)
def test_what_only_reads_is_allowed(locked: Locked, sql: str) -> None:
    assert locked.connection.sql(require_select(locked.connection, sql)).fetchall()


def attack(sql: str, reason: str) -> object:
    return pytest.param(sql, reason, id=sql[:70])


ATTACKS = [
    attack("", "the query is empty"),
    attack("-- nothing", "the query is empty"),
    attack("SELECT 1; SELECT 2", "only one SELECT is allowed, got 2 statements"),
    attack("SELECT 1; COPY attempts TO '{tables}/w.csv'", "got 2 statements"),
    attack("COPY (SELECT 1) TO '{outside}/w.csv'", "only one SELECT is allowed, got COPY"),
    attack("COPY (SELECT 1) TO '{tables}/w.csv'", "got COPY"),
    attack("COPY (SELECT 1) TO '{tables}/attempts/m.parquet'", "got COPY"),
    attack("EXPLAIN ANALYZE COPY (SELECT 1) TO '{tables}/w.csv'", "got COPY"),
    attack("EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{tables}/w.csv'", "got EXPLAIN with options"),
    attack("EXPLAIN/**/ANALYZE/**/COPY (SELECT 1) TO '{tables}/w.csv'", "got EXPLAIN with options"),
    attack("EXPLAIN ANALYZE INSERT INTO attempts VALUES ('x', 1, 'y')", "got INSERT"),
    attack("WITH x AS (COPY (SELECT 1) TO '{tables}/w.csv') SELECT 1", "got COPY inside it"),
    attack("WITH x AS (COPY (SELECT 1) TO '{tables}/attempts/m.parquet') SELECT 1", "got COPY inside it"),
    attack("EXPLAIN ANALYZE WITH x AS (COPY (SELECT 1) TO '{tables}/w.csv') SELECT 1", "got COPY inside it"),
    attack("SELECT (WITH x AS (COPY (SELECT 1) TO '{tables}/w.csv') SELECT 1)", "got COPY inside it"),
    attack("WITH x AS (INSERT INTO attempts VALUES ('x') RETURNING *) FROM x", "got INSERT inside it"),
    attack("WITH x AS (DELETE FROM attempts RETURNING *) FROM x", "got DELETE inside it"),
    attack("FROM query('FROM attempts')", "table function query is not allowed"),
    attack("FROM system.main.QUERY('SELECT 1')", "table function query is not allowed"),
    attack(
        "FROM json_execute_serialized_sql(json_serialize_sql("
        "'WITH x AS (COPY (SELECT 1) TO ''{tables}/w.csv'') SELECT 1'))",
        "json_execute_serialized_sql is not allowed",
    ),
    attack("SELECT * FROM attempts, LATERAL (FROM read_text('{outside}/secret.txt'))", "read_text is not allowed"),
    attack("SELECT * FROM read_text('/etc/passwd')", "read_text is not allowed"),
    attack("SELECT * FROM read_csv('/etc/passwd')", "read_csv is not allowed"),
    attack("SELECT * FROM glob('/etc/*')", "glob is not allowed"),
    attack("SELECT * FROM read_parquet('{outside}/outside.parquet')", "read_parquet is not allowed"),
    attack("SELECT * FROM enable_logging(storage = 'file', storage_path = '{tables}/l')", "enable_logging is not"),
    attack("SELECT * FROM '/etc/passwd'", "/etc/passwd does not exist"),
    attack("SELECT * FROM '{outside}/secret.txt'", "secret.txt does not exist"),
    attack("SELECT * FROM '{outside}/outside.parquet'", "Permission Error"),
    attack("SELECT * FROM '{tables}/../../outside.parquet'", "Permission Error"),
    attack("SELECT * FROM 'https://example.com/x.parquet'", "Permission Error"),
    attack("SELECT * FROM python_variable", "python_variable does not exist"),
    attack("ATTACH '{tables}/new.duckdb'", "got ATTACH"),
    attack("INSTALL httpfs", "got LOAD"),
    attack("LOAD httpfs", "got LOAD"),
    attack("SET memory_limit = '100GB'", "got SET"),
    attack("RESET enable_external_access", "got SET"),
    attack("PRAGMA enable_profiling", "got PRAGMA"),
    attack("CALL enable_logging()", "got CALL"),
    attack("CREATE TABLE x AS SELECT 1", "got CREATE"),
    attack("INSERT INTO attempts VALUES ('x', 1, 'y')", "got INSERT"),
    attack("DROP VIEW attempts", "got DROP"),
    attack("EXPORT DATABASE '{tables}/e'", "got EXPORT"),
    attack("PREPARE p AS SELECT 1", "got PREPARE"),
    attack("PIVOT attempts ON model USING count(*)", "PIVOT must name its values"),
    attack("SELECT getenv('HOME')", "getenv does not exist"),
]


@pytest.mark.parametrize(("sql", "reason"), ATTACKS)
def test_attacks_are_refused(locked: Locked, sql: str, reason: str) -> None:
    python_variable = pl.DataFrame({"a": [1]}).to_arrow()
    with locked.unchanged(), pytest.raises((TouchstoneError, duckdb.Error)) as refused:
        locked.connection.sql(require_select(locked.connection, locked.place(sql))).fetchall()
    assert reason in str(refused.value)
    assert python_variable.num_rows == 1


# What the connection refuses by itself, were a statement ever to slip past the look at its parse tree.
@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_text('/etc/passwd')",
        "FROM read_csv('/etc/passwd')",
        "FROM glob('/etc/*')",
        "FROM glob('{tables}/*/*')",
        "FROM read_parquet('{outside}/outside.parquet')",
        "COPY (SELECT 1) TO '{outside}/w.csv'",
        "COPY (SELECT 1) TO '{tables}/w.csv'",
        "WITH x AS (COPY (SELECT 1) TO '{tables}/attempts/w.parquet') SELECT 1",
        "ATTACH '{tables}/new.duckdb'",
        "LOAD '{outside}/secret.txt'",
        "INSTALL httpfs",
        "CALL enable_logging(storage = 'file', storage_path = '{tables}/l')",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "SET lock_configuration = false",
        "SET temp_directory = '{tables}/tmp'",
        "SET python_enable_replacements = true",
        "EXPORT DATABASE '{tables}/e'",
    ],
)
def test_the_locked_connection_refuses_by_itself(locked: Locked, sql: str) -> None:
    with locked.unchanged(), pytest.raises(duckdb.Error):
        locked.connection.execute(locked.place(sql)).fetchall()


def test_the_settings_are_the_tight_ones(locked: Locked) -> None:
    names = [
        "allow_community_extensions",
        "allow_extension_repositories",
        "allow_persistent_secrets",
        "allow_unsigned_extensions",
        "autoinstall_known_extensions",
        "autoload_known_extensions",
        "enable_external_access",
        "lock_configuration",
        "memory_limit",
        "python_enable_replacements",
        "temp_directory",
    ]
    found = locked.connection.execute("SELECT name, value FROM duckdb_settings()").fetchall()
    assert {name: value for name, value in found if name in names} == dict.fromkeys(names, "false") | {
        "allow_extension_repositories": "forbidden",
        "lock_configuration": "true",
        "memory_limit": "1.0 GiB",
        "temp_directory": "",
    }


def test_the_process_itself_may_not_write_a_file(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from touchstone.publish import query; query._limit_process(query.QueryLimits()); "
        "pathlib.Path(sys.argv[1]).write_text('x')"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "file"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "File too large" in done.stderr
    assert (tmp_path / "file").read_text() == ""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sql", "line"),
    [
        (
            "SELECT modle FROM attempts",
            'Binder Error: Referenced column "modle" not found in FROM clause! Candidate bindings: "model", "note"',
        ),
        ("SELECT 1\nFROM FROM", 'Parser Error: syntax error at or near "FROM" (line 2)'),
        ("SELECT pass_at_k(n, c, 0) FROM problem_pass_at_k", "Invalid Input Error: k must be at least 1, got 0"),
    ],
)
def test_sql_errors_are_one_line_with_the_hint(tables: Path, sql: str, line: str) -> None:
    assert refusal(tables, sql) == line


@pytest.mark.nightly
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 4000000000)",
        "SELECT length(repeat('x', 4000000000))",
        pytest.param("WITH a AS (" * 50, id="nested"),
    ],
)
def test_memory_that_duckdb_does_not_count_is_bounded_too(tables: Path, sql: str) -> None:
    assert refusal(tables, sql, seconds=60) == "the query needed more than 2 GiB of memory"


@pytest.mark.services
def test_the_memory_limit_holds(tables: Path) -> None:
    sql = "SELECT i, count(*) FROM range(50_000_000) t(i) GROUP BY i"
    assert refusal(tables, sql, memory=100 * 2**20, seconds=60) == "the query needed more than 100 MiB of memory"


@pytest.mark.nightly
def test_the_result_is_bounded_as_it_flows(tables: Path) -> None:
    line = refusal(tables, "SELECT i, i, i FROM range(500_000_000) t(i)", memory=64 * 2**20, seconds=60)
    assert line == "the result is larger than 64 MiB; select fewer rows or columns"


def test_an_endless_query_ends_in_time(tables: Path) -> None:
    sql = "SELECT sum(hash(a, b)) FROM range(100_000_000) x(a), range(100_000_000) y(b)"
    assert refusal(tables, sql, seconds=1) == "the query took longer than 1 s"


@pytest.mark.nightly
def test_a_query_nested_without_end_is_one_line(tables: Path) -> None:
    assert "expression depth limit" in refusal(tables, "SELECT " + " + ".join(["1"] * 20_000))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later Pythons read JSON as deep as DuckDB nests it")
def test_a_query_nested_deeper_than_it_can_be_checked_is_refused(locked: Locked) -> None:
    with pytest.raises(TouchstoneError, match="nested too deeply"):
        require_select(locked.connection, "SELECT " + " + ".join(["1"] * 900))


@pytest.mark.nightly
def test_text_that_is_not_unicode_is_no_crash(tables: Path) -> None:
    assert run_query(tables, "SELECT '\udcff' AS a").to_pylist() == [{"a": "?"}]


@pytest.mark.parametrize("ask", [list_tables, lambda folder: run_query(folder, "SELECT 1")])
@pytest.mark.parametrize(
    "make", [lambda folder: None, Path.mkdir, lambda folder: (folder / "empty").mkdir(parents=True)]
)
def test_no_tables(tmp_path: Path, ask: Callable[[Path], object], make: Callable[[Path], object]) -> None:
    folder = tmp_path / "tables"
    make(folder)
    with pytest.raises(TouchstoneError) as refused:
        ask(folder)
    assert str(refused.value) == (
        f"{folder}: no tables here; run `touchstone run` first or pass the output folder as --data"
    )


def test_a_broken_table_is_one_line(tables: Path) -> None:
    (tables / "attempts" / "broken.parquet").write_bytes(b"not parquet")
    assert refusal(tables, "SELECT 1").startswith("table 'attempts' cannot be read: ")


def test_list_tables(tables: Path) -> None:
    assert list_tables(tables) == [
        ("attempts", 2, [("model", "VARCHAR"), ("cost", "DOUBLE"), ("note", "VARCHAR")]),
        ("problem_pass_at_k", 2, [("n", "BIGINT"), ("c", "BIGINT")]),
    ]


MEMORY = "the query needed more than 2 GiB of memory"


@pytest.mark.parametrize(
    ("code", "stderr", "message"),
    [
        (4, "", MEMORY),
        (-signal.SIGKILL, "", MEMORY),
        (-signal.SIGABRT, "terminate called after throwing an instance of 'std::bad_alloc'", MEMORY),
        (-signal.SIGSEGV, "", "the query crashed DuckDB (SIGSEGV); simplify it, or split it into several"),
        (-signal.SIGABRT, "", "the query crashed DuckDB (SIGABRT); simplify it, or split it into several"),
        (3, "warning\nParser Error: x\n", "Parser Error: x"),
        (1, "", "the query could not be started: no reason given"),
    ],
)
def test_only_what_was_memory_is_told_as_memory(code: int, stderr: str, message: str) -> None:
    assert _failure(code, stderr, DEFAULT_LIMITS) == message


def test_equal_names_are_numbered_also_if_there_are_many() -> None:
    """Comparing every name with all others would take hours here."""
    many = 50_000
    named = _unique_names(["a", "a_1", *["a"] * many])
    assert named[:5] == ["a", "a_1", "a_2", "a_3", "a_4"]
    assert len(set(named)) == many + 2
