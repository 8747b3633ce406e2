"""The built wheel in an environment and a folder of its own: nothing needs the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest

from pipelines.launch import dagster_home
from tests.conftest import PROJECT, call_here
from tests.ui_server import PARTITIONS, PATIENCE_SECONDS, served

pytestmark = pytest.mark.installed
MODELS = ["atlas-large", "boreal-mini", "cedar-coder"]
FIGURES = [
    ("atlas-large", "T0", 0.690855),
    ("atlas-large", "T1", 0.779211),
    ("boreal-mini", "T0", 0.40125),
    ("boreal-mini", "T1", 0.525066),
    ("cedar-coder", "T0", 0.575658),
    ("cedar-coder", "T1", 0.668158),
]


class Installation:
    """An environment with the wheel, and an empty folder to work in."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "environment" / "bin"
        self.folder = root / "folder"
        self.folder.mkdir()
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("DAGSTER_HOME", "PYTHONPATH", "VIRTUAL_ENV") and not name.startswith("TOUCHSTONE_")
        } | {"COLUMNS": "160"}

    def run(self, program: str, *arguments: str, folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.bin / program, *arguments],
            cwd=folder or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def files(self) -> set[Path]:
        """Everything in the environment but compiled code, which Python writes as it likes."""
        return {path for path in self.bin.parent.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel, built and installed without network: its dependencies are those of the environment of the tests."""
    root = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(root / "dist")]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
    (wheel,) = (root / "dist").glob("*.whl")

    venv.create(root / "environment", with_pip=False)
    installed = Installation(root)
    # A path in a .pth file brings the packages of that folder, but not its own .pth files: not the editable install.
    (packages,) = (root / "environment" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [sys.executable, "-m", "uv", "pip", "install", "--offline", "--no-deps", "--reinstall"]
    subprocess.run(
        [*install, "--python", installed.bin / "python", wheel],
        check=True,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    return installed


@pytest.fixture(scope="module")
def demo(installation: Installation) -> Iterator[Path]:
    """The folder of `touchstone init demo`."""
    before = installation.files()
    made = installation.run("touchstone", "init", "demo")
    assert made.returncode == 0, made.stderr
    yield installation.folder / "demo"
    assert installation.files() == before, "the installation itself was written to"


def figures(demo: Path) -> list[tuple[str, str, float]]:
    summary = pl.read_csv(demo / "results" / "summary_pass_at_k.csv")
    return summary.select("LLM", "tier", pl.col("pass@1").round(6)).rows()


def second_ui(config: Path, port: int) -> str:
    """What `touchstone ui` says where another one is running; called here, because a process takes seconds to start."""
    started = AssertionError("the UI was started")
    with patch.dict(os.environ), patch("pipelines.launch.Services", side_effect=started):
        os.environ.pop("DAGSTER_HOME", None)
        done = call_here("ui", "--config", config, "--port", port)
    assert done.returncode == 2
    return done.stderr


@pytest.fixture
def foreign_module(demo: Path) -> None:
    """A module in Dagster's home, which came with the project and must not be imported by any process of the UI."""
    with patch.dict(os.environ):
        os.environ.pop("DAGSTER_HOME", None)
        home = dagster_home(demo / "evaluation_config.json")
    (home / "dagster.py").write_text("raise SystemExit('from elsewhere')")


@pytest.mark.usefixtures("foreign_module")
def test_a_new_project_in_the_ui_and_on_the_command_line(installation: Installation, demo: Path) -> None:
    with served([installation.bin / "touchstone", "ui"], installation.environment, demo) as server:
        assert server.ask(PARTITIONS)["assetNodeOrError"]["partitionKeys"] == MODELS

        config = demo / "evaluation_config.json"
        assert second_ui(config, server.port) == (
            f"error: port {server.port} on 127.0.0.1 is in use; choose another with --port\n"
        )
        running = f"already running on this Dagster home: http://127.0.0.1:{server.port} (process "
        assert running in second_ui(config, 0).splitlines()[-1]

        done = installation.run("touchstone", "run", "--config", "evaluation_config.json", folder=demo)
        assert done.returncode == 0, done.stderr
        assert figures(demo) == FIGURES
        assert list(server.finished().values()) == ["SUCCESS"], "both have the same history"
    assert [home.name.rpartition("-")[0] for home in (demo / ".dagster").iterdir()] == ["results"]


@pytest.mark.nightly
def test_the_ui_materializes_everything_in_one_run(installation: Installation, demo: Path) -> None:
    shutil.rmtree(demo / "results", ignore_errors=True)
    broken = demo / "data" / "broken_fixes.csv"
    broken.write_bytes(b"\xff")
    with served([installation.bin / "touchstone", "ui"], installation.environment, demo) as server:
        of_the_ui = server.materialize()
        assert server.finished()[of_the_ui] == "FAILURE", "one run of all models, and a failed check fails it"
    assert figures(demo) == FIGURES
    broken.unlink()


def test_the_code_is_the_installed_one(installation: Installation) -> None:
    where = "import touchstone, assets, pipelines; print(touchstone.__file__, assets.__file__, pipelines.__file__)"
    paths = installation.run("python", "-c", where).stdout.split()
    assert len(paths) == 3
    assert all(Path(path).is_relative_to(installation.bin.parent) for path in paths)


def test_doctor_finds_everything_that_is_needed(installation: Installation) -> None:
    done = installation.run("touchstone", "doctor")
    assert done.returncode == 0, done.stdout
    assert "dagster-webserver" in done.stdout


def test_synth_writes_data_to_try(installation: Installation) -> None:
    done = installation.run("touchstone", "synth", "--output", "made_up")
    assert done.returncode == 0, done.stderr
    assert (installation.folder / "made_up" / "problems.csv").is_file()


def test_the_sample_never_writes_into_the_installation(installation: Installation) -> None:
    """What `touchstone ui` starts with where there is no configuration."""
    ask = "from touchstone.locations import sample_config, sample_output; print(sample_config(), sample_output())"
    config, output = map(Path, installation.run("python", "-c", ask).stdout.split())
    assert config.is_relative_to(installation.bin.parent)
    assert output == installation.folder / "touchstone_sample"
