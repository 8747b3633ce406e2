"""What is the judge's and what is source: forged fixes are put back, and honest ones of ordinary layouts are not."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.validation.attacks.arena import outcomes_of
from tests.validation.fixes.support import applied_fix, refused_fix
from tests.validation.validators.support import MANIFEST, needs_cargo, tree_of
from touchstone.validation.fixes.apply_fix import AppliedFix, Fix, NotApplied
from touchstone.validation.judge_side import Declared, with_judge_side
from touchstone.validation.protocol import Problem, Tree
from touchstone.validation.reach import TreeIndex

Files = dict[str, str]


def problem_of(files: Files, declared: Declared | None = None, **about: Any) -> tuple[Problem, Tree]:
    tree = Tree(Path("/nonexistent"), tuple(sorted(files)), {path: text.encode() for path, text in files.items()})
    problem = Problem("p", about.pop("filename", ""), tree.root, **about)
    return with_judge_side(problem, tree, declared), tree


def applied(files: Files, changes: Mapping[str, str | None], **about: Any) -> AppliedFix:
    problem, tree = problem_of(files, **about)
    return applied_fix(tree, Fix(json.dumps(changes), "files"), problem)


FLAT = {
    "solution.py": "def add(a, b):\n    return a - b\n",
    "test_solution.py": "import helpers, checks, wanted\nfrom solution import add\nopen('golden.json')\n",
    "helpers.py": "def same(a, b):\n    return a == b\n",
    "checks.py": "import inner\n",
    "inner.py": "def equal(a, b):\n    if a != b:\n        raise AssertionError(a)\n",
    "wanted.py": "import unittest\n",
    "golden.json": "3",
}
PACKAGE = {
    "shop/__init__.py": "",
    "shop/cart.py": "from shop import rates\nTEXT = open('shop/prices.csv')\n",
    "shop/rates.py": "",
    "shop/tax.py": "def tax(amount):\n    assert amount >= 0\n    return amount\n",
    "shop/testing.py": "import pytest\n",
    "shop/prices.csv": "",
    "shop/names.csv": "",
    "checking/test_cart.py": "import assertions, support\nfrom shop import cart, tax\nopen('../expected/cart.txt')\n",
    "checking/support.py": "import kit.compare\nopen('tax.txt')\n",
    "checking/conftest.py": "pytest_plugins = ['plugins.shop']\n",
    "plugins/shop.py": "import pytest\n",
    "kit/__init__.py": "",
    "kit/compare.py": "from kit import values\ndef check(a):\n    assert a == values.ONE\n",
    "kit/values.py": "ONE = 1\n",
    "shop/expected/tax.txt": "",
    "assertions.py": "def check(a):\n    assert a\n",
    "expected/cart.txt": "",
    "templates/cart.html": "",
    "pyproject.toml": "[project]\nname = 'shop'\n[tool.pytest.ini_options]\naddopts = '-q'\n",
    "README.md": "",
}
COMMAND = {
    "main.c": "",
    "util.c": "",
    "Makefile": "include config.mk\n-include local.mk\nSCRIPT = ci/all.sh\nall: main.c\n\tcc main.c util.c\n"
    "test: all golden\n\tcd ci && sh ../$(SCRIPT)\ngolden:\n\tdiff out.txt want.txt\nrun:\n\t./start.sh\n",
    "config.mk": "include ci/deep.mk\n",
    "ci/deep.mk": "",
    "ci/all.sh": '#!/bin/bash\n. "$(dirname "$0")/lib.sh"\n'
    "timeout -k 5 10 python3 -W ignore check.py\nsource env.sh || true\n",
    "ci/lib.sh": "node --require ./ci/hook.js ci/node.mjs\n",
    "ci/hook.js": "require('./judge')\n",
    "ci/judge.js": "expect(1)\n",
    "ci/node.mjs": "",
    "ci/check.py": "import verify\n",
    "ci/verify.py": "def same(a, b):\n    assert a == b\n",
    "want.txt": "",
    "start.sh": "",
}
NPM = {
    "package.json": json.dumps(
        {"scripts": {"pretest": "node prepare.js", "test": "npm run unit", "unit": "mocha spec.js src/*.test.js"}}
    ),
    "src/cart.js": "const tax = require('./tax')\n",
    "src/tax.js": "",
    "src/cart.test.js": "const helpers = require('./helpers'); import { form } from './format'\n",
    "src/helpers.js": "",
    "src/format.js": "",
    "prepare.js": "",
    "spec.js": "",
    ".npmrc": "",
    "jest.config.js": "",
}
RUST = {
    "Cargo.toml": "[package]\nname = 'demo'\n[dev-dependencies]\nkit = { path = 'kit' }\nparts = { path = 'parts' }\n",
    "kit/src/lib.rs": "",
    "parts/src/lib.rs": "",
    "bin/Cargo.toml": "[dependencies]\nparts = { path = '../parts' }\n",
    "src/lib.rs": "mod cart;\n#[cfg(test)]\nmod tests;\n"
    '#[cfg(all(test, unix))]\n#[path = "checks/unit.rs"]\nmod unit;\n',
    "src/tests.rs": 'include_str!("../golden.txt")',
    "src/cart.rs": "pub fn add() {}\n#[cfg(test)]\nmod deep;\n",
    "src/cart/deep.rs": "",
    "src/cart/deep/more.rs": "",
    "src/checks/unit.rs": "",
    "src/other.rs": "",
    "tests/whole.rs": "",
    "golden.txt": "",
}
FLAT_PROBLEM: dict[str, Any] = {"filename": "solution.py"}
PACKAGE_PROBLEM: dict[str, Any] = {"filename": "shop/cart.py", "tests": ("checking/test_cart.py",)}
COMMAND_PROBLEM: dict[str, Any] = {"filename": "main.c", "test_command": "timeout 60 make -j 2 -C . test"}
NPM_PROBLEM: dict[str, Any] = {"filename": "src/cart.js", "test_command": "CI=1 npm test -- --json"}
RUST_PROBLEM: dict[str, Any] = {"filename": "src/other.rs", "test_command": "cargo test"}

FORGED: dict[str, tuple[Files, dict[str, Any], str]] = {
    "flat: helpers, what they import, and golden files": (
        FLAT,
        FLAT_PROBLEM,
        "helpers.py checks.py inner.py wanted.py golden.json test_solution.py",
    ),
    "flat: new files that would be used instead": (
        FLAT,
        FLAT_PROBLEM,
        "helpers/__init__.py conftest.py pytest.ini sitecustomize.py json.py pytest.py pytest/__init__.py "
        "deep/conftest.py x.dist-info/entry_points.txt tests/test_more.py packaging/version.py pygments/__init__.py "
        "shop/test_x.py a/x_test.go src/a.spec.ts src/test/java/A.java",
    ),
    "package": (
        PACKAGE,
        PACKAGE_PROBLEM,
        "assertions.py checking/support.py plugins/shop.py expected/cart.txt checking/new.py setup.cfg "
        "support.py kit/__init__.py kit/compare.py kit/values.py shop/expected/tax.txt",
    ),
    "Go": ({"cart.go": "", "cart_test.go": "", "go.mod": ""}, {"filename": "cart.go"}, "cart_test.go go.mod go.work"),
    "tests in the source's package": (
        {
            "shop/__init__.py": "",
            "shop/cart.py": "",
            "shop/test/data.py": "",
            "shop/test/testcart.py": "from . import data",
        }
        | {
            "shop/test/test_all.py": "",
            "shop/qa/check.py": "import unittest",
            "shop/qa/test_b.py": "from . import check",
        },
        {"filename": "shop/cart.py"},
        "shop/test/data.py shop/test/testcart.py shop/qa/check.py shop/test/new.py",
    ),
    "make and shell": (
        COMMAND,
        COMMAND_PROBLEM,
        "Makefile config.mk local.mk GNUmakefile ci/deep.mk ci/all.sh ci/lib.sh ci/hook.js ci/judge.js ci/node.mjs "
        "ci/check.py ci/verify.py want.txt ci/env.sh",
    ),
    "npm": (
        NPM,
        NPM_PROBLEM,
        "package.json prepare.js spec.js .npmrc jest.config.js src/helpers.js src/helpers.ts .mocharc.yml src/.npmrc "
        "src/cart.test.js vite.config.ts",
    ),
    "Rust": (
        RUST,
        RUST_PROBLEM,
        "src/tests.rs src/checks/unit.rs src/cart/deep.rs src/cart/deep/more.rs tests/whole.rs golden.txt "
        "src/tests/mod.rs .cargo/config.toml build.rs rust-toolchain.toml kit/src/lib.rs Cargo.toml",
    ),
}
SETTINGS = {
    "Cargo.toml": RUST["Cargo.toml"].replace("'kit' }", "'other' }"),
    "go.mod": "module shop\nreplace example.com/check => ./check\n",
    "setup.cfg": "[tool:pytest]\naddopts = -p x\n",
    "package.json": NPM["package.json"].replace("mocha spec.js", "true"),
}


@pytest.mark.parametrize(
    ("name", "path"), [(name, path) for name, (_, _, paths) in FORGED.items() for path in paths.split()]
)
def test_what_is_the_judges_is_put_back(name: str, path: str) -> None:
    files, about, _ = FORGED[name]
    source, forged = about["filename"], SETTINGS.get(path, "forged")
    made = applied(files, {source: "fixed", path: forged}, **about)
    assert (made.changes, made.judge_files) == ({source: b"fixed"}, (path,))
    if path in files and path != "go.mod":
        assert applied(files, {source: "fixed", path: None}, **about).judge_files == (path,)


@pytest.mark.parametrize(
    "command",
    ["./ci/run.sh", "cd ci && bash -e run.sh -v", "X=1 timeout 10s ci/run.sh", "env -u A B=c nice -n 5 sh ci/run.sh",
     "cd . && (exec ci/run.sh) | cat", "bash -ec 'cd ci; . ./run.sh'", "sh -x ci/outer",
     "for one in ci/r*.sh; do sh $one; done", "timeout -s KILL 9 ci/run.sh", "echo . | xargs ci/run.sh",
     "make --file=ci/all.mk --jobs=2", "make -fci/all.mk"],
)  # fmt: skip
def test_the_script_of_a_test_command(command: str) -> None:
    files = {"cart.py": "", "ci/run.sh": "", "ci/outer": "$(dirname $0)/run.sh\n", "ci/all.mk": "all:\n\tci/run.sh\n"}
    made = applied(files, {"cart.py": "fixed", "ci/run.sh": "exit 0"}, filename="cart.py", test_command=command)
    assert made.judge_files == ("ci/run.sh",)


@pytest.mark.parametrize(
    "command",
    ["python -m qa.run", "cd qa; python3 -u run.py", "pytest qa/run.py", "yarn qa", "mocha qa/*.py",
     "python -m unittest discover -s qa -p '*.py'", "python -m unittest qa.run", "$PYTHON qa/run.py",
     "coverage run --source shop -m qa.run", "pytest -pqa.run", "nox --noxfile=qa/run.py"],
)  # fmt: skip
def test_a_module_that_the_command_runs(command: str) -> None:
    files = {"shop/cart.py": "", "qa/run.py": "", "package.json": '{"scripts": {"qa": "cd qa && python run.py"}}'}
    made = applied(files, {"shop/cart.py": "x", "qa/run.py": "x"}, filename="shop/cart.py", test_command=command)
    assert made.judge_files == ("qa/run.py",)


# What an honest fix changes beside the problem's file, and what of it is flagged.
SWE = {
    "astropy/__init__.py": "from .tests.runner import run\n",
    "astropy/tests/runner.py": "import pytest\n",
    "astropy/table/core.py": "",
    "astropy/table/tests/test_core.py": "from astropy.table import core\nfrom astropy.tests import helper\n'setup.cfg'",
    "astropy/tests/helper.py": "import pytest\n",
    "astropy/test/client.py": "import unittest\n",
    "astropy/task_spec.py": "",
    "astropy/utils/helpers.py": "",
    "astropy/utils/tests/test_helpers.py": "from .. import helpers\n",
    "setup.cfg": "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n",
    "docs/index.rst": "",
    "CHANGES.rst": "",
}
SIDE_BY_SIDE = {
    "billing/tax.py": "def tax(a):\n    assert a\n",
    "billing/rates.json": "",
    "billing/test_tax.py": "import tax\nimport rates\nfrom cart import total\n'billing'\n",
    "billing/rates.py": "",
    "conftest.py": "import billing.test_tax\n",
    "shop/cart.py": "",
}
REFERENCE = "".join(f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n" for path in ("helpers.py", "queue.py"))
# What an honest fix may say in files that also hold settings of a runner.
MANIFESTS = {
    "pyproject.toml": PACKAGE["pyproject.toml"].replace("name = 'shop'", "name = 'shop'\nversion = '2'"),
    "setup.cfg": SWE["setup.cfg"].replace("name = a", "name = b"),
    "package.json": NPM["package.json"].replace("{", '{"dependencies": {},', 1),
    "Cargo.toml": RUST["Cargo.toml"] + "more = '1'\n[dependencies]\nmore = '1'\n",
}
HONEST: dict[str, tuple[Files, dict[str, Any], str, str]] = {
    "a flat layout": (
        FLAT
        | {"rates.py": "def rate():\n    assert True\n    return 1\n", "app.py": "import helpers\n'golden.json'\n"}
        | {"test_solution.py": "import rates, helpers\nopen('golden.json')\n"},
        FLAT_PROBLEM,
        "rates.py helpers.py golden.json app.py new.py shop/json.py",
        "golden.json helpers.py rates.py",
    ),
    "a flat layout with tests of each module": (
        FLAT | {"test_helpers.py": "import helpers\n"},
        FLAT_PROBLEM,
        "helpers.py",
        "helpers.py",
    ),
    "a package": (
        PACKAGE,
        PACKAGE_PROBLEM,
        "shop/tax.py shop/rates.py shop/prices.csv shop/names.csv shop/testing.py shop/new/__init__.py README.md "
        "templates/cart.html billing.py pyproject.toml",
        "",
    ),
    "what tests name or import in the source's package": (
        PACKAGE | {"checking/test_cart.py": "from shop import testing, tax\nopen('names.csv')\nopen('cart.html')\n"},
        PACKAGE_PROBLEM,
        "shop/tax.py shop/names.csv shop/testing.py templates/cart.html",
        "shop/names.csv shop/testing.py templates/cart.html",
    ),
    "a repository of which only tests are known": (
        SWE,
        {"test_command": "pytest astropy/table", "fail_to_pass": ("astropy/table/tests/test_core.py::test_a",)},
        "astropy/table/core.py astropy/utils/helpers.py astropy/tests/runner.py CHANGES.rst docs/index.rst setup.cfg "
        "astropy/test/client.py astropy/task_spec.py",
        "astropy/tests/runner.py",
    ),
    "tests beside modules of another folder": (
        SIDE_BY_SIDE,
        {"filename": "shop/cart.py"},
        "billing/tax.py billing/rates.py billing/rates.json",
        "billing/tax.py billing/rates.py",
    ),
    "a program that make builds": (COMMAND, COMMAND_PROBLEM, "util.c start.sh new.c ci.c", ""),
    "npm": (
        NPM | {"src/index.js": "import './format.js'; import './helpers'\n"},
        NPM_PROBLEM,
        "src/tax.js src/format.js src/helpers.js src/new.js package.json",
        "src/helpers.js",
    ),
    "npm: what only tests import and nothing tells": (NPM, NPM_PROBLEM, "src/format.js", "src/format.js"),
    "Rust": (RUST, RUST_PROBLEM, "src/new.rs src/cart/new.rs parts/src/lib.rs Cargo.toml", ""),
    "a command that gives all files to a test runner": (
        PACKAGE | {"pytest.ini": "[pytest]\npython_files = *.py\n"},
        {"filename": "shop/cart.py", "test_command": "pytest shop/tax.py; python -m unittest discover -p '*.py'"},
        "shop/tax.py shop/rates.py",
        "",
    ),
    "a module whose coverage is measured": (
        FLAT | {"rates.py": "", "app.py": "import rates\n"},
        FLAT_PROBLEM | {"test_command": "pytest --cov rates --cov=app"},
        "rates.py app.py",
        "",
    ),
    "Go": (
        {"cart.go": "", "cart_test.go": '"tax"', "tax.go": "", "go.mod": ""},
        {"filename": "cart.go", "test_command": "go test ./..."},
        "tax.go go.mod rates.go",
        "",
    ),
    "what the reference changes": (FLAT, FLAT_PROBLEM | {"reference_patch": REFERENCE}, "helpers.py queue.py", ""),
    "the working directory in a project": (
        {f"app/{path}": text for path, text in PACKAGE.items()} | {"other/lib.py": ""},
        PACKAGE_PROBLEM | {"working_directory": "app"},
        "app/shop/tax.py other/lib.py app/shop/prices.csv",
        "",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_fix_is_left_as_it_is(name: str) -> None:
    files, about, paths, flagged = HONEST[name]
    changes = {path: MANIFESTS.get(path, "x") for path in paths.split()}
    made = applied(files, changes, **about)
    assert (made.judge_files, made.changes.keys()) == ((), changes.keys())
    assert sorted(made.flagged) == sorted(flagged.split())


def test_what_is_declared_decides() -> None:
    declared = Declared(judge=("golden/*", "rates.py", "both.py"), source=("helpers.py", "both.py", "tests/made/*"))
    files = FLAT | {"rates.py": "", "both.py": "", "golden/a/b.txt": "", "tests/made/x.py": "", "tests/y.py": ""}
    problem, tree = problem_of(files, declared, **FLAT_PROBLEM)
    judge = {"golden/a/b.txt", "rates.py", "checks.py", "inner.py", "wanted.py", "golden.json", "tests/y.py"}
    assert set(problem.judge_files) == judge | {"test_solution.py"}
    assert problem.shared_files == ("both.py",)
    changes = dict.fromkeys(["golden/new.txt", "tests/made/new.py", "helpers.py", "both.py", "solution.py"], "x")
    made = applied_fix(tree, Fix(json.dumps(changes), "files"), problem)
    assert (made.judge_files, made.flagged) == (("golden/new.txt",), ("both.py",))


def test_what_a_patch_of_tests_changes_is_not_known_of_other_trees(tmp_path: Path) -> None:
    for name, text in {"b.py": "import c", "c.py": "", "d.py": ""}.items():
        (tmp_path / name).write_text(text)
    plain, known = Tree(tmp_path, ("b.py", "c.py", "d.py")), TreeIndex(Tree(tmp_path, ())).known
    patched = plain.with_file("b.py", b"import d")
    for tree, imported in ((patched, "d.py"), (plain, "c.py"), (patched, "d.py")):
        assert TreeIndex(tree, known).imports("b.py") == TreeIndex(tree, known).reach("b.py").modules == {imported}


def test_tests_of_a_patch_and_of_pytests_configuration_are_the_judges() -> None:
    files = {
        "shop/cart.py": "",
        "pytest.ini": "[pytest]\npython_files =\n    check_*.py\n",
        "qa/check_cart.py": "",
        "a.txt": "",
    }
    problem, _ = problem_of(files, Declared(test_patch=("a.txt", "shop/cart.py")), filename="shop/cart.py")
    assert problem.judge_files == ("a.txt", "pytest.ini", "qa/check_cart.py")


RUST_FILE = """\
use std::fmt;
pub fn add(a: i32, b: i32) -> i32 { a - b }
#[cfg(test)]
use std::collections::{HashMap, HashSet};

