"""Dagster's history of runs in SQLite, with connections that are kept. `dagster.yaml` names `History` as the storage.

Dagster's own SQLite storages make a new engine and connection for every statement, and look up the schema and Alembic's
revision over and over. Files and tables are the same here, so either storage reads what the other wrote.
"""

import contextlib
import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import sqlalchemy as db
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.schema import AssetKeyTable, SqlEventLogStorageMetadata
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.runs.schema import RunStorageSqlMetadata
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sql import get_alembic_config
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import (
    DagsterSqliteStorage,
    _event_logs_directory,
    _runs_directory,
    _schedule_directory,
)
from dagster._serdes import ConfigurableClassData, deserialize_value
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import QueuePool

# Every run has its own database; the UI reads many of them in one process.
_KEPT_RUNS = 8
_REVISIONS = "alembic_version"
_COLUMNS = f"version_num VARCHAR(32) NOT NULL, CONSTRAINT {_REVISIONS}_pkc PRIMARY KEY (version_num)"


class History(DagsterSqliteStorage):
    """Dagster's storage of runs, events and schedules."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self.base_dir = base_dir
        self._run_storage = Runs.from_local(_runs_directory(base_dir))
        self._event_log_storage = EventLog(_event_logs_directory(base_dir))
        self._schedule_storage = Schedules.from_local(_schedule_directory(base_dir))
        self._inst_data = inst_data
        super(DagsterSqliteStorage, self).__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> "History":
        """Called by Dagster with what `dagster.yaml` says."""
        return cls.from_local(inst_data=inst_data, **config_value)


class _OneDatabase:
    """A storage in one database, opened without loading Dagster's migrations."""

    _conn_string: str
    _name: ClassVar[str]
    _schema: ClassVar[db.MetaData]

    @classmethod
    def from_local(cls, base_dir: str, inst_data: ConfigurableClassData | None = None) -> Any:
        """Open the database in a folder, or create it."""
        Path(base_dir).mkdir(parents=True, exist_ok=True)
        storage: Any = cls(database_url(base_dir, cls._name), inst_data)  # type: ignore[call-arg]
        if is_empty(storage._engine):
            create_tables(storage._engine, cls._schema, newest_revision())
            # Marks the data migrations as done.
            storage.migrate()
            storage.optimize()
        elif not is_current(storage._engine, cls._schema):
            storage.dispose()
            return super().from_local(base_dir, inst_data)  # type: ignore[misc]
        return storage

    @cached_property
    def _engine(self) -> db.Engine:
        return keeping_engine(self._conn_string)

    @contextlib.contextmanager
    def connect(self) -> Iterator[db.Connection]:
        """A connection in a transaction."""
        with self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Close the connections."""
        self._engine.dispose()


class Runs(_OneDatabase, SqliteRunStorage):
    """The runs with their tags and snapshots."""

    _name, _schema = "runs", RunStorageSqlMetadata


class Schedules(_OneDatabase, SqliteScheduleStorage):
    """Ticks of schedules and sensors."""

    _name, _schema = "schedules", ScheduleStorageSqlMetadata


class EventLog(SqliteEventLogStorage):
    """The events: a database per run, and an index over the assets, checks and partitions of all runs."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[str, db.Engine] = OrderedDict()
        self._open: dict[str, db.Connection] = {}
        # What a schema has is never taken away, so that a yes can be remembered.
        self._present: set[tuple[str, str]] = set()
        self._superseded: set[int] = set()
        super().__init__(base_dir, inst_data)
        self._db_lock: Any = threading.RLock()

    def conn_string_for_shard(self, shard_name: str) -> str:
        """The address of the database of a run, or of the index."""
        return database_url(self._base_dir, shard_name)

    @contextlib.contextmanager
    def _connect(self, shard: str) -> Iterator[db.Connection]:
        with self._db_lock:
            if shard in self._open:
                yield self._open[shard]
                return
            engine = self._engine(shard)
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.begin() as connection:
                self._open[shard] = connection
                try:
                    yield connection
                finally:
                    del self._open[shard]

    def store_event(self, event: dg.EventLogEntry) -> None:
        super().store_event(event)
        self._announce({event.run_id})

    def store_event_batch(self, events: Sequence[dg.EventLogEntry]) -> None:
        """Store events in one transaction of each database."""
        runs = {event.run_id for event in events}
        with contextlib.ExitStack() as transactions:
            for shard in (*runs, INDEX_SHARD_NAME):
                transactions.enter_context(self._connect(shard))
            # An asset's entry keeps the last event of each kind alone.
            last = {(event.dagster_event_type, _asset_of(event)): id(event) for event in events}
            self._superseded = {id(event) for event in events} - set(last.values())
            try:
                for event in events:
                    super().store_event(event)
            finally:
                self._superseded = set()
        self._announce(runs)

    def _store_asset_event(self, conn: db.Connection, event: dg.EventLogEntry, event_id: int) -> None:
        """As Dagster does, but without an insert that fails for every asset that is known already."""
        asset = _asset_of(event)
        if id(event) in self._superseded:
            return
        has_columns = self._has_asset_key_index_cols_on_connection(conn)
        if asset and (values := self._get_asset_entry_values(event, event_id, has_columns)):
            insert = sqlite.insert(AssetKeyTable).values(asset_key=asset.to_string(), **values)
            conn.execute(insert.on_conflict_do_update(index_elements=["asset_key"], set_=values))

    def _get_latest_materialization_records(self, raw_asset_rows: Any) -> Mapping[dg.AssetKey, Any]:
        """As Dagster does, but without a query for what the rows have already, and reading each of them once."""
        rows = list(raw_asset_rows)
        # The details say when an asset was wiped.
        if all(row["last_materialization"] and not row["asset_details"] for row in rows):
            keys = (dg.AssetKey.from_db_string(row["asset_key"]) for row in rows)
            found = {key: _read(row["last_materialization"]) for key, row in zip(keys, rows, strict=True) if key}
            # Old versions of Dagster stored something else.
            if all(isinstance(record, dg.EventLogRecord) for record in found.values()):
                return found
        return super()._get_latest_materialization_records(rows)

    def _announce(self, runs: Iterable[str]) -> None:
        """Touch the databases: the UI watches them, but an open connection writes to the log beside them."""
        for run in runs:
            with contextlib.suppress(OSError):
                os.utime(self.path_for_shard(run))

    def _engine(self, shard: str) -> db.Engine:
        if shard not in self._engines:
            self._engines[shard] = keeping_engine(self.conn_string_for_shard(shard))
            runs = [kept for kept in self._engines if kept != INDEX_SHARD_NAME]
            for oldest in runs[:-_KEPT_RUNS]:
                self._engines.pop(oldest).dispose()
        self._engines.move_to_end(shard)
        return self._engines[shard]

    def _initdb(self, engine: db.Engine, for_index_shard: bool = False) -> None:
        """Create the tables of a database unless it has them. A run's database gets the revision of the index."""
        schema = SqlEventLogStorageMetadata
        if is_empty(engine) and for_index_shard:
            create_tables(engine, schema, newest_revision())
        elif is_empty(engine) and is_current(index := self._engine(INDEX_SHARD_NAME), schema):
            create_tables(engine, schema, revision_of(index))
        elif not is_current(engine, schema):
            super()._initdb(engine, for_index_shard)

    def has_table(self, table_name: str) -> bool:
        return self._remembered("table", table_name, super().has_table)

    def has_secondary_index(self, name: str) -> bool:
        return self._remembered("index", name, super().has_secondary_index)

    def _has_asset_key_col_on_connection(self, conn: db.Connection, column_name: str) -> bool:
        look = super()._has_asset_key_col_on_connection
        return self._remembered("column", column_name, lambda name: look(conn, name))

    def has_asset_key_col(self, column_name: str) -> bool:
        return self._remembered("column", column_name, super().has_asset_key_col)

    def _remembered(self, kind: str, name: str, look: Any) -> bool:
        if (kind, name) not in self._present and look(name):
            self._present.add((kind, name))
        return (kind, name) in self._present

    def wipe(self) -> None:
        self._close()
        super().wipe()

    def dispose(self) -> None:
        super().dispose()
        self._close()

    def _close(self) -> None:
        with self._db_lock:
            while self._engines:
                self._engines.popitem()[1].dispose()


