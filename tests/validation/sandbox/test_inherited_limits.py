"""Limits that this process was started with: they decide no verdict."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.validation.test_session import Project

# So much that it limits nothing here.
TEBIBYTE = 2**40


@pytest.fixture
def limited() -> Iterator[None]:
    """This process may have a tebibyte of address space."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (TEBIBYTE, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_what_could_fail_for_an_inherited_limit_is_undecided(limited: None, tmp_path: Path) -> None:
    project = Project(tmp_path)
    with project.validation(limits={"memory_mb": 2**20}) as too_much:
        assert project.ask(too_much, "yes") == [("validator_unavailable", False)]
        found = too_much.available("command")
    assert found.detail == "`ulimit -v` allows 1,048,576 MiB of address space, a validation may use 1,048,832"
    assert found.remedy == "raise that limit, or lower validation.limits"
    with project.validation() as usual:
        assert project.ask(usual, "yes") == [("passed", False)]
