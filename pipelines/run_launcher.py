"""Dagster's launcher of runs as processes of the code location, which also notices that such a process is gone.

The code location itself reports a run whose process ended early. If the code location ended too (a restart, a reboot,
no memory left), nobody would, and the run would count as running forever and hold back all others. So run monitoring
asks the code location which runs it has. `deploy/dagster.yaml` names the class.
"""

from typing import Any

from dagster import DagsterError, DagsterRun, DefaultRunLauncher

# Dagster has no public names for the health of a run, nor (below) for the client of its code location.
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster_shared.serdes import deserialize_value


class CodeLocationRunLauncher(DefaultRunLauncher):
    """Launches runs through a gRPC server and asks it whether they are still there."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Read by Dagster's daemon before it asks."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Whether the code location has the run. If it does not answer, nothing is known yet: it is asked again."""
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        if client is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "not started by this launcher")
        try:
            current: Any = deserialize_value(client.get_current_runs())
        except DagsterError:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "the code location does not answer")
        if run.run_id in current.current_runs:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "the code location was restarted during the run")
