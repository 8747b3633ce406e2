"""`touchstone show`: the attempts at a problem, and one attempt in full; `touchstone chart`: one chart as a file."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Command, Folder, small_folder
from tests.pipelines.test_run import evaluate
from tests.pipelines.test_validation import finished_repairs
from touchstone.publish.charts import CHARTS

__all__ = ["finished_repairs"]


@pytest.mark.services
@pytest.mark.parametrize("columns", [60, 160])
def test_a_list_of_attempts_and_one_in_full(finished_repairs: Folder, touchstone: Command, columns: int) -> None:
    data = ("--data", finished_repairs.output)
    listed = touchstone("show", "m", "p", *data, columns=columns, terminal=True)
    assert listed.returncode == 0 and "m, problem p: 5 attempts" in listed.stdout
    assert "1/2" in listed.stdout and ("the fix is empty" if columns > 60 else "not shown: message") in listed.stdout
    one = touchstone("show", "m", "p", "3", *data, columns=columns, terminal=True)
    assert "m, T0, problem p, attempt 3: failed" in one.stdout
    assert "+    return a * b" in one.stdout and "test_zero" in one.stdout
    assert "no raw_response: the input has no column" in one.stdout
    assert all(len(line) <= columns for line in (listed.stdout + one.stdout).splitlines())


@pytest.mark.services
def test_json_for_programs(finished_repairs: Folder, touchstone: Command) -> None:
    data = ("--data", finished_repairs.output, "--json")
    assert [row["passed"] for row in json.loads(touchstone("show", "m", "p", *data).stdout)][:3] == [True, True, False]
    one = json.loads(touchstone("show", "m", "p", "3", *data).stdout)
    assert one["tests"][0]["status"] == "failed" and one["missing"]["latency_ms"] == "not in the input"


HOSTILE = "\x1b[31m\u202e[bold]::error::<script>=cmd()"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with two tiers, and attempts whose name and texts would like to be more than text."""
    folder = small_folder(tmp_path_factory.mktemp("recorded"))
    lines = ["a,1,T0,true,,", "a,1,T1,false,,", "a,2,T1,true,,", f'b,{HOSTILE},T0,true,"{HOSTILE}","{HOSTILE}"']
    folder.fixes("m", "\n".join(["oid,iteration_id,tier,passed,fixed_code,raw_response", *lines]))
    assert evaluate(folder).exit_code == 0
    return folder.output


@pytest.mark.services
def test_the_tier_is_asked_for_only_if_it_matters(recorded: Path, touchstone: Command) -> None:
    data = ("--data", recorded)
    assert "attempt 2: passed" in touchstone("show", "m", "a", "2", *data).stdout
    assert "attempt 1: failed" in touchstone("show", "m", "a", "1", "--tier", "T1", *data).stdout
    asked = touchstone("show", "m", "a", "1", *data)
    assert asked.returncode == 2
    assert asked.stderr == "error: attempt '1' exists in several tiers; add --tier T0 or T1\n"


@pytest.mark.parametrize("attempt", [(), (HOSTILE,)], ids=["list", "one"])
def test_foreign_text_is_shown_and_never_in_effect(
    recorded: Path, touchstone: Command, attempt: tuple[str, ...]
) -> None:
    shown = touchstone("show", "m", "b", *attempt, "--data", recorded)
    assert shown.returncode == 0 and "[bold]" in shown.stdout and "<script>" in shown.stdout
    assert "\x1b" not in shown.stdout and "\u202e" not in shown.stdout


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
