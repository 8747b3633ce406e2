"""What can be said of the storage in Postgres without a server. tests/deploy has one."""

import importlib
import sys

import pytest

from touchstone.errors import TouchstoneError


@pytest.mark.parametrize(
    ("message", "passes"),
    [
        ('connection to server at "127.0.0.1", port 5432 failed: Connection refused', True),
        ("server closed the connection unexpectedly", True),
        ('could not translate host name "postgres" to address: Temporary failure in name resolution', True),
        ("FATAL:  the database system is starting up", True),
        ("FATAL:  the database system is shutting down", True),
        ("FATAL:  sorry, too many clients already", True),
        ('FATAL:  password authentication failed for user "touchstone"', False),
        ('FATAL:  database "touchstone" does not exist', False),
        ('FATAL:  no pg_hba.conf entry for host "127.0.0.1"', False),
    ],
)
def test_which_failures_to_connect_are_waited_out(message: str, passes: bool) -> None:
    from pipelines.postgres import is_passing

    assert is_passing(message) is passes


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pipelines.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    with pytest.raises(TouchstoneError, match=r"pip install 'touchstone\[postgres\]'"):
        importlib.import_module("pipelines.postgres")
