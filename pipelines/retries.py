"""Which failed runs Dagster starts again: those that the infrastructure failed, never those that would fail again.

A run whose process was lost has failed no step, so Dagster retries it where the instance enables `run_retries`. A
failed step is a failed check, wrong input or a defect, unless its exception says that a connection or a process was
lost. Retries repeat all steps: each reuses what is up to date, and later steps need what earlier ones keep in memory.
"""

from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import dagster as dg
from sqlalchemy.exc import InterfaceError, OperationalError

from touchstone.errors import TouchstoneError

AFTER_STEP_FAILURE = "dagster/retry_on_asset_or_op_failure"
_RULES = {AFTER_STEP_FAILURE: "false", "dagster/retry_strategy": "ALL_STEPS"}
_NEVER = {"dagster/max_retries": "0"}
_INFRASTRUCTURE = (OperationalError, InterfaceError, ConnectionError, BrokenProcessPool)


@contextmanager
def retry_rules(instance: dg.DagsterInstance | None, run: dg.DagsterRun) -> Iterator[None]:
    """Tag a run with the rules, around the preparation of its resources; what the user must correct is not retried."""
    if instance is None or not instance.run_retries_enabled:
        yield
        return
    instance.add_run_tags(run.run_id, _RULES)
    try:
        yield
    except TouchstoneError:
        instance.add_run_tags(run.run_id, _NEVER)
        raise


@dg.failure_hook
def retry_lost_connections(context: dg.HookContext) -> None:
    """Have a run retried if a step failed because of the infrastructure."""
    if is_infrastructure(context.op_exception):
        context.instance.add_run_tags(context.run_id, {AFTER_STEP_FAILURE: "true"})


def is_infrastructure(error: BaseException | None) -> bool:
    """Whether an exception, or what it was raised from, is the loss of a connection or a process.

    >>> is_infrastructure(ConnectionResetError()), is_infrastructure(ValueError())
    (True, False)
    """
    while error is not None:
        if isinstance(error, _INFRASTRUCTURE):
            return True
        error = error.__cause__ or error.__context__
    return False
