"""Rust crates validated with the real toolchain: build, run every test by name, count clippy's warnings.

`rust_in_sandbox` runs all steps in one sandbox, because each step needs the artifacts of the one before. A fix may try
to look tested without being so. Closed:

* A test counts only if its own process, started by exact name, exits with code 0 and prints the harness's
  announcement, result line and summary exactly once each (`libtest`). Names come from `--list`, and every expected
  test must be among them.
* Its `main` must return: a preloaded library sees that and tells it with a secret. Leaving in any other way, by exit,
  another program, a fork or a system call, is no pass. Documentation tests run with the same library where cargo starts
  them with its `runner`.
* Targets with `harness = false` are not counted. A source file or test program that changes after it was built voids
  the run. Processes left over by a step are killed before the next. The reporting process is closed to the candidate.
* A fix that introduces a way to replace `main`, functions of the C library, assertions or equality
  (`forgery_constructs`) cannot pass. Tests inside the sources that it changes are put back before they come here
  (`fixes.rust_tests`).

Not closed: the code under test shares one process with the harness, so code that searches its memory for the secret
can still print a pass and exit. A new type can lie in other ways than by equality. The candidate's build scripts and
procedural macros run with the compiler's rights in the sandbox, and can tell it what to link or print in its place. A
test can change the data files of later tests.
"""

import functools
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from touchstone.config.validation import RustProgram
from touchstone.validation import libtest
from touchstone.validation.files.file_identity import content_identity
from touchstone.validation.fixes.rust_tests import without_literals
from touchstone.validation.fixes.unified_diff import readable_patches
from touchstone.validation.libtest import ContradictionError
from touchstone.validation.protocol import Availability, Diagnostic, Job, Problem, Report, Tree
from touchstone.validation.sandbox.command import TMP, Command, CommandResult, Limits, Sandbox
from touchstone.validation.validators import common, rust_in_sandbox
from touchstone.validation.validators.common import (
    FULL,
    ReportFormatError,
    ToolchainValidator,
    take,
    take_objects,
    take_or_none,
)
from touchstone.validation.validators.lint import MOST_WARNINGS

RUST_LIMITS = Limits(seconds=240.0, wall_seconds=480.0)

_SAMPLE = common.sample(
    {
        "Cargo.toml": b'[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": b"#[test]\nfn sound() {}\n",
    },
    "src/lib.rs",
)
_REMEDY = "install Rust (Debian and Ubuntu: apt-get install cargo), or set validation.rust.cargo to its program"
_OFFLINE = re.compile(r"offline mode \(.*--offline|--offline was specified|without --offline")


@dataclass(frozen=True)
class Toolchain:
    """An installed Rust toolchain."""

    sysroot: Path
    version: str

    def program(self, name: str) -> Path:
        """The path of one of its programs."""
        return self.sysroot / "bin" / name


class RustValidator(ToolchainValidator[Toolchain]):
    """Builds and tests the crate in the problem's working directory of each tree."""

    name = "rust"
    sample = _SAMPLE

    def __init__(self, sandbox: Sandbox, limits: Limits, settings: RustProgram) -> None:
        self._settings = settings
        toolchain = find_toolchain(settings.cargo)
        super().__init__(sandbox, limits, toolchain, toolchain.version if toolchain else "")

    def _find(self) -> Availability:
        """Whether a toolchain prints its version, and a linker is installed."""
        vendor = self._settings.vendor_dir
        if vendor is not None and not vendor.is_dir():
            return Availability(False, f"{vendor} is no folder", "correct validation.rust.vendor_dir")
        if self._tool is None:
            return Availability(False, f"{self._settings.cargo or 'cargo'} cannot be run here", _REMEDY)
        if shutil.which("cc", path=common.SYSTEM_PATH) is None:
            remedy = "install a C compiler: apt-get install gcc libc6-dev (Debian, Ubuntu)"
            return Availability(False, f"{self.version} has no linker: cc is not there", remedy)
        lint = "" if self._tool.program("cargo-clippy").exists() else ", without clippy: no lint warnings"
        return Availability(True, f"{self.version} at {self._tool.sysroot}{lint}")

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """The toolchain's programs, the vendored crates, and what a fix may introduce."""
        return {"programs": self._programs, "vendored": self._vendored, "may_introduce": _digest(problem)}

    @functools.cached_property
    def _programs(self) -> dict[str, str]:
        """The programs that build and test; the linker is the system's."""
        names = ("cargo", "rustc", "rustdoc", "cargo-clippy", "clippy-driver") if self._tool else ()
        own = [self._tool.program(name) for name in names] if self._tool else []
        linker = shutil.which("cc", path=common.SYSTEM_PATH)
        return {path.name: content_identity(path) for path in (*own, *([Path(linker)] if linker else []))}

    @functools.cached_property
    def _vendored(self) -> str:
        """A hash of the checksums that `cargo vendor` writes into each crate."""
        vendor = self._settings.vendor_dir
        checksums = sorted(vendor.glob("*/.cargo-checksum.json")) if vendor else []
        return hashlib.sha256(b"".join(path.read_bytes() for path in checksums)).hexdigest() if checksums else ""

    def _build_report(self, result: CommandResult, job: Job) -> Report:
        return build_report(result, job)

    def _command(self, job: Job, toolchain: Toolchain) -> Command:
        clippy, vendor = toolchain.program("cargo-clippy"), self._settings.vendor_dir
        plan = {
            "root": common.to_root(job.problem.working_directory),
            "cargo": str(toolchain.program("cargo")),
            "clippy": str(clippy) if clippy.exists() else None,
            "libraries": str(toolchain.sysroot / "lib"),
            "options": _vendor_options(vendor.absolute()) if vendor else [],
        }
        program = Path(rust_in_sandbox.__file__).resolve()
        return Command(
            [str(common.PYTHON), "-I", "-S", str(program), json.dumps(plan)],
            job.tree,
            job.problem.working_directory,
            readable=(program, toolchain.sysroot, *([vendor.absolute()] if vendor else [])),
            environment=_environment(toolchain),
        )