def _asset_of(event: dg.EventLogEntry) -> dg.AssetKey | None:
    return event.dagster_event.asset_key if event.dagster_event else None


@lru_cache(maxsize=256)
def _read(stored: str) -> Any:
    return deserialize_value(stored)


def database_url(folder: str, name: str) -> str:
    """The address of a SQLite database. Dagster's own function takes a folder such as `a%2Fb` for another one."""
    return db.URL.create("sqlite", database=str(Path(folder).absolute() / f"{name}.db")).render_as_string()


def keeping_engine(url: str) -> db.Engine:
    """An engine that keeps its connections, and with them the compiled statements.

    What is committed survives the end of the process; a power cut can lose the last moments, but not damage a database.
    """
    engine = db.create_engine(
        url,
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=-1,
        connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
    )

    @db.event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        # Fails while another process uses a database that is not in WAL mode; has no effect on some network drives.
        with contextlib.suppress(sqlite3.OperationalError):
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            if mode == "wal":
                connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def is_empty(engine: db.Engine) -> bool:
    """Whether a database is new."""
    with engine.connect() as connection:
        return connection.exec_driver_sql("SELECT 1 FROM sqlite_master").first() is None


def is_current(engine: db.Engine, schema: db.MetaData) -> bool:
    """Whether a database has a revision and all tables: Dagster would change nothing in it."""
    with engine.connect() as connection:
        tables = set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())
    return tables >= {_REVISIONS, *schema.tables} and revision_of(engine) is not None


def create_tables(engine: db.Engine, schema: db.MetaData, revision: str | None) -> None:
    """Create the tables of a new database, unless another process was first."""
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        if connection.exec_driver_sql("SELECT 1 FROM sqlite_master").first() is None:
            schema.create_all(connection)
            connection.exec_driver_sql(f"CREATE TABLE {_REVISIONS} ({_COLUMNS})")
            connection.exec_driver_sql(f"INSERT INTO {_REVISIONS} VALUES (?)", (revision,))
        connection.commit()


def revision_of(engine: db.Engine) -> str | None:
    """The revision of a database, as Alembic keeps it."""
    with engine.connect() as connection:
        return connection.exec_driver_sql(f"SELECT version_num FROM {_REVISIONS}").scalar()


@cache
def newest_revision() -> str:
    """The revision of Dagster's schema. All its storages share one series of migrations."""
    return str(ScriptDirectory.from_config(get_alembic_config(sqlite_run_storage.__file__)).get_current_head())
