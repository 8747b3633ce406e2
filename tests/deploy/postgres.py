"""A Postgres server on loopback: Debian's binaries, a cluster in a temporary folder, and a free port."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from tests.processes import free_port

USER, DATABASE = "touchstone", "touchstone"
# Every character that means something in a URL.
PASSWORD = "p@ss:w/o?r#d%20"


def binaries() -> Path:
    """The folder of `initdb` and `pg_ctl`, of the newest version; skips the test if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        pytest.skip("no Postgres server on this machine; Debian and Ubuntu: sudo apt-get install postgresql")
    return found[-1].parent


class Postgres:
    """One server. It refuses to run as root, so root runs it as the user `postgres`."""

    def __init__(self, folder: Path) -> None:
        self.port, self._bin, self._data = free_port(), binaries(), folder / "data"
        self._owner = "postgres" if os.getuid() == 0 else None
        if self._owner is not None:
            shutil.chown(folder, self._owner)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._call("initdb", "--username", USER, "--pwfile", secret, "--auth", "scram-sha-256", "--no-sync")
        # Nothing is kept beyond the test, so nothing needs to reach the disk.
        options = f"listen_addresses = '127.0.0.1'\nport = {self.port}\nunix_socket_directories = ''\nfsync = off\n"
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(options)
        self.start()
        self._call_client("createdb", DATABASE)

    @property
    def environment(self) -> dict[str, str]:
        """What `deploy/dagster.yaml`, psql and pg_dump read."""
        names = {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": USER, "PGDATABASE": DATABASE}
        return {**names, "PGPASSWORD": PASSWORD}

    def start(self) -> None:
        self._call("pg_ctl", "start", "--wait", "--silent", "--log", self._data / "log")

    def stop(self, mode: str = "fast") -> None:
        """End all connections and shut down; `immediate` leaves behind what a crash does."""
        if (self._data / "postmaster.pid").exists():
            self._call("pg_ctl", "stop", "--wait", "--silent", "--mode", mode)

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    @contextmanager
    def locked(self, table: str) -> Iterator[Callable[[], bool]]:
        """Keep everybody from writing to a table; yields whether somebody tries to."""
        writer = f"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO {table}%'"

        def waiting() -> bool:
            with closing(self._connect()) as asking, asking.cursor() as cursor:
                cursor.execute(writer)
                return cursor.fetchone() is not None

        with closing(self._connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {table} IN SHARE MODE")
            yield waiting

    def _connect(self) -> Any:
        names = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password", "PGDATABASE": "dbname"}
        return psycopg2.connect(**{names[name]: value for name, value in self.environment.items()})

    def _call(self, program: str, *arguments: object) -> None:
        self._run([self._bin / program, "--pgdata", self._data, *arguments], {}, self._owner)

    def _call_client(self, program: str, *arguments: object) -> None:
        self._run([self._bin / program, *arguments], self.environment)

    def _run(self, command: Sequence[object], variables: dict[str, str], user: str | None = None) -> None:
        home = {} if user is None else {"HOME": pwd.getpwnam(user).pw_dir}
        done = subprocess.run(
            [str(part) for part in command],
            env={**os.environ, **variables, **home},
            user=user,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    # Not in pytest's folder, which other users cannot enter.
    with tempfile.TemporaryDirectory(prefix="touchstone-postgres-") as folder:
        Path(folder).chmod(0o755)
        server = Postgres(Path(folder))
        try:
            yield server
        finally:
            server.stop("immediate")