def _digest(problem: Problem) -> str:
    """A hash of what a fix is compared with for forgery: the reference fix or patch, and the original file."""
    original = problem.root / problem.path
    content = original.read_bytes() if original.is_file() else b""
    reference = f"{problem.reference_fix or ''}\0{problem.reference_patch or ''}\0"
    return hashlib.sha256(reference.encode() + content).hexdigest()


def _environment(toolchain: Toolchain) -> dict[str, str]:
    return {
        "PATH": f"{toolchain.program('')}:{common.SYSTEM_PATH}",
        "HOME": TMP,
        "TMPDIR": TMP,
        "LANG": "C.UTF-8",
        "CARGO": str(toolchain.program("cargo")),
        "RUSTC": str(toolchain.program("rustc")),
        "RUSTDOC": str(toolchain.program("rustdoc")),
        "CARGO_HOME": f"{TMP}/cargo",
        "CARGO_NET_OFFLINE": "true",
        "CARGO_TERM_COLOR": "never",
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_PROFILE_TEST_DEBUG": "0",
    }


def _vendor_options(vendor: Path) -> list[str]:
    replaced = 'source.crates-io.replace-with="vendored"'
    return ["--config", replaced, "--config", f"source.vendored.directory={json.dumps(str(vendor))}"]


def find_toolchain(configured: Path | None) -> Toolchain | None:
    """The real toolchain: PATH may only have rustup's proxies, which do not work in a sandbox."""
    cargo = common.find_program(configured, ["cargo"], [Path.home() / ".cargo" / "bin"])
    if cargo is None:
        return None
    for rustc in (cargo.with_name("rustc"), cargo.resolve().with_name("rustc")):
        sysroot = common.run_trusted([rustc, "--print", "sysroot"])
        if sysroot and (Path(sysroot) / "bin" / "cargo").exists():
            version = common.run_trusted([Path(sysroot) / "bin" / "rustc", "--version"])
            return Toolchain(Path(sysroot), version) if version else None
    return None


def build_report(result: CommandResult, job: Job) -> Report:
    """The report of `rust_in_sandbox`, if it is complete and consistent."""
    if (report := common.report_if_stopped(result)) is not None:
        return report
    try:
        report = _read(common.read_object(result.stdout), job)
    except ReportFormatError as error:
        note = f"the report {error}; {common.describe_exit(result)}; {common.output_tail(result)}"
        return common.no_report(note)
    except ContradictionError as error:
        return common.no_report(str(error), consistent=False)
    if result.exit_code != 0:
        note = f"there is a report, but what made it ended with {common.describe_exit(result)}"
        return common.no_report(note, consistent=False)
    return report


