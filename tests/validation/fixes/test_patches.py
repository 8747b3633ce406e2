"""Unified diffs, files as JSON, search/replace blocks and patches of Codex: what applies and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import nightly_but
from tests.validation.fixes.support import applied_fix, refused_fix
from touchstone.validation.fixes.apply_fix import AppliedFix, Fix, FixKind, apply_fix
from touchstone.validation.judge_side import with_judge_side
from touchstone.validation.protocol import Problem, Tree

FILES = {
    "shop/cart.py": b"def add(a, b):\n    return a - b\n\n\ndef none():\n    return 0\n",
    "shop/names.py": b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n",
    "shop/old.py": b"gone\n",
    "tests/test_cart.py": b"import shop\n",
    "README": b"no newline at the end",
    "windows.py": b"one\r\ntwo\r\nthree\r\n",
    "marked.py": b"\xef\xbb\xbfone\ntwo\nthree\n",
    "b/z.py": b"one\n",
    "twice": b"a\na\n",
    "cart.py": b"def add(a, b):\n    return a - b\n\n\n",
}
CART = (
    "--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -1,4 +1,4 @@\n"
    " def add(a, b):\n-    return a - b\n+    return a + b\n \n \n"
)
ADDED = FILES["shop/cart.py"].replace(b"a - b", b"a + b")


def tree(files: dict[str, bytes] = FILES) -> Tree:
    return Tree(Path("clones"), tuple(sorted(files)), files)


CART_PROBLEM = with_judge_side(Problem("p", "shop/cart.py", Path("clones")), tree())


def reason(text: str, kind: FixKind) -> str:
    made = refused_fix(tree(), Fix(text, kind), CART_PROBLEM)
    assert made.status == "failed"
    return made.reason


def names_patch(*hunks: str) -> str:
    return "--- a/shop/names.py\n+++ b/shop/names.py\n" + "".join(hunks)


def block(search: str, replacement: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replacement}\n>>>>>>> REPLACE\n"


def codex(body: str) -> str:
    """A patch in the format of OpenAI's tool `apply_patch`."""
    return f"*** Begin Patch\n{body}*** End Patch\n"


BLOCK = block("    return a - b", "    return a + b")
# Ways of writing one change.
DIFFS = [
    f"Here is the fix:\n\n```diff\n{CART}```\nIt adds.\n",
    f"<![CDATA[{CART}]]>",
    CART.removesuffix("\n"),
    CART.replace("a/shop", "shop").replace("b/shop", "shop"),
    CART.replace("a/shop", "./shop").replace("b/shop", "./shop"),
    CART.replace("a/shop", "a/./shop").replace("b/shop", "b/./shop"),
    CART.replace("a/shop", "x/shop").replace("b/shop", "b/shop").replace("x/", "b/").replace("+++ b/", "+++ a/"),
    CART.replace("b/shop", "a/shop"),
    CART.replace("a/shop/cart.py", "shop/cart.py.orig").replace("b/shop", "shop"),
    CART.replace("\n \n \n", "\n\n\n"),
    CART.replace("\n", "\r\n"),
    f"\ufeff{CART}",
    f"\ufeffdiff --git a/shop/cart.py b/shop/cart.py\n{CART}",
    f'diff --git "a/shop/cart.py" b/shop/cart.py\n{CART}',
    f"diff --git a/shop/cart.py b/shop/cart.py\nsomething else\n{CART}",
    CART.replace("cart.py\n", "cart.py\t2026-01-01 00:00:00\n"),
    CART.replace("cart.py\n", "cart.py 2024-01-01 10:00:00.000 +0000\n"),
    CART.replace("cart.py\n", "cart.py  2024-01-01 10:00:00\n"),
    CART.replace("cart.py\n", "cart.py 2024-01-01T10:00:00Z\n"),
    CART.replace("cart.py\n", "cart.py Mon Jan  1 10:00:00 2024\n"),
    CART.replace("@@ -1,4 +1,4 @@", "@@ -1,4 +1,4 @@ def add(a, b):"),
    CART + "-- \n2.39.5\n",
    CART.replace("@@ -1,4 +1,4 @@", "@@ ... @@"),
    CART.replace("@@ -1,4 +1,4 @@", "@@"),
]
EDITS = [
    BLOCK,
    f"Here is the fix. It adds:\n\n```python\n{BLOCK}```\n",
    f"I change shop/cart.py as follows:\n{BLOCK}",
    f"./shop/cart.py\n{BLOCK}",
    f"### File: `shop/cart.py`\n```\n{BLOCK}```\n",
    f"```python shop/cart.py\n{BLOCK}```\n",
    f"\ufeffshop/cart.py\n{BLOCK}",
    f"<![CDATA[shop/cart.py\n{BLOCK}]]>",
    BLOCK.replace("\n", "\r\n"),
    BLOCK.replace("<<<<<<<", "-------").replace(">>>>>>>", "+++++++"),
    BLOCK.replace("<<<<<<<", "<<<<<").replace("=======", "=====").replace(">>>>>>>", ">>>>>"),
    BLOCK.replace("<<<<<<<", "<<<<<<<<<").replace("=======", "=========").replace(">>>>>>>", ">>>>>>"),
    BLOCK.replace("SEARCH", "SEARCH>"),
    BLOCK.replace("SEARCH\n", "SEARCH\n:start_line:2\n-------\n"),
    BLOCK.replace("SEARCH\n", "SEARCH\n:start_line:2\n:end_line:2\n"),
]


