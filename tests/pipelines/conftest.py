"""What tests of Dagster share."""

import functools
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory


@pytest.fixture(scope="session", autouse=True)
def _migrations_are_loaded_once() -> Iterator[None]:
    """Every instance of Dagster would load the history of its database's schema, which is fifty modules."""
    load = ScriptDirectory.from_config
    configs: dict[str | None, Config] = {}
    load_once = functools.cache(lambda location: load(configs[location]))

    def from_config(config: Config) -> ScriptDirectory:
        location = config.get_main_option("script_location")
        configs.setdefault(location, config)
        return load_once(location)

    with patch.object(ScriptDirectory, "from_config", from_config):
        yield
