"""The sandbox backends that this machine has."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import nightly_but
from touchstone.validation.sandbox.backends import Backend, Bubblewrap, Landlock, Unsandboxed
from touchstone.validation.sandbox.confinement import landlock_version
from touchstone.validation.sandbox.runner import SandboxRunner

BACKENDS: dict[str, type[Backend]] = {kind.name: kind for kind in (Bubblewrap, Landlock, Unsandboxed)}


def need(backend: str) -> None:
    """Skip where this machine lacks it."""
    if backend == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed: apt-get install bubblewrap")
    if backend == "landlock" and landlock_version() == 0:
        pytest.skip("the kernel has no landlock")


# By day the sandbox in use. Commands without one are in `test_session`, `test_timeouts` and the tests of pipelines.
BY_DAY = nightly_but(["bubblewrap" if shutil.which("bwrap") else "landlock"], BACKENDS)


@pytest.fixture(params=BY_DAY)
def sandbox_runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SandboxRunner]:
    """Every backend in turn. It leaves nothing in its folder."""
    need(request.param)
    made = SandboxRunner(BACKENDS[request.param](), tmp_path / "scratch")
    yield made
    assert not made.scratch.exists() or list(made.scratch.iterdir()) == []
