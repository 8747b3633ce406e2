"""Unified diffs, files as JSON and search/replace blocks: what applies, what is refused, and that git agrees."""

import difflib
import json
import subprocess
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.validation.fixes.apply_fix import AppliedFix, Fix, FixKind, NotApplied, apply_fix
from touchstone.validation.fixes.patching import apply_patches
from touchstone.validation.fixes.unified_diff import PatchError, parse_diff
from touchstone.validation.judge_side import with_judge_side
from touchstone.validation.protocol import Problem, Tree
from touchstone.vocabulary import TestEdits

FILES = {
    "shop/cart.py": b"def add(a, b):\n    return a - b\n\n\ndef none():\n    return 0\n",
    "shop/names.py": b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n",
    "shop/old.py": b"gone\n",
    "tests/test_cart.py": b"import shop\n",
    "README": b"no newline at the end",
}
CART = (
    "--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -1,4 +1,4 @@\n"
    " def add(a, b):\n-    return a - b\n+    return a + b\n \n \n"
)
ADDED = FILES["shop/cart.py"].replace(b"a - b", b"a + b")


def tree(files: dict[str, bytes] = FILES) -> Tree:
    return Tree(Path("clones"), tuple(sorted(files)), files)


def applied(text: str, kind: FixKind = "diff", tests: TestEdits = "ignore") -> AppliedFix | NotApplied:
    problem = with_judge_side(Problem("p", "shop/cart.py", Path("clones")), tree())
    return apply_fix(tree(), Fix(text, kind), problem, tests)


def changes(text: str, kind: FixKind = "diff", tests: TestEdits = "ignore") -> dict[str, bytes | None]:
    made = applied(text, kind, tests)
    assert isinstance(made, AppliedFix), made
    return dict(made.changes)


def reason(text: str, kind: FixKind = "diff", tests: TestEdits = "ignore") -> str:
    made = applied(text, kind, tests)
    assert isinstance(made, NotApplied)
    assert made.status == "failed"
    return made.reason


def names_patch(*hunks: str) -> str:
    return "--- a/shop/names.py\n+++ b/shop/names.py\n" + "".join(hunks)


