"""Runs on a tmpfs that gets full: `python -m tests.faults.on_tmpfs FOLDER MOUNT_POINT KIB…` in a mount namespace.

Prints what each run said, and whether readers then saw the last results whole and the next run repaired them.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from tests.conftest import Folder
from tests.faults.harness import run, seen


def main(source: Path, place: Path, spaces: list[int]) -> None:
    """Run with so many KiB free, each time on a copy."""
    results = []
    expected: dict[str, str] | None = None
    for space in spaces:
        folder = Folder(Path(shutil.copytree(source, place / "copy", symlinks=True)))
        before = seen(folder.output)
        fill(place / "filler", space)
        done = run(folder)
        after = seen(folder.output)
        (place / "filler").unlink()
        again = run(folder)
        expected = expected or seen(folder.output)
        whole = after in (before, expected)
        repaired = again.code == 0 and seen(folder.output) == expected
        results.append([space, done.code, done.stderr.splitlines()[-1:], whole, repaired])
        shutil.rmtree(place / "copy")
    print(json.dumps(results))


def fill(filler: Path, kib_left: int) -> None:
    """Fill the file system with a file, but for so many KiB."""
    free = os.statvfs(filler.parent)
    filler.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - kib_left * 1024)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [int(space) for space in sys.argv[3:]])