@pytest.mark.parametrize(("text", "kind"), [*((text, "diff") for text in DIFFS), *((text, "edits") for text in EDITS)])
def test_ways_of_writing_the_same(text: str, kind: FixKind) -> None:
    made = applied_fix(tree(), Fix(text, kind), CART_PROBLEM)
    assert (made.changes, made.notes) == ({"shop/cart.py": ADDED}, ())


MISCOUNTED = "shop/cart.py: a hunk has other lines than its header counts"
GONE = "the fix deletes gone.py, which is not there"
HUNK, LINES = "@@ -1,3 +1,3 @@\n", " one\n-two\n+2\n three\n"
DELETED = "--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
DELETED_BY_GIT = "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n"
SEVERAL = (
    f"diff --git a/shop/cart.py b/shop/cart.py\nindex 1..2 100644\n{CART}"
    "diff --git a/shop/new.py b/shop/new.py\nnew file mode 100644\nindex 0..1\n"
    "--- /dev/null\n+++ b/shop/new.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n"
    "diff --git a/shop/__init__.py b/shop/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n"
    "diff --git a/shop/old.py b/shop/old.py\ndeleted file mode 100644\nindex 1..0\n"
    "--- a/shop/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    "diff --git a/README b/docs/read me.txt\nsimilarity index 100%\n"
    "rename from README\nrename to docs/read me.txt\n"
)
NO_NEWLINE = "\\ No newline at end of file\n"
THEN, NOW = "1970-01-01 01:00:00.000000000 +0100", "2024-01-01 00:00:00.000000000 +0000"
BY_EPOCH = (
    f"--- a/new.py\t{THEN}\n+++ b/new.py\t{NOW}\n@@ -0,0 +1 @@\n+x\n"
    f"--- a/shop/old.py {NOW}\n+++ b/shop/old.py {THEN}\n@@ -1 +0,0 @@\n-gone\n"
)
SWAPPED = "".join(
    f"diff --git a/{old} b/{new}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n"
    for old, new in (("README", "shop/old.py"), ("shop/old.py", "README"))
)
COPIED = "diff --git a/shop/cart.py b/shop/two.py\ncopy from shop/cart.py\ncopy to shop/two.py\n"
CODEX = codex(
    "*** Add File: shop/new.py\n+x = 1\n+\n*** Add File: shop/__init__.py\n"
    "*** Update File: ./shop/cart.py\n@@ def add(a, b):\n-    return a - b\n+    return a + b\n\n"
    "@@\n def none():\n-    return 0\n+    return None\n"
    "*** Update File: shop/names.py\n*** Move to: shop/words.py\n@@\n-eight\n+8\n*** End of File\n"
    "*** Delete File: shop/old.py\n"
)
CODEX_CHANGES = {
    "shop/new.py": b"x = 1\n\n",
    "shop/__init__.py": b"",
    "shop/cart.py": ADDED.replace(b"return 0", b"return None"),
    "shop/words.py": FILES["shop/names.py"].replace(b"eight", b"8"),
    "shop/names.py": None,
    "shop/old.py": None,
}
JSON = json.dumps({"shop/cart.py": "x\n", "shop/old.py": None, "new/a.py": ""})
JSON_CHANGES = {"shop/cart.py": b"x\n", "shop/old.py": None, "new/a.py": b""}
WINDOWS, MARKED = b"one\r\n2\r\nthree\r\n", b"\xef\xbb\xbfone\n2\nthree\n"
# The kind of a fix, its text, what it changes, and what is noted.
APPLIED: list[tuple[Any, ...]] = [
    (
        "diff",
        SEVERAL,
        {
            "shop/cart.py": ADDED,
            "shop/new.py": b"x = 1\ny = 2\n",
            "shop/__init__.py": b"",
            "shop/old.py": None,
            "README": None,
            "docs/read me.txt": FILES["README"],
        },
    ),
    # A hunk that its header miscounts must match once.
    ("diff", CART.replace("-1,4", "-1,9"), {"shop/cart.py": ADDED}, MISCOUNTED),
    ("diff", CART.replace("+1,4", "+1,3"), {"shop/cart.py": ADDED}, MISCOUNTED),
    ("diff", CART.rstrip(), {"shop/cart.py": ADDED}, MISCOUNTED),
    ("diff", CART.replace("1,4", "7,9"), {"shop/cart.py": ADDED}, MISCOUNTED),
    # Line ends and BOM of the file stay, unless the fix removes the BOM.
    ("diff", f"--- a/windows.py\n+++ b/windows.py\n{HUNK}{LINES}", {"windows.py": WINDOWS}),
    ("diff", f"--- a/windows.py\n+++ b/windows.py\n{HUNK}" + LINES.replace("\n", "\r\n"), {"windows.py": WINDOWS}),
    ("diff", f"--- a/marked.py\n+++ b/marked.py\n{HUNK}{LINES}", {"marked.py": MARKED}),
    (
        "diff",
        "--- a/marked.py\n+++ b/marked.py\n@@ -1,3 +1,3 @@\n-\ufeffone\n-two\n+one\n+2\n three\n",
        {"marked.py": MARKED[3:]},
    ),
    ("edits", f"windows.py\n{block('two', '2')}", {"windows.py": WINDOWS}),
    ("edits", f"marked.py\n{block('two', '2')}", {"marked.py": MARKED}),
    ("edits", f"marked.py\n{block('one', '1')}", {"marked.py": FILES["marked.py"].replace(b"one", b"1")}),
    # A file to delete that is not there is a note.
    ("diff", CART + DELETED, {"shop/cart.py": ADDED}, GONE),
    ("diff", f"{CART}{DELETED_BY_GIT}index 1..0\n", {"shop/cart.py": ADDED}, GONE),
    ("diff", CART + DELETED_BY_GIT + DELETED, {"shop/cart.py": ADDED}, GONE),
    ("diff", codex("*** Delete File: gone.py\n"), {}, GONE),
    ("files", '{"gone.py": null, "new.py": "x"}', {"new.py": b"x"}, GONE),
    ("files", '{"gone.py": null}', {}, GONE),
    # A file of the epoch is not there; git copies and renames files as they were.
    ("diff", BY_EPOCH, {"new.py": b"x\n", "shop/old.py": None}),
    ("diff", CART + COPIED, {"shop/cart.py": ADDED, "shop/two.py": FILES["shop/cart.py"]}),
    ("diff", SWAPPED, {"README": FILES["shop/old.py"], "shop/old.py": FILES["README"]}),
    # `./b/z.py` is in the folder b; git agrees. `b/y.py` is not: b is what git puts before the new name.
    ("diff", "--- ./b/z.py\n+++ ./b/z.py\n@@ -1 +1 @@\n-one\n+1\n", {"b/z.py": b"1\n"}),
    ("diff", "--- /dev/null\n+++ ./b/y.py\n@@ -0,0 +1 @@\n+x\n", {"b/y.py": b"x\n"}),
    ("diff", "--- /dev/null\n+++ b/y.py\n@@ -0,0 +1 @@\n+x\n", {"y.py": b"x\n"}),
    # The first folder of a bare name is left out if that is the file.
    (
        "diff",
        CART.replace("a/shop", "other").replace("b/shop", "other"),
        {"cart.py": FILES["cart.py"].replace(b"-", b"+")},
    ),
    ("diff", f"--- other/README\n+++ /dev/null\n@@ -1 +0,0 @@\n-no newline at the end\n{NO_NEWLINE}", {"README": None}),
    # A moved hunk goes to the nearest place; the end of a file without a newline.
    (
        "diff",
        names_patch("@@ -2,3 +2,3 @@\n four\n-five\n+FIVE\n six\n"),
        {"shop/names.py": FILES["shop/names.py"].replace(b"five", b"FIVE")},
    ),
    (
        "diff",
        "--- a/README\n+++ b/README\n@@ -1 +1,2 @@\n-no newline at the end\n"
        f"{NO_NEWLINE}+no newline at the end\n+more\n{NO_NEWLINE}",
        {"README": FILES["README"] + b"\nmore"},
    ),
    *(("files", text, JSON_CHANGES) for text in (JSON, f"```json\n{JSON}\n```", f"\ufeff{JSON}")),
    ("files", JSON.replace('"shop', '"./shop'), JSON_CHANGES),
    (
        "edits",
        f"I change the sum.\n\n**shop/cart.py**\n```python\n{BLOCK}```\n\n"
        "shop/new.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n",
        {"shop/cart.py": ADDED, "shop/new.py": b"x = 1\n"},
    ),
    # A block without a name is for the file before.
    (
        "edits",
        f"shop/names.py\n{block('one', '1')}And:\n{block('two', '2')}",
        {"shop/names.py": b"1\n2" + FILES["shop/names.py"][7:]},
    ),
    *(("diff", text, CODEX_CHANGES) for text in (CODEX, f"Here:\n```\n{CODEX}```\n", CODEX.replace("\n", "\r\n"))),
    ("edits", CODEX, CODEX_CHANGES),
    # In this format, the last line gets its newline.
    (
        "diff",
        codex("*** Update File: README\n@@\n-no newline at the end\n+a newline at the end\n"),
        {"README": b"a newline at the end\n"},
    ),
]


