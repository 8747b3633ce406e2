"""Files that are recognized only to say what to do with them: Git LFS pointers."""

from pathlib import Path
from typing import NoReturn

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, ReadOptions

_POINTER = "version https://git-lfs.github.com/spec/"


def _refuse_pointer(path: Path, _: ReadOptions) -> NoReturn:
    raise InputFileError(f"{path}: a Git LFS pointer, the file itself is not here; download it with `git lfs pull`")


# Repositories of results keep their large files in LFS, so any format may come as a pointer of three lines.
GIT_LFS = Adapter("git-lfs", "a Git LFS pointer", lambda head: head.text.startswith(_POINTER), _refuse_pointer)
