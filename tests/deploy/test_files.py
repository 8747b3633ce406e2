"""The files of deploy/ are well-formed and agree with each other, the package and the docs. Docker, Helm and systemd
cannot run here; test_services.py runs the commands."""

import re
import shutil
import subprocess
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster._core.instance.config import dagster_instance_config
from packaging.requirements import Requirement

from tests.conftest import PROJECT
from tests.deploy.compose import DEPLOY, compose_file

COMPOSE = compose_file(POSTGRES_PASSWORD="secret", TOUCHSTONE_DATA="/srv/data")
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if name != "postgres"}
HELM = yaml.safe_load((DEPLOY / "helm-values.yaml").read_text())
INSTANCE = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def environment_file() -> dict[str, str]:
    lines = (DEPLOY / "systemd" / "environment").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_dagster_accepts_its_settings() -> None:
    dagster_instance_config(str(DEPLOY))


def variables(settings: Any) -> set[str]:
    """The environment variables that settings name."""
    if isinstance(settings, dict):
        named = {settings["env"]} if set(settings) == {"env"} else set()
        return named.union(*map(variables, settings.values()))
    return set().union(*map(variables, settings)) if isinstance(settings, list) else set()


@pytest.mark.parametrize("given", [*(service["environment"] for service in OURS.values()), environment_file()])
def test_every_variable_that_the_settings_name_is_given(given: dict[str, str]) -> None:
    workspace = yaml.safe_load((DEPLOY / "workspace.yaml").read_text())
    named = variables(INSTANCE) | variables(workspace)
    assert len(named) == 6 and named <= given.keys()
    assert given["TOUCHSTONE_CONFIG"].endswith("/evaluation_config.json")


def test_the_services_of_the_compose_file() -> None:
    assert set(SERVICES) == {"postgres", "code", "webserver", "daemon"}
    assert set(COMPOSE["volumes"]) == {"code", "postgres"}
    for service in SERVICES.values():
        assert set(service) <= {
            *("image", "build", "working_dir", "restart", "init", "cap_drop", "security_opt", "command", "environment"),
            *("volumes", "depends_on", "healthcheck", "ports"),
        }
        assert service["restart"] == "unless-stopped" and service["healthcheck"]["test"][0] == "CMD"
        assert all(isinstance(value, str) for value in service["environment"].values())
        assert service.get("depends_on", {}).keys() <= SERVICES.keys()


def test_only_the_webserver_is_published_and_only_on_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"webserver": ["127.0.0.1:3000:3000"]}
    hosts = {name: value for name, value in environment_file().items() if name.endswith("HOST")}
    assert len(hosts) == 2 and set(hosts.values()) == {"127.0.0.1"}
    assert HELM["dagsterWebserver"]["service"]["type"] == "ClusterIP" and "ingress" not in HELM


def test_nobody_else_can_connect_to_the_code_location_which_runs_what_it_is_sent() -> None:
    given = environment_file()
    places = {given[name] for name in ("DAGSTER_GRPC_SOCKET", "TOUCHSTONE_CODE_SOCKET")}
    places |= {OURS["code"]["environment"]["DAGSTER_GRPC_SOCKET"], *OURS["code"]["healthcheck"]["test"][-1:]}
    places |= {service["environment"]["TOUCHSTONE_CODE_SOCKET"] for service in OURS.values()}
    assert places == {"/run/touchstone/code"}
    assert all("code:/run/touchstone" in service["volumes"] for service in OURS.values())
    unit = (DEPLOY / "systemd" / "touchstone-code.service").read_text()
    assert "\nRuntimeDirectory=touchstone\nRuntimeDirectoryMode=0700\n" in unit
    assert "--owner touchstone --mode 700 /run/touchstone" in DOCKERFILE


def test_images_have_short_names() -> None:
    images = {service["image"] for service in SERVICES.values()}
    images |= set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    images |= {each["image"]["repository"] for each in HELM["dagster-user-deployments"]["deployments"]}
    assert images == {"postgres:15", "touchstone", "python:3.11-slim"}


