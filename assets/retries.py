"""Which failed runs are started again: those that failed for the infrastructure, never those that would fail again.

Dagster retries a failed run where the instance enables `run_retries`, unless its tags say otherwise; the sensor goes by
the same tags. A step that raises an error of its own says so: a failed check, wrong input or a bug fails again. Not if
the error is the loss of a connection or a process, nor if Dagster itself fails, such as in storing an event, of which a
step hears nothing. Retries repeat all steps: each reuses what is up to date, and later steps need what earlier ones
keep in memory.
"""

from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import dagster as dg

from touchstone.errors import TouchstoneError, UnreachableError

AFTER_STEP_FAILURE = "dagster/retry_on_asset_or_op_failure"
_RULES = {AFTER_STEP_FAILURE: "true", "dagster/retry_strategy": "ALL_STEPS"}
_NEVER = {"dagster/max_retries": "0"}


@contextmanager
def retry_rules(instance: dg.DagsterInstance | None, run: dg.DagsterRun) -> Iterator[None]:
    """Tag a run with the rules, around the preparation of its resources; what the user must correct is not retried."""
    if instance is not None and instance.run_retries_enabled:
        instance.add_run_tags(run.run_id, _RULES)
    try:
        yield
    except UnreachableError:
        raise
    except TouchstoneError:
        if instance is not None:
            instance.add_run_tags(run.run_id, _NEVER)
        raise


@contextmanager
def retry_if_lost(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[None]:
    """Have a run not retried, around the work of a step, unless the infrastructure failed it."""
    try:
        yield
    except Exception as error:
        if not is_infrastructure(error):
            instance.add_run_tags(run.run_id, {AFTER_STEP_FAILURE: "false"})
        raise


def failed_on_its_own(run: dg.DagsterRun) -> bool:
    """Whether a run that ended without success was canceled, or failed with an error that was not the loss of anything.

    Dagster's own failures, in launching a run or in storing an event, leave no tag.
    """
    own = run.tags.get(AFTER_STEP_FAILURE) == "false" or _NEVER.items() <= run.tags.items()
    return own or run.status == dg.DagsterRunStatus.CANCELED


def is_infrastructure(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, is the loss of a connection or a process.

    >>> is_infrastructure(ConnectionResetError()), is_infrastructure(FileNotFoundError())
    (True, False)
    """
    from sqlalchemy.exc import InterfaceError, OperationalError

    lost = (OperationalError, InterfaceError, BrokenProcessPool, ConnectionError, UnreachableError)
    return error is not None and (
        isinstance(error, lost) or is_infrastructure(error.__cause__) or is_infrastructure(error.__context__)
    )
