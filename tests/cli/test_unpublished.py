"""What the screen says about publishing, and looking at the figures of a run that a gate stopped."""

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import Command, Folder, copy_of
from tests.pipelines.test_run import evaluate
from touchstone.storage.snapshots import pin
from touchstone.storage.store import Store

HEADER = "oid,iteration_id,plausible_fix\n"
WORSE = HEADER + "a,1,false\na,2,false\nb,1,false\nb,2,false\n"


@pytest.fixture(scope="module")
def stopped(finished: Folder, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A published run, then a worse one that the gate stopped."""
    folder = copy_of(finished, tmp_path_factory.mktemp("stopped") / "copy")
    folder.configure(comparison={"on_regression": "fail"})
    pin(folder.output, "latest", "baseline")
    folder.fixes("m", WORSE)
    assert evaluate(folder).stopped
    again = evaluate(folder)
    assert again.stopped and again.made == 0, "every table is reused and still of this run"
    return folder


def undecidable(folder: Folder, **keys: object) -> None:
    """Fixes of files that are nowhere: no validator can decide them, which stops the run before anything is scored."""
    (folder.root / "clones").mkdir()
    folder.fixes("m", "oid,iteration_id,fixed_code\na,1,x\nb,1,x\n")
    folder.configure(clones_dir="clones", **keys)


@pytest.mark.services
def test_the_figures_of_a_stopped_run_can_be_queried_and_the_published_ones_stay(
    stopped: Folder, touchstone: Command
) -> None:
    published = touchstone("export", "pass_at_k", "--data", stopped.output, "--columns", "pass_at_k")
    assert published.stdout.split() == ["pass_at_k", "0.25", "0.5"]
    query = "SELECT pass_at_k, kind FROM pass_at_k, regressions WHERE k = 1"
    done = touchstone("sql", "--data", stopped.output, "--draft", query, "--format", "csv")
    assert done.stdout.split() == ["pass_at_k,kind", "0.0,regression"]
    done = touchstone("export", "pass_at_k", "--data", stopped.output, "--draft", "--columns", "pass_at_k")
    assert done.stdout.split() == ["pass_at_k", "0.0", "0.0"]
    done = touchstone("tables", "--data", stopped.output, "--draft")
    assert done.returncode == 0 and all(name in done.stdout for name in ("regressions", "sources", "quarantine"))
    assert done.stderr == "note: a gate blocked this run; its tables are not published\n"


@pytest.mark.services
def test_a_run_that_a_gate_stops_says_so_and_how_to_look_at_its_figures(
    tmp_path: Path, stopped: Folder, touchstone: Command
) -> None:
    done = touchstone("run", "--config", stopped.config)
    assert done.returncode == 1
    assert "nothing was published; the last published results are unchanged" in done.stdout
    (command,) = re.findall(r"touchstone (sql --draft .*)", done.stdout)
    shown = touchstone(*shlex.split(command))
    assert shown.returncode == 0 and "pass_at_k" in shown.stdout
    accepted = touchstone("run", "--config", stopped.config, "--accept")
    assert accepted.returncode == 0 and "nothing was published" not in accepted.stdout
    assert "check warning regressions.holds_against_baseline" in accepted.stdout
    done = touchstone("sql", "--data", stopped.output, "--draft", "SELECT 1")
    assert done.returncode == 2 and "the last run was published; leave out --draft" in done.stderr


@pytest.mark.nightly
def test_what_an_earlier_run_scored_is_not_shown_as_that_of_the_stopped_one(
    evaluated: Folder, touchstone: Command
) -> None:
    folder = evaluated
    undecidable(folder, scoring={"code": {"compilation": 0.0, "tests": 1.0, "lint": 0.0}})
    outcome = evaluate(folder)
    assert outcome.stopped
    store = Store(folder.output)
    made = {path.name for path in (store.unpublished / "tables").iterdir()}
    assert {"attempts", "outcomes", "problems", "sources"} <= made
    assert not made & {"pass_at_k", "attempt_scores", "tiers"}
    query = "SELECT code_score(true, 1, 1, 0) AS score"
    done = touchstone("sql", "--data", folder.output, "--draft", query, "--format", "csv")
    assert done.stdout.split() == ["score", "0.5"], "the weights are those of the run"


@pytest.mark.services
def test_without_earlier_results_the_screen_says_so(folder: Folder, touchstone: Command) -> None:
    undecidable(folder)
    done = touchstone("run", "--config", folder.config)
    assert done.returncode == 1
    assert "nothing was published; there are no earlier results" in done.stdout
    assert "touchstone sql --draft" in done.stdout


def test_there_is_no_draft_before_a_run_was_stopped(tmp_path: Path, touchstone: Command) -> None:
    done = touchstone("sql", "--data", tmp_path, "--draft", "SELECT 1")
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1
    assert "no run here was stopped by a gate" in done.stderr


@pytest.mark.parametrize("place", ["fixes/problems.csv", "fixes/problems.csv/deeper"])
def test_an_output_folder_that_is_a_file_is_one_line(folder: Folder, touchstone: Command, place: str) -> None:
    folder.configure(output_dir=place)
    done = touchstone("run", "--config", folder.config)
    assert done.returncode == 2
    file = folder.root / "fixes" / "problems.csv"
    assert f"output_dir: {file} is a file, not a folder" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    folder.configure()
    done = touchstone("run", "--config", folder.config, "--output-dir", folder.root / place)
    assert done.returncode == 2 and f"output_dir: {file} is a file, not a folder" in done.stderr


def test_a_report_that_cannot_be_written_is_one_line(stopped: Folder, touchstone: Command, tmp_path: Path) -> None:
    target = tmp_path / "missing" / "a.md"
    asked = ["compare", "--baseline", stopped.output, "--current", stopped.output]
    done = touchstone(*asked, "--save-to", target)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1] == f"error: {target}: cannot be written (No such file or directory)"
