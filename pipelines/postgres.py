"""Dagster's storage in Postgres, which outlives a restart of the server. `deploy/dagster.yaml` names it.

Dagster's own storage gives up after six seconds. A run that cannot store an event then dies, and the code location, in
trying to report it, can lose the thread that notices dead runs. The webserver keeps connections, and answers with an
error for each that the restart has closed.
"""

import time
from typing import Any

import psycopg2  # type: ignore[import-untyped]
from dagster_postgres import DagsterPostgresStorage
from sqlalchemy import event
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.engine import Dialect, Engine
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, Pool

PATIENCE_SECONDS = 300.0
_PAUSE_SECONDS = 0.5
_NEW = "touchstone: just connected"
_DIALECT: Any = PGDialect_psycopg2()  # type: ignore[no-untyped-call]
# What the server says while it refuses everybody.
_PASSING = ("the database system is", "too many clients")


class PatientPostgresStorage(DagsterPostgresStorage):
    """Dagster's storage; all that is new is how this process connects."""


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
    """Have the pool connect anew if the server has closed a connection that was kept."""
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
