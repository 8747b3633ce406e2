"""The columns `requirements` and `environment`: one prepared environment for each set, nothing installed in a run."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import Command, Folder
from tests.pipelines.test_retrying import table
from tests.validation.environments.support import SOLUTION, TESTS, install, write_wheel
from tests.validation.pytest_runner.support import sandbox_or_skip
from tests.validation.validators.support import tree_of
from touchstone.config import load_config
from touchstone.config.validation import PythonProgram, ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.validation.environments import (
    environment_name,
    prepare,
    prepared_environments,
    read_requirements,
)
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.protocol import NoTarget
from touchstone.validation.sandbox.interpreters import interpreter
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Target, Targets

LIBRARY = interpreter().library
BROKEN = "def answer():\n    return 0\n"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package index: a folder with two versions of one package."""
    folder = tmp_path_factory.mktemp("wheels")
    write_wheel(folder, "1.0", answer=41)
    write_wheel(folder, "2.0", answer=42)
    return folder


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    files = {"solution.py": BROKEN, "test_solution.py": TESTS, "needed.txt": "tinypkg==2.0\n"}
    tree_of(tmp_path / "clones" / "code", files)
    return tmp_path / "clones"


def row(oid: str, **columns: str) -> dict[str, str]:
    return {"oid": oid, "filename": "solution.py", "working_directory": "code", **columns}


def find(clones: Path, environments: Path | None, **columns: str) -> Target | NoTarget:
    settings = ValidationSettings(environments_dir=environments)
    return Targets(clones, settings).find([row("p", **columns)])["p"]


def write_evaluation(clones: Path, problems: list[Mapping[str, str]]) -> Path:
    folder, columns = Folder(clones.parent), ("oid", "filename", "working_directory", "requirements", "environment")
    folder.problems(table(columns, *([one.get(name, "") for name in columns] for one in problems)))
    return folder.configure(clones_dir="clones")


def test_the_same_requirements_in_other_words_are_one_environment() -> None:
    python = interpreter()
    one, same, other = (
        environment_name(read_requirements(text), python)
        for text in ("tinypkg >= 1 , < 3\nAttrs\n", "# what is needed\nattrs\n\nTinyPkg>=1,<3  # here\n", "attrs")
    )
    assert one == same != other


@pytest.mark.parametrize(
    "line",
    ["-r other.txt", "--index-url https://example.com", "-e .", "./folder", "a==1 --hash=sha256:0", "a b", "\x1b"],
)
def test_only_packages_with_versions_are_prepared(clones: Path, tmp_path: Path, line: str) -> None:
    found = find(clones, tmp_path / "environments", requirements=f"attrs\n{line}")
    assert isinstance(found, NoTarget) and found.status == "validator_unavailable"
    assert "requirements: line 2 is" in found.reason and "\x1b" not in found.reason


