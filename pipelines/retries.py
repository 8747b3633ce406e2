"""Which failed runs Dagster starts again: those that failed for the infrastructure, never those that would fail again.

A run whose process was lost has failed no step, so Dagster retries it where the instance enables `run_retries`. A
failed step is a failed check, wrong input or a bug, unless its exception says that a connection or a process was lost.
Retries repeat all steps: each reuses what is up to date, and later steps need what earlier ones keep in memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor
from dagster_shared.error import SerializableErrorInfo

from touchstone.errors import TouchstoneError, UnreachableError

AFTER_STEP_FAILURE = "dagster/retry_on_asset_or_op_failure"
_RULES = {AFTER_STEP_FAILURE: "false", "dagster/retry_strategy": "ALL_STEPS"}
_NEVER = {"dagster/max_retries": "0"}
# The first words of what Python prints for an exception.
_INFRASTRUCTURE = (
    "sqlalchemy.exc.OperationalError",
    "sqlalchemy.exc.InterfaceError",
    "concurrent.futures.process.BrokenProcessPool",
    "BrokenPipeError",
    "ConnectionAbortedError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    f"{UnreachableError.__module__}.{UnreachableError.__name__}",
)


@contextmanager
def retry_rules(instance: dg.DagsterInstance | None, run: dg.DagsterRun) -> Iterator[None]:
    """Tag a run with the rules, around the preparation of its resources; what the user must correct is not retried."""
    if instance is None or not instance.run_retries_enabled:
        yield
        return
    instance.add_run_tags(run.run_id, _RULES)
    try:
        yield
    except UnreachableError:
        raise
    except TouchstoneError:
        instance.add_run_tags(run.run_id, _NEVER)
        raise


class OneProcess(InProcessExecutor):
    """Dagster's executor of all steps in one process, which has a run retried if the infrastructure failed a step."""

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[dg.DagsterEvent]:
        """Called by Dagster, which ends the run after the last event."""
        for event in super().execute(plan_context, execution_plan):
            if event.is_step_failure and is_infrastructure(event.step_failure_data.error):
                plan_context.instance.add_run_tags(plan_context.run_id, {AFTER_STEP_FAILURE: "true"})
            yield event


@dg.executor(name="in_process")
def one_process(_: dg.InitExecutorContext) -> OneProcess:
    """All steps in one process."""
    return OneProcess(RetryMode.ENABLED)


def is_infrastructure(error: SerializableErrorInfo | None) -> bool:
    """Whether an error, or what it was raised from, is the loss of a connection or a process.

    >>> is_infrastructure(SerializableErrorInfo("ConnectionResetError: [Errno 104]", [], "ConnectionResetError"))
    True
    """
    if error is None:
        return False
    return (
        error.message.startswith(_INFRASTRUCTURE) or is_infrastructure(error.cause) or is_infrastructure(error.context)
    )