@pytest.mark.parametrize("case", APPLIED)
def test_what_applies(case: tuple[Any, ...]) -> None:
    kind, text, expected, *notes = case
    made = applied_fix(tree(), Fix(text, kind), CART_PROBLEM)
    assert (made.changes, list(made.notes)) == (expected, notes)


REFUSED: dict[str, list[tuple[str, str]]] = {
    "diff": [
        ("just words\n", "has no unified diff in it"),
        (" \n", "the fix is empty"),
        (
            CART.replace("a - b", "a * b"),
            "does not apply: shop/cart.py: hunk 1 does not match\n@@ -1,4 +1,4 @@\ndef add",
        ),
        (CART.replace("shop/cart.py", "shop/none.py"), "changes shop/none.py, which is not there"),
        (CART.replace("shop/cart.py", "other/cart.py"), "changes other/cart.py, which is not there"),
        (CART + "+more\n", "has lines behind a hunk that its header does not count"),
        (CART.replace("-    return a - b\n+    return a + b\n", ""), "has a hunk whose lines do not fit its header"),
        (names_patch("@@ -1,9 +1,9 @@\n+one\n"), "has a hunk that does not say where its lines belong"),
        (names_patch("@@ -2,0 +3 @@\n+2.5\n"), "has a hunk without context that is not at the end of its file"),
        (names_patch("@@ -2 +2 @@\n-two\n+2\n"), "does not apply"),
        ("--- a/twice\n+++ b/twice\n@@ @@\n-a\n+b\n", "matches in several places"),
        ("--- a/shop/cart.py\n+++ b/shop/basket.py\n@@ -1 +1 @@\n-a\n+b\n", "changes shop/basket.py, which is not"),
        (f"diff --git a/README b/README\n{CART}", "has two names for one file: README and shop/cart.py"),
        (f"{CART}diff --git a/README b/README\nold mode 100644", "ends after diff --git a/README b/README"),
        (
            "diff --git a/README b/README\nold mode 100644\nnew mode 100755\n--- a/README\n",
            "has no second name after diff --git a/README b/README",
        ),
        (CART.replace("@@", "@@@"), "has no hunk for shop/cart.py"),
        ("--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n" * 2, "creates n, which is already there"),
        (f"{CART}--- a/shop/cart.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "changes shop/cart.py and deletes it"),
        (CART.replace("shop/cart.py", "windows.py").replace("\n+", "\r\n+"), "does not apply"),
        ("@@ -1 +1 @@\n-a\n+b\n", "has a hunk without a file name, in line 1"),
        ("--- a/x\n+++ b/x\nnothing\n", "has no hunk for x"),
        (CART.replace("@@ -1,4 +1,4 @@", "@@ -1,four +1,4 @@"), "has an unreadable hunk header"),
        (CART.replace("-1,4", f"-1,{'4' * 5000}"), "has an unreadable hunk header"),
        ("--- /dev/null\n+++ b/README\n@@ -0,0 +1 @@\n+x\n", "creates README, which is already there"),
        ("--- a/shop/names.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n", "does not apply"),
        (names_patch("@@ -2,2 +2,2 @@\n two\n-three\n+3\n"), "does not apply"),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n", "a symbolic link"),
        ("diff --git a/l b/l\nnew file mode 160000\nindex 0..1\n", "makes a submodule, which is refused"),
        ("diff --git a/README b/README\nold mode 100644\nnew mode 120000\n", "makes a symbolic link"),
        ("diff --git a/README b/README\ndeleted file mode 120000\n", "changes a symbolic link"),
        (f"diff --git a/shop/cart.py b/shop/cart.py\nindex 1..2 120000\n{CART}", "changes a symbolic link"),
        ("diff --git a/README b/README\nold mode 100644\nnew mode 104755\n", "the file mode '104755'; only 100644"),
        ("diff --git a/x b/x\nnew file mode 040000\n", "the file mode '040000'; only 100644 and 100755 are"),
        ("diff --git a/none b/none\nold mode 100644\nnew mode 100755\n", "changes none, which is not there"),
        ("diff --git a/b.bin b/b.bin\nindex 1..2\nGIT binary patch\nliteral 1\n", "changes a binary file"),
        (f"diff --git a/README b/R\nrename from README\nrename to R\n{CART}", "has other names than README and R"),
        ("diff --git a/n b/R\nsimilarity index 100%\ncopy from n\ncopy to R\n", "changes n, which is not there"),
        ("diff --git a/README b/b/z.py\ncopy from README\ncopy to b/z.py\n", "creates b/z.py, which is already"),
        ("--- /dev/null\n+++ b/shop\n@@ -0,0 +1 @@\n+x\n", "shop cannot be written: it is a folder"),
        ("--- /dev/null\n+++ b/README/x.py\n@@ -0,0 +1 @@\n+x\n", "README/x.py cannot be written: README is a file"),
        ("*** Begin Patch\n*** Delete File: README\n", "has no line '*** End Patch'"),
    ],
    "files": [
        ("{", "is not whole JSON"),
        ("[1]", "is not a JSON object"),
        ("{}", "has no file in it"),
        ('{"a": 1}', "has something else than text or null at 'a'"),
        ('{"a": {"b": "c"}}', "has something else than text or null at 'a'"),
        ('{"a": "1", "a": "2"}', "has the path 'a' twice"),
        ('{"a": "\\u0000"}', "the fix has NUL bytes"),
        ('{"a": "\\ud800"}', "lone surrogates"),
        ('{"a": "1", "./a": "2"}', "has the path 'a' twice"),
        ('{"../a": null}', "path"),
    ],
    "edits": [
        ("words", "has no search/replace block in it"),
        (f"shop/none.py\n{BLOCK}", "changes shop/none.py, which is not there"),
        (f"As shop/names.py has it:\n{BLOCK}", "names shop/names.py before a block, but not on a line of its own"),
        (f"shop/names.py\n{BLOCK}", "these lines are not there\n    return a - b"),
        (f"shop/cart.py\n{BLOCK.replace('    return a - b', '')}", "these lines are there twice"),
        (f"shop/cart.py\n{BLOCK[:40]}", "has a block without an end, in line 2"),
        (BLOCK.replace("=======\n", ""), "has a block without a line of '=', in line 1"),
        (BLOCK + ">>>>>>> REPLACE\n", "has the end of a block without its beginning, in line 6"),
        (f"<<<<<<< SEARCH\n{BLOCK}", "has a block within the block in line 1, in line 2"),
        (BLOCK.replace("<<<<<<<", "<<<<"), "has the end of a block without its beginning, in line 5"),
        (BLOCK.replace("=======\n", "=======\n" * 11), "has 11 lines that could divide the block in line 1"),
        ("README\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n", "an empty search needs an empty or new file"),
    ],
    "codex": [
        ("", "has no file in it"),
        ("*** Rename File: a\n", "has something else than a file in line 2"),
        ("*** Add File: README\n+x\n", "creates README, which is already there"),
        ("*** Add File: new.py\nx\n", "has a new file in line 2 with a line that does not start with '+'"),
        ("*** Delete File: README\n-x\n", "has lines after the deleted file in line 2"),
        ("*** Update File: none.py\n@@\n-a\n+b\n", "changes none.py, which is not there"),
        ("*** Update File: README\n", "has no hunk for README"),
        ("*** Update File: README\n@@\n+x\n", "has a hunk that does not say where its lines belong: @@"),
        ("*** Update File: README\n@@\nx\n", "has a line in a hunk that starts with neither ' ', '+' nor '-': x"),
        ("*** Update File: shop/names.py\n@@\n-one\n+1\n*** End of File\n", "hunk 1 does not match"),
        ("*** Update File: ../x\n@@\n-one\n+1\n", "path"),
    ],
}


@pytest.mark.parametrize(("form", "text", "why"), [(form, *case) for form, cases in REFUSED.items() for case in cases])
def test_what_does_not_apply(form: str, text: str, why: str) -> None:
    kind = "diff" if form == "codex" else form
    assert why in reason(codex(text) if form == "codex" else text, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "path",
    [
        *("../out.py", "/etc/passwd", ".git/config", "a/../../b", "~/x"),
        *("a//b", "./../a", "a/./b", "a\\\\b", "node_modules/x.js"),
    ],
)
@pytest.mark.parametrize("form", ["diff", "rename", "files", "edits"])
def test_paths_outside_the_tree_are_refused(path: str, form: str) -> None:
    quoted = f'"b/{path}"' if "\\" in path else f"b/{path}"
    text, kind = {
        "diff": (f"--- /dev/null\n+++ {quoted}\n@@ -0,0 +1 @@\n+x\n", "diff"),
        "rename": (f"diff --git a/README b/x\nsimilarity index 100%\nrename from README\nrename to {path}\n", "diff"),
        "files": (json.dumps({path: "x"}), "files"),
        "edits": (f"{path}\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n", "edits"),
    }[form]
    assert "path" in reason(text, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "command", "goes"), [("shop/cart.py", None, True), ("README", None, False), ("README", "make test", True)]
)
def test_the_problems_own_file_stays_unless_tests_judge(path: str, command: str | None, goes: bool) -> None:
    fix = Fix(json.dumps({path: None, "shop/basket.py": "x"}), "files")
    made = apply_fix(tree(), fix, Problem("p", path, Path("clones"), test_command=command))
    assert isinstance(made, AppliedFix) is goes
    assert goes or getattr(made, "reason", "") == f"the fix deletes {path}, the file that the problem is about"


