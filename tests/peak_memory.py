"""The peak memory of Python code in a process of its own.

`ru_maxrss` would not do: a child starts with the peak of the process that it was forked from, and a worker of pytest
may hold a gigabyte.
"""

import re
import subprocess
import sys

_TELL = "import atexit, sys; atexit.register(lambda: sys.stderr.write(open('/proc/self/status').read()))\n"


def run_measured(code: str, *arguments: str) -> tuple[str, int]:
    """What the code prints with these arguments, and the MiB that it needs at most."""
    command = [sys.executable, "-c", _TELL + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", done.stderr, re.MULTILINE)
    assert peak, done.stderr
    return done.stdout, int(peak[1]) // 1024
