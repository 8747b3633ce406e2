"""Dagster's launcher of runs as processes of the code location, which also notices that such a process is gone.

The code location itself reports a run whose process ended early. If the code location ended too (a restart, a reboot,
no memory left), nobody would, and the run would count as running forever and hold back all others. So run monitoring
asks the code location which runs it has. `deploy/dagster.yaml` names the class.
"""

from dagster import DagsterRun
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus
from dagster._grpc.types import GetCurrentRunsResult
from dagster._serdes import deserialize_value


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
            current = deserialize_value(client.get_current_runs(), GetCurrentRunsResult).current_runs
        except DagsterUserCodeUnreachableError:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "the code location does not answer")
        if run.run_id in current:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "the code location was restarted during the run")