class TestDiffs:
    def test_several_files_created_changed_renamed_and_deleted(self) -> None:
        text = (
            f"diff --git a/shop/cart.py b/shop/cart.py\nindex 1..2 100644\n{CART}"
            "diff --git a/shop/new.py b/shop/new.py\nnew file mode 100644\nindex 0..1\n"
            "--- /dev/null\n+++ b/shop/new.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n"
            "diff --git a/shop/__init__.py b/shop/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n"
            "diff --git a/shop/old.py b/shop/old.py\ndeleted file mode 100644\nindex 1..0\n"
            "--- a/shop/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
            "diff --git a/README b/docs/read me.txt\nsimilarity index 100%\n"
            "rename from README\nrename to docs/read me.txt\n"
        )
        assert changes(text) == {
            "shop/cart.py": ADDED,
            "shop/new.py": b"x = 1\ny = 2\n",
            "shop/__init__.py": b"",
            "shop/old.py": None,
            "README": None,
            "docs/read me.txt": FILES["README"],
        }

    @pytest.mark.parametrize(
        "text",
        [
            f"Here is the fix:\n\n```diff\n{CART}```\nIt adds.\n",
            f"<![CDATA[{CART}]]>",
            CART.rstrip("\n") + "\n",
            CART.replace("a/shop", "shop").replace("b/shop", "shop"),
            CART.replace("\n \n \n", "\n\n\n"),
            CART.replace("cart.py\n", "cart.py\t2026-01-01 00:00:00\n"),
            CART.replace("@@ -1,4 +1,4 @@", "@@ -1,4 +1,4 @@ def add(a, b):"),
        ],
        ids=["fenced", "CDATA", "stripped", "no prefixes", "blank context", "timestamps", "section"],
    )
    def test_ways_of_writing_the_same(self, text: str) -> None:
        assert changes(text) == {"shop/cart.py": ADDED}

    def test_a_moved_hunk_goes_to_the_nearest_place(self) -> None:
        text = names_patch("@@ -2,3 +2,3 @@\n four\n-five\n+FIVE\n six\n")
        assert changes(text)["shop/names.py"] == FILES["shop/names.py"].replace(b"five", b"FIVE")

    def test_the_end_of_a_file_without_a_newline(self) -> None:
        old, marker = "no newline at the end", "\\ No newline at end of file\n"
        text = f"--- a/README\n+++ b/README\n@@ -1 +1,2 @@\n-{old}\n{marker}+{old}\n+more\n{marker}"
        assert changes(text) == {"README": FILES["README"] + b"\nmore"}

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("just words\n", "has no unified diff in it"),
            (" \n", "the fix is empty"),
            (
                CART.replace("a - b", "a * b"),
                "does not apply: shop/cart.py: hunk 1 does not match\n@@ -1,4 +1,4 @@\ndef add",
            ),
            (CART.replace("shop/cart.py", "shop/none.py"), "changes shop/none.py, which is not there"),
            (CART.replace("-1,4", "-1,5"), "ends in the middle of a hunk"),
            (CART.replace("+1,4", "+1,3"), "has a hunk whose lines do not fit its header"),
            ("@@ -1 +1 @@\n-a\n+b\n", "has a hunk without a file name, in line 1"),
            ("--- a/x\n+++ b/x\nnothing\n", "has no hunk for x"),
            (CART.replace("@@ -1,4 +1,4 @@", "@@ -1,four +1,4 @@"), "has an unreadable hunk header"),
            (CART.replace("-1,4", f"-1,{'4' * 5000}"), "has an unreadable hunk header"),
            ("--- /dev/null\n+++ b/README\n@@ -0,0 +1 @@\n+x\n", "creates README, which is already there"),
            ("--- a/shop/names.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n", "does not apply"),
            (names_patch("@@ -2,2 +2,2 @@\n two\n-three\n+3\n"), "does not apply"),
            (
                "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n",
                "a symbolic link",
            ),
            ("diff --git a/l b/l\nnew file mode 160000\nindex 0..1\n", "makes a submodule, which is refused"),
            ("diff --git a/README b/README\nold mode 100644\nnew mode 120000\n", "makes a symbolic link"),
            ("diff --git a/README b/README\ndeleted file mode 120000\n", "changes a symbolic link"),
            (f"diff --git a/shop/cart.py b/shop/cart.py\nindex 1..2 120000\n{CART}", "changes a symbolic link"),
            ("diff --git a/README b/README\nold mode 100644\nnew mode 104755\n", "the file mode '104755'; only 100644"),
            ("diff --git a/x b/x\nnew file mode 040000\n", "the file mode '040000'; only 100644 and 100755 are"),
            ("diff --git a/none b/none\nold mode 100644\nnew mode 100755\n", "changes none, which is not there"),
            ("diff --git a/b.bin b/b.bin\nindex 1..2\nGIT binary patch\nliteral 1\n", "changes a binary file"),
            ("diff --git a/README b/R\nsimilarity index 100%\ncopy from README\ncopy to R\n", "copies a file"),
        ],
    )
    def test_what_does_not_apply(self, text: str, why: str) -> None:
        assert why in reason(text)

    @pytest.mark.parametrize(
        "path",
        ["../out.py", "/etc/passwd", ".git/config", "a/../../b", "~/x", "a//b", "./a", "a\\\\b", "node_modules/x.js"],
    )
    @pytest.mark.parametrize("form", ["diff", "rename", "files", "edits"])
    def test_paths_outside_the_tree_are_refused(self, path: str, form: str) -> None:
        quoted = f'"b/{path}"' if "\\" in path else f"b/{path}"
        text, kind = {
            "diff": (f"--- /dev/null\n+++ {quoted}\n@@ -0,0 +1 @@\n+x\n", "diff"),
            "rename": (
                f"diff --git a/README b/x\nsimilarity index 100%\nrename from README\nrename to {path}\n",
                "diff",
            ),
            "files": (json.dumps({path: "x"}), "files"),
            "edits": (f"{path}\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n", "edits"),
        }[form]
        assert "path" in reason(text, kind)  # type: ignore[arg-type]

    @pytest.mark.parametrize("path", ["shop", "README/x.py"])
    def test_a_path_that_is_a_file_and_a_folder(self, path: str) -> None:
        assert "cannot be written" in reason(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")

    def test_the_problems_own_file_stays_unless_a_command_judges(self) -> None:
        text = json.dumps({"shop/cart.py": None, "shop/basket.py": "x"})
        assert reason(text, "files") == "the fix deletes shop/cart.py, the file that the problem is about"
        problem = Problem("p", "shop/cart.py", Path("clones"), test_command="make test")
        assert isinstance(apply_fix(tree(), Fix(text, "files"), problem), AppliedFix)

    def test_the_lines_of_the_problem_in_a_fix_of_several_files(self) -> None:
        problem = Problem("p", "shop/cart.py", Path("clones"), line_start=5, line_end=6)
        text = CART.replace("@@ -1,4 +1,4 @@\n", "@@ -1,4 +1,5 @@\n+# sums\n")
        made = apply_fix(tree(), Fix(text, "diff"), problem)
        assert isinstance(made, AppliedFix)
        assert (made.first_line, made.last_line) == (6, 7)


class TestTestFiles:
    EDIT = "--- a/tests/test_cart.py\n+++ b/tests/test_cart.py\n@@ -1 +1,2 @@\n import shop\n+pass\n"

    def test_are_put_back(self) -> None:
        made = applied(CART + self.EDIT)
        assert isinstance(made, AppliedFix)
        assert (made.changes, made.judge_files) == ({"shop/cart.py": ADDED}, ("tests/test_cart.py",))

    def test_can_be_refused(self) -> None:
        why = reason(CART + self.EDIT, tests="refuse")
        assert why.startswith(
            "the fix changes tests/test_cart.py, on the judge's side; 'validation.test_edits' decides"
        )

    def test_can_be_allowed(self) -> None:
        made = applied(CART + self.EDIT, tests="allow")
        assert isinstance(made, AppliedFix)
        assert made.changes.keys() == {"shop/cart.py", "tests/test_cart.py"}
        assert made.judge_files == ("tests/test_cart.py",)

    @pytest.mark.parametrize("path", ["shop/test_x.py", "a/x_test.go", "src/a.spec.ts", "src/test/java/A.java"])
    def test_new_ones_are_put_back_too(self, path: str) -> None:
        assert changes(json.dumps({"shop/cart.py": "x", path: "x"}), "files") == {"shop/cart.py": b"x"}

    SETTINGS: ClassVar[dict[str, tuple[str, str, str]]] = {
        "a script": ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}'),
        "a script before it": ("package.json", '{"scripts": {"a": "jest"}}', '{"scripts": {"a": "jest", "prea": "x"}}'),
        "a JavaScript runner": ("package.json", "{}", '{"jest": {"setupFiles": ["./a.js"]}}'),
        "a test target": ("Cargo.toml", "[package]", '[package]\n[[test]]\nname = "a"\npath = "src/b.rs"'),
        "a harness": ("Cargo.toml", "[package]", "[package]\n[lib]\nharness = false"),
        "pytest in pyproject.toml": ("pyproject.toml", "", '[tool.pytest.ini_options]\naddopts = "-p a"'),
        "pytest in setup.cfg": ("setup.cfg", "[metadata]", "[tool:pytest]\naddopts = -p a"),
        "something unreadable": ("Cargo.toml", "[package]", "[package"),
        "cargo's own": (".cargo/config.toml", "", "[build]\nrustc-wrapper = 'a'"),
    }
    NO_SETTINGS: ClassVar[dict[str, tuple[str, str, str]]] = {
        "a dependency": (
            "package.json",
            '{"scripts": {"test": "a"}}',
            '{"scripts": {"test": "a"}, "dependencies": {}}',
        ),
        "a new script": ("package.json", '{"scripts": {"test": "a"}}', '{"scripts": {"test": "a", "lint": "b"}}'),
        "a crate": ("Cargo.toml", "[package]", "[package]\n[lib]\nname = 'a'\n[dependencies]\nb = '1'"),
        "a version": ("pyproject.toml", "", "[project]\nversion = '2'"),
    }

    @pytest.mark.parametrize("what", [*SETTINGS, *NO_SETTINGS])
    def test_settings_of_the_test_runner_are_some_too(self, what: str) -> None:
        path, before, after = (self.SETTINGS | self.NO_SETTINGS)[what]
        tree = Tree(Path("clones"), ("a.py", path), {"a.py": b"", path: before.encode()})
        problem = with_judge_side(Problem("a", "a.py", Path("clones")), tree)
        made = apply_fix(tree, Fix(json.dumps({"a.py": "x", path: after}), "files"), problem)
        assert isinstance(made, AppliedFix)
        assert made.judge_files == ((path,) if what in self.SETTINGS else ())

    @pytest.mark.parametrize(
        "path",
        ["pytest_asyncio.py", "anyio/pytest_plugin.py", "pytest_mock/__init__.py", "yaml.py", "src/yaml/__init__.py",
         "x.dist-info/entry_points.txt", "x.egg-info/entry_points.txt", "iniconfig.py", "sitecustomize.py"],
    )  # fmt: skip
    def test_what_would_be_imported_instead_of_a_library_is_put_back(self, path: str) -> None:
        files = {**FILES, "tests/test_cart.py": b"import yaml\nfrom shop import cart\nimport assets, basket\n"}
        problem = with_judge_side(Problem("p", "shop/cart.py", Path("clones")), tree(files))
        sound = ("basket.py", "shop/yaml.py", "polars_tools.py", "__main__.py", "a b.py", "assets.py")
        made = apply_fix(tree(files), Fix(json.dumps(dict.fromkeys((path, *sound), "x")), "files"), problem)
        assert isinstance(made, AppliedFix)
        assert (made.judge_files, made.changes.keys()) == ((path,), set(sound))

    def test_a_file_that_the_tests_are_about_is_none(self) -> None:
        problem = Problem("p", "shop/cart.py", Path("clones"), test_command="pytest --doctest-modules shop/cart.py")
        assert isinstance(apply_fix(tree(), Fix(CART, "diff"), problem), AppliedFix)


