"""People's own SQL over the tables: one SELECT that can read the tables, and nothing else.

Four walls stand around it. The statement's parse tree must be a SELECT all the way down. The connection may
open the tables' own files, and its settings are locked. The process may not grow a file, nor its memory. And
it is ended when its time is over. What the tables look like in SQL belongs in `touchstone.publish.views`.
"""

import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import duckdb
import pyarrow as pa

from touchstone.errors import TouchstoneError
from touchstone.publish.macros import sql_text
from touchstone.publish.views import create_views, one_line, pattern, require_tables, table_files

_GIB = 2**30
_REFUSED, _OUT_OF_MEMORY = 3, 4

# DuckDB's memory_limit does not count everything (`repeat('x', 4000000000)` passes it by), so the process
# has a limit too. The room above is address space that libraries and thread stacks reserve and hardly touch.
_HEADROOM = 2 * _GIB
_HEADROOM_PER_THREAD = _GIB // 16
_THREADS = min(os.cpu_count() or 1, 8)

_BATCH_ROWS = 20_000

# A CTE may hold INSERT, UPDATE, DELETE or COPY … TO, and the whole still counts as a SELECT statement.
_READING_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})

# `query` and `json_execute_serialized_sql` run SQL from a text, which no look at the parse tree would find.
_TABLE_FUNCTIONS = frozenset(
    {
        "duckdb_columns",
        "duckdb_functions",
        "duckdb_tables",
        "duckdb_views",
        "generate_series",
        "histogram",
        "histogram_values",
        "json_each",
        "json_tree",
        "pragma_table_info",
        "pragma_version",
        "range",
        "repeat",
        "unnest",
    }
)

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "temp_directory": "",
    "threads": _THREADS,
    "arrow_large_buffer_size": True,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_unsigned_extensions": False,
    "allow_extension_repositories": "forbidden",
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
}

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s+)?(?![\s(])", re.IGNORECASE)


@dataclass(frozen=True)
class QueryLimits:
    """What one query may use: bytes of memory, which also bound its result, and seconds on the clock."""

    memory: int = 2 * _GIB
    seconds: float = 300.0


DEFAULT_LIMITS = QueryLimits()


class TableListing(NamedTuple):
    """A table as it can be queried: its name, how many rows it has, and its columns with their types."""

    name: str
    rows: int
    columns: list[tuple[str, str]]


def run_query(tables_dir: Path, sql: str, *, limits: QueryLimits = DEFAULT_LIMITS) -> pa.Table:
    """The result of one SELECT over the tables. Whatever goes wrong is a TouchstoneError of one line."""
    require_tables(tables_dir)
    # Bytes from the command line that are not UTF-8 arrive as surrogates, which DuckDB does not take.
    text = sql.encode(errors="replace").decode()
    request = json.dumps({"tables_dir": str(tables_dir.resolve()), "sql": text, "limits": asdict(limits)})
    try:
        # -P keeps the working folder, where anyone may have left a duckdb.py, off the import path.
        worker = subprocess.run(
            [sys.executable, "-P", "-m", "touchstone.publish.query"],
            input=request.encode(),
            capture_output=True,
            timeout=limits.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TouchstoneError(f"the query took longer than {limits.seconds:g} s") from None
    if worker.returncode != 0:
        raise TouchstoneError(_failure(worker.returncode, worker.stderr.decode(errors="replace"), limits))
    return _with_unique_names(pa.ipc.open_stream(worker.stdout).read_all())


def list_tables(tables_dir: Path) -> list[TableListing]:
    """Every table with its rows and columns, by name."""
    require_tables(tables_dir)
    with duckdb.connect() as connection:
        return [_listing(connection, name) for name in create_views(connection, tables_dir)]


def locked_connection(tables_dir: Path, memory: int) -> duckdb.DuckDBPyConnection:
    """A connection that sees the tables, may open their files only, and can no longer be reconfigured."""
    connection = duckdb.connect(config={**_SETTINGS, "memory_limit": f"{memory}B"})
    create_views(connection, tables_dir)
    # Files rather than their folder: what may be opened may be written too, and so there is no new name to write to.
    # DuckDB asks for each twice, first as the pattern that the view holds and then as the file it found.
    files = [file for files in table_files(tables_dir).values() for file in files]
    allowed = sorted({sql_text(name) for file in files for name in (str(file), pattern(file))})
    connection.execute(f"SET allowed_paths = [{', '.join(allowed)}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def checked(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The one statement in the text, if all that it does is read."""
    statements = connection.extract_statements(sql)
    if not statements:
        raise TouchstoneError("the query is empty; give one SELECT")
    if len(statements) > 1:
        raise TouchstoneError(f"only one SELECT is allowed, got {len(statements)} statements")
    text, kind = statements[0].query, statements[0].type
    if kind == duckdb.StatementType.EXPLAIN:
        # EXPLAIN ANALYZE runs what it explains.
        prefix = _EXPLAIN.match(text)
        if prefix is None:
            raise TouchstoneError("only one SELECT is allowed, got EXPLAIN with options")
        return prefix[0] + checked(connection, text[prefix.end() :])
    if kind == duckdb.StatementType.MULTI:
        raise TouchstoneError("PIVOT must name its values: PIVOT … ON column IN (…)")
    if kind != duckdb.StatementType.SELECT:
        raise TouchstoneError(f"only one SELECT is allowed, got {kind.name}")
    _require_reading_only(connection, text)
    return text


def _require_reading_only(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    nodes: list[dict[str, Any]] = []

    def remember(node: dict[str, Any]) -> dict[str, Any]:
        nodes.append(node)
        return node

    # fetchall: DuckDB starts nothing else on the connection while a result is not read to its end.
    [(serialized,)] = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    try:
        tree = json.loads(serialized, object_hook=remember)
    except RecursionError:
        raise TouchstoneError("the query is nested too deeply") from None
    if tree.get("error", True) or len(tree["statements"]) != 1:
        raise TouchstoneError(one_line(tree.get("error_message", "the query cannot be checked")))
    for node in nodes:
        kind = str(node.get("type"))
        if kind.endswith("_NODE") and kind not in _READING_NODES:
            raise TouchstoneError(f"only one SELECT is allowed, got {kind.split('_')[0]} inside it")
        if kind == "TABLE_FUNCTION" and (name := node["function"]["function_name"].lower()) not in _TABLE_FUNCTIONS:
            raise TouchstoneError(f"the table function {name} is not allowed; query the tables by their names")


def _listing(connection: duckdb.DuckDBPyConnection, name: str) -> TableListing:
    [(rows,)] = connection.execute(f'SELECT count(*) FROM "{name}"').fetchall()
    columns = connection.execute(f'DESCRIBE "{name}"').fetchall()
    return TableListing(name, rows, [(column, kind) for column, kind, *_ in columns])


def _failure(code: int, stderr: str, limits: QueryLimits) -> str:
    if code == _OUT_OF_MEMORY or code < 0:
        return f"the query needed more than {_size(limits.memory)} of memory"
    last = (stderr.strip().splitlines() or ["no reason given"])[-1]
    return last if code == _REFUSED else f"the query could not be started: {last}"


def _size(count: int) -> str:
    return f"{count / _GIB:.3g} GiB" if count >= _GIB else f"{count / 2**20:.4g} MiB"


def _with_unique_names(table: pa.Table) -> pa.Table:
    """`SELECT 1 AS a, 2 AS a` has two columns a; the second becomes a_1, as DuckDB does in a table."""
    names: list[str] = []
    for name in table.column_names:
        candidates = (f"{name}_{number}" for number in range(1, len(table.column_names) + 1))
        names.append(name if name not in names else next(new for new in candidates if new not in names))
    return table.rename_columns(names)


def _work() -> int:
    """The process of its own: a request as JSON comes in, an Arrow stream or one line about it goes out."""
    request = json.load(sys.stdin)
    limits = QueryLimits(**request["limits"])
    # Whatever a library prints must not end up inside the stream.
    with os.fdopen(os.dup(1), "wb") as results:
        os.dup2(2, 1)
        _limit_process(limits)
        try:
            _answer(Path(request["tables_dir"]), request["sql"], limits, results)
        except TouchstoneError as error:
            return _refuse(str(error))
        except Exception as error:
            return _OUT_OF_MEMORY if _is_out_of_memory(error) else _refuse(_with_line(str(error), request["sql"]))
    return 0


def _limit_process(limits: QueryLimits) -> None:
    _cap(resource.RLIMIT_AS, limits.memory + _HEADROOM + _THREADS * _HEADROOM_PER_THREAD)
    _cap(resource.RLIMIT_FSIZE, 0)
    _cap(resource.RLIMIT_CORE, 0)
    # The parent ends the process in time; this is for the case that the parent itself was killed.
    signal.alarm(math.ceil(limits.seconds) + 5)


def _cap(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    # Not every system knows every limit; the other walls still stand.
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (bound, bound))


def _answer(tables_dir: Path, sql: str, limits: QueryLimits, results: IO[bytes]) -> None:
    with closing(locked_connection(tables_dir, limits.memory)) as connection:
        reader = connection.sql(checked(connection, sql)).to_arrow_reader(_BATCH_ROWS)
        size = 0
        with pa.ipc.new_stream(results, reader.schema) as stream:
            for batch in reader:
                size += batch.nbytes
                if size > limits.memory:
                    raise TouchstoneError(f"the result is larger than {_size(limits.memory)}; ask for less of it")
                stream.write_batch(batch)


def _is_out_of_memory(error: Exception) -> bool:
    # Once rows flow through Arrow, DuckDB's error arrives as an OSError with the same text.
    return isinstance(error, MemoryError) or "Out of Memory Error" in str(error) or "bad_alloc" in str(error)


def _with_line(message: str, sql: str) -> str:
    line = re.search(r"^LINE (\d+):", message, re.MULTILINE)
    return one_line(message) + (f" (line {line[1]})" if line and "\n" in sql.strip() else "")


def _refuse(message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr, flush=True)
    return _REFUSED


if __name__ == "__main__":
    # Straight out: what a library prints or trips over while Python shuts down is no part of the answer.
    os._exit(_work())
