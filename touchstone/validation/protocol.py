"""What goes into a validator and what comes out: problems, trees of files, diagnostics, reports.

Plain data that travels between processes and into the cache, so nothing here imports Polars. How a validator works
belongs in `validators/`; what its report means for a fix belongs in `verdicts`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol, Self

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Diagnostic:
    """One complaint of a validator. Lines and columns count from 1; `file` is relative to the tree's root.

    A failed test is an error whose `test` is the test's name.
    """

    severity: Severity
    summary: str
    detail: str = ""
    file: str | None = None
    line: int | None = None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    test: str | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes it the same complaint after an edit has moved it: a test's name, else words and file."""
        if self.test is not None:
            return (self.severity, "test", self.test)
        return (self.severity, self.summary, self.detail, self.file or "")

    def __str__(self) -> str:
        where = f" ({self.file}{f':{self.line}' if self.line else ''})" if self.file else ""
        return f"{self.severity}: {self.summary}{where}{f': {self.detail}' if self.detail else ''}"


@dataclass(frozen=True)
class Report:
    """What a validator found in one tree.

    `status` is one of `touchstone.vocabulary.STATUSES`: `passed` means that no error was found, `failed` that some
    were, and anything else that the validator did not get so far. `consistent` is False where the exit code and the
    parsed report contradict each other. `starved`: it timed out on a machine too busy to let it run.
    """

    status: str
    fidelity: str
    diagnostics: tuple[Diagnostic, ...] = ()
    compiled: bool | None = None
    tests: Mapping[str, bool] = field(default_factory=dict)
    lint_warnings: int | None = None
    consistent: bool = True
    note: str = ""
    duration_seconds: float = 0.0
    starved: bool = False

    @property
    def decided(self) -> bool:
        """Whether the validator judged the tree, rather than being kept from it."""
        return self.status not in UNDECIDED

    @property
    def settled(self) -> bool:
        """Whether the same would come of it another time, so that it may be kept."""
        return self.status not in RETRIED

    def to_plain(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        # By hand: `dataclasses.asdict` copies every text, which takes longer than to write the JSON.
        return {**vars(self), "diagnostics": [dict(vars(one)) for one in self.diagnostics], "tests": dict(self.tests)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """From plain data."""
        found = tuple(Diagnostic(**entry) for entry in plain["diagnostics"])
        return cls(**{**plain, "diagnostics": found})


UNDECIDED = ("sandbox_error", "validator_unavailable", "unsafe_input")
# What may have been the machine's doing: never kept, and tried again by the next run.
RETRIED = (*UNDECIDED, "timeout", "no_report")


@dataclass(frozen=True)
class Problem:
    """One problem as validation sees it. `filename` is relative to `working_directory`, that to the tree's root."""

    oid: str
    filename: str
    root: Path
    working_directory: str = ""
    language: str = ""
    line_start: int | None = None
    line_end: int | None = None
    severity: str | None = None
    summary: str | None = None
    reference_fix: str | None = None
    resource_schema: str | None = None
    tests: tuple[str, ...] = ()
    expected_tests: tuple[str, ...] = ()

    @cached_property
    def path(self) -> str:
        """The file being repaired, relative to the tree's root."""
        return str(PurePosixPath(self.working_directory) / self.filename)


@dataclass(frozen=True)
class Tree:
    """A problem's files with one of them replaced: what is validated. The files on disk are only ever read.

    `files` are the paths under `root` that belong to the tree, relative and in order; `changed` holds what stands in
    place of some of them.
    """

    root: Path
    files: tuple[str, ...]
    changed: Mapping[str, bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """One file's bytes."""
        return self.changed[path] if path in self.changed else (self.root / path).read_bytes()

    def within(self, directory: str) -> Iterator[str]:
        """The files directly or deeper in a directory; "" is the root."""
        prefix = f"{directory}/" if directory not in ("", ".") else ""
        return (path for path in self.files if path.startswith(prefix))

    def with_file(self, path: str, content: bytes) -> "Tree":
        """The same tree with one file replaced or added."""
        return replace(
            self,
            files=self.files if path in self.files else tuple(sorted((*self.files, path))),
            changed=dict(sorted({**self.changed, path: content}.items())),
        )


@dataclass(frozen=True)
class Job:
    """One thing to validate: a problem's tree, as it came or with a fix in it."""

    problem: Problem
    tree: Tree


@dataclass(frozen=True)
class Availability:
    """Whether a validator can work here; where not, `detail` says why and `remedy` what to do."""

    usable: bool
    detail: str
    remedy: str = ""


class Validator(Protocol):
    """Judges trees. One object serves one worker process and may keep warm processes until it is closed.

    `identity` is everything besides the tree that can change its answer for a problem: version, settings, toolchain.
    It goes into the cache's key, so it must be plain data and cheap to ask for.
    """

    name: str
    version: str

    def probe(self) -> Availability:
        """Whether it can work here, tried out."""

    def fidelity(self, problem: Problem) -> str:
        """How much its verdict on this problem means: syntax, static, static+schema or full."""

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """What, besides the tree, the report on this problem depends on."""

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """A report on each job, in order, as they are ready."""

    def close(self) -> None:
        """End whatever it keeps running."""
