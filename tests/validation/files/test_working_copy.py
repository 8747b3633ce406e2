"""Trees on disk: which files are listed, what a working copy contains, and when two hashes are equal."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.validation.files import working_copy
from touchstone.validation.files.working_copy import HashedTree, file_hashes, list_files, write_working_copy
from touchstone.validation.protocol import NoTarget, Tree


def write(root: Path, *files: str) -> Path:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {file}")
    return root


def test_files_come_in_order_without_what_tools_leave_behind(tmp_path: Path) -> None:
    left_out = (".git", ".hg", ".svn", ".terraform", "__pycache__", ".venv", "node_modules")
    write(tmp_path, "b.tf", "a/z.tf", "a/deep/er/x.tf", ".terraform.lock.hcl", "a.tf")
    write(tmp_path, *(f"{name}/x" for name in left_out), *(f"a/deep/{name}/x" for name in left_out))
    write(tmp_path, "target/CACHEDIR.TAG", "target/debug/x", "docs/target/page.md", "a/.git")
    (tmp_path / "empty").mkdir()
    kept = [".terraform.lock.hcl", "a.tf", "a/deep/er/x.tf", "a/z.tf", "b.tf", "docs/target/page.md"]
    assert list_files(tmp_path) == tuple(kept)


def test_links_count_where_they_stay_inside_and_pipes_never(tmp_path: Path) -> None:
    root = write(tmp_path / "root", "real.tf", "sub/x.tf")
    write(tmp_path, "outside.tf")
    (root / "hard.tf").hardlink_to(root / "real.tf")
    os.mkfifo(root / "pipe.tf")
    links = {"in.tf": "real.tf", "sub/up.tf": "../real.tf", "whole.tf": root / "real.tf"}
    links |= {"out.tf": "../outside.tf", "absolute.tf": tmp_path / "outside.tf", "through.tf": "away/outside.tf"}
    links |= {"gone.tf": "nothing", "loop.tf": "loop.tf", "around": ".", "away": "..", "self": "/proc/self/environ"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    tree = Tree(root, ("hard.tf", "in.tf", "real.tf", "sub/up.tf", "sub/x.tf", "whole.tf"))
    assert list_files(root) == tree.files
    write_working_copy(tree, tmp_path / "staged")
    for path in tree.files:
        staged = tmp_path / "staged" / path
        assert staged.read_bytes() == tree.read(path) and not staged.is_symlink()


def test_a_root_that_is_a_symlink_itself_is_fine(tmp_path: Path) -> None:
    write(tmp_path / "real", "a.tf")
    (tmp_path / "real" / "b.tf").symlink_to("a.tf")
    (tmp_path / "alias").symlink_to("real")
    assert list_files(tmp_path / "alias") == ("a.tf", "b.tf")


def test_limits_are_named(tmp_path: Path) -> None:
    write(tmp_path, "a", "b", "c")
    assert isinstance(list_files(tmp_path, max_files=3), tuple)
    assert list_files(tmp_path, max_files=2) == NoTarget("unsafe_input", f"{tmp_path} has more than 2 files")
    assert isinstance(list_files(tmp_path, max_bytes=36), tuple)
    too_large = NoTarget("unsafe_input", f"the files in {tmp_path} have more than 35 bytes")
    assert list_files(tmp_path, max_bytes=35) == too_large


def test_a_missing_root_is_a_reason(tmp_path: Path) -> None:
    found = list_files(tmp_path / "gone")
    assert isinstance(found, NoTarget)
    assert found.status == "validator_unavailable" and "gone" in found.reason


def tree_of(root: Path) -> Tree:
    files = list_files(root)
    assert isinstance(files, tuple)
    return Tree(root, files)


def tree_hash(tree: Tree) -> str:
    """The hash of a tree on disk, or of one that is only in memory."""
    return HashedTree(tree.root, tuple(path for path in tree.files if path not in tree.changed)).hash_of(tree)


def modes(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}


def test_a_working_copy_is_hard_links_copies_and_new_files(tmp_path: Path) -> None:
    root = write(tmp_path / "root", "plain.tf", "deep/er/private.tf", "run.sh", "changed.tf", "tool.sh")
    for name, mode in {"plain.tf": 0o644, "deep/er/private.tf": 0o600, "run.sh": 0o750, "tool.sh": 0o755}.items():
        (root / name).chmod(mode)
    (root / "link.tf").symlink_to("plain.tf")
    before = {path: path.read_bytes() for path in root.rglob("*.*")}
    tree = tree_of(root).with_file("changed.tf", b"new").with_file("new/file.tf", b"added").with_file("tool.sh", b"#!")
    tree = tree.with_file("new/run", b"#!/bin/sh\n")
    staged = tmp_path / "staged"
    umask = os.umask(0o077)
    try:
        write_working_copy(tree, staged)
    finally:
        os.umask(umask)
    assert list_files(staged) == tree.files
    assert {path: (staged / path).read_bytes() for path in tree.files} == {path: tree.read(path) for path in tree.files}
    assert (staged / "plain.tf").samefile(root / "plain.tf")
    for fresh in ("changed.tf", "deep/er/private.tf", "link.tf", "run.sh"):
        assert not (staged / fresh).is_symlink() and not (staged / fresh).samefile(root / fresh)
    plain = ("plain.tf", "deep/er/private.tf", "link.tf", "changed.tf", "new/file.tf")
    executable = ("deep", "deep/er", "run.sh", "tool.sh", "new", "new/run")
    assert modes(staged) == dict.fromkeys(plain, 0o644) | dict.fromkeys(executable, 0o755)
    assert stat.S_IMODE(staged.stat().st_mode) == 0o755
    assert {path: path.read_bytes() for path in root.rglob("*.*")} == before
    assert not (root / "new").exists()


def test_without_hard_links_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("another file system")

    monkeypatch.setattr(os, "link", refuse)
    root = write(tmp_path / "root", "a.tf")
    write_working_copy(tree_of(root), tmp_path / "staged")
    assert not (tmp_path / "staged" / "a.tf").samefile(root / "a.tf")
    assert (tmp_path / "staged" / "a.tf").read_text() == "content of a.tf"


def test_a_working_copy_needs_a_new_directory(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        write_working_copy(Tree(tmp_path, ()), tmp_path)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "", "."])
def test_a_working_copy_never_leaves_its_directory(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="is no path inside a tree"):
        write_working_copy(Tree(tmp_path, (path,), {path: b"x"}), tmp_path / "staged")


def test_the_hash_is_of_paths_and_contents_only(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", "a", "b/c"), write(tmp_path / "two", "a", "b/c")
    assert tree_hash(tree_of(one)) == tree_hash(tree_of(two))
    tree = tree_of(one)
    assert tree_hash(tree.with_file("a", b"content of a")) == tree_hash(tree)
    others = [tree.with_file("a", b"x"), tree.with_file("b/c", b"x"), tree.with_file("d", b""), Tree(one, ("a",))]
    assert len({tree_hash(other) for other in [tree, *others]}) == 5


def test_a_file_written_twice_in_a_tick_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    now = file.stat().st_mtime_ns
    old = file_hashes(tmp_path, ["a"])
    file.write_text("new")
    os.utime(file, ns=(now, now))
    assert file_hashes(tmp_path, ["a"]) != old


trees = st.dictionaries(st.sampled_from(["a", "b", "a/b", "ab", "é", "c:1"]), st.binary(max_size=6), max_size=4)


@given(trees, trees)
def test_equal_hashes_mean_equal_trees(one: dict[str, bytes], two: dict[str, bytes]) -> None:
    hashes = [tree_hash(Tree(Path("none"), tuple(sorted(files)), files)) for files in (one, two)]
    assert (hashes[0] == hashes[1]) == (one == two)


def test_the_hash_of_a_variant_is_that_of_its_files_on_disk_without_a_look_at_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tree_of(write(tmp_path / "root", "a", "b/c", "é", "z"))
    variants = [tree, *(tree.with_file(path, b"x") for path in (*tree.files, "0", "b/a", "new"))]
    variants.append(tree.with_changes({"a": None, "b/c": b"x", "new": b"#!/bin/sh", "é": None}))
    expected = []
    for number, each in enumerate(variants):
        write_working_copy(each, tmp_path / str(number))
        expected.append(tree_hash(tree_of(tmp_path / str(number))))
    hashed = HashedTree(tree.root, tree.files)
    monkeypatch.setattr(working_copy, "_file_hash", None)
    assert [hashed.hash_of(each) for each in variants] == expected
    assert len(set(expected)) == len(expected)
