"""The sandbox backends that this machine has."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

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


# Landlock by day only where it is the sandbox in use.
BY_DAY = [
    pytest.param(name, marks=[pytest.mark.nightly] if name == "landlock" and shutil.which("bwrap") else [])
    for name in BACKENDS
]


@pytest.fixture(params=BY_DAY)
def sandbox_runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SandboxRunner]:
    """Every backend in turn. It leaves nothing in its folder."""
    need(request.param)
    made = SandboxRunner(BACKENDS[request.param](), tmp_path / "scratch")
    yield made
    assert not made.scratch.exists() or list(made.scratch.iterdir()) == []
