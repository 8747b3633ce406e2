"""In the folder of a run, every command finds its results; `--data` overrides."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Command, Folder, nightly_but
from touchstone.vocabulary import RESULTS_FOLDER

COMMANDS = (
    "sql SELECT+1",
    "tables",
    "show m a",
    "report --format markdown",
    "chart leaderboard --save-to OUT.svg",
    "export pass_at_k",
    "snapshots",
    "snapshots pin latest here",
    "snapshots prune --keep 3",
    "compare latest latest",
    "plan --detect 5%",
)
NOTHING = "error: no results in this folder; run `touchstone run .` here, or add --data DIR\n"


def words(line: str, folder: Path) -> list[str]:
    return [word.replace("+", " ").replace("OUT", str(folder / "chart")) for word in line.split(" ")]


@pytest.mark.services
@pytest.mark.parametrize("where", nightly_but(["config"], ["output", "config", "files"]))
def test_every_command_finds_the_results_of_its_folder(
    touchstone: Command, evaluated: Folder, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder is the output folder, has the configuration, or has what `touchstone run .` wrote."""
    if where == "files":
        shutil.copytree(evaluated.output, tmp_path / "beside" / RESULTS_FOLDER, symlinks=True)
    places = {"output": evaluated.output, "config": evaluated.root, "files": tmp_path / "beside"}
    monkeypatch.chdir(places[where])
    for line in COMMANDS if where == "config" else ["tables", "compare latest latest"]:
        done = touchstone(*words(line, tmp_path))
        assert done.returncode == 0, (line, done.stderr)


def test_data_overrides_and_elsewhere_the_error_says_what_to_do(
    touchstone: Command, evaluated: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(evaluated.root)
    assert "no tables here" in touchstone("sql", "SELECT 1", "--data", empty).stderr
    monkeypatch.chdir(empty)
    for line in (*COMMANDS[:-2], "explore --no-open"):
        done = touchstone(*words(line, tmp_path))
        assert (done.returncode, done.stderr) == (2, NOTHING), line


def test_percentages(touchstone: Command, evaluated: Folder) -> None:
    sides = ("compare", evaluated.output, evaluated.output, "--json")
    found = [json.loads(touchstone(*sides, "--threshold", text).stdout)["threshold"] for text in ("5%", "0.05")]
    assert found == [0.05, 0.05]
    wrong = touchstone(*sides, "--threshold", "much")
    assert wrong.returncode == 2 and "'much' is not a number; write 0.05 or 5%" in wrong.stderr