def _read(said: Mapping[str, Any], job: Job) -> Report:
    if not take(said, "guarded", bool):
        note = "cc could not build the library that tells how a test ended; install a working C compiler"
        return Report("validator_unavailable", FULL, note=note)
    build = _Step.read(take(said, "build", dict))
    if build.exit_code != 0:
        return build.failure(compiled=False)
    test_build = _Step.read(take(said, "test_build", dict))
    lint_warnings = _lint_warnings(take_or_none(said, "clippy", dict))
    if test_build.exit_code != 0:
        return test_build.failure(compiled=True, lint_warnings=lint_warnings)
    if tampered := take(said, "tampered", list):
        raise ContradictionError(f"changed while it was being tested: {', '.join(map(str, tampered))[:500]}")
    tests, failures = _tests(said, job.problem.expected_tests)
    if not tests:
        return Report("no_report", FULL, compiled=True, note="the crate has no test that ran")
    if not failures and (means := forgery_constructs(job.tree, job.problem)):
        raise ContradictionError(f"the fix brings in {means}, with which it could forge its own test report")
    diagnostics = (*failures, *build.warnings)
    return Report("failed" if failures else "passed", FULL, diagnostics, True, tests, lint_warnings)


def _lint_warnings(clippy: Mapping[str, Any] | None) -> int | None:
    """The number of clippy warnings, as `lint` counts them: None only if clippy is missing."""
    if clippy is None:
        return None
    denied = any(take(entry, "code", str).startswith("clippy::") for entry in take_objects(clippy, "messages"))
    counted = take(clippy, "exit_code", int) == 0 or denied
    return min(take(clippy, "warnings", int), MOST_WARNINGS) if counted else MOST_WARNINGS


@dataclass(frozen=True)
class _Step:
    """The result of one cargo command."""

    exit_code: int
    diagnostics: tuple[Diagnostic, ...]
    stderr: str
    started: bool

    @classmethod
    def read(cls, step: Mapping[str, Any]) -> "_Step":
        found = tuple(_diagnostic(entry) for entry in take_objects(step, "messages"))
        return cls(take(step, "exit_code", int), found, take(step, "stderr", str), take(step, "started", bool))

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(each for each in self.diagnostics if each.severity == "warning")

    def failure(self, *, compiled: bool, lint_warnings: int | None = None) -> Report:
        """The report if this step failed."""
        if not self.started and _OFFLINE.search(self.stderr):
            note = "a crate is missing and cannot be downloaded in the sandbox: vendor it (cargo vendor) and set "
            return Report("validator_unavailable", FULL, note=f"{note}validation.rust.vendor_dir ({self.stderr})")
        if self.exit_code < 0:
            return Report("no_report", FULL, note=f"cargo was killed by signal {-self.exit_code}")
        found = self.diagnostics
        if not any(common.errors_of(found)):
            found = (Diagnostic("error", "cargo could not build the crate", detail=self.stderr), *found)
        return Report("failed", FULL, found, compiled, lint_warnings=lint_warnings)


def _diagnostic(entry: Mapping[str, Any]) -> Diagnostic:
    code, message = take(entry, "code", str), take(entry, "message", str)
    return Diagnostic(
        common.take_severity({"severity": entry.get("level")}),
        f"{message} [{code}]" if code else message,
        detail=take(entry, "detail", str),
        file=take_or_none(entry, "file", str),
        **common.take_place(entry),
    )


def _tests(said: Mapping[str, Any], expected: Sequence[str]) -> tuple[dict[str, bool], list[Diagnostic]]:
    """Which tests passed, and a diagnostic for each that did not. A name in two programs must pass in both."""
    tests: dict[str, bool] = {}
    failures = []
    for name, outcome, words in _outcomes(said):
        if outcome == "skipped":
            continue
        tests[name] = tests.get(name, True) and outcome == "passed"
        if outcome == "failed":
            failures.append(Diagnostic("error", f"test {name} failed", detail=words, test=name))
    for name in expected:
        if name not in tests:
            tests[name] = False
            failures.append(Diagnostic("error", f"expected test {name} did not run", test=name))
    return tests, failures