class TestFilesAsJson:
    def test_contents_by_path(self) -> None:
        text = json.dumps({"shop/cart.py": "x\n", "shop/old.py": None, "new/a.py": ""})
        wanted = {"shop/cart.py": b"x\n", "shop/old.py": None, "new/a.py": b""}
        assert changes(text, "files") == changes(f"```json\n{text}\n```", "files") == wanted

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("{", "is not whole JSON"),
            ("[1]", "is not a JSON object"),
            ("{}", "has no file in it"),
            ('{"a": 1}', "has something else than text or null at 'a'"),
            ('{"a": {"b": "c"}}', "has something else than text or null at 'a'"),
            ('{"a": "1", "a": "2"}', "has the path 'a' twice"),
            ('{"a": "\\u0000"}', "the fix has NUL bytes"),
            ('{"a": "\\ud800"}', "lone surrogates"),
            ('{"a": null}', "deletes 'a', which is not there"),
        ],
    )
    def test_what_is_refused(self, text: str, why: str) -> None:
        assert why in reason(text, "files")


class TestSearchReplace:
    BLOCK = "<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n"

    def test_blocks(self) -> None:
        new = "shop/new.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n"
        text = f"I change the sum.\n\n**shop/cart.py**\n```python\n{self.BLOCK}```\n\n{new}"
        assert changes(text, "edits") == {"shop/cart.py": ADDED, "shop/new.py": b"x = 1\n"}

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("words", "has no search/replace block in it"),
            (BLOCK, "names no file before the block in line 1"),
            (f"shop/none.py\n{BLOCK}", "changes shop/none.py, which is not there"),
            (f"shop/names.py\n{BLOCK}", "these lines are not there\n    return a - b"),
            (f"shop/cart.py\n{BLOCK.replace('    return a - b', '')}", "these lines are there twice"),
            (f"shop/cart.py\n{BLOCK[:40]}", "has a block without an end, in line 2"),
            ("README\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n", "an empty search needs an empty or new file"),
        ],
    )
    def test_what_does_not_apply(self, text: str, why: str) -> None:
        assert why in reason(text, "edits")


