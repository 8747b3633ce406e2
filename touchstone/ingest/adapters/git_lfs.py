"""Git LFS pointers: three lines of text that stand for a file which was not downloaded.

Repositories of results keep their large files in LFS, so any format may come as a pointer.
"""

from pathlib import Path
from typing import NoReturn

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, ReadOptions
from touchstone.ingest.adapters.head import Head

FORMAT = "git-lfs"
_START = "version https://git-lfs.github.com/spec/"


def _recognizes(head: Head) -> bool:
    return head.text.startswith(_START)


def _refuse(path: Path, _: ReadOptions) -> NoReturn:
    raise InputFileError(f"{path}: a Git LFS pointer, the file itself is not here; download it with `git lfs pull`")


ADAPTER = Adapter(FORMAT, "a Git LFS pointer", _recognizes, _refuse)
