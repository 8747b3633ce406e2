"""The built wheel in an environment and a folder of its own: nothing needs the checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import PROJECT
from tests.pipelines.test_ui import PARTITIONS, PATIENCE_SECONDS, served

MODELS = ["atlas-large", "boreal-mini", "cedar-coder"]


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
    """The folder of `touchstone init demo`, evaluated."""
    before = installation.files()
    made = installation.run("touchstone", "init", "demo")
    assert made.returncode == 0, made.stderr
    folder = installation.folder / "demo"
    done = installation.run("touchstone", "run", "--config", "evaluation_config.json", folder=folder)
    assert done.returncode == 0, done.stderr
    yield folder
    assert installation.files() == before, "the installation itself was written to"


def test_the_code_is_the_installed_one(installation: Installation) -> None:
    where = "import touchstone, assets, pipelines; print(touchstone.__file__, assets.__file__, pipelines.__file__)"
    paths = installation.run("python", "-c", where).stdout.split()
    assert len(paths) == 3
    assert all(Path(path).is_relative_to(installation.bin.parent) for path in paths)


def test_init_and_run_give_the_figures_of_the_sample(demo: Path) -> None:
    summary = pl.read_csv(demo / "results" / "summary_pass_at_k.csv")
    assert summary.select("LLM", "tier", pl.col("pass@1").round(6)).rows() == [
        ("atlas-large", "T0", 0.690855),
        ("atlas-large", "T1", 0.779211),
        ("boreal-mini", "T0", 0.40125),
        ("boreal-mini", "T1", 0.525066),
        ("cedar-coder", "T0", 0.575658),
        ("cedar-coder", "T1", 0.668158),
    ]


def test_the_dagster_home_lies_beside_the_output(demo: Path) -> None:
    assert [home.name.rpartition("-")[0] for home in (demo / ".dagster").iterdir()] == ["results"]


def test_init_refuses_a_folder_in_use(installation: Installation, demo: Path) -> None:
    again = installation.run("touchstone", "init", "demo")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "error: demo: the folder is not empty; name a new or empty one\n"


def test_doctor_finds_everything_that_is_needed(installation: Installation) -> None:
    done = installation.run("touchstone", "doctor")
    assert done.returncode == 0, done.stdout
    assert "dagster-webserver" in done.stdout


def test_synth_writes_data_to_try(installation: Installation) -> None:
    done = installation.run("touchstone", "synth", "--output", "made_up")
    assert done.returncode == 0, done.stderr
    assert (installation.folder / "made_up" / "problems.csv").is_file()


def test_ui_answers_with_the_evaluation_of_this_folder(installation: Installation, demo: Path) -> None:
    with served([installation.bin / "touchstone", "ui"], installation.environment, demo) as server:
        assert server.ask(PARTITIONS)["assetNodeOrError"]["partitionKeys"] == MODELS
        assert list(server.finished().values()) == ["SUCCESS"]


def test_the_sample_never_writes_into_the_installation(installation: Installation) -> None:
    """What `touchstone ui` starts with where there is no configuration."""
    ask = "from pipelines.launch import ui_evaluation; print(*ui_evaluation(None))"
    config, output = map(Path, installation.run("python", "-c", ask).stdout.split())
    assert config.is_relative_to(installation.bin.parent)
    assert output == installation.folder / "touchstone_sample"
