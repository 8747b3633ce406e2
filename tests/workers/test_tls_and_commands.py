"""A cluster as users start it: by the commands of the docs, with TLS, and by `touchstone workers start`."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import PROJECT, Command, copy_of
from tests.processes import descendants, wait_until_gone
from tests.workers.mapped import Prefix
from tests.workers.test_cluster_validation import VALIDATED, assert_same, many_repairs, on, tables
from tests.workers.test_processes import outcomes, serial
from touchstone.config.workers import TlsFiles, WorkerSettings
from touchstone.errors import TouchstoneError
from touchstone.workers.cluster import connect
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


@pytest.mark.nightly
def test_workers_start_check_and_end_with_ctrl_c(tmp_path: Path, touchstone: Command) -> None:
    folder = many_repairs(tmp_path / "given", 20)
    here = tables(on(None, folder, tmp_path / "here"), VALIDATED)
    there = copy_of(folder, tmp_path / "there")
    with started(BIN / "touchstone", "workers", "start", "-n", "2", "--port", "18786") as process:
        assert process.stdout is not None
        first, line = process.stdout.readline(), process.stdout.readline()
        assert first == "2 workers at tcp://127.0.0.1:18786; in the configuration of an evaluation:\n"
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