/// Sums.
#[cfg(test)]
mod tests {
    use super::*; // }
    #[test]
    fn adds() { let _ = "}"; assert_eq!(add(2, 3), 5); }
}
"""
FIXED_RUST = RUST_FILE.replace("a - b", "a + b")
TESTS_OF_RUST = RUST_FILE[RUST_FILE.index("#[cfg(test)]\nmod") :].strip()


@pytest.mark.parametrize(
    ("forged", "left"),
    [
        (FIXED_RUST.replace("5)", "a())"), FIXED_RUST),
        (FIXED_RUST.replace("#[cfg(test)]\nmod", "#[cfg(any())] /* ] */ #[cfg(test)]\nmod"), FIXED_RUST),
        (FIXED_RUST.replace("mod tests {", "mod tests { mod more {}"), FIXED_RUST),
        (FIXED_RUST.partition("/// Sums.")[0] + "#[cfg(any())]", None),
        ("pub fn add(a: i32, b: i32) -> i32 { 5 }\n//", None),
    ],
)
@pytest.mark.parametrize("kind", ["file", "files"])
def test_tests_inside_a_rust_source_are_put_back(forged: str, left: str | None, kind: str) -> None:
    problem, tree = problem_of({"src/lib.rs": RUST_FILE}, filename="src/lib.rs")
    fix = Fix(forged, "file") if kind == "file" else Fix(json.dumps({"src/lib.rs": forged}), "files")
    made = applied_fix(tree, fix, problem)
    assert made.judge_files == ("src/lib.rs (tests inside)",)
    found = (made.changes["src/lib.rs"] or b"").decode()
    if left is not None:
        assert found == left
    else:  # a new item takes what stands at the end of the fix
        assert found.startswith(forged) and "\nconst _: () = ();\n" in found and found.endswith(f"{TESTS_OF_RUST}\n")
    assert applied_fix(tree, fix, problem, "allow").changes["src/lib.rs"] == forged.encode()
    refused_fix(tree, fix, problem, "refuse")


@pytest.mark.parametrize(
    ("fixed", "reference"),
    [
        (FIXED_RUST, None),
        (FIXED_RUST + "#[cfg(test)]\nmod more { #[test] fn a() {} }\n", None),
        (FIXED_RUST.replace("use std::fmt;\n", "").replace("/// Sums.", "// Sums"), None),
        (FIXED_RUST.replace("5", "6"), RUST_FILE.replace("5", "7")),
    ],
    ids=["tests as they were", "more tests", "moved tests", "a reference with other tests"],
)
def test_an_honest_rust_file_is_left_as_it_is(fixed: str, reference: str | None) -> None:
    problem, tree = problem_of({"src/lib.rs": RUST_FILE}, filename="src/lib.rs", reference_fix=reference)
    made = applied_fix(tree, Fix(fixed, "file"), problem)
    assert (made.changes["src/lib.rs"], made.judge_files) == (fixed.encode(), ())


def test_a_fix_of_the_judges_files_alone_has_failed() -> None:
    problem, tree = problem_of(FLAT, **FLAT_PROBLEM)
    fix = Fix(json.dumps({"checks.py": "", "golden.json": "4"}), "files")
    assert refused_fix(tree, fix, problem) == NotApplied(
        "failed", "the fix changes only files on the judge's side: checks.py, golden.json", ("checks.py", "golden.json")
    )


SUM = "def add(a, b):\n    return a - b\n"
# Another helper of that name on the path; the golden file, before the tests read it.
RUNNING = [
    {
        "solution.py": f"import sys\nsys.path.insert(0, __file__.replace('solution.py', 'inner'))\n{SUM}",
        "inner/checks.py": "def same(a, b):\n    pass\n",
    },
    {"solution.py": "def add(a, b):\n    with open('wanted.json', 'w') as file:\n        return file.write('1')\n"},
]
SHOP = {
    "solution.py": SUM,
    "rates.py": "RATE = 2\n",
    "checks.py": "def same(a, b):\n    assert a == b\n",
    "wanted.json": "3",
    "test_solution.py": "import solution\nimport json\n\nimport checks\nimport rates\nfrom solution import add\n\n\n"
    "def test_add():\n    checks.same(add(1, rates.RATE), json.load(open('wanted.json')))\n",
}
CRATE = {
    "Cargo.toml": MANIFEST,
    "src/lib.rs": RUST_FILE.replace("use std::fmt;\n", ""),
}


def outcomes(folder: Path, files: Files, filename: str, fixes: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The outcomes of fixes of several files, validated for real."""
    tree_of(folder / "clones" / "one", files)
    return outcomes_of(folder, {"oid": "one", "filename": filename}, map(json.dumps, fixes), "fixed_files")


