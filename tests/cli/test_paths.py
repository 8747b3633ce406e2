"""`touchstone run PATH…` and `touchstone inspect-files`: results of any known format, without a configuration."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import PROJECT, Command, Folder
from touchstone.ingest import input_paths
from touchstone.ingest.adapters import adapters
from touchstone.ingest.implied_config import CONFIG_NAME
from touchstone.vocabulary import RESULTS_FOLDER

FILES = PROJECT / "tests" / "ingest" / "adapters" / "files"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with one log."""
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copy(FILES / "inspect" / "dict.eval", folder)
    return folder


@pytest.fixture
def sealed(logs: Path) -> Iterator[Path]:
    """A folder into which nothing can be written, even by root: its place for results is taken by a file."""
    (logs / RESULTS_FOLDER).write_text("")
    yield logs


def passed(results: Path) -> float:
    return float(pl.read_csv(results / "summary_pass_at_k.csv")["pass@1"].item())


@pytest.mark.services
def test_a_folder_of_logs(touchstone: Command, logs: Path) -> None:
    done = touchstone("run", logs)
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()
    assert first[0] == "recognized" and "Inspect AI log" in first[4]
    assert "dict.eval: the score multi/passed decides; --scorer chooses another one" in done.stdout
    assert passed(logs / RESULTS_FOLDER) == 0.5
    written = json.loads((logs / RESULTS_FOLDER / CONFIG_NAME).read_text())
    assert written == {"fixes_dir": "..", "inputs": ["."], "output_dir": ".", "k_values": [1, 3]}
    assert f"{CONFIG_NAME}; edit it to change them" in done.stdout

    again = touchstone("run", logs)
    assert again.returncode == 0 and "up to date" in again.stdout and "recognized" not in again.stdout

    config = logs / RESULTS_FOLDER / CONFIG_NAME
    edited = json.dumps(written | {"k_values": [1]})
    config.write_text(edited)
    changed = touchstone("run", logs)
    assert changed.returncode == 0 and "edit it to change them" not in changed.stdout
    assert config.read_text() == edited
    assert "pass@3" not in pl.read_csv(logs / RESULTS_FOLDER / "summary_pass_at_k.csv").columns


@pytest.mark.nightly
def test_a_folder_that_is_one_source_is_up_to_date_with_its_results_inside(touchstone: Command, tmp_path: Path) -> None:
    shutil.copytree(FILES / "terminal-bench" / "runs", tmp_path / "runs")
    done = touchstone("run", tmp_path / "runs")
    assert done.returncode == 0 and "│ runs │ Terminal-Bench results │" in done.stdout
    assert "up to date" in touchstone("run", tmp_path / "runs").stdout


@pytest.mark.nightly
def test_files_of_several_folders_are_written_beside_the_folder_that_holds_them(
    touchstone: Command, tmp_path: Path
) -> None:
    for name in ("odd.eval", "limits.eval"):
        (tmp_path / "in" / name[:3]).mkdir(parents=True)
        shutil.copy(FILES / "inspect" / name, tmp_path / "in" / name[:3])
    shutil.copy(FILES / "inspect" / "dict.eval", tmp_path / "in" / "not-named.eval")
    done = touchstone("run", tmp_path / "in" / "odd" / "odd.eval", tmp_path / "in" / "lim")
    assert done.returncode == 0, done.stderr
    assert "odd/odd.eval" in done.stdout and "lim/limits.eval" in done.stdout and "not-named" not in done.stdout
    assert (tmp_path / "in" / RESULTS_FOLDER / "summary_pass_at_k.csv").is_file()


@pytest.mark.nightly
def test_another_score_and_another_output_folder(touchstone: Command, logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "elsewhere" / "results"
    done = touchstone("run", logs / "dict.eval", "--scorer", "lint_ok", "--output-dir", out)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / CONFIG_NAME).read_text())["score"] == "lint_ok"
    assert (out / "summary_pass_at_k.csv").is_file() and not (logs / RESULTS_FOLDER).exists()


