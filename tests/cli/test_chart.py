"""`touchstone chart`: charts of a run as files, and errors in one line."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Command, Folder
from touchstone.publish.charts import CHARTS


def test_the_list_has_every_chart_with_its_table(touchstone: Command) -> None:
    done = touchstone("chart", "--list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(CHARTS)
    assert "leaderboard        Leaderboard (table pass_at_k)" in done.stdout


@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", b'<svg role="img" aria-label="Leaderboard n = '), ("json", b"{"), ("PNG", b"\x89PNG")]
)
def test_the_file_name_decides_the_format(
    touchstone: Command, finished: Folder, tmp_path: Path, suffix: str, start: bytes
) -> None:
    file = tmp_path / f"chart.{suffix}"
    done = touchstone("chart", "leaderboard", "--data", finished.output, "--save-to", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert file.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [file]


def test_dark_is_an_option(touchstone: Command, finished: Folder, tmp_path: Path) -> None:
    file = tmp_path / "chart.json"
    touchstone("chart", "leaderboard", "--data", finished.output, "--save-to", file, "--theme", "dark")
    assert json.loads(file.read_text())["config"]["background"] == "#181A1B"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "name a chart: touchstone chart NAME --save-to FILE.svg (--list shows them)"),
        ("leaderbord --data OUT", "there is no chart 'leaderbord' (did you mean 'leaderboard'?)"),
        ("history --data OUT", "a chart is a file: add --save-to FILE.svg, .png, .html or .json"),
        ("history --data OUT --save-to a.gif", "--save-to a.gif: end the name in .svg, .png, .html or .json"),
        ("history --data OUT --save-to NONE/a.svg", "NONE/a.svg: cannot be written (No such file or directory)"),
        ("history --data NONE --save-to a.svg", "NONE/tables: no tables here"),
        ("cost_quality --data OUT --save-to a.svg", "nothing to draw: no model of the table 'economics' has a known"),
    ],
)
def test_errors_are_one_line(touchstone: Command, finished: Folder, tmp_path: Path, line: str, message: str) -> None:
    none = str(tmp_path / "none")
    arguments = line.replace("OUT", str(finished.output)).replace("NONE", none).split()
    done = touchstone("chart", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message.replace('NONE', none)}") and done.stderr.count("\n") == 1
    assert not Path("a.svg").exists()


def test_a_table_that_older_results_lack_is_named(touchstone: Command, finished: Folder, tmp_path: Path) -> None:
    shutil.copytree(finished.output / "tables", tmp_path / "tables", ignore=shutil.ignore_patterns("slices"))
    done = touchstone("chart", "slices", "--data", tmp_path, "--save-to", tmp_path / "a.svg")
    assert done.returncode == 2
    assert "the chart 'slices' shows the table 'slices', which these results do not" in done.stderr
