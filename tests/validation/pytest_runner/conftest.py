"""A warm validator, shared by all tests of the runner."""

from collections.abc import Iterator

import pytest

from tests.validation.pytest_runner.support import warm_validator
from touchstone.validation.validators.python import PythonValidator


@pytest.fixture(scope="package")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PythonValidator]:
    yield from warm_validator(tmp_path_factory.mktemp("sandbox"))
