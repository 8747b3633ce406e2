"""The validator interface: its inputs (problems, file trees, jobs) and outputs (diagnostics, reports).

Plain data that crosses process boundaries and goes into the cache, so nothing here imports Polars. Validators belong
in `validators/`; what a report means for a fix belongs in `judging`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol, Self

from touchstone.regular_files import read_beneath

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning of a validator. Lines and columns count from 1; `file` is relative to the tree's root.

    A failed test is an error whose `test` is the test's name. `output` is what a program printed; it differs from run
    to run, so it is shown and never compared.
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
    output: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """Equal for the same diagnostic before and after an edit moves it: the test name, else message and file."""
        if self.test is not None:
            return (self.severity, "test", self.test)
        return (self.severity, self.summary, self.detail, self.file or "")

    def __str__(self) -> str:
        where = f" ({self.file}{f':{self.line}' if self.line else ''})" if self.file else ""
        return ": ".join([self.severity, f"{self.summary}{where}", *filter(None, (self.detail, self.output))])


# Of a test that did not come to its end.
NOT_REPORTED = "it did not report"


@dataclass(frozen=True)
class TestControl:
    """The findings of the negative control in one test (`pytest_runner.controls`).

    `ended`: it ran to its end, where an assertion fails. `passed`: it passed all the same. `held`: what no honest fix
    does, mostly the file and line where a wrong value was accepted. `doubts`: what keeps its pass from being judged,
    each with the text of the fix in question.
    """

    __test__ = False

    ended: bool = False
    passed: bool = False
    held: tuple[str, ...] = ()
    doubts: tuple[tuple[str, str], ...] = ()

    @property
    def doubtful(self) -> bool:
        """Whether it speaks against the fix in a way that chance may explain.

        No chance makes a test pass whose last assertion is false, or a value equal to two others at once.
        """
        return not self.certain and not self.ended

    @property
    def certain(self) -> bool:
        """Whether it speaks against the fix in a way that chance does not explain."""
        return self.passed or bool(self.ended and self.held)

    def confirmed_by(self, other: "TestControl") -> "TestControl":
        """The findings that two controls of a test agree on; a finding of one alone does not count.

        >>> TestControl(True, held=("a:1", "a:2")).confirmed_by(TestControl(True, held=("a:2",))).held
        ('a:2',)
        """
        return TestControl(
            self.ended or other.ended,
            self.passed and other.passed,
            tuple(place for place in self.held if place in other.held),
            tuple(dict.fromkeys((*self.doubts, *other.doubts))),
        )


@dataclass(frozen=True)
class Report:
    """A validator's findings in one tree.

    `status` is one of `touchstone.vocabulary.STATUSES`: `passed` means no errors, `failed` means errors, and any other
    status means the validator did not finish. `consistent` is False if the exit code contradicts the parsed report.
    `starved`: it, or its control, timed out while the machine was too busy to run it. `cpu_used`: it used up its CPU
    time. `declared` lists what the tree declares and a fix must not remove, each as a type and names; None if that is
    unknown. `doubts` are what the validator cannot judge in this tree, each with its reason and the text in question.
    `steady`: until it used up its CPU time, one test after another ended, so the limit may be too low for all of them.
    `skipped`: tests that neither passed nor failed. `control`: what the negative control says of each test that has one
    (see `judging.known_tests`); None if no control was run.
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
    cpu_used: bool = False
    steady: bool = False
    declared: tuple[tuple[str, ...], ...] | None = None
    skipped: tuple[str, ...] = ()
    control: Mapping[str, TestControl] | None = None
    doubts: tuple[tuple[str, str], ...] = ()

    @property
    def decided(self) -> bool:
        """Whether the validator reached a result for this tree."""
        return self.status not in UNDECIDED

    @property
    def finished(self) -> bool:
        """Whether the validator came to its end, with errors or without."""
        return self.status in ("passed", "failed")

    @property
    def settled(self) -> bool:
        """Whether a repeat would give the same result, so that the report may be cached.

        A validation that used up its CPU time would do so again, unless it had to share the processor.
        """
        return self.status not in RETRIED or (self.status == "timeout" and self.cpu_used and not self.starved)

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
        plain = {**vars(self), "diagnostics": [dict(vars(one)) for one in self.diagnostics], "tests": dict(self.tests)}
        if self.control is not None:
            plain["control"] = {name: dict(vars(one)) for name, one in self.control.items()}
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild a report from `to_plain`."""
        fields = {name: _with_tuples(value) for name, value in {**plain}.items()}
        fields["diagnostics"] = tuple(Diagnostic(**entry) for entry in fields["diagnostics"])
        if (control := fields.get("control")) is not None:
            fields["control"] = {name: TestControl(**_with_tuples(one)) for name, one in {**control}.items()}
        return cls(**fields)


def _with_tuples(value: Any) -> Any:
    """A value from JSON with tuples for lists, at any depth of lists and in the entries of an object."""
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    return {name: _with_tuples(one) for name, one in value.items()} if isinstance(value, dict) else value


UNDECIDED = ("sandbox_error", "validator_unavailable", "unsafe_input")
# Possibly caused by the machine: never cached, and retried by the next run.
RETRIED = (*UNDECIDED, "timeout", "no_report")
# A column beside those of `baselines` and `outcomes`: False if the next run must try again. Null in rows without a
# validator, which follow from the inputs alone.
SETTLED = "settled"


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
    # The lines that a block fix replaces, where they are not those of the error.
    block_start: int | None = None
    block_end: int | None = None
    severity: str | None = None
    summary: str | None = None
    reference_fix: str | None = None
    reference_patch: str | None = None
    resource_schema: str | None = None
    tests: tuple[str, ...] = ()
    expected_tests: tuple[str, ...] = ()
    # A folder whose packages a Python problem uses instead of those of the configured interpreter.
    environment: Path | None = None
    # For `command`: the shell commands, the format of the report, and the tests by which alone a fix is judged.
    test_command: str | None = None
    setup_command: str | None = None
    test_report: str | None = None
    report_file: str | None = None
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    # The files on the judge's side, which no fix changes; those that both sides reach; and patterns for new files.
    judge_files: tuple[str, ...] = ()
    shared_files: tuple[str, ...] = ()
    judge_patterns: tuple[str, ...] = ()
    source_patterns: tuple[str, ...] = ()

    @property
    def judged_tests(self) -> tuple[str, ...]:
        """The tests that must pass, and by which alone a fix is judged; empty if the problem does not name them."""
        return tuple(dict.fromkeys((*self.fail_to_pass, *self.pass_to_pass)))

    @property
    def has_block(self) -> bool:
        """Whether the problem says where its block starts."""
        return self.block_start is not None or self.line_start is not None

    @property
    def block_lines(self) -> tuple[int, int] | None:
        """The block's first and last line: as the problem states them, else the lines of the error."""
        if self.block_start is not None and self.block_end is not None:
            return self.block_start, self.block_end
        start = self.line_end if self.line_start is None else self.line_start
        return None if start is None else (start, start if self.line_end is None else self.line_end)

    @cached_property
    def path(self) -> str:
        """The file being repaired, relative to the tree's root."""
        return str(PurePosixPath(self.working_directory) / self.filename)


