"""The action's steps in a clean environment: exit codes, outputs, report and summary, and inputs that stay data."""

import sys
from pathlib import Path

import pytest

from tests.action.job import Job
from tests.conftest import nightly_but

PROBLEMS = "oid,filename\n" + "".join(f"p{number:02},p.tf\n" for number in range(12))


def write_fixes(path: Path, passed: int) -> str:
    """A fixes file of the model m, which passes that many of twelve problems."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "problems.csv").write_text(PROBLEMS)
    rows = [f"p{number:02},{attempt},{number < passed}" for number in range(12) for attempt in (1, 2)]
    path.write_text("oid,iteration_id,plausible_fix\n" + "\n".join(rows) + "\n")
    return str(path)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job on a push, so that nothing is posted, with the results of two branches."""
    made = Job(tmp_path, event="push")
    write_fixes(made.folder / "main" / "m_fixes.csv", 12)
    write_fixes(made.folder / "new" / "m_fixes.csv", 3)
    return made


SIDES = {"mode": "compare", "baseline": "main/m_fixes.csv", "paths": "new/m_fixes.csv"}


@pytest.mark.services
def test_a_worse_model_fails_the_gate_and_the_report_says_why(job: Job) -> None:
    ended = job.run(**SIDES)
    assert (ended.code, ended.outputs["exit-code"]) == (1, "1")
    assert ended.outputs["verdict"].startswith("m: current is worse than baseline by 75.0 points")
    assert ended.report.startswith(f"### Touchstone: failed\n\n{ended.outputs['verdict']}\n")
    assert "| m | worse | 1.000 \\[0.758, 1.000\\] | 0.250 \\[" in ended.report
    assert "| regression | p03 | m | 1.000 | 0.000 | -1.000 |" in ended.report
    assert "pass_rate score" in ended.report, "cases are compared by what the verdict is on"
    assert ended.summary == ended.report
    assert "::error::m: current is worse than baseline by 75.0 points (95%25 CI " in ended.log


@pytest.mark.nightly
@pytest.mark.parametrize(
    "inputs",
    [
        {"fail-on": "none"},
        {"baseline": SIDES["paths"], "paths": SIDES["baseline"], "fail-on": "worse, regression"},
    ],
    ids=["no gate", "better"],
)
def test_the_gate_passes_what_it_is_not_told_to_fail(job: Job, inputs: dict[str, str]) -> None:
    ended = job.run(**SIDES | inputs)
    assert (ended.code, ended.outputs["exit-code"]) == (0, "0"), ended.log
    assert ended.report.startswith("### Touchstone: passed")


WRONG_USAGE = [
    ({"working-directory": "gone"}, "error: working-directory: 'gone' is not a folder"),
    ({"mode": "$(touch pwned)"}, "error: mode: '$(touch pwned)' is not one of run, compare"),
    ({"comment": "true\n::error::x"}, "error: comment: 'true\\n::error::x' is not one of true, false"),
    (
        SIDES | {"baseline": "gone.csv"},
        "error: gone.csv: no such file or folder; to name a snapshot, add --data DIR",
    ),
    ({"config": "gone.json"}, "error: gone.json: no such config file"),
    ({"mode": "compare"}, "error: mode compare needs a baseline and one path to compare with it"),
    ({"fail-on": "`touch pwned`"}, "error: fail-on: '`touch' is not one of worse, regression, none"),
]


@pytest.mark.parametrize(("inputs", "message"), nightly_but(WRONG_USAGE[:3], WRONG_USAGE))
def test_wrong_usage_is_exit_code_2_and_one_line(job: Job, inputs: dict[str, str], message: str) -> None:
    ended = job.run(**inputs)
    assert (ended.code, ended.outputs["exit-code"]) == (2, "2"), ended.log
    assert ended.outputs["verdict"].startswith(message)
    assert message in ended.summary
    assert ended.summary.startswith("### Touchstone: error\n\n```")
    assert not list(job.folder.rglob("pwned"))


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        (None, "error: touchstone cannot be started (No such file or directory); install it first"),
        ("exit 1", "touchstone ended with exit code 1"),
        ("kill -9 $$", "error: touchstone was ended by signal 9; 9 often means too little memory"),
    ],
    ids=["missing", "crashing", "killed"],
)
def test_a_broken_installation_is_not_a_failed_gate(
    job: Job, tmp_path: Path, program: str | None, verdict: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(sys.executable)
    if program is not None:
        (programs / "touchstone").write_text(f"#!/bin/sh\n{program}\n")
        (programs / "touchstone").chmod(0o755)
    ended = job.run(**SIDES, installed=str(programs))
    assert (ended.code, ended.outputs["verdict"]) == (2, verdict)


def test_a_failed_installation_is_not_a_failed_gate(job: Job) -> None:
    job.python = "/no/such/python"
    ended = job.run(**SIDES, installed=None)
    assert (ended.code, ended.outputs["exit-code"]) == (2, "")
    assert ended.log.endswith("error: Touchstone cannot be installed; see above\n")


@pytest.mark.services
def test_hostile_names_are_data(job: Job) -> None:
    """Each value is the name of a real file or folder, so that it has to arrive unchanged."""
    baseline = "$(touch pwned)`touch pwned`; rm -rf *"
    current = '-x "$HOME" ${{ github.token }} && touch pwned'
    folder = "a folder' ; touch pwned #"
    for name, passed in ((baseline, 12), (current, 3)):
        write_fixes(job.folder / folder / name / "m_fixes.csv", passed)
    before = sorted(job.folder.rglob("*"))
    ended = job.run(
        mode="compare",
        baseline=f"{baseline}/m_fixes.csv",
        paths=f"\n{current}/m_fixes.csv\n",
        name="`touch pwned` --> @everyone\n$(x)",
        **{"working-directory": folder, "fail-on": "regression"},
    )
    assert ended.code == 1, ended.log
    assert sorted(job.folder.rglob("*")) == before
    assert ended.outputs["verdict"].startswith("m: current is worse than baseline by 75.0 points")
    assert ended.report.startswith("### Touchstone (touch-pwned-everyone-x-")


@pytest.mark.services
def test_a_baseline_after_a_run_that_failed_is_not_compared(job: Job) -> None:
    ended = job.run(config="gone.json", baseline="main/m_fixes.csv")
    assert ended.code == 2
    assert "worse" not in ended.report
