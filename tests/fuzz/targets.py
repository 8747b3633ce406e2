"""What is fuzzed: one function of bytes per reader, which raises only if the reader does what it never may.

A refusal is a `TouchstoneError` of one line, or the error by which a reader tells its caller so. Anything else passes
and is a defect: other exceptions, refusals of several lines, lines that do not exist, SQL that writes.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import polars as pl

from touchstone.config import load_config
from touchstone.config.formats import JsonFormat
from touchstone.errors import TouchstoneError
from touchstone.ingest.adapters import AdapterTable, ReadOptions, read_adapted
from touchstone.ingest.adapters.formats.failproof import read_failproof
from touchstone.ingest.adapters.mapping import mapped_adapter
from touchstone.ingest.attempts import open_fixes, read_attempts
from touchstone.ingest.cells import InputTable
from touchstone.ingest.problems import read_problems
from touchstone.publish.query import require_select
from touchstone.validation import libtest
from touchstone.validation.fixes.apply_fix import AppliedFix, Fix, FixKind, apply_fix
from touchstone.validation.hcl import check_module
from touchstone.validation.protocol import Problem, Tree
from touchstone.validation.test_reports import FORMATS, ReportFormatError, named_as_expected

CORPUS = Path(__file__).parent / "corpus"
_EXAMPLES = Path(__file__).parents[1] / "ingest" / "adapters" / "files"
# DuckDB parses nested ones in exponential time and memory; a query's process has limits, this one has none.
_MAX_WITHS = 6
_SECTION = b"=== "
_OWN = JsonFormat(
    name="own",
    records="in.runs.*[]",
    problem=("={^@key}/{id}", "a"),
    passed=("ok", "list[-1]"),
    model=("^.model", "$.model", "@folder"),
    columns={"more": "^^.more"},
    settings={"generation": "$.in.seed"},
)
_MAX_EXAMPLE = 20_000


@dataclass(frozen=True)
class Target:
    """One reader: what it does with some bytes, and where examples of its files are."""

    name: str
    one_input: Callable[[bytes], None]
    # Patterns below the tests of adapters.
    examples: tuple[str, ...] = ()
    # Words that a mutation inserts.
    words: tuple[bytes, ...] = ()

    def corpus(self) -> list[bytes]:
        """The small files to start from, in a fixed order."""
        files = sorted((CORPUS / self.name).iterdir())
        files += sorted(path for pattern in self.examples for path in _EXAMPLES.glob(pattern) if path.is_file())
        return [path.read_bytes() for path in files if path.stat().st_size <= _MAX_EXAMPLE]


@contextmanager
def refused() -> Iterator[None]:
    """A refusal is one line for a person to read."""
    try:
        yield
    except TouchstoneError as error:
        assert "\n" not in str(error) and str(error).strip(), repr(error)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder in memory where there is one: most of the time is files otherwise."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="touchstone-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _problems() -> pl.DataFrame:
    return pl.DataFrame({"oid": ["a", "b", "c"], "suite": ["s", "s", "t"]})


def _read_rows(table: InputTable, model: str, scratch: Path) -> None:
    read = read_attempts(table, model, _problems().lazy(), scratch / "rows.parquet")
    attempts = read.attempts.collect()
    assert attempts.height == read.accepted <= read.rows
    assert attempts.select("tier", "oid", "iteration_id").is_unique().all()
    assert read.accepted + read.quarantine.height == read.rows


def _read_table(data: bytes, name: str) -> None:
    """A file with a name that says what it is, through detection, adapter, rules and quarantine."""
    with scratch_folder() as folder, refused():
        path = folder / name
        path.write_bytes(data)
        if ".csv" in name:
            _read_rows(open_fixes(path), "m", folder)
        else:
            _read_adapted(read_adapted(path), folder)


def _read_adapted(table: AdapterTable, scratch: Path) -> None:
    lines = table.frame["__line"].to_list()
    assert set(table.raw(set(lines[:20]))) <= set(lines)
    for model in table.models()[:3]:
        _read_rows(table.for_model(model), model, scratch)


def _read_document(data: bytes) -> None:
    """JSON of other systems: one document, or one record a line."""
    is_lines = data.lstrip()[:1] == b"{" and b"\n{" in data.strip()
    _read_table(data, "results.jsonl" if is_lines else "results.json")


def _read_own(data: bytes) -> None:
    """JSON in a format that a user declared, with every kind of path."""
    with scratch_folder() as folder, refused():
        path = folder / "own.json"
        path.write_bytes(data)
        _read_adapted(mapped_adapter(_OWN).read(path, ReadOptions()), folder)


def _read_failproof(data: bytes) -> None:
    """Any of FailProof's forms: SQLite, JSON or CSV, whatever the bytes look like."""
    with scratch_folder() as folder, refused():
        path = folder / "results"
        path.write_bytes(data)
        _read_adapted(read_failproof(path), folder)


