"""Dagster's storage in Postgres, with connections that are kept and that survive a restart of the server.

`deploy/dagster.yaml` names it. Dagster's own storage opens a connection for every statement, which is most of the work
of a small run. And it gives up after six seconds: a run that cannot store an event then dies, and the code location,
in trying to report it, can lose the thread that notices dead runs.
"""

import time
from typing import Any

from sqlalchemy import event
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.engine import Dialect, Engine
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, Pool

from touchstone.errors import TouchstoneError

try:
    import psycopg2  # type: ignore[import-untyped]
    from dagster_postgres import DagsterPostgresStorage
except ImportError:
    raise TouchstoneError("a history in Postgres needs its driver: pip install 'touchstone[postgres]'") from None

PATIENCE_SECONDS = 300.0
_PAUSE_SECONDS = 0.5
_NEW = "touchstone: just connected"
_DIALECT: Any = PGDialect_psycopg2()  # type: ignore[no-untyped-call]
# Messages of a server that accepts no connections for now.
_PASSING = ("the database system is", "too many clients")


class KeepingPostgresStorage(DagsterPostgresStorage):
    """Dagster's storage; all that is new is how this process connects."""

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Any:
        """Called by Dagster with what `dagster.yaml` says. Keeps one connection for each of the three storages."""
        storage = super().from_config_value(inst_data, config_value)
        for each in (storage.run_storage, storage.event_log_storage, storage.schedule_storage):
            # The webserver does it with a time limit of its own.
            each.optimize_for_webserver(statement_timeout=0, pool_recycle=3600, max_overflow=20)
        return storage


@event.listens_for(Engine, "do_connect")
def connect(dialect: Dialect, record: ConnectionPoolEntry, arguments: Any, parameters: Any) -> Any:
    """A connection to Postgres, once the server accepts it; other databases connect as usual."""
    if dialect.name != "postgresql":
        return None
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            connection = dialect.connect(*arguments, **parameters)
        except psycopg2.OperationalError as error:
            if not is_passing(str(error)) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            record.info[_NEW] = True
            return connection


@event.listens_for(Pool, "checkout")
def replace_if_closed(connection: Any, record: ConnectionPoolEntry, _: object) -> None:
    """Have the pool reconnect if the server has closed a connection that was kept."""
    if record.info.pop(_NEW, False) or not isinstance(connection, psycopg2.extensions.connection):
        return
    try:
        _DIALECT.do_ping(connection)
    except psycopg2.Error as error:
        raise DisconnectionError from error


def is_passing(message: str) -> bool:
    """Whether a failure to connect may pass: the server is away, starts or shuts down; not a wrong password or name.

    >>> is_passing("Connection refused"), is_passing("FATAL:  the database system is starting up")
    (True, True)
    >>> is_passing('FATAL:  password authentication failed for user "touchstone"')
    False
    """
    return "FATAL" not in message or any(words in message for words in _PASSING)
