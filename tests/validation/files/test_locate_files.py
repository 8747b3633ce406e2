"""Untrusted names become paths: which layouts are found, what is refused, what is missing."""

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.validation.files.locate_files import LocatedFile, locate
from touchstone.validation.protocol import NoTarget


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """Two projects in a folder of clones, and a file outside of it that nobody may reach."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "main.tf").write_text("secret")
    for file in ("shop/network/main.tf", "shop/network/sub/x.tf", "shop/modules/x/main.tf", "a1/main.tf", "top.tf"):
        path = tmp_path / "clones" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path / "clones"


@pytest.mark.parametrize(
    ("filename", "directory", "project", "oid", "expected"),
    [
        ("main.tf", "shop/network", None, "a1", ("shop/network", "", "main.tf")),
        ("main.tf", "./shop//network/", "", "a1", ("shop/network", "", "main.tf")),
        ("main.tf", "shop/network", "shop", "a1", ("shop", "network", "main.tf")),
        ("sub/x.tf", "shop/network", "shop", "a1", ("shop", "network", "sub/x.tf")),
        ("main.tf", "shop/network", "shop/network", "a1", ("shop/network", "", "main.tf")),
        ("main.tf", "shop/network", "a1", "a1", ("shop/network", "", "main.tf")),
        ("main.tf", "shop/network", "nowhere", "a1", ("shop/network", "", "main.tf")),
        ("main.tf", None, None, "a1", ("a1", "", "main.tf")),
        ("main.tf", " ", None, "a1", ("a1", "", "main.tf")),
        ("shop/network/main.tf", None, None, "a1", ("shop/network", "", "main.tf")),
        ("shop/network/main.tf", None, "shop", "other", ("shop", "network", "main.tf")),
        ("clones/shop/network/main.tf", "clones/shop/network", "shop", "a1", ("shop", "network", "main.tf")),
        ("clones/shop/network/sub/x.tf", "clones/shop/network/", "clones/shop", "a1", ("shop", "network", "sub/x.tf")),
        ("shop/network/main.tf", "shop/network", None, "a1", ("shop/network", "", "main.tf")),
        ("clones/shop/network/main.tf", None, "shop", "other", ("shop", "network", "main.tf")),
        ("main.tf", "clones/shop/network", None, "a1", ("shop/network", "", "main.tf")),
        ("clones/top.tf", "clones", None, "a1", ("", "", "top.tf")),
        ("top.tf", None, None, "a1", ("", "", "top.tf")),
        ("top.tf", ".", None, "a1", ("", "", "top.tf")),
        ("main.tf", "a1", None, "any/oid", ("a1", "", "main.tf")),
    ],
)
def test_the_layouts_that_are_found(
    clones: Path, filename: str, directory: str | None, project: str | None, oid: str, expected: tuple[str, str, str]
) -> None:
    root, working_directory, name = expected
    found = locate(clones, filename, directory, project, oid)
    assert found == LocatedFile((clones / root).resolve(), working_directory, name)


REFUSED = {
    "the filename is empty": (None, "", " ", "."),
    "has a part '..'": ("..", "../secret/main.tf", "./../secret/main.tf", "shop/../../secret/main.tf"),
    "is an absolute path": ("/etc/passwd", "//etc/passwd"),
    "has control characters": ("a\0.tf", "a\n.tf", "a\x1b[2J", "a\x7f.tf", "a\x9b.tf", "a\ud800.tf"),
    "has a backslash": ("a\\b.tf",),
    "starts with '~'": ("~/main.tf", "~root/main.tf", "a/~x"),
    "starts with '-'": ("-rf", "a/-rf"),
    "a part with more than 255 bytes": ("é" * 128,),
    "has more than 1,024 bytes": ("a/" * 512 + "b",),
}


@pytest.mark.parametrize(("filename", "words"), [(name, words) for words, names in REFUSED.items() for name in names])
def test_names_that_are_refused(clones: Path, filename: str | None, words: str) -> None:
    found = locate(clones, filename, "shop/network", None, "a1")
    assert isinstance(found, NoTarget)
    assert found.status == "unsafe_input"
    assert words in found.reason
    if (filename and filename.strip(" .")) or filename == "..":
        for directory, project in ((filename, None), ("shop", filename)):
            also = locate(clones, "main.tf", directory, project, "a1")
            assert isinstance(also, NoTarget) and words in also.reason


@pytest.mark.parametrize("oid", ["..", ".", "", "a/b", "/etc", "../secret", "a\0", "-x", "~", "a\\b"])
def test_an_oid_that_would_be_a_path_is_checked_as_one(clones: Path, oid: str) -> None:
    found = locate(clones, "main.tf", None, None, oid)
    assert isinstance(found, NoTarget) and found.status == "unsafe_input" and "the oid" in found.reason
    assert isinstance(locate(clones, "main.tf", "shop/network", None, oid), LocatedFile)


LINKS = {"out": "../secret", "shop/out": "../../secret", "up": "..", "alias": "shop/network", "a1/beside": "../shop"}
LINKS |= {"a1/in.tf": "main.tf", "a1/out.tf": "../../secret/main.tf", "a1/gone.tf": "nothing"}


@pytest.fixture
def linked(clones: Path) -> Path:
    """The clones with links of all kinds, and a named pipe."""
    for link, target in LINKS.items():
        (clones / link).symlink_to(target)
    os.mkfifo(clones / "a1" / "fifo.tf")
    return clones


@pytest.mark.parametrize(
    ("filename", "directory", "oid", "words"),
    [
        ("main.tf", "out", "x", "leads out of"),
        ("missing.tf", "out", "x", "leads out of"),
        ("main.tf", "shop/out", "x", "leads out of"),
        ("out/main.tf", "shop", "x", "leads out of"),
        ("main.tf", None, "out", "leads out of"),
        ("out/main.tf", None, "x", "leads out of"),
        ("beside/network/main.tf", "a1", "x", "leads out of"),
        ("in.tf", "a1", "x", "is a symlink"),
        ("out.tf", "a1", "x", "symlink"),
        ("gone.tf", "a1", "x", "is a symlink"),
        ("fifo.tf", "a1", "x", "is no regular file"),
        ("network", "shop", "x", "is a directory"),
    ],
)
def test_what_leads_out_or_is_no_file_is_refused(
    linked: Path, filename: str, directory: str | None, oid: str, words: str
) -> None:
    found = locate(linked, filename, directory, None, oid)
    assert isinstance(found, NoTarget) and found.status == "unsafe_input" and words in found.reason


def test_a_loop_of_links_is_refused(clones: Path) -> None:
    (clones / "a1" / "loop.tf").symlink_to("loop.tf")
    assert isinstance(locate(clones, "loop.tf", "a1", None, "x"), NoTarget)


def test_links_inside_the_clones_are_followed_and_a_project_outside_is_no_root(linked: Path) -> None:
    shop, own = (linked / "shop").resolve(), (linked / "a1").resolve()
    assert locate(linked, "main.tf", "alias", "shop", "x") == LocatedFile(shop, "network", "main.tf")
    assert locate(linked, "main.tf", "a1", "up", "x") == LocatedFile(own, "", "main.tf")


@pytest.mark.parametrize(
    ("filename", "directory", "oid", "looked_for"),
    [
        ("gone.tf", "a1", "x", "file not found: {clones}/a1/gone.tf"),
        ("main.tf", "gone", "x", "there is no directory {clones}/gone"),
        ("gone/main.tf", None, "x", "there is no directory {clones}/gone"),
        ("gone.tf", None, "a1", "file not found: {clones}/gone.tf"),
        ("main.tf", "top.tf", "a1", "there is no directory {clones}/top.tf"),
    ],
)
def test_what_is_missing_is_named(
    clones: Path, filename: str, directory: str | None, oid: str, looked_for: str
) -> None:
    found = locate(clones, filename, directory, None, oid)
    assert found == NoTarget("validator_unavailable", looked_for.format(clones=clones.resolve()))
    gone = (clones / "gone").resolve()
    assert locate(gone, filename, "a", None, oid) == NoTarget("validator_unavailable", f"there is no directory {gone}")


nasty = st.sampled_from(["..", ".", "", "a1", "shop", "network", "main.tf", "out", "~", "-", "\0", "\\", "\ud800", "é"])
names = st.none() | st.lists(nasty, max_size=4).map("/".join) | st.text(max_size=20)


@given(names, names, names, names.map(lambda name: name or ""))
def test_whatever_the_names_nothing_outside_is_reached(
    tmp_path_factory: pytest.TempPathFactory, filename: str, directory: str, project: str, oid: str
) -> None:
    base = tmp_path_factory.getbasetemp() / "reach"
    clones = base / "clones"
    if not base.exists():
        (clones / "shop" / "network").mkdir(parents=True)
        (clones / "a1").mkdir()
        for place in (base, clones, clones / "a1", clones / "shop" / "network"):
            (place / "main.tf").write_text("")
        (clones / "out").symlink_to("..")
    found = locate(clones, filename, directory, project, oid)
    if isinstance(found, LocatedFile):
        assert found.root.is_relative_to(clones.resolve())
        path = found.root / PurePosixPath(found.working_directory) / found.filename
        assert path.is_file() and path.resolve() == path
    else:
        assert found.status in ("unsafe_input", "validator_unavailable") and found.reason


@pytest.mark.parametrize(
    ("directory", "project", "oid", "expected"),
    [
        ("shop/network", None, "a1", ("shop/network", "")),
        ("shop/network", "shop", "a1", ("shop", "network")),
        (None, "shop", "a1", ("shop", "")),
        (None, None, "a1", ("a1", "")),
        ("../secret", None, "a1", "unsafe_input"),
        (None, "/etc", "a1", "unsafe_input"),
        (None, None, "..", "unsafe_input"),
        (None, None, "shop/network", "unsafe_input"),
        ("away", None, "a1", "unsafe_input"),
        (None, None, "none", "validator_unavailable"),
        ("top.tf", None, "a1", "validator_unavailable"),
    ],
)
def test_a_problem_about_a_whole_folder(
    clones: Path, directory: str | None, project: str | None, oid: str, expected: tuple[str, str] | str
) -> None:
    (clones / "away").symlink_to(clones.parent / "secret")
    for filename in (None, " "):
        found = locate(clones, filename, directory, project, oid, whole_folder=True)
        if isinstance(found, NoTarget):
            assert found.status == expected
        else:
            assert found == LocatedFile(clones / expected[0], expected[1], "")
