"""The whole action in an environment that it installs itself, with whole runs: nightly, because that takes a minute."""

import os
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.action.comments_api import comments_api
from tests.action.job import ACTION, PATIENCE_SECONDS, TOKEN, Job
from tests.action.test_evaluate import write_fixes

pytestmark = pytest.mark.nightly
# How this machine reaches an index of packages.
INDEX = {name: value for name, value in os.environ.items() if re.match(r"PIP_|UV_|SSL_CERT_|\w+_proxy$", name, re.I)}
NO_INDEX = re.compile(
    "Could not find a version|No matching distribution|Failed to fetch|dns error|error sending request"
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that the action's installation made."""
    job = Job(tmp_path_factory.mktemp("installation"), event="push")
    job.environment |= INDEX
    ended = job.run(installed=None, mode="compare")
    if NO_INDEX.search(ended.log):
        pytest.skip("no index of packages can be reached")
    assert ended.outputs["exit-code"] == "2", ended.log
    assert re.match(r"touchstone \d", ended.log)
    return Path(job.environment["RUNNER_TEMP"], ".venv-ci")


@pytest.mark.parametrize("version", ["--help", "-r job.txt", "$(touch pwned)`touch pwned`; touch pwned"])
def test_a_version_is_a_requirement_and_nothing_else(environment: Path, tmp_path: Path, version: str) -> None:
    job = Job(tmp_path)
    job.environment |= INDEX | {"TOUCHSTONE_CI_ENVIRONMENT": str(environment)}
    ended = job.run(installed=None, version=version)
    assert ended.code == 2
    assert ended.log.endswith("error: Touchstone cannot be installed; see above\n"), ended.log
    assert not list(tmp_path.rglob("pwned"))


def test_evaluate_then_compare_with_the_results_of_main(environment: Path, tmp_path: Path) -> None:
    job = Job(tmp_path, event="push")
    programs = str(environment / "bin")
    where = [programs + "/python", "-c", "import touchstone; print(touchstone.__file__)"]
    assert subprocess.check_output(where, cwd=job.folder, text=True).startswith(str(environment))

    write_fixes(job.folder / "fixes" / "m_fixes.csv", 12)
    on_main = job.run(programs, paths="fixes", output_dir="main")
    assert on_main.code == 0, on_main.log
    assert re.fullmatch(r"(\d+) of \1 checks passed", on_main.outputs["verdict"])
    assert "│ m     │ T0   │" in on_main.report

    write_fixes(job.folder / "fixes" / "m_fixes.csv", 3)
    changed = job.run(programs, paths="fixes", output_dir="new", baseline="main")
    assert changed.code == 1, changed.log
    assert changed.outputs["verdict"].startswith("m: current is worse than baseline by 75.0 points")
    assert changed.report.endswith("```\n\n</details>\n")


def test_a_run_that_its_own_gate_stops_shows_the_comparison(environment: Path, tmp_path: Path) -> None:
    job = Job(tmp_path, event="push")
    programs = str(environment / "bin")
    write_fixes(job.folder / "fixes" / "m_fixes.csv", 12)
    config = '{"fixes_dir": "fixes", "output_dir": "out", "comparison": {"baseline": "latest", "on_worse": "fail"}}'
    (job.folder / "evaluation_config.json").write_text(config)
    assert job.run(programs, output_dir="out").code == 0
    write_fixes(job.folder / "fixes" / "m_fixes.csv", 3)
    stopped = job.run(programs, output_dir="out")
    assert stopped.code == 1, stopped.log
    assert stopped.report.startswith("### Touchstone: failed\n\nm: this run is worse than the baseline by 75.0 points")
    assert re.match(r"\d+ of \d+ checks passed; m: this run is worse than the baseline", stopped.outputs["verdict"])


def test_the_script_of_the_gitlab_job(environment: Path, tmp_path: Path) -> None:
    main = write_fixes(tmp_path / "main" / "m_fixes.csv", 12)
    new = write_fixes(tmp_path / "new" / "m_fixes.csv", 3)
    with comments_api() as api:
        api.me = {"username": "project_7_bot"}
        inputs = {"MODE": "compare", "BASELINE": main, "PATHS": new, "JUNIT": "junit.xml", "TOKEN": TOKEN}
        inputs |= {"ENVIRONMENT": str(environment), "REPORT": "report.md"}
        variables = {f"TOUCHSTONE_CI_{name}": value for name, value in inputs.items()}
        variables |= {"CI_API_V4_URL": api.url, "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "7"}
        done = subprocess.run(
            ["/bin/bash", ACTION / "run.sh"],
            cwd=tmp_path,
            env={"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), **INDEX, **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert done.returncode == 1, done.stdout + done.stderr
    report = (tmp_path / "report.md").read_text()
    assert report.startswith("### Touchstone: failed\n\nm: current is worse than baseline by 75.0 points")
    assert api.bodies() == [f"<!-- touchstone: touchstone -->\n{report}"]
    assert ET.parse(tmp_path / "junit.xml").getroot().get("failures") == "9"
    assert TOKEN not in done.stdout + done.stderr + report
