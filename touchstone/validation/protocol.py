"""The validator interface: its inputs (problems, file trees, jobs) and outputs (diagnostics, reports).

Plain data that crosses process boundaries and goes into the cache, so nothing here imports Polars. Validators belong
in `validators/`; what a report means for a fix belongs in `verdicts`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol, Self

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning of a validator. Lines and columns count from 1; `file` is relative to the tree's root.

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
        """Equal for the same diagnostic before and after an edit moves it: the test name, else message and file."""
        if self.test is not None:
            return (self.severity, "test", self.test)
        return (self.severity, self.summary, self.detail, self.file or "")

    def __str__(self) -> str:
        where = f" ({self.file}{f':{self.line}' if self.line else ''})" if self.file else ""
        return f"{self.severity}: {self.summary}{where}{f': {self.detail}' if self.detail else ''}"


@dataclass(frozen=True)
class Report:
    """What a validator found in one tree.

    `status` is one of `touchstone.vocabulary.STATUSES`: `passed` means no errors, `failed` means errors, and any other
    status means the validator did not finish. `consistent` is False if the exit code contradicts the parsed report.
    `starved`: it timed out because the machine was too busy to run it. `skipped`: tests that neither passed nor failed.
    `cannot_judge`: why the runner may have misjudged this tree; it counts for a problem, never for a fix.
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
    skipped: tuple[str, ...] = ()
    cannot_judge: str = ""

    @property
    def decided(self) -> bool:
        """Whether the validator reached a result for this tree."""
        return self.status not in UNDECIDED

    @property
    def settled(self) -> bool:
        """Whether a repeat would give the same result, so that the report may be cached."""
        return self.status not in RETRIED

    def without_tests(self, names: Collection[str]) -> "Report":
        """The report as if there were no such tests; passed if nothing else failed.

        >>> flaky = Diagnostic("error", "test failed: test_clock", test="test_clock")
        >>> Report("failed", "full", (flaky,), tests={"test_clock": False, "test_sum": True}).without_tests(
        ...     {"test_clock"}
        ... ).status
        'passed'
        """
        if not names:
            return self
        left = tuple(found for found in self.diagnostics if found.test is None or found.test not in names)
        failed_by_them = len(left) < len(self.diagnostics) and not any(found.severity == "error" for found in left)
        return replace(
            self,
            status="passed" if self.status == "failed" and self.consistent and failed_by_them else self.status,
            diagnostics=left,
            tests={name: passed for name, passed in self.tests.items() if name not in names},
            skipped=tuple(name for name in self.skipped if name not in names),
        )

    def to_plain(self) -> dict[str, Any]:
        """Convert to plain data for JSON."""
        # Not `dataclasses.asdict`: it copies every string, which takes longer than writing the JSON.
        return {**vars(self), "diagnostics": [dict(vars(one)) for one in self.diagnostics], "tests": dict(self.tests)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild a report from `to_plain`."""
        found = tuple(Diagnostic(**entry) for entry in plain["diagnostics"])
        return cls(**{**plain, "diagnostics": found, "skipped": tuple(plain.get("skipped", ()))})


UNDECIDED = ("sandbox_error", "validator_unavailable", "unsafe_input")
# Possibly caused by the machine: never cached, and retried by the next run.
RETRIED = (*UNDECIDED, "timeout", "no_report")


@dataclass(frozen=True)
class Problem:
    """A problem as validation uses it. `filename` is relative to `working_directory`, which is relative to `root`."""

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
    # The runner of a Python problem's tests, chosen once for the problem and all its fixes: isolated or pytest.
    runner: str | None = None

    @cached_property
    def path(self) -> str:
        """The file being repaired, relative to the tree's root."""
        return str(PurePosixPath(self.working_directory) / self.filename)


@dataclass(frozen=True)
class Tree:
    """The files to validate: a problem's files, some of them replaced. Files on disk are only read.

    `files` lists the paths in the tree, sorted and relative to `root`; `changed` maps paths to replaced contents.
    """

    root: Path
    files: tuple[str, ...]
    changed: Mapping[str, bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """The content of one file."""
        return self.changed[path] if path in self.changed else (self.root / path).read_bytes()

    def within(self, directory: str) -> Iterator[str]:
        """The files in a directory, at any depth; "" is the root."""
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
    """One tree to validate: a problem's unmodified files, or its files with a fix applied."""

    problem: Problem
    tree: Tree


@dataclass(frozen=True)
class Availability:
    """Whether a validator works on this machine; if not, `detail` says why and `remedy` what to do."""

    usable: bool
    detail: str
    remedy: str = ""


class Validator(Protocol):
    """Validates trees. One object serves one worker process and may keep warm processes until it is closed.

    `identity` holds everything besides the tree that can change the report: version, settings, toolchain. It is part
    of the cache key, so it must be plain data and cheap to compute.
    """

    name: str
    version: str

    def probe(self) -> Availability:
        """Try the validator and return whether it works here."""

    def fidelity(self, problem: Problem) -> str:
        """How thoroughly this problem is checked: syntax, static, static+schema or full."""

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """Everything besides the tree that the report on this problem depends on."""

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """Yield one report per job, in order, as each is ready."""

    def close(self) -> None:
        """Stop any processes that are kept running."""