def test_the_lines_of_the_problem_in_a_fix_of_several_files() -> None:
    problem = Problem("p", "shop/cart.py", Path("clones"), line_start=5, line_end=6)
    text = CART.replace("@@ -1,4 +1,4 @@\n", "@@ -1,4 +1,5 @@\n+# sums\n")
    assert applied_fix(tree(), Fix(text, "diff"), problem).lines == (6, 7)


def test_names_in_edits_are_relative_to_the_copied_folder_or_the_problems_own() -> None:
    problem = Problem("p", "cart.py", Path("clones"), working_directory="shop")
    files = {"shop/cart.py": FILES["shop/cart.py"], "shop/names.py": b""}
    assert applied_fix(tree(files), Fix(f"cart.py\n{BLOCK}", "edits"), problem).changes == {"shop/cart.py": ADDED}
    refused = refused_fix(tree(), Fix(BLOCK, "edits"), Problem("p", "", Path("clones"), test_command="true"))
    assert "names no file before the block in line 1" in refused.reason


def test_lines_of_equals_signs_in_the_code() -> None:
    files = {"a.rst": b"Old\n=====\n\nSame\n=======\n\nSame\n"}
    problem = Problem("p", "a.rst", Path("clones"))

    def edited(search: str, replacement: str) -> bytes | None:
        return applied_fix(tree(files), Fix(block(search, replacement), "edits"), problem).changes["a.rst"]

    # The divider is as long as the first mark.
    assert edited("Old\n=====", "New\n=====") == files["a.rst"].replace(b"Old", b"New")
    # With the first line as the divider, the search is there twice.
    assert edited("Same\n=======", "New\n=======") == files["a.rst"].replace(b"Same\n=", b"New\n=")
    # With the second line as the divider, the search is not there.
    assert edited("Old", "=======\nNew") == files["a.rst"].replace(b"Old", b"=======\nNew")
    fix = Fix(block("Old\n=======", "New\n======="), "edits")
    refused = refused_fix(tree({"a.rst": b"Old\n=======\n"}), fix, problem)
    assert "several lines of '=' could divide a block" in refused.reason


