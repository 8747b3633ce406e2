"""The command line on a terminal of a given width: what a user sees."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from tests.conftest import command_environment


def on_terminal(home: Path, columns: int, *arguments: object) -> str:
    """What `touchstone` shows on a terminal with so many columns, without colours."""
    command = [Path(sys.executable).with_name("touchstone"), *(str(argument) for argument in arguments)]
    environment = {**command_environment(home), "TERM": "xterm-256color"}
    environment.pop("COLUMNS")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        seen = _read_all(ours)
    assert process.returncode == 0, seen
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)


def _read_all(descriptor: int) -> str:
    chunks = []
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # The other end was closed.
            chunk = b""
        if not chunk:
            break
        chunks.append(chunk)
    os.close(descriptor)
    return b"".join(chunks).decode().replace("\r\n", "\n")
