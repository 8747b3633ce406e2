"""The logs of an instance that the harness did not finish, which tell whether the patch or the harness failed."""

import re
from pathlib import Path

from touchstone.ingest.adapters.folders import text_in
from touchstone.ingest.adapters.swebench.statuses import ERROR, PATCH_FAILED, TIMEOUT

RUNS = Path("logs", "run_evaluation")
LOG, TEST_OUTPUT = "run_instance.log", "test_output.txt"
_PATCH_MARK = ">>>>> Patch Apply Failed"
_TIMEOUT = re.compile(r"Timeout error: \d+ seconds exceeded|Test timed out after \d+ seconds|>>>>> Tests Timed Out")
_ERROR_LENGTH = 300
# The end of a log tells why the harness gave up.
_LOG_BYTES = 1 << 20


def cause_of_error(folder: Path) -> tuple[str, str | None]:
    """The status of an instance without a report, and why there is none.

    The harness stops at a patch that does not apply and at tests that time out, as it does at errors of its own.
    """
    log = text_in(folder / LOG, _LOG_BYTES) or ""
    if _PATCH_MARK in log:
        return PATCH_FAILED, "the patch does not apply"
    if _TIMEOUT.search(text_in(folder / TEST_OUTPUT, _LOG_BYTES) or "") or _TIMEOUT.search(log):
        return TIMEOUT, "the tests timed out"
    lines = [line for line in log.splitlines() if "Error" in line]
    return ERROR, lines[-1][:_ERROR_LENGTH] if lines else "the harness wrote no report"
