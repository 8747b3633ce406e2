"""Dask clusters for tests, on loopback."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.conftest import PROJECT
from tests.processes import wait_until_gone
from touchstone.config import WorkerSettings
from touchstone.workers.cluster import tls_files


@dataclass
class Cluster:
    """A scheduler's address and process, and the process of each worker."""

    address: str
    workers: list[int]
    scheduler: int = 0

    @property
    def settings(self) -> WorkerSettings:
        return WorkerSettings(kind="dask", address=self.address)

    @property
    def tls_options(self) -> list[str]:
        """For the commands of Dask."""
        files = tls_files(self.settings)
        return [f"--tls-ca-file={files.ca_file}", f"--tls-cert={files.cert_file}", f"--tls-key={files.key_file}"]

    def kill(self, place: int) -> None:
        os.kill(self.workers[place], signal.SIGKILL)


@contextmanager
def forked_cluster(count: int, threads: int = 1) -> Iterator[Cluster]:
    """Workers without a nanny: one that is killed stays away."""
    command = [sys.executable, "-m", "tests.workers.forked_cluster", str(count), str(threads)]
    process = subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    workers: list[int] = []
    try:
        address, *numbers = process.stdout.readline().split()
        workers = [int(number) for number in numbers]
        yield Cluster(address, workers, process.pid)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()
        wait_until_gone(workers)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three workers, which no test kills."""
    with forked_cluster(3) as made:
        yield made