NULLS = json.dumps({f"d/{number}": None for number in range(2_000)})


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        ("--- a/x\n+++ b/x\n" + "@@ -9,3 +9,3 @@\n a\n-a\n+b\n a\n" * 5_000, "diff", "2,000,000 comparisons"),
        pytest.param(
            "--- a/x\n+++ b/x\n@@ -9,2 +9,3 @@\n a\n+b\n a\n" * 5_000,
            "diff",
            "2,000,000 comparisons",
            marks=pytest.mark.nightly,
        ),
        ("".join(f"--- a/{n}\n+++ b/{n}\n@@ -1 +1 @@\n-a\n+b\n" for n in range(2_000)), "diff", "at most 1,000"),
        (NULLS, "files", "at most 1,000"),
        ("x\n<<<<<<< SEARCH\nb\n=======\nb\n>>>>>>> REPLACE\n" * 5_000, "edits", "touches more than 50,000,000 bytes"),
    ],
    ids=["many hunks", "one file many times", "many files", "many deleted files", "many blocks"],
)
def test_the_work_for_one_fix_is_bounded(text: str, kind: FixKind, why: str) -> None:
    files = {"x": b"a\n" * 20_000 + b"b\n", **{f"d/{number}": b"" for number in range(2_000)}}
    made = apply_fix(tree(files), Fix(text, kind), Problem("p", "x", Path("clones")))
    assert isinstance(made, NotApplied)
    assert why in made.reason


lines = st.lists(st.sampled_from(["a", "b", "", "x y"]), max_size=12)


@given(lines, lines, lines, st.integers(1, 3))
def test_git_agrees(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], real: list[str], context: int
) -> None:
    """A diff between two texts, applied to a third one."""
    before, after, there = ("".join(f"{line}\n" for line in text) for text in (old, new, real))
    hunks = difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/f", "b/f", n=context)
    text = "".join(hunks)
    if not text or not real:
        return
    folder = tmp_path_factory.mktemp("git")
    (folder / "f").write_text(there)
    (folder / "p").write_text(text)
    said = subprocess.run(["git", "apply", "p"], cwd=folder, capture_output=True, check=False)
    try:
        made, _ = apply_patches(tree({"f": there.encode()}), parse_diff(text))
    except PatchError:
        assert said.returncode != 0, said.stderr
    else:
        assert (said.returncode, made["f"]) == (0, (folder / "f").read_bytes() if (folder / "f").exists() else None)
