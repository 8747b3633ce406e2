"""A clock that goes back, between runs and during one: snapshots keep their order, and no two have the same id."""

import pytest

from tests.faults.conftest import CHANGED, Changed
from tests.faults.harness import run, seen, snapshot_ids
from tests.faults.hooks import Fault
from touchstone.storage.snapshots import find

BETWEEN_RUNS, IN_A_RUN = Fault("clock back", at=1), Fault("clock back", path="stamps/pass_at_k/")


@pytest.mark.nightly
@pytest.mark.parametrize("fault", [BETWEEN_RUNS, IN_A_RUN])
def test_snapshots_keep_their_order(changed: Changed, fault: Fault) -> None:
    folder = changed.copy()
    (first,) = snapshot_ids(folder.output)
    assert run(folder, fault).code == 0
    assert seen(folder.output) == changed.after
    assert snapshot_ids(folder.output)[0] == find(folder.output, "previous").id == first
    again = run(folder, fault, "--force")
    assert again.code == 0 and len(snapshot_ids(folder.output)) == 2, "nothing changed, so there is no other snapshot"


@pytest.mark.nightly
def test_results_that_come_back_are_new_snapshots(changed: Changed) -> None:
    folder = changed.copy()
    for outcomes in (CHANGED, CHANGED.replace("true", "false"), CHANGED):
        folder.fixes("m", outcomes)
        assert run(folder, BETWEEN_RUNS).code == 0
    ids = snapshot_ids(folder.output)
    assert len(ids) == 4 and ids == sorted(ids)
