"""A new project in a folder of its own, as `touchstone init` makes it, and what serves its results to a browser."""

import os
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ui_server import served

_TOUCHSTONE = Path(sysconfig.get_path("scripts")) / "touchstone"


class Demo:
    """The sample, ready to be run and shown."""

    def __init__(self, parent: Path) -> None:
        self._environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
        self.folder = parent
        self.call("init", "demo")
        self.folder = parent / "demo"

    def call(self, *arguments: str) -> None:
        """Call the command in the folder; it must succeed."""
        command = [str(_TOUCHSTONE), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self._environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *options: str) -> None:
        self.call("run", "--config", "evaluation_config.json", *options)

    @contextmanager
    def ui(self) -> Iterator[str]:
        """The address of the Dagster UI, while it is served."""
        with served([_TOUCHSTONE, "ui"], self._environment, self.folder) as server:
            yield f"http://127.0.0.1:{server.port}"


@contextmanager
def explored(results: Path) -> Iterator[str]:
    """The address that `touchstone explore` prints, while it is served."""
    command = [_TOUCHSTONE, "explore", "--data", results, "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[0]
        finally:
            process.kill()
