"""One arena per backend, and the checks after every attack: no process is left, nothing outside changed,
and neighbour jobs still get their verdicts."""

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from tests.validation.attacks.arena import BAD, GOOD, Arena, Canary, strangers, wait_for_none
from tests.validation.pytest_runner.support import sandbox_or_skip
from touchstone.validation.sandbox.backends import readable_by_others
from touchstone.validation.sandbox.interpreters import interpreter
from touchstone.validation.sandbox.processes import descendants
from touchstone.validation.sandbox.runner import SandboxRunner

SECRET = "the-supervisors-secret"
_SUBREAPER = 36


@pytest.fixture(scope="package", autouse=True)
def _orphans_come_to_us() -> Iterator[None]:
    """Whatever outlives its parent becomes a child of the test's process, where it is found."""
    libc = ctypes.CDLL(None)
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    os.environ["TOUCHSTONE_ATTACK_SECRET"] = SECRET
    yield
    del os.environ["TOUCHSTONE_ATTACK_SECRET"]
    libc.prctl(_SUBREAPER, 0, 0, 0, 0)


# Every attack on the sandbox that is in use here; the nightly tests attack both.
of_landlock = pytest.mark.nightly if shutil.which("bwrap") else pytest.mark.usefixtures()
USED = ["bubblewrap", pytest.param("landlock", marks=pytest.mark.nightly)] if shutil.which("bwrap") else ["landlock"]


@pytest.fixture(scope="package", params=USED)
def warm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """An arena whose workers stay warm, as in a run: every attack must leave the next verdict right."""
    yield from warm_arena(request.param, tmp_path_factory.mktemp("scratch"))


def warm_arena(backend: str, scratch: Path) -> Iterator[Arena]:
    """An arena in one of the sandboxes, closed and found clean at the end."""
    arena = Arena(sandbox_or_skip(scratch, backend))
    resource_tracker.ensure_running()  # a process of Python's own, which other tests would start meanwhile
    before = set(descendants(os.getpid()))
    try:
        yield arena
        assert [arena.validate(code, patient=True).status for code in (GOOD, BAD)] == ["passed", "failed"]
    finally:
        arena.validator.close()
    assert wait_for_none(set(), before) == []
    assert list(arena.sandbox.scratch.iterdir()) == []


@pytest.fixture
def canary() -> Iterator[Canary]:
    """A world-writable folder with a secret in it, which must stay unchanged."""
    folder = Path(tempfile.mkdtemp(prefix="attacks-canary-"))
    folder.chmod(0o777)
    made = Canary(folder)
    made.secret.write_text(SECRET)
    made.secret.chmod(0o666)
    before = made.state()
    try:
        yield made
        assert made.state() == before, "something outside was changed"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def arena(warm: Arena, canary: Canary) -> Iterator[Arena]:
    """The arena for one attack, checked afterwards."""
    before = set(descendants(os.getpid())) | set(_ids(strangers(set(), set())))
    yield warm
    workers = warm.workers()
    left = wait_for_none(workers, before - workers)
    assert left == [], "something was left running"
    warm.check_neighbours()
    left = wait_for_none(warm.workers(), before)
    assert left == [], "something was left running"


@pytest.fixture(params=USED)
def commands(request: pytest.FixtureRequest, tmp_path: Path, canary: Canary) -> Iterator[SandboxRunner]:
    """A sandbox for commands, checked afterwards."""
    if request.param == "landlock" and os.getuid() == 0 and not readable_by_others(interpreter().program):
        pytest.skip("landlock runs no commands of root with an interpreter that others cannot read")
    before = set(descendants(os.getpid()))
    sandbox = sandbox_or_skip(tmp_path / "scratch", request.param)
    yield sandbox
    assert wait_for_none(set(), before) == [], "something was left running"
    assert not (tmp_path / "scratch").exists() or list((tmp_path / "scratch").iterdir()) == []


def _ids(described: list[str]) -> Iterator[int]:
    return (int(line.split()[0]) for line in described)
