"""The executable bit: what a unified diff says of it is done, as `git apply` does, and counts in the cache key."""

import subprocess
from pathlib import Path

import pytest

from tests.validation.files.test_working_copy import tree_hash, tree_of
from tests.validation.fixes.support import applied_fix
from touchstone.validation.files.working_copy import HashedTree, write_working_copy
from touchstone.validation.fixes.apply_fix import Fix
from touchstone.validation.judge_side import with_judge_side
from touchstone.validation.protocol import Problem, Tree

SCRIPT, PLAIN = "#!/bin/sh\nexit 0\n", "echo\n"


def created(path: str, mode: str, line: str) -> str:
    header = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
    return f"{header}@@ -0,0 +1 @@\n+{line}\n"


def changed(path: str, old: str, new: str, more: str = "") -> str:
    return f"diff --git a/{path} b/{path}\nold mode {old}\nnew mode {new}\n{more}"


HUNK = "index 1..2\n--- a/plain\n+++ b/plain\n@@ -1 +1 @@\n-echo\n+echo more\n"
RENAME = "similarity index 100%\nrename from {0}\nrename to {1}\n"
PATCHES = {
    "made executable": changed("plain", "100644", "100755"),
    "made executable and changed": changed("plain", "100644", "100755", HUNK),
    "no longer executable": changed("script", "100755", "100644"),
    "said to be what it is not": changed("plain", "100755", "100644"),
    "changed without a mode": "--- a/script\n+++ b/script\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-exit 0\n+exit 1\n",
    "changed with another mode in its index": "diff --git a/plain b/plain\n" + HUNK.replace("1..2", "1..2 100755"),
    "new": created("new", "100644", "#!/bin/sh"),
    "new and executable": created("new", "100755", "echo"),
    "new, with the mode of an old patch": created("new", "100775", "echo"),
    "renamed": "diff --git a/tool b/moved\n" + RENAME.format("tool", "moved"),
    "renamed, no longer executable": (
        "diff --git a/tool b/moved\nold mode 100755\nnew mode 100644\n" + RENAME.format("tool", "moved")
    ),
    "renamed into an executable": (
        "diff --git a/plain b/moved\nold mode 100644\nnew mode 100755\n" + RENAME.format("plain", "moved")
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    for name, text, mode in (("script", SCRIPT, 0o755), ("plain", PLAIN, 0o644), ("tool", PLAIN, 0o755)):
        (root / name).write_text(text)
        (root / name).chmod(mode)
    return root


def modes(root: Path) -> dict[str, tuple[bool, bytes]]:
    return {path.name: (bool(path.stat().st_mode & 0o100), path.read_bytes()) for path in root.iterdir()}


def patched(tree: Tree, text: str, problem: Problem | None = None) -> Tree:
    made = applied_fix(tree, Fix(text, "diff"), problem or Problem("p", "plain", tree.root, test_command="true"))
    return tree.with_changes(made.changes, made.executable)


@pytest.mark.parametrize("what", PATCHES)
def test_git_agrees(folder: Path, tmp_path: Path, what: str) -> None:
    write_working_copy(patched(tree_of(folder), PATCHES[what]), tmp_path / "copy")
    done = subprocess.run(["git", "apply"], input=PATCHES[what].encode(), cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert modes(tmp_path / "copy") == modes(folder)


def test_the_cache_key_knows_the_mode(folder: Path) -> None:
    tree = tree_of(folder)
    made = patched(tree, PATCHES["made executable"])
    hashed = HashedTree(folder, tree.files)
    assert hashed.hash_of(made) == tree_hash(made) != hashed.hash_of(tree)
    (folder / "plain").chmod(0o755)
    assert tree_hash(made) == tree_hash(tree_of(folder)), "the same files, made so by a fix or on disk"
    new = [patched(tree, PATCHES[what].replace("#!/bin/sh", "echo")) for what in ("new", "new and executable")]
    assert len({hashed.hash_of(one) for one in new}) == 2


def test_a_later_change_keeps_what_an_earlier_one_set(folder: Path) -> None:
    made = patched(tree_of(folder), PATCHES["made executable"])
    assert made.with_file("plain", b"other\n").executable == {"plain": True}
    assert made.with_changes({"plain": None}).executable == {}


def test_the_mode_of_a_test_is_not_the_fixs_to_change(folder: Path) -> None:
    (folder / "test_a.py").write_text("")
    tree = tree_of(folder)
    problem = with_judge_side(Problem("p", "plain", folder, test_command="true"), tree)
    made = patched(tree, changed("test_a.py", "100644", "100755") + PATCHES["made executable"], problem)
    assert made.executable == {"plain": True}
