"""Which failed runs Dagster decides to start again. tests/deploy shows it doing so."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._utils.error import serializable_error_info_from_exc_info
from sqlalchemy.exc import OperationalError

from pipelines.resources import EvaluationResource
from pipelines.retries import is_infrastructure, one_process
from tests.conftest import Folder
from touchstone.errors import TouchstoneError, UnreachableError


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """An instance with the same rule as `deploy/dagster.yaml`."""
    retries = {"enabled": True, "max_retries": 2, "retry_on_asset_or_op_failure": False}
    with dg.DagsterInstance.ephemeral(settings={"run_retries": retries}) as made:
        yield made


def run_of(config: Path, instance: dg.DagsterInstance, error: BaseException | None = None) -> dg.DagsterRun:
    """A run on an evaluation, with one step that raises an error."""

    @dg.op(required_resource_keys={"evaluation"})
    def step() -> None:
        if error is not None:
            raise error

    @dg.job(resource_defs={"evaluation": EvaluationResource(config_file=str(config))}, executor_def=one_process)
    def evaluate() -> None:
        step()

    # As a code location does it; `execute_in_process` has an executor of its own.
    run = instance.create_run_for_job(evaluate)
    execute_run(InMemoryJob(evaluate), run, instance)
    ended = instance.get_run_by_id(run.run_id)
    assert ended is not None
    return ended


def lost_connection() -> BaseException:
    """As Dagster's storage raises it."""
    error = RuntimeError("too many retries for DB connection")
    error.__cause__ = OperationalError("SELECT 1", {}, Exception("server closed the connection"))
    return error


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (lost_connection, "true"),
        (lambda: UnreachableError("s3://bucket: the server cannot be reached"), "true"),
        (TouchstoneError, "false"),
        (dg.Failure, "false"),
        (ZeroDivisionError, "false"),
    ],
)
def test_a_failed_step_is_retried_only_if_the_infrastructure_failed(
    folder: Folder, instance: dg.DagsterInstance, error: Callable[[], BaseException], retried: str
) -> None:
    run = run_of(folder.config, instance, error())
    assert (run.status.value, run.tags["dagster/will_retry"]) == ("FAILURE", retried)
    assert run.tags["dagster/retry_strategy"] == "ALL_STEPS"


def test_a_wrong_configuration_is_not_retried(folder: Folder, instance: dg.DagsterInstance) -> None:
    run = run_of(folder.configure(k_values=[0]), instance)
    assert (run.status.value, run.tags["dagster/will_retry"]) == ("FAILURE", "false")


@pytest.mark.parametrize(
    ("error", "is_infra"),
    [
        (lost_connection, True),
        (BrokenProcessPool, True),
        *((each, True) for each in ConnectionError.__subclasses__()),
        (FileNotFoundError, False),
        (TouchstoneError, False),
    ],
)
def test_what_counts_as_infrastructure(error: Callable[[], BaseException], is_infra: bool) -> None:
    try:
        raise error()
    except BaseException:
        assert is_infrastructure(serializable_error_info_from_exc_info(sys.exc_info())) is is_infra


def test_an_instance_without_retries_gets_no_tags(folder: Folder) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert "dagster/retry_strategy" not in run_of(folder.config, instance).tags
