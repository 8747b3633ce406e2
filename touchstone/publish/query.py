"""Run a user's SQL: one SELECT that can read the tables of a run and nothing else.

Four layers of defence. The parse tree must consist of SELECTs only. The connection may open only the files of the
tables, and its settings are locked. The query runs in a process that can write no file and has a memory limit. That
process is killed when its time is up. The views over the tables belong in `touchstone.publish.views`.
"""

import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from touchstone.errors import TouchstoneError
from touchstone.publish.views import create_views, one_line, pattern, require_tables, sql_text, table_files

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_GIB = 2**30
_REFUSED, _OUT_OF_MEMORY = 3, 4

# DuckDB's memory_limit does not cover everything (`repeat('x', 4000000000)` escapes it), so the process has a limit
# too. The headroom is address space that libraries and thread stacks reserve but hardly use.
_HEADROOM = 2 * _GIB
_HEADROOM_PER_THREAD = _GIB // 16
_THREADS = min(os.cpu_count() or 1, 8)

_BATCH_ROWS = 20_000
# A larger result is kept in a temporary file until it is read.
_IN_MEMORY = 32 * 2**20
_COPIED_AT_ONCE = 2**20

# A CTE may contain INSERT, UPDATE, DELETE or COPY … TO; DuckDB still reports the statement as a SELECT.
_READING_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})

# An allowlist: `query` and `json_execute_serialized_sql` run SQL from a string, which the parse tree does not show.
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
    """Limits of one query: bytes of memory, which also bound the size of its result, and seconds of wall time."""

    memory: int = 2 * _GIB
    seconds: float = 300.0


DEFAULT_LIMITS = QueryLimits()


def run_query(tables_dir: Path, sql: str, *, limits: QueryLimits = DEFAULT_LIMITS) -> "pa.Table":
    """Run one SELECT over the tables. Every failure is a TouchstoneError of one line."""
    with open_query(tables_dir, sql, limits=limits) as result:
        return result.read_all()


@contextmanager
def open_query(tables_dir: Path, sql: str, *, limits: QueryLimits = DEFAULT_LIMITS) -> Iterator["pa.RecordBatchReader"]:
    """Run one SELECT over the tables, whose result is then read batch by batch: it may be larger than memory.

    It is complete before the first batch is read, so that nothing is written of a query that fails. Until then it is
    in a temporary file.
    """
    import pyarrow as pa

    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as answer:
        _ask(tables_dir, sql, limits, answer)
        answer.seek(0)
        # DuckDB is the worker's alone: this process only reads what it made.
        with pa.ipc.open_stream(answer) as stream:
            fields = zip(_unique_names(stream.schema.names), stream.schema.types, strict=True)
            schema = pa.schema(list(fields))
            batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in stream)
            yield pa.RecordBatchReader.from_batches(schema, batches)


