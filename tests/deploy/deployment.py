"""A deployment on loopback: Postgres, code location, webserver and daemon, and an evaluation that can be held up."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import dagster as dg
from dagster._core.scheduler.instigation import InstigatorStatus

from tests.conftest import Folder
from tests.deploy.compose import services, write_home
from tests.deploy.postgres import Postgres
from tests.pipelines.test_run import evaluate
from tests.processes import descendants, free_port, kill_all
from tests.ui_server import LAUNCH, PATIENCE_SECONDS, Server, process_group

T = TypeVar("T")

# Passes a file that says "good". Waits as long as there is a file `hold`, and says so.
JUDGE = """#!/bin/sh
[ -e {folder}/hold ] && touch {folder}/held
while [ -e {folder}/hold ]; do sleep 0.1; done
grep -q good "$1"
"""
_SELECTOR = {"repositoryName": "__repository__", "repositoryLocationName": "touchstone"}
AUTOMATION = {
    "schedule": """mutation($it: ScheduleSelector!) { startSchedule(scheduleSelector: $it) { __typename } }""",
    "sensor": """mutation($it: SensorSelector!) { startSensor(sensorSelector: $it) { __typename } }""",
}


class HeldEvaluation(Folder):
    """A problem and a model whose fixes a judge validates that can be told to wait."""

    def write(self) -> None:
        clone = self.root / "clones" / "one"
        clone.mkdir(parents=True)
        (clone / "a.txt").write_text("broken")
        self.problems("oid,filename,working_directory,language\np,a.txt,one,text\n")
        self.answers("good", "wrong")
        judge = self.root / "judge.sh"
        judge.write_text(JUDGE.format(folder=self.root))
        judge.chmod(0o755)
        self.correct()

    def correct(self, **more: object) -> None:
        settings = {
            "unsandboxed": True,
            "validators": {"text": "command"},
            "command": {"arguments": [str(self.root / "judge.sh"), "{file}"]},
            "workers": 1,
            "limits": {"seconds": 60, "wall_seconds": PATIENCE_SECONDS},
        }
        self.configure(clones_dir="clones", k_values=[1], validation=settings, **more)

    def answers(self, *fixes: str) -> None:
        rows = [f"p,{number},{fix}" for number, fix in enumerate(fixes)]
        self.fixes("m", "\n".join(["oid,iteration_id,fixed_file", *rows, ""]))

    def hold(self) -> None:
        (self.root / "held").unlink(missing_ok=True)
        (self.root / "hold").touch()

    def wait_until_held(self) -> None:
        wait_for("a fix to be validated", (self.root / "held").exists)

    def release(self) -> None:
        (self.root / "hold").unlink(missing_ok=True)


class Deployment:
    """The services with their processes. Runs are looked up in Postgres, as Dagster itself does."""

    def __init__(self, root: Path, postgres: Postgres, stack: ExitStack) -> None:
        self.postgres, self.evaluation = postgres, HeldEvaluation(root / "evaluation")
        self.evaluation.write()
        assert evaluate(self.evaluation).exit_code == 0
        home = root / "home"
        home.mkdir()
        self.home, self._stack, self._log = write_home(home), stack, root / "services.log"
        self.port, self.socket = free_port(), root / "run" / "code"
        self.socket.parent.mkdir(0o700)
        here = {
            **postgres.environment,
            "DAGSTER_HOME": str(home),
            "TOUCHSTONE_CONFIG": str(self.evaluation.config),
            "TOUCHSTONE_CRON": "* * * * *",
        }
        self.services = services(here, self.port, self.socket.parent)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        stack.enter_context(patch.dict(os.environ, here))
        self.server, self.url = Server(self.port), f"http://127.0.0.1:{self.port}"
        self.start("code")
        self.listens(socket.AF_UNIX, str(self.socket))
        self.start("webserver")
        self.start("daemon")
        self.listens(socket.AF_INET, ("127.0.0.1", self.port))
        self.instance = stack.enter_context(dg.DagsterInstance.get())

    def start(self, name: str) -> None:
        service = self.services[name]
        group = process_group(service.command, dict(service.environment), self.home, self._log)
        self.processes[name] = self._stack.enter_context(group)

    def listens(self, family: int, address: object) -> None:
        """Wait until a service accepts connections."""

        def accepts() -> bool:
            ended = [name for name, process in self.processes.items() if process.poll() is not None]
            assert not ended, f"{ended} ended: {self.log()}"
            with socket.socket(family) as client:
                return client.connect_ex(address) == 0

        wait_for(f"{address} of the compose file", accepts, self.log)

    def log(self) -> str:
        return self._log.read_text()[-20_000:]

    def is_healthy(self, name: str) -> bool:
        """What the health check of the compose file says."""
        service = self.services[name]
        asked = subprocess.run(service.healthcheck, env=dict(service.environment), cwd=self.home, capture_output=True)
        return asked.returncode == 0

    def kill(self, name: str) -> None:
        """End a service and everything it started, as when a container is killed."""
        family = descendants(self.processes[name].pid)
        kill_all(family)
        self.processes.pop(name).wait()

    def processes_of_runs(self) -> list[int]:
        """The processes that the code location started for runs."""
        started = descendants(self.processes["code"].pid)[1:]
        return [process for process in started if b"multiprocessing.spawn" in _command_line(process)]

    # Runs

    def launch(self, job: str = "evaluate") -> str:
        """What the launchpad sends; returns the run's id."""
        selector = {**_SELECTOR, "pipelineName": job}
        params = {"mode": "default", "runConfigData": "{}", "selector": selector, "executionMetadata": {"tags": []}}
        launched = self.server.ask(LAUNCH, params=params)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def turn_on(self, kind: str, name: str) -> None:
        """What the switch on the page "Automation" sends."""
        self.server.ask(AUTOMATION[kind], it={**_SELECTOR, f"{kind}Name": name})

    def turn_off(self, name: str) -> None:
        for state in self.instance.all_instigator_state():
            if state.instigator_name == name:
                self.instance.update_instigator_state(state.with_status(InstigatorStatus.STOPPED))

    def run_by(self, kind: str, name: str) -> dg.DagsterRun | None:
        """The newest run that a schedule or sensor started."""
        return next(iter(self.instance.get_runs(dg.RunsFilter(tags={f"dagster/{kind}": name}), limit=1)), None)

    def runs_after(self, moment: float) -> bool:
        """Whether a run was created after a moment."""
        return bool(self.instance.get_runs(dg.RunsFilter(created_after=datetime.fromtimestamp(moment, UTC)), limit=1))

    def times(self, run_id: str) -> tuple[float, float]:
        """When a run started and ended."""
        self.ended(run_id)
        (record,) = self.instance.get_run_records(dg.RunsFilter(run_ids=[run_id]))
        assert record.start_time is not None and record.end_time is not None
        return record.start_time, record.end_time

    def run(self, run_id: str) -> dg.DagsterRun:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run

    def status(self, run_id: str) -> str:
        return self.run(run_id).status.value

    def ended(self, run_id: str) -> dg.DagsterRun:
        """A run, once it has ended."""
        wait_for(f"the end of run {run_id}", lambda: self.run(run_id).is_finished, self.log)
        return self.run(run_id)

    def retried(self, run_id: str) -> dg.DagsterRun:
        """The run that the daemon started in place of a failed one, once it has ended."""
        assert self.ended(run_id).status == dg.DagsterRunStatus.FAILURE
        retry = wait_for(f"the retry of run {run_id}", lambda: self._retry_of(run_id), self.log)
        return self.ended(retry.run_id)

    def _retry_of(self, run_id: str) -> dg.DagsterRun | None:
        retries = self.instance.get_runs(dg.RunsFilter(tags={"dagster/parent_run_id": run_id}))
        return next(iter(retries), None)


def wait_for(what: str, found: Callable[[], T], log: Callable[[], str] = str) -> T:
    """The first answer that is true. The limit is only for a defect."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if answer := found():
            return answer
        time.sleep(0.2)
    raise TimeoutError(f"waited in vain for {what}\n{log()}")


def _command_line(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def deployed(root: Path, postgres: Postgres) -> Iterator[Deployment]:
    with ExitStack() as stack:
        yield Deployment(root, postgres, stack)