def test_a_folder_with_a_configuration_is_evaluated_by_it(touchstone: Command, finished: Folder) -> None:
    done = touchstone("run", finished.root)
    assert done.returncode == 0, done.stderr
    assert "up to date" in done.stdout and f"results in {finished.output}: summary_pass_at_k.csv" in done.stdout
    assert not (finished.root / RESULTS_FOLDER).exists()


def test_either_paths_or_a_configuration(touchstone: Command, logs: Path, folder: Folder) -> None:
    done = touchstone("run", logs, "--config", folder.config)
    assert (done.returncode, done.stderr) == (2, "error: give either --config FILE or the paths of results, not both\n")
    done = touchstone("run", "--config", folder.config, "--scorer", "x")
    assert (done.returncode, done.stderr) == (2, "error: --scorer goes with PATH…; set 'score' in the config instead\n")


def test_results_that_cannot_be_written(touchstone: Command, sealed: Path) -> None:
    done = touchstone("run", sealed)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: {sealed / RESULTS_FOLDER}") and "--output-dir" in done.stderr


@pytest.mark.parametrize("place", ["/etc", "/", "~"])
def test_nothing_is_written_to_folders_of_the_system(touchstone: Command, logs: Path, place: str) -> None:
    done = touchstone("run", logs / "dict.eval", "--output-dir", place)
    assert done.returncode == 2 and done.stderr.startswith("error: --output-dir: ") and done.stderr.count("\n") == 1
    assert not (Path(place).expanduser() / CONFIG_NAME).exists()


@pytest.mark.parametrize("command", ["run", "inspect-files", "pass-at-k"])
def test_a_path_that_is_missing(touchstone: Command, logs: Path, command: str) -> None:
    done = touchstone(command, logs, logs / "gone.eval")
    assert (done.returncode, done.stderr) == (2, f"error: {logs / 'gone.eval'}: no such file or folder\n")
    assert not (logs / RESULTS_FOLDER).exists()


@pytest.mark.parametrize("command", ["run", "inspect-files", "pass-at-k"])
def test_nothing_that_is_known(touchstone: Command, tmp_path: Path, command: str) -> None:
    (tmp_path / "in").mkdir()
    done = touchstone(command, tmp_path / "in")
    assert (done.returncode, done.stderr) == (2, f"error: {tmp_path / 'in'}: no files found\n")
    (tmp_path / "in" / "notes.json").write_text('{"a": 1}')
    done = touchstone(command, tmp_path / "in")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'in' / 'notes.json'}: not in a known format")
    assert not (tmp_path / "in" / RESULTS_FOLDER).exists()


@pytest.mark.parametrize("command", ["run", "inspect-files", "pass-at-k"])
def test_a_folder_as_large_as_a_home_directory(
    touchstone: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(input_paths, "_MAX_ENTRIES", 3)
    for name in range(5):
        (tmp_path / f"{name}.txt").touch()
    done = touchstone(command, tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        f"error: {tmp_path}: more than 3 files; name the folder that has the results\n",
    )
    assert not (tmp_path / RESULTS_FOLDER).exists()


def test_inspect_files_says_what_is_there_and_writes_nothing(touchstone: Command, logs: Path) -> None:
    (logs / "broken.eval").write_bytes(b"PK\x03\x04")
    done = touchstone("inspect-files", logs)
    assert done.returncode == 0
    assert "dict.eval" in done.stdout and "multi/passed accuracy (mean)" in done.stdout
    assert "not evaluated: broken.eval (" in done.stdout
    assert sorted(path.name for path in logs.iterdir()) == ["broken.eval", "dict.eval"]


@pytest.mark.parametrize("content", ["", "a\n1\n"])
def test_inspect_files_of_a_file_that_cannot_be_used(touchstone: Command, tmp_path: Path, content: str) -> None:
    (tmp_path / "m_fixes.csv").write_text(content)
    done = touchstone("inspect-files", tmp_path)
    assert done.returncode == 2 and "m_fixes.csv (" in done.stdout and "recognized" not in done.stdout


def test_inspect_files_lists_the_formats(touchstone: Command) -> None:
    done = touchstone("inspect-files", "--formats")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == len(list(adapters())) + 1
    assert touchstone("inspect-files").stderr == "error: name the files and folders to look at, or use --formats\n"