def _outcomes(said: Mapping[str, Any]) -> Iterator[tuple[str, libtest.Outcome, str]]:
    for program in take_objects(said, "programs"):
        listed: dict[str, Any] = take(program, "listed", dict)
        names = libtest.read_list(take(listed, "exit_code", int), take(listed, "stdout", str))
        if not take(listed, "returned", bool):
            raise ContradictionError("the test program ended before it had listed its tests")
        runs = take_objects(program, "runs")
        if [take(run, "test", str) for run in runs] != names:
            raise ContradictionError("not every test that was listed was run")
        for name, run in zip(names, runs, strict=True):
            code, stdout = take(run, "exit_code", int), take(run, "stdout", str)
            if code == 0 and not take(run, "returned", bool):
                raise ContradictionError(f"test {name} ended the test program before the harness was done")
            words = stdout + take(run, "stderr", str)
            yield name, libtest.read_single(name, code, stdout), common.tail(words.encode())
    for ran in take_objects(said, "documentation"):
        code, stdout = take(ran, "exit_code", int), take(ran, "stdout", str)
        for name, outcome in libtest.read_documentation(code, stdout).items():
            yield name, outcome, common.tail(stdout.encode())


# Constructs with which a fix could forge the report of its tests, found in its text. A fix that introduces one cannot
# pass, unless the original file or the reference fix has it too. Comments and literals do not count. Constructs that a
# macro puts together from parts are not found.

_ASSERTIONS = r"(?:debug_)?assert(?:_eq|_ne|_matches)?"
_CONSTRUCTS = {
    # Replacing `main`, functions of the C library or parts of the program.
    "no_main": re.compile(r"\bno_main\b"),
    "no_mangle": re.compile(r"\bno_mangle\b"),
    "export_name": re.compile(r"\bexport_name\b"),
    "link_section": re.compile(r"\blink_section\b"),
    "extern": re.compile(r"\bextern\b"),
    "asm": re.compile(r"\b(?:global_|naked_)asm\b|\basm ?!|\barch ?:: ?asm\b"),
    "dlsym": re.compile(r"\bdlsym\b"),
    # Replacing what the tests assert with: any use of these names but a call.
    "an assertion macro": re.compile(
        rf"\b{_ASSERTIONS}\b(?! ?!)|\bmacro_rules ?! ?(?:r\#)?(?:{_ASSERTIONS}\b|panic\b|\$)|\bas (?:r\#)?panic\b"
    ),
}
# Deciding that whatever is compared is equal. Deriving, requiring, importing and calling it are harmless.
_EQUALITY = re.compile(r"\bPartialEq\b(?P<renamed> as\b)?")
_HARMLESS_BEFORE = re.compile(r"(?:(?<!:):(?!:) ?|\+ ?|\bas |\bderive ?\([^()]*|\buse [^;()!]*)(?:\w+ ?:: ?)*\Z")
# Where a macro implements a trait that it is given, a bound may be how it is given.
_GIVEN_TRAIT = re.compile(r"\bimpl\b ?(?:<[^>]*> ?)?(?:\$\w+ ?:: ?)*\$[\w(][^;{}]*? for\b")
_HARMLESS_BESIDE_MACRO = re.compile(r"(?:\bderive ?\([^()]*|\buse [^;()!]*)(?:\w+ ?:: ?)*\Z")
_LOOK_BACK = 200
_MOST_EQUALITIES = 1000


def forgery_constructs(tree: Tree, problem: Problem) -> str:
    """The constructs that a replaced file contains and neither its original nor the reference fix.

    The judge's files are no fix's: what is replaced there comes with the problem.
    """
    found: set[str] = set()
    for path in tree.changed.keys() - set(problem.judge_files):
        original = tree.root / path
        before = original.read_bytes() if original.is_file() else b""
        found |= _constructs(path, tree.changed[path]) - _constructs(path, before)
    if found:
        found -= _constructs(problem.path, (problem.reference_fix or "").encode())
        for patch in readable_patches(problem.reference_patch):
            after = b"".join(line for hunk in patch.hunks or () for line in hunk.after)
            found -= _constructs(patch.new or "", after)
    return ", ".join(sorted(found))


def _constructs(path: str, content: bytes) -> set[str]:
    text = content.decode("utf-8", "replace")
    # Any file can be included as code, but only in Rust's own is it known where a comment begins.
    code = " ".join((without_literals(text) if path.endswith(".rs") else text).split())
    found = {name for name, pattern in _CONSTRUCTS.items() if pattern.search(code)}
    return found | {"PartialEq"} if _implements_equality(code) else found


def _implements_equality(code: str) -> bool:
    harmless = _HARMLESS_BESIDE_MACRO if _GIVEN_TRAIT.search(code) else _HARMLESS_BEFORE
    for number, found in enumerate(_EQUALITY.finditer(code)):
        before = code[max(0, found.start() - _LOOK_BACK) : found.start()]
        if found["renamed"] or number > _MOST_EQUALITIES or not harmless.search(before):
            return True
    return False
