"""One deployment for all tests here: starting it takes longer than each of them."""

from collections.abc import Iterator

import pytest

from tests.deploy.deployment import Deployment, deployed
from tests.deploy.postgres import running_postgres


@pytest.fixture(scope="package")
def _services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with running_postgres() as postgres, deployed(tmp_path_factory.mktemp("deployment"), postgres) as made:
        yield made


@pytest.fixture
def deployment(_services: Deployment) -> Iterator[Deployment]:
    """The deployment, with nothing under way before and after the test."""
    yield _services
    _services.evaluation.release()
    for run in _services.instance.get_runs():
        _services.ended(run.run_id)
