"""Problems whose names or trees lead outside their folder: refused, or not read beyond it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.validation.attacks.conftest import SECRET
from tests.validation.validators.support import tree_of
from touchstone.config.validation import ValidationSettings
from touchstone.validation.files.working_copy import file_hashes, write_working_copy
from touchstone.validation.protocol import NoTarget
from touchstone.validation.targets import Target, Targets


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A folder of clones with one project, and a secret beside it."""
    (tmp_path / "secret.py").write_text(SECRET)
    files = {"solution.py": "x = 1\n", "test_solution.py": "def test_it(): pass\n"}
    tree_of(tmp_path / "clones" / "project", files)
    return tmp_path / "clones"


def find(clones: Path, **row: str) -> Target | NoTarget:
    row = {"oid": "o1", "filename": "solution.py", "working_directory": "project", **row}
    return Targets(clones, ValidationSettings()).find([row])[row["oid"]]


def test_a_problem_that_leads_out_has_no_target(clones: Path) -> None:
    """Every way to do so is in `tests/validation/files/test_locate_files.py`."""
    assert isinstance(find(clones), Target)
    (clones / "o2").symlink_to("..")
    columns = ("filename", "working_directory", "project_name")
    rows = [{column: "../secret.py"} for column in columns]
    rows += [{"oid": ".."}, {"oid": "o2", "filename": "secret.py"}]
    for row in rows:
        found = find(clones, **{"working_directory": ""} | row if "oid" in row else row)
        assert isinstance(found, NoTarget) and found.status == "unsafe_input", row


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
