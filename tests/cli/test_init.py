"""`touchstone init`: a folder to start from."""

import re
from pathlib import Path

import pytest

from tests.conftest import PROJECT, call_here
from touchstone.cli.setup import write_project
from touchstone.config import EvaluationConfig, load_config
from touchstone.config.scoring import DEFAULT_PRICES
from touchstone.config.validation import ValidationSettings

SAMPLE = PROJECT / "data" / "sample"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path / "demo")
    return tmp_path / "demo"


def test_the_data_are_those_of_the_sample(project: Path) -> None:
    copied = {path.name: path.read_bytes() for path in (project / "data").iterdir()}
    assert copied == {path.name: path.read_bytes() for path in SAMPLE.glob("*.csv")}
    assert "problems.csv" in copied


def test_both_configurations_mean_the_same(project: Path) -> None:
    assert load_config(project / "evaluation_config.json") == load_config(project / "evaluation_config.toml")


def test_the_configuration_differs_from_the_defaults_only_in_its_paths(project: Path) -> None:
    given = load_config(project / "evaluation_config.json")
    paths = {"fixes_dir": project / "data", "output_dir": project / "results"}
    beside = ValidationSettings(environments_dir=project / "results" / "environments")
    assert given == EvaluationConfig(**paths, problems_csv=project / "data" / "problems.csv", validation=beside)


def test_settings_in_comments_are_the_defaults(project: Path) -> None:
    """Uncommented, they are accepted and change nothing; a price that is named again has its usual value."""
    config = project / "evaluation_config.toml"
    before = load_config(config)
    text, uncommented = re.subn(r"^#(?=[\w-]+ = )", "", config.read_text(), flags=re.MULTILINE)
    config.write_text(text)
    after = load_config(config)
    assert uncommented > 5
    assert all(DEFAULT_PRICES[model] == price for model, price in after.scoring.prices.items())
    prices = {"prices": before.scoring.prices}
    assert after.model_copy(update={"scoring": after.scoring.model_copy(update=prices)}) == before


def test_it_says_what_to_do_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call_here("init", "demo").stdout.splitlines()[1:4] == [
        "  cd demo",
        "  touchstone run --config evaluation_config.json",
        "  touchstone ui",
    ]


def test_an_empty_folder_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call_here("init", ".")
    assert (done.returncode, "cd " in done.stdout) == (0, False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "data",
        "evaluation_config.json",
        "evaluation_config.toml",
    ]


def test_a_folder_in_use_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = call_here("init", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {tmp_path}: the folder is not empty; name a new or empty one\n"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    done = call_here("init", tmp_path / "taken")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot be written (Not a directory)" in done.stderr
