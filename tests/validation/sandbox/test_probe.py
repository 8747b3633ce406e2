"""Choosing a sandbox: a backend that holds is found, and one that does not is refused with the reason."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.validation.sandbox.conftest import BACKENDS, need
from touchstone.errors import TouchstoneError
from touchstone.validation.sandbox import confinement, runner
from touchstone.validation.sandbox.backends import Bubblewrap, Landlock, Launch, Unsandboxed
from touchstone.validation.sandbox.runner import choose_sandbox, probe_backend


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_what_is_here_holds(tmp_path: Path, name: str) -> None:
    need(name)
    assert probe_backend(BACKENDS[name](), tmp_path / "scratch") is None
    assert list((tmp_path / "scratch").iterdir()) == []
    assert "TOUCHSTONE_PROBE_SECRET" not in os.environ


def test_bubblewrap_comes_first_and_another_can_be_asked_for(tmp_path: Path) -> None:
    for name, kind in BACKENDS.items():
        need(name)
        if kind is not Unsandboxed:
            wanted = "auto" if kind is Bubblewrap else name
            chosen = choose_sandbox(tmp_path, wanted)
            assert (type(chosen.backend), chosen.name, chosen.scratch) == (kind, name, tmp_path)


def test_without_bubblewrap_it_is_landlock(tmp_path: Path, without_bubblewrap: None) -> None:
    need("landlock")
    assert isinstance(choose_sandbox(tmp_path).backend, Landlock)
    with pytest.raises(TouchstoneError, match="bwrap is not installed"):
        choose_sandbox(tmp_path, "bubblewrap")


def test_without_any_the_refusal_says_what_to_install(
    tmp_path: Path, without_bubblewrap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confinement, "landlock_version", lambda: 0)
    with pytest.raises(TouchstoneError) as refused:
        choose_sandbox(tmp_path)
    said = str(refused.value)
    assert "\n" not in said
    assert said.startswith("no sandbox works here, so nothing is validated (bubblewrap: bwrap is not installed")
    for word in ("landlock: the kernel has no landlock", "apt-get install bubblewrap", "'validation.unsandboxed'"):
        assert word in said


def test_nothing_is_tried_where_none_is_wanted(tmp_path: Path, without_bubblewrap: None) -> None:
    chosen = choose_sandbox(tmp_path / "scratch", unsandboxed=True)
    assert (chosen.name, type(chosen.backend)) == ("none", Unsandboxed)
    assert not (tmp_path / "scratch").exists()


class Paper(Unsandboxed):
    """Claims to be a sandbox but does not isolate."""

    name = "paper"


class Limited(Unsandboxed):
    """Does not isolate either, but limits processes."""

    name = "limited"

    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        line, policy = super().wrap(launch)
        return line, policy | {"limits": asdict(launch.limits)}


@pytest.mark.parametrize("kind", [Paper, Limited])
def test_walls_that_are_not_there_are_named_and_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Unsandboxed]
) -> None:
    failure = probe_backend(kind(), tmp_path)
    assert failure is not None and failure.startswith("it does not hold: ")
    for wall in ("no read of a file outside", "no write outside", "no network", "no signal to the supervisor"):
        assert wall in failure
    assert "a private folder to write in" not in failure and "no secret in the environment" not in failure
    monkeypatch.setattr(runner, "BACKENDS", (kind,))
    with pytest.raises(TouchstoneError, match=rf"{kind.name}: it does not hold: .*no write.*install bubblewrap"):
        choose_sandbox(tmp_path)


class Open(Bubblewrap):
    """Bubblewrap with network access."""

    name = "open"
    left_out = "--unshare-net"

    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        line, policy = super().wrap(launch)
        policy["confined"] = False
        return [part for part in line if part != self.left_out], policy


def test_one_wall_that_is_missing_is_enough(tmp_path: Path) -> None:
    need("bubblewrap")
    assert probe_backend(Open(), tmp_path) == "it does not hold: no network"


class Broken(Bubblewrap):
    """Bubblewrap that cannot start."""

    def wrap(self, launch: Launch) -> tuple[list[str], dict[str, Any]]:
        line, policy = super().wrap(launch)
        return [line[0], "--no-such-option", *line[1:]], policy


def test_one_that_cannot_start_says_why(tmp_path: Path) -> None:
    need("bubblewrap")
    failure = probe_backend(Broken(), tmp_path)
    assert failure is not None
    assert failure.startswith("the sandbox could not be started: ") and "no-such-option" in failure
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [Bubblewrap, Broken])
def test_trying_leaves_no_descriptor_open(tmp_path: Path, kind: type[Bubblewrap]) -> None:
    need("bubblewrap")
    counts = []
    for _ in range(3):
        probe_backend(kind(), tmp_path)
        counts.append(len(list(Path("/proc/self/fd").iterdir())))
    assert len(set(counts)) == 1