def _ask(tables_dir: Path, sql: str, limits: QueryLimits, answer: IO[bytes]) -> None:
    """Have a process of its own run the query, and write what it answers."""
    require_tables(tables_dir)
    # Command-line bytes that are not UTF-8 arrive as surrogates, which DuckDB rejects.
    text = sql.encode(errors="replace").decode()
    request = json.dumps({"tables_dir": str(tables_dir.resolve()), "sql": text, "limits": asdict(limits)})
    # -P keeps the working directory off the import path: it may contain a duckdb.py.
    command = [sys.executable, "-P", "-m", "touchstone.publish.query"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as worker, ThreadPoolExecutor(1) as aside:
        assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
        said = aside.submit(worker.stderr.read)
        in_time = threading.Timer(limits.seconds, worker.kill)
        in_time.start()
        try:
            with suppress(BrokenPipeError), worker.stdin as question:
                question.write(request.encode())
            shutil.copyfileobj(worker.stdout, answer, _COPIED_AT_ONCE)
            code = worker.wait()
        except OSError as error:
            raise TouchstoneError(f"the result does not fit into {tempfile.gettempdir()} ({error.strerror})") from None
        finally:
            worker.kill()
            is_late = not in_time.is_alive()
            in_time.cancel()
        if is_late and code == -signal.SIGKILL:
            raise TouchstoneError(f"the query took longer than {limits.seconds:g} s")
        if code != 0:
            raise TouchstoneError(_failure(code, said.result().decode(errors="replace"), limits))


def list_tables(tables_dir: Path) -> list[tuple[str, int, list[tuple[str, str]]]]:
    """List every table by name: its number of rows, and its columns with their types in SQL."""
    import duckdb

    require_tables(tables_dir)
    with duckdb.connect() as connection:
        names = create_views(connection, tables_dir)
        # From the catalog: to describe a view would open every file again.
        known = (
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY column_index"
        )
        columns = connection.execute(known).fetchall()
        of_table = {name: [(column, kind) for table, column, kind in columns if table == name] for name in names}
        return [(name, _count(connection, name), of_table[name]) for name in names]


def locked_connection(tables_dir: Path, memory: int) -> "duckdb.DuckDBPyConnection":
    """Open a connection with the views, which can read only their files and can no longer be reconfigured."""
    import duckdb

    connection = duckdb.connect(config={**_SETTINGS, "memory_limit": f"{memory}B"})
    create_views(connection, tables_dir)
    # Files rather than their folder: an allowed path may be written too, and this way no new file can be created.
    # DuckDB checks each path twice: as the glob pattern in the view, then as the file that it matched.
    files = [file for files in table_files(tables_dir).values() for file in files]
    allowed = sorted({sql_text(name) for file in files for name in (str(file), pattern(file))})
    connection.execute(f"SET allowed_paths = [{', '.join(allowed)}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def require_select(connection: "duckdb.DuckDBPyConnection", sql: str) -> str:
    """Return the only statement of the text; raise if it does anything but read."""
    import duckdb

    statements = connection.extract_statements(sql)
    if not statements:
        raise TouchstoneError("the query is empty; pass one SELECT")
    if len(statements) > 1:
        raise TouchstoneError(f"only one SELECT is allowed, got {len(statements)} statements")
    text, kind = statements[0].query, statements[0].type
    if kind == duckdb.StatementType.EXPLAIN:
        # EXPLAIN ANALYZE runs what it explains.
        prefix = _EXPLAIN.match(text)
        if prefix is None:
            raise TouchstoneError("only one SELECT is allowed, got EXPLAIN with options")
        return prefix[0] + require_select(connection, text[prefix.end() :])
    if kind == duckdb.StatementType.MULTI:
        raise TouchstoneError("PIVOT must name its values: PIVOT … ON column IN (…)")
    if kind != duckdb.StatementType.SELECT:
        raise TouchstoneError(f"only one SELECT is allowed, got {kind.name}")
    _require_reading_only(connection, text)
    return text


def _require_reading_only(connection: "duckdb.DuckDBPyConnection", sql: str) -> None:
    nodes: list[dict[str, Any]] = []

    def remember(node: dict[str, Any]) -> dict[str, Any]:
        nodes.append(node)
        return node

    # fetchall: a connection runs nothing else until the result is read to its end.
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


def _count(connection: "duckdb.DuckDBPyConnection", name: str) -> int:
    [(rows,)] = connection.execute(f'SELECT count(*) FROM "{name}"').fetchall()
    return int(rows)


def _failure(code: int, stderr: str, limits: QueryLimits) -> str:
    # The kernel kills a process that takes too much; a library that cannot allocate may abort and say so.
    if code in (_OUT_OF_MEMORY, -signal.SIGKILL) or (code < 0 and _says_out_of_memory(stderr)):
        return f"the query needed more than {_size(limits.memory)} of memory"
    if code < 0:
        with suppress(ValueError):
            return f"the query crashed DuckDB ({signal.Signals(-code).name}); simplify it, or split it into several"
    last = (stderr.strip().splitlines() or ["no reason given"])[-1]
    return last if code == _REFUSED else f"the query could not be started: {last}"


def _size(count: int) -> str:
    return f"{count / _GIB:.3g} GiB" if count >= _GIB else f"{count / 2**20:.4g} MiB"


def _unique_names(given: Iterable[str]) -> list[str]:
    """Rename duplicate columns as DuckDB does in a table: `SELECT 1 AS a, 2 AS a` becomes a and a_1."""
    names: dict[str, None] = {}
    last_number: Counter[str] = Counter()
    for name in given:
        new = name
        while new in names:
            last_number[name] += 1
            new = f"{name}_{last_number[name]}"
        names[new] = None
    return list(names)


def _serve_request() -> int:
    """Entry point of the query process: reads a request as JSON, writes an Arrow stream or a one-line error."""
    # Now, because under the limits below a library might not load.
    import duckdb  # noqa: F401
    import pyarrow as pa  # noqa: F401

    request = json.load(sys.stdin)
    limits = QueryLimits(**request["limits"])
    # Keep what a library prints out of the stream.
    with os.fdopen(os.dup(1), "wb") as results:
        os.dup2(2, 1)
        _limit_process(limits)
        try:
            _stream_result(Path(request["tables_dir"]), request["sql"], limits, results)
        except TouchstoneError as error:
            return _refuse(str(error))
        except Exception as error:
            return _OUT_OF_MEMORY if _is_out_of_memory(error) else _refuse(_explained(str(error), request["sql"]))
    return 0


def _limit_process(limits: QueryLimits) -> None:
    _set_limit(resource.RLIMIT_AS, limits.memory + _HEADROOM + _THREADS * _HEADROOM_PER_THREAD)
    _set_limit(resource.RLIMIT_FSIZE, 0)
    _set_limit(resource.RLIMIT_CORE, 0)
    # The parent kills the process in time; this is for when the parent itself was killed.
    signal.alarm(math.ceil(limits.seconds) + 5)


def _set_limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    # Not every system supports every limit; the other layers remain.
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (bound, bound))


def _stream_result(tables_dir: Path, sql: str, limits: QueryLimits, results: IO[bytes]) -> None:
    import pyarrow as pa

    with closing(locked_connection(tables_dir, limits.memory)) as connection:
        reader = connection.sql(require_select(connection, sql)).to_arrow_reader(_BATCH_ROWS)
        size = 0
        with pa.ipc.new_stream(results, reader.schema) as stream:
            for batch in reader:
                size += batch.nbytes
                if size > limits.memory:
                    raise TouchstoneError(
                        f"the result is larger than {_size(limits.memory)}; select fewer rows or columns"
                    )
                stream.write_batch(batch)


def _is_out_of_memory(error: Exception) -> bool:
    # Once rows stream through Arrow, DuckDB's error arrives as an OSError with the same message.
    return isinstance(error, MemoryError) or _says_out_of_memory(str(error))


def _says_out_of_memory(message: str) -> bool:
    return re.search(r"Out of Memory Error|bad_alloc|annot allocate memory", message) is not None


def _explained(message: str, sql: str) -> str:
    """DuckDB's message in one line, with the line of the query that it is about."""
    from touchstone.tables import TABLES  # only where a query fails

    lacking = re.search(r"Table with name (\w+) does not exist", message)
    if lacking and lacking[1] in TABLES:
        why = "this run stopped before it, or was of an earlier version"
        return f"there is no table {lacking[1]} here: {why}; `touchstone run` makes it"
    line = re.search(r"^LINE (\d+):", message, re.MULTILINE)
    return one_line(message) + (f" (line {line[1]})" if line and "\n" in sql.strip() else "")


def _refuse(message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr, flush=True)
    return _REFUSED


if __name__ == "__main__":
    # Skip Python's shutdown: output and errors of libraries there must not spoil the answer.
    os._exit(_serve_request())
