"""Which failed runs Dagster decides to start again. tests/deploy shows it doing so."""

from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy.exc import OperationalError

from assets.retries import is_infrastructure, retry_if_lost
from pipelines.resources import EvaluationResource
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
    def step(context: dg.OpExecutionContext) -> None:
        with retry_if_lost(context.instance, context.run):
            if error is not None:
                raise error

    @dg.job(resource_defs={"evaluation": EvaluationResource(config_file=str(config))})
    def evaluate() -> None:
        step()

    result = evaluate.execute_in_process(instance=instance, raise_on_error=False)
    ended = instance.get_run_by_id(result.run_id)
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
    assert is_infrastructure(error()) is is_infra


def test_an_instance_without_retries_gets_no_tags(folder: Folder) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert "dagster/retry_strategy" not in run_of(folder.config, instance).tags