def test_anchors_of_codex_choose_between_several_places() -> None:
    files = {"a.py": b"class A:\n    def f():\n        pass\nclass B:\n    def f():\n        pass\n"}
    problem = Problem("p", "a.py", Path("clones"))
    update = "*** Update File: a.py\n{}-        pass\n+        return\n"
    for anchors, place in (("@@ class B:\n", 5), ("@@ class B:\n@@     def f():\n", 5), ("@@ class A:\n", 2)):
        made = applied_fix(tree(files), Fix(codex(update.format(anchors)), "diff"), problem)
        assert (made.changes["a.py"] or b"").split(b"\n")[place] == b"        return"
    for anchors in ("@@\n", "", "@@ def f():\n", "@@ class C:\n"):
        refused = refused_fix(tree(files), Fix(codex(update.format(anchors)), "diff"), problem)
        assert "matches in several places" in refused.reason


def test_changed_test_files_are_put_back_unless_that_is_allowed() -> None:
    test = "--- a/tests/test_cart.py\n+++ b/tests/test_cart.py\n@@ -1 +1,2 @@\n import shop\n+pass\n"
    fix, changed = Fix(CART + test, "diff"), {"tests/test_cart.py": b"import shop\npass\n"}
    ignored, allowed = (applied_fix(tree(), fix, CART_PROBLEM, edits) for edits in ("ignore", "allow"))
    assert (ignored.changes, allowed.changes) == ({"shop/cart.py": ADDED}, {"shop/cart.py": ADDED, **changed})
    refused = refused_fix(tree(), fix, CART_PROBLEM, "refuse")
    assert ignored.judge_files == allowed.judge_files == refused.judge_files == ("tests/test_cart.py",)
    reason = "the fix changes tests/test_cart.py, on the judge's side; 'validation.test_edits'"
    assert refused.status == "failed" and refused.reason.startswith(reason)


