"""A busy machine, made to order."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LOOP = "print('at work', flush=True)\nwhile True: pass\n"


@contextmanager
def busy(count: int, on: int | None = None) -> Iterator[list[int]]:
    """Processes that compute without end, all of them on one processor if it is named; ended afterwards."""
    script = f"import os\nos.sched_setaffinity(0, {{{on}}})\n{_LOOP}" if on is not None else _LOOP
    processes = [
        subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@contextmanager
def one_crowded_processor(others: int) -> Iterator[None]:
    """This process and all that it starts share one processor with others that compute without end."""
    before = os.sched_getaffinity(0)
    one = min(before)
    with busy(others, on=one):
        os.sched_setaffinity(0, {one})
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)
