"""Problems whose names or trees lead outside their folder: refused, or not read beyond it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.validation.attacks.conftest import SECRET
from touchstone.config.validation import ValidationSettings
from touchstone.validation.files.locate_files import UnusableFiles
from touchstone.validation.files.working_copy import file_hashes, list_files, write_working_copy
from touchstone.validation.protocol import Tree
from touchstone.validation.targets import NoTarget, Target, Targets


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A folder of clones with one project, and a secret beside it."""
    (tmp_path / "secret.py").write_text(SECRET)
    project = tmp_path / "clones" / "project"
    project.mkdir(parents=True)
    (project / "solution.py").write_text("x = 1\n")
    (project / "test_solution.py").write_text("def test_it(): pass\n")
    return tmp_path / "clones"


def find(clones: Path, **row: str) -> Target | NoTarget:
    row = {"oid": "o1", "filename": "solution.py", "working_directory": "project", **row}
    return Targets(clones, ValidationSettings()).find([row])[row["oid"]]


def test_a_sound_problem(clones: Path) -> None:
    found = find(clones)
    assert isinstance(found, Target) and found.tree.files == ("solution.py", "test_solution.py")


LEADING_OUT = [
    *("..", "../secret.py", "a/../../secret.py", "./../secret.py", "project/../../secret.py", "/etc/passwd"),
    *(
        "//etc/passwd",
        "~/secret.py",
        "~root/.bashrc",
        "a/~/b",
        "solution.py\0.txt",
        "\0",
        "a\nb",
        "a\x1b[2J",
        "a\\..\\b",
    ),
    *("x" * 256, "x" * 5000, "a/" * 3000, "\ud800", "-rf", "a/-x"),
]


@pytest.mark.parametrize("path", LEADING_OUT)
def test_paths_that_lead_out(clones: Path, path: str) -> None:
    for row in ({"filename": path}, {"working_directory": path}, {"project_name": path}):
        found = find(clones, **row)
        assert isinstance(found, NoTarget) and found.status == "unsafe_input", row
    found = find(clones, oid=path, working_directory="")
    assert isinstance(found, NoTarget) and found.status == "unsafe_input"


def test_the_file_or_its_folder_is_a_symlink_that_leads_out(clones: Path) -> None:
    (clones / "project" / "out.py").symlink_to(clones.parent / "secret.py")
    (clones / "outside").symlink_to(clones.parent)
    (clones / "o2").symlink_to("..")
    for row in (
        {"filename": "out.py"},
        {"filename": "secret.py", "working_directory": "outside"},
        {"filename": "secret.py", "working_directory": "", "oid": "o2"},
        {"filename": "outside/secret.py", "working_directory": ""},
    ):
        found = find(clones, **row)
        assert isinstance(found, NoTarget) and found.status == "unsafe_input", row


def test_links_in_a_tree_that_lead_out_are_not_read(clones: Path) -> None:
    project = clones / "project"
    (project / "file.py").symlink_to(clones.parent / "secret.py")
    (project / "relative.py").symlink_to("../../secret.py")
    (project / "folder").symlink_to(clones.parent)
    (project / "through.py").symlink_to("folder/secret.py")
    (project / "passwd").symlink_to("/etc/passwd")
    (project / "self").symlink_to("/proc/self/environ")
    (project / "loop").symlink_to("loop")
    (project / "up").symlink_to(".")
    os.mkfifo(project / "fifo.py")
    found = find(clones)
    assert isinstance(found, Target) and found.tree.files == ("solution.py", "test_solution.py")
    staged = clones.parent / "staged"
    write_working_copy(found.tree, staged)
    assert not any(SECRET in path.read_text() for path in staged.rglob("*") if path.is_file())


def swap(project: Path, place: str, target: str | None) -> None:
    """Put a link in place of a file or its folder, or a pipe."""
    (project / place).rename(project / "away")
    if target is None:
        os.mkfifo(project / place)
    else:
        (project / place).symlink_to(target)


@pytest.mark.parametrize(
    ("place", "target"),
    [("sub/data.txt", "../../../secret.py"), ("sub", "../.."), ("sub/data.txt", None), ("sub/data.txt", "/dev/zero")],
)
def test_what_is_swapped_in_after_the_tree_was_listed_is_not_followed(
    clones: Path, place: str, target: str | None
) -> None:
    project = clones / "project"
    (project / "sub").mkdir()
    (project / "sub" / "data.txt").write_text("data")
    found = find(clones)
    assert isinstance(found, Target) and "sub/data.txt" in found.tree.files
    (clones.parent / "data.txt").write_text(SECRET)
    swap(project, place, target)
    attempts: list[Callable[[], object]] = [
        lambda: found.tree.read("sub/data.txt"),
        lambda: file_hashes(project, ["sub/data.txt"]),
        lambda: write_working_copy(found.tree, clones.parent / "staged"),
    ]
    for attempt in attempts:
        with pytest.raises(OSError):
            attempt()
    staged = [path.read_text() for path in (clones.parent / "staged").rglob("*") if path.is_file()]
    assert SECRET not in staged


def test_links_that_stay_inside_are_followed(clones: Path) -> None:
    project = clones / "project"
    (project / "sub").mkdir()
    (project / "sub" / "up.py").symlink_to("../solution.py")
    (project / "absolute.py").symlink_to(project / "solution.py")
    tree = Tree(project, ("absolute.py", "sub/up.py"))
    write_working_copy(tree, clones.parent / "staged")
    for path in tree.files:
        assert tree.read(path) == b"x = 1\n" == (clones.parent / "staged" / path).read_bytes()
        assert not (clones.parent / "staged" / path).is_symlink()


def test_trees_that_are_too_large(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / str(number)).write_bytes(b"x" * 100)
    assert isinstance(list_files(tmp_path, max_files=20), UnusableFiles)
    assert isinstance(list_files(tmp_path, max_bytes=2000), UnusableFiles)


@pytest.mark.parametrize("path", ["../out", "/etc/out", "a/../../out", ""])
def test_a_working_copy_is_never_written_outside_its_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="is no path inside a tree"):
        write_working_copy(Tree(tmp_path, (path,), {path: b"x"}), tmp_path / "staged")
    assert not (tmp_path / "out").exists()