def _read_problems(data: bytes, name: str = "problems.csv") -> None:
    with scratch_folder() as folder, refused():
        path = folder / name
        path.write_bytes(data)
        read = read_problems(path, folder / "rows.parquet")
        found = read.problems.collect()
        assert found["oid"].is_unique().all() and found.height + read.quarantine.height == read.rows


def _read_folder(data: bytes) -> None:
    """Several files, as the folder of a job: each starts with a line `=== path`."""
    with scratch_folder() as folder, refused():
        for part in (b"\n" + data).split(b"\n" + _SECTION)[1:21]:
            name, _, content = part.partition(b"\n")
            words = [word for word in name.decode("utf-8", "replace").replace("\0", "").split("/") if word.strip(". ")]
            path = folder.joinpath("job", *(word[:50] for word in words[:6]))
            if words and not path.exists() and not any(parent.is_file() for parent in path.parents):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        if (folder / "job").is_dir():
            _read_adapted(read_adapted(folder / "job"), folder)


def _read_config(data: bytes) -> None:
    with scratch_folder() as folder, refused():
        path = folder / ("config.json" if data.lstrip()[:1] == b"{" else "config.toml")
        path.write_bytes(data)
        load_config(path)


def _read_report(data: bytes, name: str) -> None:
    try:
        results = FORMATS[name].read(data.decode("utf-8", "replace"))
    except ReportFormatError as error:
        assert str(error)
        return
    expected = list(results.outcomes)[:5]
    named = named_as_expected(results, name, expected)
    assert all(named[each] == results.outcomes[each] for each in expected)


def _read_libtest(data: bytes) -> None:
    text = data[1:].decode("utf-8", "replace")
    for read in (partial(libtest.read_single, "a"), libtest.read_documentation, libtest.read_list):
        try:
            read(data[0] if data else 0, text)
        except libtest.ContradictionError as error:
            assert str(error)


_ORIGINAL = {"main.py": b"one\ntwo\nthree\nfour\n", "a/b.txt": b"x\r\ny\r\n", "empty": b""}


def _apply(data: bytes, kind: FixKind) -> None:
    """A fix changes files inside the tree, or is refused with a reason."""
    tree = Tree(Path("tree"), tuple(_ORIGINAL), dict(_ORIGINAL))
    problem = Problem("p", "main.py", Path("tree"), line_start=2, line_end=3)
    made = apply_fix(tree, Fix(data.decode("utf-8", "replace"), kind), problem)
    if isinstance(made, AppliedFix):
        assert all(not path.startswith("/") and ".." not in path.split("/") for path in made.changes)
    else:
        assert made.reason and made.status


def _check_hcl(data: bytes) -> None:
    """Two files and a schema, each after a line `=== `; a single one is `main.tf`."""
    parts = data.split(b"\n" + _SECTION)
    names = ("main.tf", "other.tf", "main.tf.json")
    if data.lstrip()[:1] == b"{":
        names = ("main.tf.json", "other.tf", "main.tf")
    files = dict(zip(names, parts, strict=False))
    schema = parts[3].decode("utf-8", "replace") if len(parts) > 3 else None
    try:
        found = check_module(files, schema)
    except ValueError as error:
        assert str(error)
        return
    json.dumps(found.declared)


