"""The same verdicts on an idle machine and with four busy processes beside it."""

from pathlib import Path

import pytest

from tests.load import busy
from tests.validation.attacks.arena import BAD, GOOD, problem_in

# Half of the limit in CPU time: with a processor of its own half of the limit in seconds, on a busy machine far more.
SLOW = """
import time
while time.process_time() < 1.5: pass
def add(a, b): return a + b
"""
FIXES = {
    GOOD: "passed",
    SLOW: "passed",
    SLOW.replace("a + b", "a - b"): "failed",
    "while True: pass\n": "timeout",
    "import time\ntime.sleep(600)\n": "timeout",
    "held = []\nwhile True: held.append(bytearray(1 << 20))\n": "failed",
    "import os\nos._exit(0)\n": "failed",
    "def add(a, b: return a + b\n": "failed",
    BAD: "failed",
}
LIMITS = {"seconds": 3, "wall_seconds": 30, "memory_mb": 256}


# Whether the limit or the fix's own error is noticed first, and whether pytest gets to say so, is up to the moment.
FAILURES = ("failed", "memory_limit", "no_report")


def verdicts(statuses: list[str]) -> list[str]:
    return ["failed" if status in FAILURES else status for status in statuses]


@pytest.mark.nightly
def test_verdicts_do_not_depend_on_the_load(tmp_path: Path) -> None:
    run = problem_in(tmp_path)
    idle = verdicts(run.statuses(*FIXES, workers=2, limits=LIMITS))
    assert idle == list(FIXES.values())
    with busy(4):
        assert verdicts(run.statuses(*FIXES, fresh=True, workers=2, limits=LIMITS)) == idle