def test_forged_helpers_and_golden_files_do_not_pass(tmp_path: Path) -> None:
    wrong, right = SUM.replace("-", "*"), SUM.replace("-", "+")
    forged = {"checks.py": "def same(a, b):\n    pass\n", "wanted.json": "2"}
    package = {"checks/__init__.py": forged["checks.py"], "conftest.py": "collect_ignore_glob = ['*']\n"}
    fixes = [
        {"solution.py": wrong, **forged},
        {"solution.py": wrong, **package},
        {"solution.py": right, **forged, **package},
    ]
    fixes += [{"solution.py": right, "rates.py": "RATE = 2.0\n"}, forged]
    *rows, imported, written = outcomes(tmp_path, SHOP, "solution.py", [*fixes, *RUNNING])
    assert [row["status"] for row in rows] == ["failed", "failed", "passed", "passed", "failed"]
    changed = ["checks.py\nwanted.json", "checks/__init__.py\nconftest.py"]
    changed.append("checks.py\nchecks/__init__.py\nconftest.py\nwanted.json")
    assert [row["changed_judge_files"] for row in rows] == [*changed, None, changed[0]]
    assert [row.get("flagged_files") for row in rows] == [None, None, None, "rates.py", None]
    assert "put back: checks.py, wanted.json" in rows[0]["diagnostics"]
    # Those that change the judge's side when they run.
    assert imported["status"] == written["status"] == "validator_unavailable"
    assert "not the module of the tests" in imported["diagnostics"]
    assert "looks at what judges it" in written["diagnostics"]