def test_the_image_runs_as_an_ordinary_user_and_has_the_sandbox_and_the_driver() -> None:
    assert re.findall(r"^USER (\w+)", DOCKERFILE, re.MULTILINE) == ["touchstone"]
    assert "bubblewrap" in DOCKERFILE and "[postgres]" in DOCKERFILE
    user = HELM["dagster-user-deployments"]["deployments"][0]["podSecurityContext"]["runAsUser"]
    assert f"--uid {user} " in DOCKERFILE


def test_the_build_gets_all_that_the_wheel_is_made_of() -> None:
    wheel = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = set(re.findall(r"^COPY --chown=\w+ (.+) /", DOCKERFILE, re.MULTILINE)[0].split())
    needed = {*wheel["packages"], *wheel["force-include"], *copied}
    needed |= {"pyproject.toml", "README.md", "LICENSE", "requirements.lock"}
    let_in = re.findall(r"^!(\S+)", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    missing = [path for path in needed if not any(Path(path).is_relative_to(entry) for entry in let_in)]
    assert missing == [] and all((PROJECT / entry).exists() for entry in let_in)


def test_the_image_installs_the_versions_of_the_lock_file() -> None:
    (script,) = re.findall(r"sed --regexp-extended '(.+)' requirements.lock", DOCKERFILE)
    command = ["sed", "--regexp-extended", script, PROJECT / "requirements.lock"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.lstrip().startswith("#")]
    assert {"dagster", "dagster-postgres", "polars"} <= {each.name for each in pinned}
    assert all(str(each.specifier).startswith("==") for each in pinned)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_accepts_a_unit(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine")
    shutil.copytree(unit.parent, tmp_path, dirs_exist_ok=True)
    copy, scripts = tmp_path / unit.name, sysconfig.get_path("scripts")
    copy.write_text(unit.read_text().replace("/opt/touchstone/bin", scripts))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_units_and_compose_file_start_the_same_commands() -> None:
    started = {unit.stem.removeprefix("touchstone-"): re.findall("ExecStart=(.+)", unit.read_text()) for unit in UNITS}
    composed = {name: [f"/opt/touchstone/bin/{' '.join(service['command'])}"] for name, service in OURS.items()}
    assert started == composed


def test_the_helm_values_say_the_same_as_dagster_yaml() -> None:
    daemon, (code,) = HELM["dagsterDaemon"], HELM["dagster-user-deployments"]["deployments"]
    queue = daemon["runCoordinator"]["config"]["queuedRunCoordinator"]
    assert queue["maxConcurrentRuns"] == INSTANCE["concurrency"]["runs"]["max_concurrent_runs"] == 1
    assert daemon["runRetries"]["maxRetries"] == INSTANCE["run_retries"]["max_retries"]
    assert HELM["postgresql"]["postgresqlScheme"] == "postgresql+psycopg2"
    assert code["dagsterApiGrpcArgs"] == OURS["code"]["command"][3:]
    ticks = INSTANCE["retention"]["sensor"]["purge_after_days"]
    assert HELM["retention"]["sensor"]["purgeAfterDays"] == {**ticks, "started": -1}
    assert HELM["retention"]["schedule"]["purgeAfterDays"] == INSTANCE["retention"]["schedule"]["purge_after_days"]


def test_the_versions_that_the_values_name() -> None:
    (locked,) = re.findall(r"^dagster==(\S+)", (PROJECT / "requirements.lock").read_text(), re.MULTILINE)
    assert f"--version {locked} " in (DEPLOY / "helm-values.yaml").read_text()
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert HELM["dagster-user-deployments"]["deployments"][0]["image"]["tag"] == version


def test_the_page_names_every_file() -> None:
    page = (PROJECT / "docs" / "deployment.md").read_text()
    files = [
        path.name for path in DEPLOY.rglob("*") if path.is_file() and path.suffix not in (".service", ".dockerignore")
    ]
    assert [name for name in files if name not in page] == []