@dataclass(frozen=True)
class Tree:
    """The files to validate: a problem's files, some of them replaced. Files on disk are only read.

    `files` lists the paths in the tree, sorted and relative to `root`; `changed` maps paths to replaced contents.
    `executable` says of changed files whether they are, where a fix decides it.
    """

    root: Path
    files: tuple[str, ...]
    changed: Mapping[str, bytes] = field(default_factory=dict)
    executable: Mapping[str, bool] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """The content of one file."""
        return self.changed[path] if path in self.changed else read_beneath(self.root, path)

    def within(self, directory: str) -> Iterator[str]:
        """The files in a directory, at any depth; "" is the root."""
        prefix = f"{directory}/" if directory not in ("", ".") else ""
        return (path for path in self.files if path.startswith(prefix))

    def with_file(self, path: str, content: bytes) -> "Tree":
        """The same tree with one file replaced or added."""
        return self.with_changes({path: content})

    def with_changes(self, changes: Mapping[str, bytes | None], executable: Mapping[str, bool] | None = None) -> "Tree":
        """The same tree with files replaced, added or, where the content is None, deleted.

        >>> tree = Tree(Path("shop"), ("a", "b")).with_changes({"a": None, "c": b"new"})
        >>> tree.files, dict(tree.changed)
        (('b', 'c'), {'c': b'new'})
        """
        written = {path: content for path, content in changes.items() if content is not None}
        before = set(self.files)
        after = (before | written.keys()) - (changes.keys() - written.keys())
        changed = {path: content for path, content in {**self.changed, **written}.items() if path in after}
        files = self.files if after == before else tuple(sorted(after))
        modes = {**self.executable, **(executable or {})}
        modes = {path: mode for path, mode in modes.items() if path in changed}
        return replace(self, files=files, changed=dict(sorted(changed.items())), executable=modes)


@dataclass(frozen=True)
class NoTarget:
    """Why fixes of a problem cannot be validated. `requirements`: an environment for these must be prepared."""

    status: str
    reason: str
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """One tree to validate: a problem's files with a fix applied, or unmodified if not `is_fix`."""

    problem: Problem
    tree: Tree
    is_fix: bool = True


@dataclass(frozen=True)
class Availability:
    """Whether a validator works on this machine; if not, `detail` says why and `remedy` what to do."""

    usable: bool
    detail: str
    remedy: str = ""


class Validator(Protocol):
    """Validates trees. One object serves one worker process and may keep warm processes until it is closed.

    `identity` is the part of the cache key that only the validator knows: programs, packages and files on this machine.
    The tree, the problem, the settings and the limits are part of the key already. Plain data, cheap to compute.
    """

    name: str
    version: str

    def probe(self) -> Availability:
        """Try the validator and return whether it works here. A warm process may stay for the jobs that follow."""

    def fidelity(self, problem: Problem) -> str:
        """How thoroughly this problem is checked: syntax, static, static+schema or full."""

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """The identity of everything on this machine that the report on this problem depends on."""

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """Yield one report per job, in order, as each is ready."""

    def close(self) -> None:
        """Stop any processes that are kept running."""
