"""Out of memory in the process of a run: the last results stay, and the next run repairs.

In the process of an attempt it is that attempt's outcome: `tests/validation/attacks/test_resources.py`. If the kernel
ends the run for it, that is a SIGKILL: `test_killed.py`; if it ends a worker, see `tests/workers/test_processes.py`.
"""

import signal
import subprocess
import sys

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


# Seconds; a run takes a few, also beside others.
HANGS = 300
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
sys.argv[1:] = sys.argv[2:]
from touchstone.cli.main import main
main()
"""


@pytest.mark.nightly
@pytest.mark.parametrize("mebibytes", [512, 768, 1024, 1536, 2048, 8192])
def test_a_limited_address_space(changed: Changed, mebibytes: int) -> None:
    """From too little to do anything to enough for all but the charts, whose engine reserves 64 GiB.

    With less, OpenBLAS ends the process while it is imported, with a line of its own.
    """
    folder = changed.copy()
    folder.configure(publish={"report": True})
    command = [sys.executable, "-c", LIMITED, str(mebibytes * 2**20), "run", "--config", folder.config]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS)
    except subprocess.TimeoutExpired:  # ended by SIGKILL: at times it hangs while Polars reads
        changed.assert_whole(folder)
        changed.assert_repaired_by_the_next_run(folder)
        return
    changed.assert_whole(folder)
    assert "Traceback" not in done.stderr, done.stderr
    if done.returncode != -signal.SIGABRT:  # that of Polars, which cannot be caught
        assert done.returncode in (0, 2), done.stderr
    if done.returncode == 2:
        # What Python says of exceptions that it ignores may lack the memory for a line end.
        assert "error: " in done.stderr.splitlines()[-1], done.stderr
    assert done.returncode == 0 or mebibytes < 8192, done.stderr
    changed.assert_repaired_by_the_next_run(folder)
