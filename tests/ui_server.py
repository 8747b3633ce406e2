"""A running `touchstone ui`, asked with the requests that the Dagster UI itself sends: real server, real daemon."""

import ctypes
import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.processes import free_port

# Generous: a machine whose cores are busy needs minutes to start Dagster.
PATIENCE_SECONDS = 900
_PR_SET_PDEATHSIG = 1

ASSETS = """
{ assetNodes {
    assetKey { path } isExecutable jobNames partitionDefinition { name }
    repository { name location { name } }
    assetChecksOrError { ... on AssetChecks { checks { name jobNames } } } } }
"""
LAUNCH = """
mutation($params: ExecutionParams!) {
  launchRun(executionParams: $params) { __typename ... on LaunchRunSuccess { run { runId } } } }
"""
RE_EXECUTE = """
mutation($params: ReexecutionParams!) {
  launchRunReexecution(reexecutionParams: $params) { __typename ... on LaunchRunSuccess { run { runId } } } }
"""
RUNS = "{ runsOrError { ... on Runs { results { runId status } } } }"
PARTITIONS = '{ assetNodeOrError(assetKey: {path: ["models"]}) { ... on AssetNode { partitionKeys } } }'


class Server:
    """A running `touchstone ui`, asked as a browser asks it."""

    def __init__(self, port: int, process: int = 0) -> None:
        self.port, self.process = port, process

    def ask(self, query: str, **variables: object) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer
        return answer["data"]

    def materialize(self, *names: str) -> str:
        """What a click on "Materialize" sends, of some assets or all of them; returns the run's id.

        No asset asks for a partition first.
        """
        nodes = [asset for asset in self.ask(ASSETS)["assetNodes"] if asset["isExecutable"]]
        assets = [asset for asset in nodes if not names or asset["assetKey"]["path"][0] in names]
        assert [asset["assetKey"]["path"] for asset in assets if asset["partitionDefinition"]] == []
        job = next(name for name in assets[0]["jobNames"] if all(name in asset["jobNames"] for asset in assets))
        checks = [
            {"assetKey": {"path": asset["assetKey"]["path"]}, "name": check["name"]}
            for asset in assets
            for check in asset["assetChecksOrError"]["checks"]
            if job in check["jobNames"]
        ]
        selector = {
            "repositoryName": assets[0]["repository"]["name"],
            "repositoryLocationName": assets[0]["repository"]["location"]["name"],
            "pipelineName": job,
            "assetSelection": [{"path": asset["assetKey"]["path"]} for asset in assets],
            "assetCheckSelection": checks,
        }
        params = {"mode": "default", "runConfigData": "{}", "selector": selector, "executionMetadata": {"tags": []}}
        launched = self.ask(LAUNCH, params=params)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def re_execute_from_failure(self, run: str) -> str:
        """What a click on "Re-execute from failure" sends; returns the id of the new run."""
        launched = self.ask(RE_EXECUTE, params={"parentRunId": run, "strategy": "FROM_FAILURE"})["launchRunReexecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def finished(self) -> dict[str, str]:
        """The status of every run, once all have ended."""
        unfinished = {"QUEUED", "NOT_STARTED", "STARTING", "STARTED"}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            runs = {run["runId"]: run["status"] for run in self.ask(RUNS)["runsOrError"]["results"]}
            if not unfinished & set(runs.values()):
                return runs
            time.sleep(0.5)
        raise TimeoutError(f"runs did not end: {runs}")


@contextmanager
def served(
    command: Sequence[str | Path], environment: dict[str, str], folder: Path, log: Path | None = None
) -> Iterator[Server]:
    """The UI's command, called in a folder, on a free port."""
    port = free_port()
    log = log or folder / "ui.log"
    with process_group([*command, "--port", str(port)], environment, folder, log) as process:
        yield _when_ready(Server(port, process.pid), process, log)


@contextmanager
def process_group(
    command: Sequence[str | Path], environment: dict[str, str], folder: Path, log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with a group of its own, which is ended with all its children."""
    with log.open("a") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=60)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _end_with_parent() -> None:
    """Have the kernel end the server where the tests are killed and cannot do it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _when_ready(server: Server, process: "subprocess.Popen[bytes]", log: Path) -> Server:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if server.ask(ASSETS)["assetNodes"]:
                return server
        except (OSError, AssertionError):
            time.sleep(0.5)
    raise AssertionError(f"the UI did not start: {log.read_text()}")
