"""Logs as JSON lines and figures for Prometheus, for those who operate runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command, Folder, command_environment


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["option", "environment"])
def test_json_logs_are_one_object_per_line(folder: Folder, tmp_path: Path, how: str) -> None:
    # A stand-in for the module that runs Dagster: importing that takes longer than the run.
    code = "import sys, types\nfrom touchstone.cli.main import main\nfrom touchstone.evaluation import run\n"
    code += "launch = types.SimpleNamespace(run_evaluation=lambda evaluation, config: run(evaluation))\n"
    code += "sys.modules['pipelines.launch'] = launch\nmain()"
    option, variable = (["--log-format", "json"], {}) if how == "option" else ([], {"TOUCHSTONE_LOG": "json"})
    folder.fixes("n", "oid,iteration_id,plausible_fix\na,1,maybe\n")
    command = [sys.executable, "-c", code, "run", "--config", folder.config, *option]
    environment = command_environment(tmp_path) | variable
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert all({"time", "level", "event", "message"} <= line.keys() for line in lines)
    (scored,) = (line for line in lines if line["event"] == "step" and line["stage"] == "pass_at_k")
    assert (scored["level"], scored["status"], scored["rows"]) == ("info", "made", 4)
    assert scored["seconds"] >= 0 and scored["bytes"] > 0
    assert [line["message"] for line in lines if line["event"] == "stage"][:2] == ["ingest", "validation"]
    assert "\x1b" not in done.stderr


@pytest.mark.services
def test_errors_are_json_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "touchstone.cli.main", "run", "--config", tmp_path / "none.json"]
    environment = command_environment(tmp_path) | {"TOUCHSTONE_LOG": "json"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    *_, last = (json.loads(line) for line in done.stderr.splitlines())
    assert last["level"] == "error" and "none.json" in last["message"]


def test_an_unknown_log_format_is_named(touchstone: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_LOG", "xml")
    done = touchstone("doctor")
    assert done.returncode == 2 and "TOUCHSTONE_LOG: 'xml' is not a log format (expected text or json)" in done.stderr


@pytest.mark.services
def test_the_file_for_prometheus(evaluated: Folder, touchstone: Command) -> None:
    folder = evaluated
    folder.configure(publish={"report": False, "charts": False, "metrics": "run.prom"})
    assert touchstone("run", "--config", folder.config).returncode == 0
    figures = (folder.root / "run.prom").read_text().splitlines()
    assert 'touchstone_pass_at_k{k="1",model="m",tier="T0"} 0.25' in figures
    assert 'touchstone_checks_failed{severity="error"} 0.0' in figures
    assert "touchstone_run_succeeded 1.0" in figures
    assert 'touchstone_validations{status="passed"} 1.0' in figures
    assert any(line.startswith('touchstone_stage_seconds{stage="pass_at_k"} ') for line in figures)
    (before,) = (line for line in figures if line.startswith("touchstone_last_success_timestamp_seconds"))
    folder.problems("oid,filename\na,x\na,y\n")
    named = folder.root / "other.prom"
    assert touchstone("run", "--config", folder.config, "--metrics", named).returncode == 2
    figures = named.read_text().splitlines()
    assert "touchstone_run_succeeded 0.0" in figures
    (after,) = (line for line in figures if line.startswith("touchstone_last_success_timestamp_seconds"))
    assert float(after.split()[1]) <= float(before.split()[1])


def test_without_the_extra_it_says_what_to_install(
    folder: Folder, touchstone: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    done = touchstone("run", "--config", folder.config, "--metrics", folder.root / "x.prom")
    assert done.returncode == 2 and "pip install 'touchstone[metrics]'" in done.stderr
    assert not folder.output.exists()