def test_what_is_used_instead_of_a_shared_file_is_flagged() -> None:
    files = {"solution.py": SUM, "check.py": "import solution, checker\n", "checker.py": ""}
    changes = {"solution.py": "", "checker/__init__.py": ""}
    found = applied(files, changes, filename="solution.py", test_command="python check.py")
    assert found.flagged == ("checker/__init__.py",)


def test_a_makefile_makes_no_file_of_a_fix_and_reads_its_own() -> None:
    """A new file of a target's name would be up to date. Data may be named in a command within a command."""
    files = {"run.sh": "", "Makefile": 'test: check\ncheck:\n\ttest "$(shell sh run.sh)" = "$$(cat want.txt)"\n'}
    files["want.txt"] = "5"
    changes = {"run.sh": "x", "check": "", "want.txt": "4"}
    found = applied(files, changes, filename="run.sh", test_command="make test")
    assert found.judge_files == ("check", "want.txt")


@pytest.mark.nightly
@needs_cargo
def test_forged_tests_inside_a_rust_source_do_not_pass(tmp_path: Path) -> None:
    wrong, right = CRATE["src/lib.rs"].replace("a - b", "a * b"), CRATE["src/lib.rs"].replace("a - b", "a + b")
    without = right.partition("#[cfg(test)]")[0]
    fixes = [wrong.replace("5", "6"), wrong.partition("#[cfg(test)]")[0] + "#[cfg(any())]", without, right]
    rows = outcomes(tmp_path, CRATE, "src/lib.rs", [{"src/lib.rs": fix} for fix in fixes])
    assert [row["status"] for row in rows] == ["failed", "failed", "passed", "passed"]


def test_thousands_of_files_take_a_moment() -> None:
    """A repository of 1,500 modules and 500 tests."""
    body = "import os\nfrom pkg.m1 import x\n" + "def f(a):\n    return a  # 'text'\n" * 100
    files = {f"pkg/m{number}.py": body for number in range(1500)} | {"pkg/__init__.py": ""}
    files |= {
        f"tests/test_{number}.py": f"from tests import helper\nfrom pkg import m{number}\n" for number in range(500)
    }
    files |= {"tests/helper.py": "", "tests/__init__.py": ""}
    started = time.process_time()
    problem, _ = problem_of(files, filename="pkg/m5.py")
    assert len(problem.judge_files) == 502
    assert time.process_time() - started < 2.5
