"""Rust fixes that leave the test program, or replace what the tests assert with: never a pass."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.validation.pytest_runner.support import sandbox_or_skip
from tests.validation.validators.support import MANIFEST, job_of, needs_cargo, report_on, tree_of
from touchstone.config.validation import RustProgram
from touchstone.validation.fixes.line_diff import diff_lines
from touchstone.validation.protocol import Job, Report, Tree
from touchstone.validation.validators.rust import RUST_LIMITS, RustValidator, find_toolchain, forgery_constructs

TESTS = "#[test]\nfn adds() {\n    assert_eq!(demo::add(2, 3), 5);\n}\n"
# Each prints what the harness prints for a test that passes, and then leaves with exit code 0.
LEAVING = {
    "exit": "std::process::exit(0)",
    "exec": 'panic!("{}", std::process::Command::new("/bin/true").exec())',
    "quick_exit": "unsafe { _exit(0) }",
    "errx": 'unsafe { errx(0, c"left".as_ptr()) }',
    "error": 'unsafe { error(0, 0, c"left".as_ptr()); _exit(0) }',
    "daemon": "unsafe { daemon(1, 1); loop { pause(); } }",
    "fork": "unsafe { if fork() > 0 { _exit(0) } loop { pause(); } }",
    "execl": 'unsafe { execl(c"/bin/true".as_ptr(), c"true".as_ptr(), std::ptr::null::<i8>()); loop {} }',
    "execveat": 'unsafe { syscall(281, -100, c"/bin/true".as_ptr(), [std::ptr::null::<i8>()].as_ptr(), 0, 0); exit() }',
    "exit_group": "unsafe { syscall(EXIT_GROUP, 0); loop {} }",
    "main_again": "unsafe { __libc_start_main(zero, 0, NONE, None, None, None, NONE); loop {} }",
}
# A crate that does, with a place for the ways to leave and for their number.
LIBRARY = (Path(__file__).parent / "leaving.rs").read_text()


def crate(library: str, tests: str = TESTS) -> dict[str, str]:
    return {"Cargo.toml": MANIFEST, "src/lib.rs": library, "tests/whole.rs": tests}


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> RustValidator:
    sandbox = sandbox_or_skip(tmp_path_factory.mktemp("scratch"), "bubblewrap")
    return RustValidator(sandbox, RUST_LIMITS, RustProgram())


def report(validator: RustValidator, root: Path, files: Mapping[str, str], before: str | None = None) -> Report:
    """The report on a crate, as a fix of the one whose library is `before`."""
    tree: Tree = tree_of(root, {**files, "src/lib.rs": before} if before is not None else files)
    fixed = tree.with_file("src/lib.rs", files["src/lib.rs"].encode()) if before is not None else tree
    return report_on(validator, Job(job_of(tree, "src/lib.rs").problem, fixed))


@pytest.mark.services
@needs_cargo
def test_leaving_the_test_program_is_no_pass(validator: RustValidator, tmp_path: Path) -> None:
    cases = "\n".join(f'"{name}" => {{ {code} }}' for name, code in LEAVING.items())
    library = LIBRARY.replace("CASES", cases).replace("COUNT", str(len(LEAVING)))
    tests = "".join(f"#[test]\nfn {name}() {{ assert_eq!(demo::add(2, 3), 5); }}\n" for name in LEAVING)
    tests += "#[test]\nfn honest() {}\n"
    job = job_of(tree_of(tmp_path, crate(library, tests)), "src/lib.rs")
    toolchain = find_toolchain(None)
    assert toolchain is not None
    result = validator._sandbox.run(validator._command(job, toolchain), validator._limits)
    said = json.loads(result.stdout)
    assert said["test_build"] and said["test_build"]["exit_code"] == 0, said
    runs = {run["test"]: run for program in said["programs"] for run in program["runs"]}
    assert {name for name, run in runs.items() if run["returned"]} == {"honest"}
    assert {
        name for name in LEAVING if runs[name]["exit_code"] == 0 and "test result: ok" in runs[name]["stdout"]
    } == set(LEAVING), "every attack must look like a pass to a reader of output and exit code"
    found = validator._build_report(result, job)
    assert (found.status, found.consistent) == ("no_report", False)
    assert "before the harness was done" in found.note


@needs_cargo
@pytest.mark.nightly
def test_documentation_tests_that_leave(validator: RustValidator, tmp_path: Path) -> None:
    documented = (
        "/// ```\n/// assert_eq!(demo::add(1, 1), 3);\n/// ```\npub fn add(a: i32, b: i32) -> i32 {\n    BODY\n}\n"
    )
    leaving = documented.replace("BODY", "if (a, b) == (1, 1) { std::process::exit(0) }\n    a + b")
    found = report(validator, tmp_path, crate(leaving))
    assert (found.status, found.tests) == ("failed", {"adds": True, "src/lib.rs - add (line 1)": False})


REPLACING = {
    "equality": """
        #[derive(Debug)]
        pub struct Any;
        impl PartialEq<i32> for Any { fn eq(&self, _: &i32) -> bool { true } }
        pub fn add(_: i32, _: i32) -> Any { Any }
    """,
    "equality under another name": """
        use std::cmp::PartialEq as Same;
        #[derive(Debug)]
        pub struct Any;
        impl Same<i32> for Any { fn eq(&self, _: &i32) -> bool { true } }
        pub fn add(_: i32, _: i32) -> Any { Any }
    """,
    "assert_eq": """
        macro_rules! assert_eq { ($($any:tt)*) => { let _ = ($($any)*); } }
        pub fn add(_: i32, _: i32) -> i32 { 0 }
    """,
    "assert_eq by a macro": """
        macro_rules! make { ($name:ident) => { macro_rules! $name { ($a:expr, $b:expr) => { { let _ = $a; } } } } }
        make!(assert_eq);
        pub fn add(_: i32, _: i32) -> i32 { 0 }
    """,
}


@needs_cargo
@pytest.mark.nightly
@pytest.mark.parametrize("how", ["equality", "assert_eq"])
def test_replacing_what_the_tests_assert_with(validator: RustValidator, tmp_path: Path, how: str) -> None:
    after = "\n#[cfg(test)]\nmod tests;\n"
    files = {
        "Cargo.toml": MANIFEST,
        "src/lib.rs": REPLACING[how] + after,
        "src/tests.rs": TESTS.replace("demo", "crate"),
    }
    before = f"pub fn add(a: i32, b: i32) -> i32 {{\n    a - b\n}}\n{after}"
    found = report(validator, tmp_path, files, before)
    assert (found.status, found.consistent) == ("no_report", False), found
    assert "could forge" in found.note


def introduced(tmp_path: Path, text: str, path: str = "src/lib.rs", **about: Any) -> str:
    """What a fix brings in; `about` is more about the problem."""
    job = job_of(tree_of(tmp_path, {"src/lib.rs": "pub fn add() {}\n"}), "src/lib.rs")
    return forgery_constructs(job.tree.with_file(path, text.encode()), replace(job.problem, **about))


@pytest.mark.parametrize(
    "text",
    [
        *REPLACING.values(),
        "#![no_main]",
        "#[unsafe(no_mangle)] fn f() {}",
        "asm! (nop)",
        "use core::arch::asm as a;",
        "#[link_section = x]",
        'extern "C" { fn exit(code: i32) -> !; }',
        '/* it\'s "quoted */ extern "C" {}',
        "let a = '\"'; extern crate x; let b = '\"';",
        'let a = r#"// "#; extern crate x;',
        "fn f<'a>(x: &'a str) { } extern crate x; // '",
        "macro_rules! debug_assert_ne { () => {} }",
        "pub use crate::nothing as assert_eq;",
        "macro_rules! r#assert_eq { () => {} }",
        "macro_rules! panic { () => {} }",
        "impl<T: PartialEq> PartialEq<T> for Any {}",
        "impl core::cmp::PartialEq for Any {}",
        "m!(Any, PartialEq)",
        "macro_rules! m { ($x:ty as $t:ident) => { impl $t<i32> for $x {} } } m!(Any as PartialEq);",
        "macro_rules! m { ($x:ty: $t:path) => { impl<T> $t for $x {} } } m!(Any: PartialEq);",
        'm!(\'r#"" extern crate x; "#);',
    ],
)
def test_what_could_forge(tmp_path: Path, text: str) -> None:
    assert introduced(tmp_path, text)
    assert introduced(tmp_path, text, reference_fix=text) == "", "the reference introduces it too"
    patch = "\n".join(diff_lines("src/lib.rs", b"pub fn add() {}\n", f"{text}\n".encode()))
    assert introduced(tmp_path, text, reference_patch=patch) == ""
    assert introduced(tmp_path, text, "tests/a.rs", judge_files=("tests/a.rs",)) == "", "it comes with the problem"
    if path_free(text):
        assert introduced(tmp_path, text, "src/included.txt")


def path_free(text: str) -> bool:
    """Whether the text has no literals that would read differently in a file that is not Rust's."""
    return not {'"', "'"} & set(text)


