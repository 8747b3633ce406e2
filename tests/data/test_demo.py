"""The demo of the gate: what `make demo` does, and what docs/comparing.md says it shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.pipelines.test_run import evaluate_config, failed
from touchstone.storage.snapshots import pin

SCRIPT = PROJECT / "data" / "sample" / "make_regression.py"


def make(what: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, SCRIPT, what, folder], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.nightly
def test_the_regression_that_is_put_in_is_found_and_stops_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    make("copy", folder)
    config = folder / "evaluation_config.json"
    assert evaluate_config(config).exit_code == 0
    pin(folder / "results", "latest", "baseline")
    assert make("break", folder) == "cedar-coder: 234 attempts that passed now fail\n"
    outcome = evaluate_config(config)
    assert (outcome.exit_code, outcome.stopped) == (1, True)
    (message,) = failed(outcome).values()
    report = (folder / "results" / "comparison.md").read_text().replace("\\", "")
    page = " ".join((PROJECT / "docs" / "comparing.md").read_text().replace("\n> ", "\n").split())
    worse = message.partition(";")[0]
    assert worse.startswith("cedar-coder T0: this run is worse than the baseline: ") and worse in page
    assert report.splitlines()[0] in page and report.splitlines()[4] in page
    (counts,) = re.findall(r"\*\*\d+ regressions .*?\*\*", report)
    assert counts in page
