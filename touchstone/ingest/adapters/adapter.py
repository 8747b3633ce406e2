"""What every adapter declares: its name, how it recognizes a file or folder, and how it reads one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.table import AdapterTable
from touchstone.vocabulary import FileStatus


class NotEvaluatedError(InputFileError):
    """A file of a known format that is not read, although nothing is wrong with it; `status` says how it counts."""

    def __init__(self, message: str, status: FileStatus) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class ReadOptions:
    """What a user may say about files whose content leaves it open.

    `score` names one of several scores. `junit_pattern` says which parts of a path are the model, the tier and the
    attempt. `problems` are the ids of all problems, for files that do not list failures. `columns` maps the column
    names of plain tables to ours, and `problem_key` is the column of the problem.
    """

    score: str | None = None
    junit_pattern: str | None = None
    problems: frozenset[str] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    problem_key: str = "oid"


@dataclass(frozen=True)
class Adapter:
    """One format. `read` raises `InputFileError` for a file that cannot be used at all."""

    format: str
    # What a file of this format is called: "Inspect AI log".
    title: str
    recognizes: Callable[[Head], bool]
    read: Callable[[Path, ReadOptions], AdapterTable]
    # Others look for files beside theirs, or take names from theirs.
    reads_compressed: bool = False
