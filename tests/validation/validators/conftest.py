"""The real sandbox, if this machine has one."""

import pytest

from tests.validation.pytest_runner.support import sandbox_or_skip
from touchstone.validation.sandbox.command import Sandbox


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return sandbox_or_skip(tmp_path_factory.mktemp("sandbox"))
