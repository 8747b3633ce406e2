"""`touchstone compare --config`: the configuration's settings count, and explicit options go first."""

import json
from pathlib import Path

import pytest

from tests.conftest import Command, Folder

HEADER = "experiment,agent_model,tier,subtest,run_number,impl_rate,passed\n"


@pytest.fixture
def sides(tmp_path: Path) -> Folder:
    """Thirty cases that pass on both sides, and whose judge's score fell from 0.9 to 0.8."""
    folder = Folder(tmp_path)
    for side, judged in (("old", 0.9), ("new", 0.8)):
        (tmp_path / side).mkdir()
        rows = [f"e,m,T0,{place:02},1,{judged},True\n" for place in range(30)]
        (tmp_path / side / "runs.csv").write_text(HEADER + "".join(rows))
    return folder


def regressed(touchstone: Command, folder: Folder, *more: object) -> int:
    sides = ["--baseline", folder.root / "old/runs.csv", "--current", folder.root / "new/runs.csv"]
    done = touchstone("compare", *sides, "--format", "json", *more)
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["counts"]["regression"])


@pytest.mark.services
def test_scoring_is_that_of_the_configuration(sides: Folder, touchstone: Command) -> None:
    assert regressed(touchstone, sides) == 0
    sides.configure(scoring={"composite": {"pass_rate": 0, "impl_rate": 1}})
    assert regressed(touchstone, sides, "--config", sides.config) == 30


@pytest.mark.nightly
def test_threshold_and_score_are_those_of_the_configuration_unless_given(sides: Folder, touchstone: Command) -> None:
    sides.configure(comparison={"threshold": 0.01})
    assert regressed(touchstone, sides, "--config", sides.config) == 30
    assert regressed(touchstone, sides, "--config", sides.config, "--threshold", 0.05) == 0
    assert regressed(touchstone, sides, "--config", sides.config, "--score", "pass_rate") == 0
    sides.configure(comparison={"threshold": 0.01, "score": "pass_rate"})
    assert regressed(touchstone, sides, "--config", sides.config) == 0
    assert regressed(touchstone, sides, "--config", sides.config, "--score", "best") == 30


def native(folder: Folder) -> list[object]:
    """Two fixes files whose problems are called `id`, listed in a file elsewhere; half of the passes are lost."""
    (folder.root / "list.csv").write_text("id,filename\n" + "".join(f"p{place:02},a.tf\n" for place in range(30)))
    paths = []
    for side, passing in (("old", 30), ("new", 15)):
        path = folder.root / side / "m_fixes.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("id,iteration_id,passed\n" + "".join(f"p{i:02},1,{i < passing}\n" for i in range(30)))
        paths.append(path)
    return ["compare", "--baseline", paths[0], "--current", paths[1]]


def test_problem_key_and_problems_file_are_those_of_the_configuration(tmp_path: Path, touchstone: Command) -> None:
    folder = Folder(tmp_path)
    asked = native(folder)
    assert touchstone(*asked).returncode == 2
    folder.configure(problem_key="id", problems_csv="list.csv")
    done = touchstone(*asked, "--config", folder.config)
    assert done.returncode == 0 and "15 regressions" in done.stdout
    (tmp_path / "shorter.csv").write_text("id,filename\np00,a.tf\np29,a.tf\n")
    done = touchstone(*asked, "--config", folder.config, "--problems-csv", tmp_path / "shorter.csv")
    assert "1 regression " in done.stdout


def test_the_statistics_are_those_of_the_configuration(tmp_path: Path, touchstone: Command) -> None:
    folder = Folder(tmp_path)
    asked = native(folder)
    folder.configure(
        problem_key="id", problems_csv="list.csv", intervals={"confidence": 0.9}, comparison={"alpha": 1e-12}
    )
    done = touchstone(*asked, "--config", folder.config, "--fail-on-verdict", "worse")
    assert done.returncode == 0 and "90% CI" in done.stdout
    folder.configure(problem_key="id", problems_csv="list.csv")
    assert touchstone(*asked, "--config", folder.config, "--fail-on-verdict", "worse").returncode == 1


def test_snapshots_by_name_are_those_of_the_configurations_output_folder(
    evaluated: Folder, touchstone: Command
) -> None:
    done = touchstone("compare", "--config", evaluated.config, "--baseline", "latest", "--current", "latest")
    assert done.returncode == 0 and "0 regressions" in done.stdout


def test_a_configuration_that_is_missing_or_wrong_is_one_line(sides: Folder, touchstone: Command) -> None:
    for text, words in ((None, "no such config file"), ('{"fixes_dir": "x"}', "the key 'output_dir' is missing")):
        if text is not None:
            sides.config.write_text(text)
        done = touchstone("compare", "--config", sides.config, "--baseline", "a", "--current", "b")
        assert done.returncode == 2 and words in done.stderr and len(done.stderr.strip().splitlines()) == 1
