"""The real sandbox, if this machine has one."""

import pytest

from touchstone.errors import TouchstoneError
from touchstone.validation.sandbox.command import Sandbox
from touchstone.validation.sandbox.probe import choose_sandbox


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    try:
        return choose_sandbox(tmp_path_factory.mktemp("sandbox"))
    except TouchstoneError as error:
        pytest.skip(f"no sandbox works on this machine: {error}")
