"""The steps of `action/action.yml`, run as GitHub runs them: a clean environment, files for outputs and summary."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.conftest import PROJECT

ACTION = PROJECT / "action"
METADATA: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text())
STEPS: list[dict[str, Any]] = METADATA["runs"]["steps"]
# Where the command of the code under test is, so that nothing need be installed.
BIN = str(Path(sys.executable).parent)
TOKEN = "token-of-the-job"
PATIENCE_SECONDS = 600


@dataclass(frozen=True)
class Ended:
    """A finished job: the exit code of the step that failed or 0, the action's outputs, the summary and the log."""

    code: int
    outputs: dict[str, str]
    summary: str
    log: str

    @property
    def report(self) -> str:
        return Path(self.outputs["report"]).read_text()


class Job:
    """A job with one use of the action in an empty folder."""

    def __init__(self, root: Path, event: str = "pull_request", api: str = "http://127.0.0.1:9") -> None:
        self.folder, self._root = root / "workspace", root
        self.python = sys.executable
        self.folder.mkdir()
        (root / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
        # All that there is: the runner's variables, and where programs of the system are.
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(root),
            "RUNNER_TEMP": str(root),
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ACTION),
            "GITHUB_API_URL": api,
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(root / "event.json"),
            "GITHUB_OUTPUT": str(root / "output"),
            "GITHUB_REPOSITORY": "owner/repository",
            "GITHUB_STEP_SUMMARY": str(root / "summary"),
        }

    def run(self, installed: str | None = BIN, **inputs: str) -> Ended:
        """Run the action; `installed` is where Touchstone is already, None to install it."""
        values = {name: str(each["default"]) for name, each in METADATA["inputs"].items()}
        values |= {"token": TOKEN} | {name.replace("_", "-"): value for name, value in inputs.items()}
        context = {f"inputs.{name}": value for name, value in values.items()}
        context["steps.python.outputs.python-path"] = self.python
        context["steps.install.outputs.bin"] = installed or ""
        code, log = 0, ""
        (self._root / "summary").write_text("")
        for step in STEPS:
            # A step with a condition runs even after a failure, if there is a report.
            due = bool(context.get("steps.evaluate.outputs.report")) if "if" in step else code == 0
            if "run" not in step or not due or (step.get("id") == "install" and installed):
                continue
            done = self._step(step, context)
            code, log = code or done.returncode, log + done.stdout
        named = {name: expanded(each["value"], context) for name, each in METADATA["outputs"].items()}
        return Ended(code, named, (self._root / "summary").read_text(), log)

    def _step(self, step: dict[str, Any], context: dict[str, str]) -> "subprocess.CompletedProcess[str]":
        output = self._root / "output"
        output.write_text("")
        done = subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env=self.environment | {name: expanded(value, context) for name, value in step["env"].items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        context |= {f"steps.{step.get('id')}.outputs.{name}": value for name, value in outputs(output.read_text())}
        return done


def expanded(text: str, context: dict[str, str]) -> str:
    """The text with each expression replaced by its value, as the runner does before a step sees it."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: context.get(found[1], ""), text)


def outputs(text: str) -> list[tuple[str, str]]:
    """The outputs in a step's file, in either of the two forms: `name=value` and `name<<end`."""
    found, lines = [], iter(text.split("\n"))
    for line in lines:
        if match := re.fullmatch(r"([\w-]+)<<(.+)", line):
            value = list(iter(lambda: next(lines), match[2]))
            found.append((match[1], "\n".join(value)))
        elif "=" in line:
            found.append((line.partition("=")[0], line.partition("=")[2]))
    return found
