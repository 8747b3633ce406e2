"""The action, the GitLab job and the examples of docs/ci.md agree with each other and with the scripts."""

import re

import pytest
import yaml  # type: ignore[import-untyped]

from tests.action.job import ACTION, METADATA, STEPS
from tests.conftest import PROJECT, call_here

PAGE = (PROJECT / "docs" / "ci.md").read_text()
EXAMPLES = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
EXAMPLES += [yaml.safe_load((ACTION / "example" / "evaluation.yml").read_text())]
GITLAB = yaml.safe_load((ACTION / "gitlab.yml").read_text())
RUN_STEPS = [step for step in STEPS if "run" in step]
# Every variable that a script reads.
READ = {
    *re.findall(r"TOUCHSTONE_CI_\w+", "".join(path.read_text() for path in ACTION.glob("*.sh"))),
    *(
        f"TOUCHSTONE_CI_{name}"
        for path in ACTION.glob("*.py")
        for name in re.findall(r'(?:setting|_one_of)\(\w[\w.]*, "(\w+)"', path.read_text())
    ),
}


def test_inputs_and_outputs() -> None:
    assert list(METADATA["inputs"]) == [
        *("mode", "config", "paths", "baseline", "output-dir", "fail-on", "score", "working-directory"),
        *("name", "comment", "token", "python-version", "version"),
    ]
    assert all(each["description"] and isinstance(each["default"], str) for each in METADATA["inputs"].values())
    assert list(METADATA["outputs"]) == ["verdict", "exit-code", "report"]
    assert METADATA["runs"]["using"] == "composite"


@pytest.mark.parametrize("step", RUN_STEPS, ids=lambda step: step["name"])
def test_no_input_becomes_shell_text(step: dict[str, str]) -> None:
    assert "${{" not in step["run"]
    assert step["shell"] == "bash"


def test_every_input_is_used_and_every_variable_is_read() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", str(STEPS)))
    assert used == set(METADATA["inputs"])
    assert {name for step in RUN_STEPS for name in step["env"]} <= READ


def test_the_installer_is_the_one_of_the_project() -> None:
    pins = [re.findall(r"'(uv[^']+)'", path.read_text()) for path in (PROJECT / "Makefile", ACTION / "install.sh")]
    assert pins[0] == pins[1] and len(pins[0]) == 1


def test_only_the_last_step_sees_the_token() -> None:
    assert [step["name"] for step in STEPS if "inputs.token" in str(step)] == ["Comment"]


def test_the_job_of_gitlab() -> None:
    job = GITLAB["touchstone"]
    for_the_job = {"TOUCHSTONE_CI_REPOSITORY", "TOUCHSTONE_CI_REF"}
    assert {*GITLAB["variables"], *job["variables"]} - for_the_job <= READ
    assert job["artifacts"]["reports"]["junit"] == job["variables"]["TOUCHSTONE_CI_JUNIT"]
    assert job["artifacts"]["paths"] == [job["variables"]["TOUCHSTONE_CI_REPORT"]]
    assert job["artifacts"]["when"] == "always"
    variables = re.findall(r"(.)\$(TOUCHSTONE_CI_\w+)", "".join(job["script"]))
    assert {before for before, _ in variables} == {'"'}, "quoted, so that a value is one word"


def test_the_examples_use_what_there_is() -> None:
    workflows = [each for each in EXAMPLES if "jobs" in each]
    uses = [step for each in workflows for job in each["jobs"].values() for step in job["steps"] if "with" in step]
    ours = [step for step in uses if "/action@" in step["uses"]]
    assert len(ours) == len(workflows) == 2
    assert all(set(step["with"]) <= set(METADATA["inputs"]) for step in ours)
    (gitlab,) = [each for each in EXAMPLES if "include" in each]
    assert set(gitlab["variables"]) <= set(GITLAB["variables"])
    assert gitlab["include"][0]["remote"].endswith("/action/gitlab.yml")


def test_the_commands_for_any_ci_have_options_that_exist() -> None:
    commands = re.findall(r"^\$ touchstone (run|compare) (.*)", PAGE, re.MULTILINE)
    assert {name for name, _ in commands} == {"run", "compare"}
    for name, rest in commands:
        known = call_here(name, "--help").stdout
        assert all(option in known for option in re.findall(r"--[\w-]+", rest))
