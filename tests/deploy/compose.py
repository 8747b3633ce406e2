"""The services of `deploy/compose.yaml` as plain processes: the same commands, addresses and paths of this machine."""

import os
import re
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import PROJECT

DEPLOY = PROJECT / "deploy"
# Only in a container is the outside of the service this machine itself.
_CONTAINER_ONLY = ("DAGSTER_WEBSERVER_HOST",)


@dataclass(frozen=True)
class Service:
    """What a service runs, how its health is asked for, and its environment."""

    command: Sequence[str]
    healthcheck: Sequence[str]
    environment: Mapping[str, str]


def compose_file(**variables: str) -> dict[str, Any]:
    """The file with its variables filled in."""
    text = (DEPLOY / "compose.yaml").read_text()
    text = re.sub(r"\$\{(\w+):(?:\?[^}]+|-)\}", lambda found: variables.get(found[1], ""), text)
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def services(here: Mapping[str, str], port: int, run: Path) -> dict[str, Service]:
    """All but Postgres. `here` replaces variables; port and folder, those in commands and variables."""

    def on_this_machine(text: str) -> str:
        return re.sub(r"\b3000\b", str(port), text).replace("/run/touchstone", str(run))

    found = {}
    for name, service in compose_file(POSTGRES_PASSWORD="secret", TOUCHSTONE_DATA="data")["services"].items():
        if name != "postgres":
            variables = {key: on_this_machine(value) for key, value in service["environment"].items()}
            told = {key: value for key, value in variables.items() if key not in _CONTAINER_ONLY}
            unknown = here.keys() - variables.keys() - {"TOUCHSTONE_CRON"}
            assert not unknown, f"{name} is not told {unknown}"
            found[name] = Service(
                [on_this_machine(word) for word in service["command"]],
                [on_this_machine(word) for word in service["healthcheck"]["test"][1:]],
                {**environment_with_our_programs(), **told, **here},
            )
    return found


def environment_with_our_programs() -> dict[str, str]:
    scripts = sysconfig.get_path("scripts")
    return {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(PROJECT)}


def write_home(home: Path) -> Path:
    """A DAGSTER_HOME as in the image, with short intervals."""
    settings = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    settings["run_monitoring"]["poll_interval_seconds"] = 1
    settings["run_queue"] = {"dequeue_interval_seconds": 1}
    (home / "dagster.yaml").write_text(yaml.safe_dump(settings))
    (home / "workspace.yaml").write_text((DEPLOY / "workspace.yaml").read_text())
    return home
