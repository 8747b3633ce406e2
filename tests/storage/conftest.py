"""An S3 server on loopback, for the tests that need one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.s3 import Server, machine, s3_server


@pytest.fixture(scope="session")
def running() -> Iterator[Server]:
    """The server, which all tests share: each uses names of its own."""
    with s3_server() as server:
        yield server


@pytest.fixture
def server(running: Server, tmp_path: Path) -> Iterator[Server]:
    """The same, for a machine that has read nothing yet."""
    with machine(running, tmp_path / "cache"):
        yield running
