"""`validation.python.interpreter`: fixes, and with pytest their tests too, use the packages of that environment."""

import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.validation.attacks.conftest import USED
from tests.validation.environments.support import FILES, SOLUTION, TESTS, install, write_wheel
from tests.validation.pytest_runner.support import run_pytest, warm_validator
from touchstone.config.validation import PythonProgram
from touchstone.validation.protocol import Problem
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.interpreters import editable_installs, interpreter, with_environment
from touchstone.validation.sandbox.runner import choose_sandbox
from touchstone.validation.validators.python import PythonValidator


def plain_venv(place: Path) -> None:
    venv.create(place, symlinks=True)


def uv_venv(place: Path) -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    subprocess.run([uv, "venv", "--quiet", "--offline", "--python", sys.executable, place], check=True)


@pytest.fixture(
    scope="module",
    params=[pytest.param(plain_venv, id="venv"), pytest.param(uv_venv, id="uv", marks=pytest.mark.nightly)],
)
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment")
    request.param(folder / "env")
    install(write_wheel(folder), folder / "env")
    return folder / "env"


@pytest.fixture(scope="module", params=USED)
def validator(
    request: pytest.FixtureRequest, environment: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PythonValidator]:
    python = environment / "bin" / "python"
    yield from warm_validator(tmp_path_factory.mktemp("sandbox"), request.param, interpreter=python)


@pytest.mark.services
def test_a_fix_and_its_tests_import_packages_of_the_environment_alone(validator: PythonValidator) -> None:
    tests = TESTS + "\n\ndef test_package(tmp_path):\n    import tinypkg\n    assert tinypkg.ANSWER == 42\n"
    report = run_pytest(validator, FILES | {"test_solution.py": tests})
    assert (report.status, report.diagnostics, report.note) == ("passed", (), "")
    assert report.tests == {"test_answer": True, "test_package": True}
    fix = SOLUTION.replace("tinypkg", "polars").replace("polars.ANSWER", "42")
    report = run_pytest(validator, {"solution.py": fix, "test_solution.py": TESTS})
    assert report.status == "failed"
    assert "No module named 'polars'" in str(report.diagnostics[0])


def test_only_the_package_folders_of_the_environment_are_shown(tmp_path: Path) -> None:
    plain_venv(tmp_path / "home")
    (site,) = (tmp_path / "home").glob("lib/python3*/site-packages")
    for place in (site / "inside", tmp_path / "home" / "code", tmp_path / "elsewhere" / "site-packages"):
        place.mkdir(parents=True)
        (site / f"{place.parent.name}.pth").write_text(f"{place}\n")
    found = interpreter(tmp_path / "home" / "bin" / "python")
    assert found.packages == (site, site / "inside")
    assert not {tmp_path / "home" / "code", tmp_path / "elsewhere" / "site-packages"}.intersection(found.folders)


def test_editable_installs_are_named(tmp_path: Path) -> None:
    plain_venv(tmp_path / "env")
    (site,) = (tmp_path / "env").glob("lib/python3*/site-packages")
    for name, about in {"mine": '{"dir_info": {"editable": true}}', "other": '{"dir_info": {}}', "odd": "[]"}.items():
        (site / f"{name}-1.0.dist-info").mkdir()
        (site / f"{name}-1.0.dist-info" / "direct_url.json").write_text(about)
    assert editable_installs(interpreter(tmp_path / "env" / "bin" / "python")) == ["mine"]


def test_an_environment_by_name_shows_its_packages_and_own_libraries_only(tmp_path: Path) -> None:
    site = tmp_path / "env" / "lib" / interpreter().library / "site-packages"
    site.mkdir(parents=True)
    for name in ("secret", "env/token", "env/lib/libown.so.1"):
        (tmp_path / name).write_text("")
    (tmp_path / "env" / "lib" / "libown.so").symlink_to("libown.so.1")
    (tmp_path / "env" / "lib" / "libsecret.so").symlink_to(tmp_path / "secret")
    shown = set(with_environment(interpreter(), tmp_path / "env").folders) - set(interpreter().folders)
    assert {path.name for path in shown} == {"site-packages", "libown.so", "libown.so.1"}


@pytest.mark.nightly
def test_another_version_of_a_package_is_another_cache_key(tmp_path: Path) -> None:
    plain_venv(tmp_path / "env")
    settings = PythonProgram(interpreter=tmp_path / "env" / "bin" / "python", lint=False)
    sandbox = choose_sandbox(tmp_path / "sandbox", unsandboxed=True)
    keys = []
    for answer in (1, 2):
        install(write_wheel(tmp_path, answer=answer), tmp_path / "env")
        keys.append(PythonValidator(sandbox, Limits(), settings).identity(Problem("p", "a.py", tmp_path)))
    assert keys[0] != keys[1]
