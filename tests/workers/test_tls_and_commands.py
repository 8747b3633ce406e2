"""A cluster as users start it: by the commands of the docs, with TLS, and by `touchstone workers start`."""

import asyncio
import http.client
import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from distributed import Security, rpc
from distributed.comm import CommClosedError

from tests.conftest import PROJECT, Command, copy_of
from tests.deploy.sockets import listening_addresses
from tests.processes import descendants, wait_until_gone
from tests.workers.conftest import Cluster
from tests.workers.mapped import Prefix
from tests.workers.test_cluster_validation import VALIDATED, assert_same, many_repairs, on, tables
from tests.workers.test_processes import outcomes, serial
from touchstone.config import TlsFiles, WorkerSettings
from touchstone.errors import TouchstoneError
from touchstone.workers.cluster import connect, tls_files
from touchstone.workers.dask import DaskWorkers

BIN = Path(sys.executable).parent
CERTIFICATE = "openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=dask -keyout cluster.key -out cluster.pem"


def test_an_address_that_is_none_is_refused(touchstone: Command) -> None:
    failed = touchstone("workers", "check", "localhost")
    assert failed.returncode == 2
    assert failed.stderr.splitlines() == [
        "error: localhost: 'localhost' is not an address such as tcp://127.0.0.1:8786 or tls://host:8786"
    ]
    assert touchstone("workers", "check").returncode == 2


@contextmanager
def started(*arguments: str | Path, cwd: Path = PROJECT) -> Iterator[subprocess.Popen[str]]:
    """A process, ended by Ctrl-C, that leaves no other."""
    process = subprocess.Popen(arguments, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        family = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        wait_until_gone(family)


@pytest.mark.services
def test_only_this_user_can_use_the_workers_that_start(tmp_path: Path) -> None:
    command = [BIN / "touchstone", "workers", "start", "-n", "1", "--port", "18785"]
    settings = WorkerSettings(kind="dask", address="tls://127.0.0.1:18785")
    with started(*command, cwd=tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline().startswith(f"1 workers at {settings.address};")
        files = tls_files(settings)
        assert [stat.S_IMODE(file.stat().st_mode) for file in (files.cert_file, files.key_file)] == [0o600, 0o600]
        assert outcomes(DaskWorkers(settings, Prefix, ("> ",)), ["a"]) == outcomes(serial(), ["a"])
        assert_closed(descendants(process.pid))
    assert not files.key_file.exists()
    with pytest.raises(
        TouchstoneError, match=r"workers.tls: .*: none of your `touchstone workers start` runs at tls://"
    ):
        connect(settings)


@pytest.mark.services
def test_only_this_user_can_use_the_cluster_of_the_tests(cluster: Cluster) -> None:
    assert_closed([cluster.scheduler, *cluster.workers])


def assert_closed(family: list[int]) -> None:
    """No port of a cluster is open to other machines or to a client without the key, and none shows a page."""
    found = listening_addresses(family)
    assert len(found) >= 3 and {host for host, _ in found} == {"127.0.0.1"}
    for host, port in found:
        connection = http.client.HTTPConnection(host, port, timeout=60)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/info/main/workers.html")
            assert connection.getresponse().status == 404
    ports = [port for _, port in found]
    answers = asyncio.run(ask_all(ports))
    assert all(isinstance(answer, OSError | CommClosedError) for answer in answers), answers


async def ask_all(ports: list[int]) -> list[Any]:
    """What Dask's servers on the ports answer to clients without TLS, and with a certificate of their own."""
    stranger = Security.temporary().get_connection_args("client")
    plain = [rpc(f"tcp://127.0.0.1:{port}") for port in ports]
    keyed = [rpc(f"tls://127.0.0.1:{port}", connection_args=stranger) for port in ports]
    # The port of a page says nothing to Dask.
    questions = [asyncio.wait_for(remote.identity(), 5) for remote in (*plain, *keyed)]
    return await asyncio.gather(*questions, return_exceptions=True)


def test_a_cluster_without_tls_is_warned_about(touchstone: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("touchstone.workers.cluster._CONNECT_SECONDS", 0.1)
    checked = touchstone("workers", "check", "tcp://127.0.0.1:9")
    assert checked.stderr.splitlines()[0].startswith(
        "warning: tcp://127.0.0.1:9 has no TLS: everyone who can connect runs"
    )


@pytest.mark.nightly
def test_workers_start_check_and_end_with_ctrl_c(tmp_path: Path, touchstone: Command) -> None:
    folder = many_repairs(tmp_path / "given", 20)
    here = tables(on(None, folder, tmp_path / "here"), VALIDATED)
    there = copy_of(folder, tmp_path / "there")
    with started(BIN / "touchstone", "workers", "start", "-n", "2", "--port", "18786") as process:
        assert process.stdout is not None
        first, line = process.stdout.readline(), process.stdout.readline()
        assert first == "2 workers at tls://127.0.0.1:18786; in the configuration of an evaluation:\n"
        workers = json.loads(f"{{{line}}}")["workers"]
        checked = touchstone("workers", "check", workers["address"])
        assert checked.returncode == 0, checked.stderr
        assert [text.rpartition(": ")[2] for text in checked.stdout.splitlines()] == ["accepted", "accepted"]
        there.configure(clones_dir="clones", k_values=[1], workers=workers)
        assert_same(here, tables(there, VALIDATED))
        again = subprocess.run(
            [BIN / "touchstone", "workers", "start", "--port", "18786"], capture_output=True, text=True, check=False
        )
        assert again.returncode == 2 and "port 18786 on 127.0.0.1 is in use" in again.stderr
    assert process.returncode == 0


@pytest.mark.nightly
def test_with_tls_as_the_docs_show_it(tmp_path: Path) -> None:
    subprocess.run(CERTIFICATE.split(), cwd=tmp_path, check=True, capture_output=True)
    tls = ["--tls-ca-file", "cluster.pem", "--tls-cert", "cluster.pem", "--tls-key", "cluster.key"]
    scheduler = [BIN / "dask", "scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", "18787", *tls]
    worker = [BIN / "dask", "worker", "tls://127.0.0.1:18787", "--nthreads", "1", "--host", "127.0.0.1", *tls]
    certificate, key = tmp_path / "cluster.pem", tmp_path / "cluster.key"
    files = TlsFiles(ca_file=certificate, cert_file=certificate, key_file=key)
    settings = WorkerSettings(kind="dask", address="tls://127.0.0.1:18787", tls=files)
    with started(*scheduler, "--no-dashboard", cwd=tmp_path), started(*worker, "--no-dashboard", cwd=tmp_path):
        items = ["a", "bad", "b"]
        assert outcomes(patient(settings), items) == outcomes(serial(), items)
        with pytest.raises(TouchstoneError, match="no Dask scheduler answers"):
            connect(WorkerSettings(kind="dask", address="tcp://127.0.0.1:18787"))


def patient(settings: WorkerSettings) -> DaskWorkers:
    """Workers of a scheduler that may still be starting."""
    for _ in range(10):
        try:
            return DaskWorkers(settings, Prefix, ("> ",))
        except TouchstoneError as error:
            last = error
    raise last