@pytest.mark.parametrize(
    "text",
    [
        "#[derive(Debug, PartialEq, Eq)] pub struct Point;",
        "pub fn dedup<T: Clone + PartialEq>(items: &[T]) where T: std::cmp::PartialEq {}",
        "use std::cmp::{Ordering, PartialEq};",
        "// extern is not used, nor is macro_rules! assert_eq\n/* impl PartialEq for /* nested */ X asm!() */",
        'const TEXT: &str = "extern \\" asm!() macro_rules! assert_eq"; const RAW: &str = r#"extern "C""#;',
        "#[cfg(test)] mod tests { #[test] fn t() { assert_eq!(1, 1); assert !(true); std::panic::catch_unwind(f); } }",
        "macro_rules! m { ($x:ident) => { #[derive(PartialEq)] struct $x; impl $x {} impl Clone for $x {} } }",
        "macro_rules! op { ($t:ident) => { impl $t for P {} } } op!(Add); #[derive(Debug, PartialEq)] struct P;",
        "macro_rules! square { ($x:expr) => { $x * $x } }",
        "fn external(no_mains: i32) {}",
    ],
)
def test_ordinary_code_could_not(tmp_path: Path, text: str) -> None:
    assert introduced(tmp_path, text) == ""


def test_what_the_original_has_may_stay(tmp_path: Path) -> None:
    job = job_of(tree_of(tmp_path, {"src/lib.rs": 'extern "C" {}'}), "src/lib.rs")
    assert forgery_constructs(job.tree.with_file("src/lib.rs", b'extern "C" { fn f(); }'), job.problem) == ""
