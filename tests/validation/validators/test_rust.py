"""Rust: reports from recorded findings everywhere, and small crates with the real toolchain if it is installed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.validation.validators.support import (
    MANIFEST,
    RECORDED,
    STOPPED,
    Playback,
    job_of,
    needs_cargo,
    report_on,
    tree_of,
)
from touchstone.config.validation import RustProgram
from touchstone.validation.protocol import Job, Report, Tree, Validator
from touchstone.validation.sandbox.command import CommandResult, Sandbox
from touchstone.validation.validators import rust
from touchstone.validation.validators.lint import MOST_WARNINGS
from touchstone.validation.validators.rust import RUST_LIMITS, RustValidator, build_report

LIBRARY = "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n"
TESTS = """\
#[test]
fn adds() {
    assert_eq!(demo::add(2, 3), 5);
}
#[test]
fn adds_zero() {
    assert_eq!(demo::add(2, 0), 2);
}
"""
SUMMARY = "0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
SAID = f"\nrunning 1 test\ntest adds ... ok\n\ntest result: ok. 1 passed; {SUMMARY}\n\n"


def step(exit_code: int = 0, **fields: Any) -> dict[str, Any]:
    return {"exit_code": exit_code, "messages": [], "warnings": 0, "stderr": "", "started": True, **fields}


def findings(**fields: Any) -> dict[str, Any]:
    """What the inner program tells of a crate with one test that passes."""
    run = {"test": "adds", "exit_code": 0, "stdout": SAID, "stderr": "", "returned": True}
    listed = {"exit_code": 0, "stdout": "adds: test\n", "stderr": "", "returned": True}
    return {
        "build": step(),
        "test_build": step(),
        "clippy": step(warnings=3),
        "programs": [{"target": "demo", "listed": listed, "runs": [run]}],
        "documentation": [],
        "guarded": True,
        "tampered": [],
        **fields,
    }


PROGRAM = findings()["programs"][0]


def ended(told: Mapping[str, Any], exit_code: int = 0) -> CommandResult:
    return CommandResult("exited", exit_code, json.dumps(told).encode(), seconds=2.0)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return job_of(tree_of(tmp_path, crate({})), "src/lib.rs")


def crate(files: Mapping[str, str]) -> dict[str, str]:
    return {"Cargo.toml": MANIFEST, "src/lib.rs": LIBRARY, "tests/whole.rs": TESTS, **files}


class TestRecorded:
    def test_passed(self, job: Job) -> None:
        assert build_report(ended(findings()), job) == Report("passed", "full", (), True, {"adds": True}, 3)

    @pytest.mark.parametrize(
        ("clippy", "warnings"),
        [
            (None, None),
            (step(101), MOST_WARNINGS),
            (step(warnings=60_000), MOST_WARNINGS),
            (
                step(
                    101, warnings=1, messages=[{"level": "error", "message": "m", "code": "clippy::all", "detail": ""}]
                ),
                1,
            ),
        ],
    )
    def test_clippy_that_broke_off_is_not_zero_warnings(
        self, job: Job, clippy: dict[str, Any] | None, warnings: int | None
    ) -> None:
        assert build_report(ended(findings(clippy=clippy)), job).lint_warnings == warnings

    def test_without_the_guard_nothing_is_judged(self, job: Job) -> None:
        report = build_report(ended(findings(guarded=False)), job)
        assert (report.status, report.decided) == ("validator_unavailable", False)
        assert "C compiler" in report.note

    @pytest.mark.parametrize(
        "fields",
        [
            {"tampered": ["/box/crate/tests/whole.rs"]},
            {"programs": [{**PROGRAM, "runs": []}]},
            {"programs": [{**PROGRAM, "listed": step(101, stdout="adds: test\n", returned=True)}]},
            {"programs": [{**PROGRAM, "listed": step(stdout="adds: test\n", returned=False)}]},
            {"programs": [{**PROGRAM, "runs": [{**PROGRAM["runs"][0], "returned": False}]}]},
            {"documentation": [{"exit_code": 101, "stdout": SAID}]},
            {"documentation": [{"exit_code": 0, "stdout": SAID.replace("1 passed", "2 passed")}]},
        ],
    )
    def test_contradictions(self, job: Job, fields: dict[str, Any]) -> None:
        report = build_report(ended(findings(**fields)), job)
        assert (report.status, report.consistent) == ("no_report", False)

    def test_a_pass_that_the_fix_could_forge(self, job: Job) -> None:
        lies = b"pub struct Any;\nimpl PartialEq<i32> for Any { fn eq(&self, _: &i32) -> bool { true } }\n"
        report = build_report(ended(findings()), Job(job.problem, job.tree.with_file("src/lib.rs", lies)))
        assert (report.status, report.consistent) == ("no_report", False) and "could forge" in report.note

    def test_a_report_from_a_process_that_was_killed(self, job: Job) -> None:
        report = build_report(ended(findings(), exit_code=-9), job)
        assert (report.status, report.consistent) == ("no_report", False)
        for nothing in (findings(programs=[]), findings(build=step(-9))):
            assert build_report(ended(nothing), job).status == "no_report"

    @pytest.mark.parametrize("stdout", [b"", b"{", b"[]", b"{}", b'{"build": {}}', json.dumps(findings()).encode() * 2])
    def test_no_whole_report(self, job: Job, stdout: bytes) -> None:
        report = build_report(CommandResult("exited", 1, stdout, b"Traceback"), job)
        assert (report.status, report.consistent) == ("no_report", True)
        assert "Traceback" in report.note or stdout

    @pytest.mark.parametrize("status", STOPPED)
    def test_limits_keep_their_names(self, job: Job, status: str) -> None:
        assert (
            build_report(CommandResult(status, None, json.dumps(findings()).encode(), note="why"), job).status == status
        )

    def test_broken_manifest(self, job: Job) -> None:
        report = build_report(ended(findings(build=step(101, stderr="invalid TOML", started=False))), job)
        assert (report.status, report.compiled, report.diagnostics[0].detail) == ("failed", False, "invalid TOML")


@needs_cargo
def test_a_sandbox_that_it_does_not_work_in() -> None:
    broken = Playback(CommandResult("sandbox_error", None, note="no user namespaces"))
    availability = RustValidator(broken, RUST_LIMITS, RustProgram()).probe()
    assert not availability.usable
    assert "does not work in the sandbox playback: sandbox_error no user namespaces" in availability.detail


def test_missing_toolchain(job: Job, tmp_path: Path) -> None:
    playback = Playback(CommandResult("exited", 0))
    validator: Validator = RustValidator(playback, RUST_LIMITS, RustProgram(cargo=tmp_path / "cargo"))
    assert not validator.probe().usable
    report = report_on(validator, job)
    assert report.status == "validator_unavailable"
    assert "install Rust" in report.note
    assert playback.asked == []


@needs_cargo
class TestRealToolchain:
    @pytest.fixture
    def validator(self, sandbox: Sandbox) -> RustValidator:
        return RustValidator(sandbox, RUST_LIMITS, RustProgram())

    def report(
        self, validator: Validator, root: Path, files: Mapping[str, str], expected: tuple[str, ...] = ()
    ) -> Report:
        tree: Tree = tree_of(root, {f"demo/{path}": text for path, text in crate(files).items()})
        return report_on(validator, job_of(tree, "src/lib.rs", "demo", expected))

    @pytest.mark.nightly
    def test_probe(self, validator: RustValidator) -> None:
        availability = validator.probe()
        assert availability.usable, availability
        assert availability.detail.startswith(validator.version)

    def test_unit_integration_and_documentation_tests(self, validator: RustValidator, tmp_path: Path) -> None:
        library = """\
        /// ```
        /// assert_eq!(demo::add(1, 1), 2);
        /// ```
        pub fn add(a: i32, b: i32) -> i32 {
            return a + b;
        }
        #[cfg(test)]
        mod tests {
            use std::process::Command;
            #[test]
            #[should_panic]
            fn panics() { panic!() }
            #[test]
            #[ignore]
            fn slow() {}
            #[test]
            fn starts_others() {
                assert!(Command::new("/bin/echo").arg("a line of a child's").status().unwrap().success());
                Command::new("/bin/sleep").arg("1000").spawn().unwrap();
            }
            #[test]
            fn the_reporting_process_is_closed() {
                let parent = std::os::unix::process::parent_id();
                for file in ["fd/1", "environ", "mem"] {
                    assert!(std::fs::File::open(format!("/proc/{parent}/{file}")).is_err(), "{file}");
                }
            }
        }
        """
        report = self.report(validator, tmp_path, {"src/lib.rs": library}, ("adds", "tests::panics"))
        assert (report.status, report.compiled, report.note) == ("passed", True, ""), report
        names = {"adds", "adds_zero", "src/lib.rs - add (line 1)"}
        names |= {f"tests::{name}" for name in ("panics", "starts_others", "the_reporting_process_is_closed")}
        assert report.tests == dict.fromkeys(names, True)
        assert report.lint_warnings == 1

    def test_compile_error(self, validator: RustValidator, tmp_path: Path) -> None:
        report = self.report(validator, tmp_path, {"src/lib.rs": LIBRARY.replace("a + b", 'a + "b"')})
        assert (report.status, report.compiled, report.lint_warnings) == ("failed", False, None)
        (found,) = report.diagnostics
        assert found.summary == "cannot add `&str` to `i32` [E0277]"
        assert (found.file, found.line, found.column) == ("demo/src/lib.rs", 2, 7)

    @pytest.mark.nightly
    def test_tests_that_do_not_compile(self, validator: RustValidator, tmp_path: Path) -> None:
        report = self.report(validator, tmp_path, {"src/lib.rs": "pub fn sum() {}\n"})
        assert (report.status, report.compiled) == ("failed", True)
        assert {each.file for each in report.diagnostics} == {"demo/tests/whole.rs"}

    def test_failed_and_missing_tests(self, validator: RustValidator, tmp_path: Path) -> None:
        wrong = {"src/lib.rs": LIBRARY.replace("a + b", "a - b")}
        report = self.report(validator, tmp_path, wrong, ("adds_zero", "adds_much"))
        assert (report.status, report.compiled) == ("failed", True)
        assert report.tests == {"adds": False, "adds_zero": True, "adds_much": False}
        assert [each.test for each in report.diagnostics] == ["adds", "adds_much"]
        assert "assertion `left == right` failed" in report.diagnostics[0].detail

    @pytest.mark.nightly
    def test_a_broken_crate_takes_nothing_from_a_good_one(self, validator: RustValidator, tmp_path: Path) -> None:
        assert self.report(validator, tmp_path / "good", {}).status == "passed"
        broken = {"src/lib.rs": LIBRARY.replace("a + b", "a +")}
        assert self.report(validator, tmp_path / "broken", broken).status == "failed"

    @pytest.mark.nightly
    def test_a_harness_of_its_own_does_not_count(self, validator: RustValidator, tmp_path: Path) -> None:
        manifest = MANIFEST + '[[test]]\nname = "whole"\nharness = false\n'
        files = {"Cargo.toml": manifest, "tests/whole.rs": 'fn main() { println!("adds: test"); }\n'}
        report = self.report(validator, tmp_path, files, ("adds",))
        assert (report.status, report.tests) == ("failed", {"adds": False})

    @pytest.mark.nightly
    def test_a_build_script_that_rewrites_the_tests(self, validator: RustValidator, tmp_path: Path) -> None:
        script = 'fn main() { std::fs::write("tests/whole.rs", "#[test] fn adds() {}").unwrap(); }\n'
        files = {"build.rs": script, "src/lib.rs": LIBRARY.replace("a + b", "a * b")}
        report = self.report(validator, tmp_path, files, ("adds",))
        assert (report.status, report.consistent) == ("no_report", False)
        assert "tests/whole.rs" in report.note

    @pytest.mark.nightly
    def test_a_test_that_replaces_the_test_program(self, validator: RustValidator, tmp_path: Path) -> None:
        tests = """\
        #[test]
        fn a_first() {
            let me = std::env::current_exe().unwrap();
            std::fs::rename("/bin/true", &me).or_else(|_| std::fs::remove_file(&me)).unwrap();
        }
        #[test]
        fn b_second() { panic!() }
        """
        report = self.report(validator, tmp_path, {"tests/whole.rs": tests})
        assert (report.status, report.consistent) == ("no_report", False)
        assert "changed while it was being tested" in report.note

    @pytest.mark.nightly
    def test_a_member_of_a_workspace(self, validator: RustValidator, tmp_path: Path) -> None:
        members = {f"demo/{path}": text for path, text in crate({"src/lib.rs": "pub fn add() -> i32 {}\n"}).items()}
        tree = tree_of(tmp_path, {**members, "Cargo.toml": '[workspace]\nmembers = ["demo"]\nresolver = "2"\n'})
        report = report_on(validator, job_of(tree, "src/lib.rs", "demo"))
        assert report.status == "failed"
        assert {each.file for each in report.diagnostics} == {"demo/src/lib.rs"}

    @pytest.mark.nightly
    def test_a_crate_that_is_not_vendored(self, validator: RustValidator, tmp_path: Path) -> None:
        report = self.report(validator, tmp_path, {"Cargo.toml": MANIFEST + '[dependencies]\nserde = "1"\n'})
        assert (report.status, report.decided) == ("validator_unavailable", False)
        assert "validation.rust.vendor_dir" in report.note

    @pytest.mark.nightly
    def test_a_crate_that_is_vendored(self, sandbox: Sandbox, tmp_path: Path) -> None:
        validator = RustValidator(sandbox, RUST_LIMITS, RustProgram(vendor_dir=RECORDED / "vendor"))
        library = LIBRARY.replace("a + b", "a + b + tiny::ZERO")
        files = {"Cargo.toml": MANIFEST + '[dependencies]\ntiny = "1"\n', "src/lib.rs": library}
        report = self.report(validator, tmp_path, files)
        assert (report.status, report.lint_warnings) == ("passed", 0), report

    @pytest.mark.nightly
    def test_many_tests(self, validator: RustValidator, tmp_path: Path) -> None:
        names = [f"a_test_with_quite_a_long_name_so_that_the_list_of_all_gets_long_{number}" for number in range(200)]
        report = self.report(
            validator, tmp_path, {"tests/whole.rs": "".join(f"#[test]\nfn {n}() {{}}\n" for n in names)}
        )
        assert report.tests == dict.fromkeys(names, True)

    def test_identity_is_plain(self, validator: RustValidator, job: Job) -> None:
        with patch.object(rust, "content_identity", str):
            told = json.loads(json.dumps(validator.identity(job.problem)))
        assert {"cargo", "rustc", "cc"} <= told["programs"].keys()