SETTINGS = {
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
NO_SETTINGS = {
    "a dependency": ("package.json", '{"scripts": {"test": "a"}}', '{"scripts": {"test": "a"}, "dependencies": {}}'),
    "a new script": ("package.json", '{"scripts": {"test": "a"}}', '{"scripts": {"test": "a", "lint": "b"}}'),
    "a crate": ("Cargo.toml", "[package]", "[package]\n[lib]\nname = 'a'\n[dependencies]\nb = '1'"),
    "a version": ("pyproject.toml", "", "[project]\nversion = '2'"),
}


@pytest.mark.parametrize("what", [*SETTINGS, *NO_SETTINGS])
def test_settings_of_the_test_runner_are_put_back_too(what: str) -> None:
    path, before, after = (SETTINGS | NO_SETTINGS)[what]
    tree = Tree(Path("clones"), ("a.py", path), {"a.py": b"", path: before.encode()})
    problem = with_judge_side(Problem("a", "a.py", Path("clones")), tree)
    made = applied_fix(tree, Fix(json.dumps({"a.py": "x", path: after}), "files"), problem)
    assert made.judge_files == ((path,) if what in SETTINGS else ())


@pytest.mark.parametrize(
    "path",
    ["pytest_asyncio.py", "anyio/pytest_plugin.py", "pytest_mock/__init__.py", "yaml.py", "src/yaml/__init__.py",
     "x.dist-info/entry_points.txt", "x.egg-info/entry_points.txt", "iniconfig.py", "sitecustomize.py"],
)  # fmt: skip
def test_what_would_be_imported_instead_of_a_library_is_put_back(path: str) -> None:
    files = {**FILES, "tests/test_cart.py": b"import yaml\nfrom shop import cart\nimport assets, basket\n"}
    problem = with_judge_side(Problem("p", "shop/cart.py", Path("clones")), tree(files))
    sound = ("basket.py", "shop/yaml.py", "polars_tools.py", "__main__.py", "a b.py", "assets.py")
    made = applied_fix(tree(files), Fix(json.dumps(dict.fromkeys((path, *sound), "x")), "files"), problem)
    assert (made.judge_files, made.changes.keys()) == ((path,), set(sound))


def test_a_file_that_the_tests_are_about_is_not_put_back() -> None:
    problem = Problem("p", "shop/cart.py", Path("clones"), test_command="pytest --doctest-modules shop/cart.py")
    applied_fix(tree(), Fix(CART, "diff"), problem)


COMPARED, MANY = "2,000,000 comparisons", "at most 1,000"
WORK: dict[str, tuple[FixKind, str, str]] = {
    "many hunks": ("diff", "--- a/x\n+++ b/x\n" + "@@ -9,3 +9,3 @@\n a\n-a\n+b\n a\n" * 5_000, COMPARED),
    "one file many times": ("diff", "--- a/x\n+++ b/x\n@@ -9,2 +9,3 @@\n a\n+b\n a\n" * 5_000, COMPARED),
    "many anchors": (
        "diff", codex("*** Update File: y\n" + "".join(f"@@ {n}\n" for n in range(3_000)) + "-a\n+b\n"), COMPARED),
    "many files": (
        "diff", "".join(f"--- a/{n}\n+++ b/{n}\n@@ -1 +1 @@\n-a\n+b\n" for n in range(2_000)), MANY),
    "many deleted files": ("files", json.dumps({f"d/{number}": None for number in range(2_000)}), MANY),
    "many blocks": ("edits", f"x\n{block('b', 'b')}" * 5_000, "touches more than 50,000,000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("what", nightly_but([*WORK][2:], WORK))
def test_the_work_for_one_fix_is_bounded(what: str) -> None:
    kind, text, why = WORK[what]
    numbers = "".join(f"{number}\n" for number in range(3_000))
    files = {"x": b"a\n" * 20_000 + b"b\n", "y": f"{numbers}a\na\n".encode()}
    files |= {f"d/{number}": b"" for number in range(2_000)}
    assert why in refused_fix(tree(files), Fix(text, kind), Problem("p", "x", Path("clones"))).reason
