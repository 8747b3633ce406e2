"""A full disk and a folder that cannot be written: one line says so, and the last results stay."""

import pytest

from tests.faults.conftest import Changed
from tests.faults.harness import run
from tests.faults.hooks import Fault

SHARES = 8
FULL = "no space left on the disk; free some and try again"


def assert_survives(changed: Changed, fault: Fault) -> None:
    folder = changed.copy()
    done = run(folder, fault)
    changed.assert_whole(folder)
    if done.code != 0:  # What only makes the next run quicker may fail.
        assert done.code == 2 and FULL in done.error, done.stderr
    changed.assert_repaired_by_the_next_run(folder)


@pytest.mark.parametrize("at", ["stamps/pass_at_k/", "published/2/tables"])
def test_full_from_a_moment_on(changed: Changed, at: str) -> None:
    assert_survives(changed, Fault("full disk", path=at))


@pytest.mark.nightly
@pytest.mark.parametrize("share", range(SHARES))
def test_full_from_any_file_operation_on(changed: Changed, share: int) -> None:
    for at in range(1 + share, len(changed.operations) + 1, SHARES):
        assert_survives(changed, Fault("full disk", at))
