"""What is installed on this machine, as a hash: contents count, times and places do not."""

import base64
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from touchstone.validation.files import file_identity
from touchstone.validation.files.file_identity import content_identity, packages_identity, program_identity


def install(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Write a package with its RECORD, as an installer does."""
    record = folder / f"{name}-{version}.dist-info" / "RECORD"
    lines = [f"{record.relative_to(folder)},,"]
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}")
    record.parent.mkdir()
    record.write_text("\n".join(lines))


def later(path: Path, text: str) -> None:
    path.write_text(text)
    after = path.parent.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(after, after))


def older(path: Path, text: str) -> None:
    """Write a file and set its time back, as an archive or `cp -p` does."""
    path.write_text(text)
    os.utime(path, (1, 1))


def test_the_same_packages_in_another_place_at_another_time_are_the_same(tmp_path: Path) -> None:
    for name in ("one", "two"):
        install(tmp_path / name, "pytest", "9.0", {"pytest/__init__.py": "a = 1\n", "pytest/py.typed": ""})
    later(tmp_path / "two" / "pytest" / "__init__.py", "a = 1\n")
    later(tmp_path / "two" / "pytest" / "py.typed", "")
    (tmp_path / "two" / "pytest" / "__pycache__").mkdir()
    (tmp_path / "two" / "pytest" / "__pycache__" / "x.pyc").write_text("compiled")
    assert packages_identity(tmp_path / "one") == packages_identity(tmp_path / "two")


@pytest.mark.parametrize("change", ["version", "more", "edited", "older", "older folder", "gone", "loose"])
def test_a_changed_package_is_another(tmp_path: Path, change: str) -> None:
    (tmp_path / "old").mkdir()
    older(tmp_path / "old" / "__init__.py", "a = 0\n")
    install(tmp_path / "site", "pytest", "9.0", {"pytest/__init__.py": "a = 1\n"})
    tmp_path /= "site"
    before = packages_identity(tmp_path)
    match change:
        case "version":
            (tmp_path / "pytest-9.0.dist-info").rename(tmp_path / "pytest-9.1.dist-info")
        case "more":
            install(tmp_path, "numpy", "2.0", {"numpy/__init__.py": ""})
        case "edited":
            later(tmp_path / "pytest" / "__init__.py", "a = 2\n")
        case "older":
            older(tmp_path / "pytest" / "__init__.py", "a = 0\n")
        case "older folder":
            shutil.rmtree(tmp_path / "pytest")
            (tmp_path.parent / "old").rename(tmp_path / "pytest")
        case "gone":
            (tmp_path / "pytest" / "__init__.py").unlink()
        case "loose":
            (tmp_path / "helper.py").write_text("")
    assert packages_identity(tmp_path) != before


def test_a_file_whose_record_has_no_hash_is_read(tmp_path: Path) -> None:
    install(tmp_path, "tiny", "1.0", {})
    record = tmp_path / "tiny-1.0.dist-info" / "RECORD"
    record.write_text(f"{record.relative_to(tmp_path)},,\ntiny.py,,")
    found = set()
    for text in ("a = 1\n", "a = 2\n"):
        (tmp_path / "tiny.py").write_text(text)
        os.utime(tmp_path / "tiny.py", (0, 0))
        found.add(packages_identity(tmp_path))
    assert len(found) == 2


@pytest.mark.parametrize("identity", [packages_identity, content_identity])
@pytest.mark.parametrize(("name", "target"), [("package", "../elsewhere"), ("m.py", "../elsewhere/a.py")])
def test_what_is_linked_counts_by_its_content(
    tmp_path: Path, identity: Callable[[Path], str], name: str, target: str
) -> None:
    for folder in ("site", "elsewhere"):
        (tmp_path / folder).mkdir()
    for link, leads_to in {name: target, "up": "..", "me": "me", "../elsewhere/back": "../site"}.items():
        (tmp_path / "site" / link).symlink_to(leads_to)
    found = set()
    for text in ("a = 1\n", "a = 2\n"):
        older(tmp_path / "elsewhere" / "a.py", text)
        found.add(identity(tmp_path / "site"))
    assert len(found) == 2


def test_the_hash_of_packages_is_remembered_until_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(file_identity, "_SETTLE_NS", 0)
    (tmp_path / "site").mkdir()
    older(tmp_path / "site" / "a.py", "a = 1\n")
    time.sleep(0.02)
    before = packages_identity(tmp_path / "site")
    memory = tmp_path / "caches" / "touchstone" / "packages.json"
    memory.write_text(memory.read_text().replace(before, "remembered"))
    assert packages_identity(tmp_path / "site") == "remembered"
    older(tmp_path / "site" / "a.py", "a = 2\n")
    assert packages_identity(tmp_path / "site") not in (before, "remembered")
    memory.write_text('{"' + str(tmp_path / "site") + '": 1}')
    assert packages_identity(tmp_path / "site") != before


@pytest.mark.parametrize(
    ("settings", "sees_base"),
    [
        ("include-system-site-packages = false", False),
        ("include-system-site-packages = TRUE", True),
        ("home = x", True),
    ],
)
def test_packages_below_a_virtual_environment_count_if_it_sees_them(
    tmp_path: Path, settings: str, sees_base: bool
) -> None:
    for name in ("base", "own"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    python = tmp_path / "base" / "bin" / "python3"
    python.touch(mode=0o755)
    (tmp_path / "own" / "bin" / "python3").symlink_to(python)
    (tmp_path / "own" / "pyvenv.cfg").write_text(f"version = 3.11\n{settings}\n")
    found = program_identity("python3", str(tmp_path / "own" / "bin"))
    packages = {Path(place).relative_to(tmp_path).parts[0] for place in found if place.endswith("-packages")}
    assert packages == ({"own", "base"} if sees_base else {"own"})


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert content_identity(tmp_path / "pipe") == "not a file"
    assert content_identity(tmp_path) != content_identity(tmp_path / "none") == "absent"
