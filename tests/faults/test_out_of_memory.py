"""Out of memory in the process of a run: the last results stay, and the next run repairs.

In the process of an attempt it is that attempt's outcome: `tests/validation/attacks/test_resources.py`. If the kernel
ends the run for it, that is a SIGKILL: `test_killed.py`.
"""

import signal

import pytest

from tests.faults.conftest import Changed
from tests.faults.harness import run
from tests.faults.hooks import Fault


@pytest.mark.nightly
@pytest.mark.parametrize("at", ["stamps/pass_at_k/", "manifest.json", "published/2/tables"])
def test_out_of_memory(changed: Changed, at: str) -> None:
    folder = changed.copy()
    done = run(folder, Fault("no memory", path=at))
    assert done.code == 2 and done.error.startswith("out of memory; give the process more")
    changed.assert_whole(folder)
    changed.assert_repaired_by_the_next_run(folder)


@pytest.mark.nightly
def test_little_memory(changed: Changed) -> None:
    """Polars aborts the process, with a message of its own, if an allocation fails."""
    folder = changed.copy()
    done = run(folder, Fault("little memory", at=1))
    assert done.code in (2, -signal.SIGABRT)
    changed.assert_whole(folder)
    changed.assert_repaired_by_the_next_run(folder)
