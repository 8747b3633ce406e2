"""SIGKILL before any file operation of a run: the last results stay, the next run repairs, nothing is doubled."""

import signal

import pytest

from tests.faults.conftest import SHARES, Changed
from tests.faults.harness import run
from tests.faults.hooks import Fault


def assert_survives(changed: Changed, fault: Fault) -> None:
    folder = changed.copy()
    assert run(folder, fault).code == -signal.SIGKILL
    changed.assert_whole(folder)
    changed.assert_repaired_by_the_next_run(folder)


@pytest.mark.services
@pytest.mark.parametrize("before", [".store/current", pytest.param("manifest.json", marks=pytest.mark.nightly)])
def test_killed_while_publishing(changed: Changed, before: str) -> None:
    assert_survives(changed, Fault("kill", path=before))


@pytest.mark.nightly
@pytest.mark.parametrize("share", range(SHARES))
def test_killed_before_any_file_operation(changed: Changed, share: int) -> None:
    for at in changed.places(share):
        assert_survives(changed, Fault("kill", at))
