"""Reading a job's answer: a quick one in one go, a long one while it is written."""

import os
import threading

import pytest

from touchstone.validation.sandbox.clock import LimitExceeded
from touchstone.validation.sandbox.warm_worker import read_until_closed

LINE = b"x" * 99 + b"\n"


@pytest.mark.parametrize(
    ("lines", "read", "exceeded"),
    [(0, 0, None), (10, 10, None), (10_000, 10_000, None), (30_000, None, LimitExceeded("output_limit"))],
)
def test_an_answer_is_read_whole_or_stopped_at_its_limit(
    lines: int, read: int | None, exceeded: LimitExceeded | None
) -> None:
    reads, writes = os.pipe()

    def write() -> None:
        with os.fdopen(writes, "wb", buffering=0) as pipe:
            try:
                for _ in range(lines):
                    pipe.write(LINE)
            except BrokenPipeError:
                return

    writer = threading.Thread(target=write)
    writer.start()
    answer, found = read_until_closed(reads, 2_000_000, lambda: None)
    os.close(reads)
    writer.join()
    assert found == exceeded
    if read is not None:
        assert answer == LINE * read
    else:
        assert len(answer) > 2_000_000


def test_a_limit_is_noticed_while_nothing_is_written() -> None:
    reads, writes = os.pipe()
    os.write(writes, LINE)
    too_late = LimitExceeded("timeout", "it took too long")
    assert read_until_closed(reads, 1000, lambda: too_late) == (LINE, too_late)
    os.close(reads)
    os.close(writes)