@pytest.mark.parametrize("requirements", ["tinypkg==2.0", "needed.txt"])
def test_a_missing_environment_is_undecided_and_says_what_to_do(
    clones: Path, tmp_path: Path, requirements: str
) -> None:
    found = find(clones, tmp_path / "environments", requirements=requirements)
    assert isinstance(found, NoTarget)
    assert (found.status, found.requirements) == ("validator_unavailable", ("tinypkg==2.0",))
    assert "run `touchstone environments prepare`" in found.reason


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"requirements": "absent.txt"}, "the problem has no file 'absent.txt'"),
        ({"environment": "absent"}, "is missing; create it"),
        ({"environment": "empty"}, "has no lib/python3*/site-packages"),
        ({"environment": "older"}, "has packages for python3.1, and the interpreter is"),
        ({"environment": "linked"}, "has packages for"),
        ({"environment": "name: x\ndependencies:\n"}, "which is no name or path of a folder"),
        ({"environment": "x" * 5000}, "which is no name or path of a folder"),
        ({"environment": "x\0"}, "which is no name or path of a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_an_unusable_environment_says_why(clones: Path, tmp_path: Path, columns: dict[str, str], reason: str) -> None:
    environments = tmp_path / "environments"
    for place in ("empty", "older/lib/python3.1/site-packages", f"linked/lib/{LIBRARY}"):
        (environments / place).mkdir(parents=True)
    (environments / "linked" / "lib" / LIBRARY / "site-packages").symlink_to(tmp_path)
    found = find(clones, environments, **columns)
    assert isinstance(found, NoTarget) and reason in found.reason and not found.requirements


def test_an_environment_may_be_named_by_its_path(clones: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    (place / "lib" / LIBRARY / "site-packages").mkdir(parents=True)
    found = find(clones, tmp_path / "environments", environment=str(place), requirements="tinypkg==2.0")
    assert isinstance(found, Target) and found.problem.environment == place


@pytest.mark.services
def test_prepared_once_then_used_by_every_fix(clones: Path, wheels: Path, tmp_path: Path, touchstone: Command) -> None:
    """Each fix meets the package of its problem; an environment by name is ready as it is."""
    named = tmp_path / "out" / "environments" / "named"
    (named / "lib" / LIBRARY / "site-packages").mkdir(parents=True)
    install(wheels / "tinypkg-2.0-py3-none-any.whl", named)
    problems = [row("one", requirements="tinypkg==1.0"), row("two", requirements="needed.txt")]
    problems.append(row("named", environment="named"))
    config = write_evaluation(clones, problems)
    assert "missing" in touchstone("environments", "list", "--config", str(config)).stdout
    links = ["--find-links", str(wheels), "--no-index"]
    done = touchstone("environments", "prepare", "--config", str(config), *links)
    assert (done.returncode, done.stdout.partition(":")[0]) == (
        0,
        "2 environments prepared, 1 ready before, 0 failed",
    ), done
    listed = touchstone("environments", "list", "--config", str(config)).stdout
    assert "missing" not in listed and listed.count("ready") == 3
    assert outcomes(config, problems[:2]) == {"one": "failed", "two": "passed"}


def outcomes(config: Path, problems: list[dict[str, str]]) -> dict[str, str]:
    """The status of a right fix of each problem."""
    loaded = load_config(config)
    settings = loaded.validation.model_copy(update={"python": PythonProgram(lint=False)})
    fixes = [
        {"oid": one["oid"], "model": "m", "iteration_id": "1", "tier": "", "fixed_code": SOLUTION} for one in problems
    ]
    sandbox_or_skip(config.parent / "probe")
    with ValidationSession(settings, config.parent / "cache", config.parent / "scratch") as session:
        targets = Targets(loaded.clones_dir, settings).find(problems)
        return {one["oid"]: one["status"] for one in outcome_rows(fixes, targets, session)}


def test_what_cannot_be_installed_fails_with_its_name_and_leaves_nothing(
    clones: Path, wheels: Path, tmp_path: Path, touchstone: Command
) -> None:
    config = write_evaluation(clones, [row("p", requirements="tinypkg==3.0")])
    links = ["--find-links", str(wheels), "--no-index"]
    done = touchstone("environments", "prepare", "--config", str(config), *links)
    assert done.returncode == 1 and "error: tinypkg==3.0: " in done.stderr and "Traceback" not in done.stderr
    assert [path.name for path in (tmp_path / "out" / "environments").iterdir()] == [".lock"]


@pytest.mark.parametrize("name", ["", ".lock", environment_name(("tinypkg==2.0",), interpreter())])
def test_nothing_is_installed_through_a_link(tmp_path: Path, name: str) -> None:
    """An output folder from elsewhere could have any."""
    outside = tmp_path / "outside"
    outside.mkdir()
    place = tmp_path / "environments" / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    with pytest.raises(TouchstoneError, match="is a link"):
        prepare(tmp_path / "environments", [("tinypkg==2.0",)], interpreter(), (), True)
    assert list(outside.iterdir()) == []


@pytest.mark.nightly
def test_without_uv_pip_installs(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *args, **kwargs: None)
    requirements = ("tinypkg==2.0",)
    assert prepare(tmp_path, [requirements], interpreter(), [str(wheels)], True) == {}
    assert list(prepared_environments(tmp_path).values()) == [requirements]


KILLED = """
import sys
from pathlib import Path
from touchstone.validation.environments import prepare
from touchstone.validation.sandbox.interpreters import interpreter
prepare(Path(sys.argv[1]), [("tinypkg==2.0",)], interpreter(), [sys.argv[2]], True)
"""


def test_a_killed_preparation_leaves_nothing_half_made(wheels: Path, tmp_path: Path) -> None:
    """Killed while its installer hangs, as one that waits for a network does; the next one cleans up and succeeds."""
    stuck = tmp_path / "bin" / "uv"
    stuck.parent.mkdir()
    stuck.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexec sleep 1000\n")
    stuck.chmod(stuck.stat().st_mode | stat.S_IXUSR)
    environments = tmp_path / "environments"
    environment = {**os.environ, "PATH": f"{stuck.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, environments, wheels], env=environment, start_new_session=True
    )
    try:
        while not (tmp_path / "started").exists() and process.poll() is None:
            time.sleep(0.02)
        assert prepared_environments(environments) == {}
        with pytest.raises(TouchstoneError, match="another process is preparing"):
            prepare(environments, [("tinypkg==2.0",)], interpreter(), [str(wheels)], True)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert any(path.name.startswith(".unfinished-") for path in environments.iterdir())
    assert prepare(environments, [("tinypkg==2.0",)], interpreter(), [str(wheels)], True) == {}
    (made,) = (path for path in environments.iterdir() if path.name != ".lock")
    assert (made / "lib" / LIBRARY / "site-packages" / "tinypkg" / "__init__.py").is_file()