@cache
def _connection() -> object:
    import duckdb

    connection = duckdb.connect(config={"threads": 1, "memory_limit": "200MB"})
    connection.execute("CREATE TABLE attempts AS SELECT 'm' AS model, 1.5 AS cost_usd")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _check_sql(data: bytes) -> None:
    """What the gate lets through is one statement that reads; DuckDB itself agrees about that."""
    import duckdb

    if data.lower().count(b"with") > _MAX_WITHS:
        return
    connection = _connection()
    assert isinstance(connection, duckdb.DuckDBPyConnection)
    try:
        text = require_select(connection, data.decode("utf-8", "replace"))
    except TouchstoneError as error:
        assert "\n" not in str(error)
        return
    except duckdb.Error:
        # The process of the query turns these into one line.
        return
    (statement,) = connection.extract_statements(text)
    assert statement.type in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
    reads_only = {duckdb.ExpectedResultType.QUERY_RESULT}
    assert set(statement.expected_result_type) <= reads_only, text


_JSON = (b'{"', b'": ', b"[", b"]", b"null", b"true", b"NaN", b"1e999", b'"\\ud800"', b"-1", b'""')
_XML = (
    b"<testcase ",
    b"<test-case ",
    b"<UnitTestResult ",
    b'result="',
    b'name="',
    b"<failure>",
    b"</testsuite>",
    b"<![CDATA[",
    b"&#0;",
    b"<!DOCTYPE x>",
    b"<skipped/>",
)
_HUNK = (
    b"--- a/main.py\n",
    b"+++ b/main.py\n",
    b"@@ -1,2 +1,2 @@\n",
    b"rename from ",
    b"GIT binary patch\n",
    b"new file mode ",
)
_EDITS = (b"<<<<<<< SEARCH\n", b"=======\n", b">>>>>>> REPLACE\n", b"main.py\n")
_HCL = (b"resource ", b"${", b"%{ for ", b"<<EOT\n", b"dynamic ", b"for_each = ", b"local.", b"[*]", b"/*", b"\n=== \n")
_SQL = (
    b"SELECT ",
    b" FROM attempts",
    b"; ",
    b"WITH a AS (",
    b"EXPLAIN ANALYZE ",
    b"COPY ",
    b"query(",
    b"PIVOT ",
    b"--",
    b"/*",
)
_CELLS = (b",", b"\n", b'"', b'""', b"\r\n", b"\xef\xbb\xbf", b"\x00", b"oid", b"__line", b"true", b"1e308", b"\xff")

TARGETS = {
    target.name: target
    for target in (
        Target("csv", partial(_read_table, name="m_fixes.csv"), words=_CELLS),
        Target("compressed", partial(_read_table, name="m_fixes.csv.gz")),
        Target("problems", _read_problems, words=_CELLS),
        Target("problems-jsonl", partial(_read_problems, name="problems.jsonl"), words=_JSON),
        Target("jsonl", partial(_read_table, name="m_fixes.jsonl"), words=_JSON),
        Target("parquet", partial(_read_table, name="m_fixes.parquet")),
        Target("eval-log", partial(_read_table, name="log.eval"), ("inspect/*.eval",)),
        Target(
            "junit-xml",
            partial(_read_table, name="report.xml"),
            ("junit/*.xml", "test-reports/*.xml", "test-reports/*.trx"),
            _XML,
        ),
        Target(
            "documents", _read_document, ("**/*.json", "**/*.jsonl", "../made/**/*.json", "../made/**/*.jsonl"), _JSON
        ),
        Target("own-format", _read_own, words=(*_JSON, b'"runs"', b'"in"', b'"id"', b'"ok"')),
        Target("failproof", _read_failproof, words=(*_JSON, *_CELLS)),
        Target(
            "folders", _read_folder, words=(*_JSON, b"\n=== ", b"result.json", b"report.json", b".aider.results.json")
        ),
        Target("config", _read_config, words=_JSON),
        *(
            Target(f"report-{name}", partial(_read_report, name=name), words=_XML if name == "junit" else _JSON)
            for name in FORMATS
        ),
        Target("report-libtest", _read_libtest),
        Target("patch", partial(_apply, kind="diff"), words=_HUNK),
        Target("edits", partial(_apply, kind="edits"), words=_EDITS),
        Target("several-files", partial(_apply, kind="files"), words=_JSON),
        Target("code-block", partial(_apply, kind="block"), words=(b"```", b"~~~", b"\n", b"```python\n")),
        Target("hcl", _check_hcl, words=_HCL),
        Target("sql", _check_sql, words=_SQL),
    )
}
