"""Undecided on purpose: a failing fix that ends its own sandbox stays a failure, also as an ordinary user.

As an ordinary user, a fix and the process that keeps its sandbox are the same user, so the one can kill the other.
"""

import json
import tempfile
from pathlib import Path

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import problem_in
from tests.validation.attacks.ordinary_user import environment, run_as_ordinary_user
from tests.validation.pytest_runner.support import sandbox_or_skip
from touchstone.validation.protocol import UNDECIDED, Tree
from touchstone.validation.sandbox.backends import Unsandboxed
from touchstone.validation.sandbox.command import Command, Limits
from touchstone.validation.sandbox.runner import SandboxRunner

# What the validators need: pytest, and pydantic for their settings.
PACKAGES = (
    "pytest* _pytest py.py pluggy* iniconfig* packaging* pygments* pydantic* annotated_types* typing_extensions* "
    "typing_inspection*"
)
COMMANDS = {
    "kill its keeper": "kill -9 $PPID && sleep 9; exit 1",
    "end its keeper": "kill -TERM $PPID && sleep 9; exit 1",
    "kill whatever it can": "kill -9 -1; exit 1",
    "kill the first two of its namespace": "kill -9 1; kill -9 2 && sleep 9; exit 1",
    "kill the group of its keeper": "kill -9 -2; kill -9 -$PPID; exit 1",
    "kill its keeper when it is gone": "(sleep 0.3; kill -9 $PPID 2) & sleep 1; exit 1",
    "crash": "kill -SEGV $$",
}
CANDIDATES = {
    "kill its keeper": "os.kill(os.getppid(), 9)",
    "end its keeper": "os.kill(os.getppid(), 15)",
    "kill whatever it can": "os.kill(-1, 9)",
    "kill the second of its namespace": "os.kill(2, 9)",
    "leave": "os._exit(0)",
}
SCRIPT = """
import json, sys, tempfile
from pathlib import Path
from touchstone.validation.protocol import Job, Problem, Tree
from touchstone.validation.sandbox.backends import Bubblewrap, Landlock
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner, probe_backend
from touchstone.config.validation import CommandProgram, PythonProgram
from touchstone.validation.validators.command import CommandValidator
from touchstone.validation.validators.python import PythonValidator

backend = {"bubblewrap": Bubblewrap, "landlock": Landlock}[sys.argv[1]]()
commands, candidates = map(json.loads, sys.argv[2:])
limits = Limits(seconds=60, wall_seconds=120)
tests = b"from solution import add\\n\\ndef test_small():\\n    assert add(2, 3) == 5\\n"
result = {}
with tempfile.TemporaryDirectory() as scratch:
    sandbox = SandboxRunner(backend, Path(scratch))
    failure = probe_backend(backend, Path(scratch))

    def validate(validator, files):
        nowhere = Path("/nonexistent")
        (report,) = validator.validate([Job(Problem("p", "solution.py", nowhere), Tree(nowhere, tuple(files), files))])
        return report.status

    for name, script in commands.items() if failure is None else ():
        # Where there is no namespace, `kill -1` would reach every process of the user.
        if backend.pid_namespace or "-1" not in script:
            validator = CommandValidator(sandbox, limits, CommandProgram(arguments=("/bin/sh", "-c", script)))
            result["command: " + name] = validate(validator, {"solution.py": b""})
    python = PythonValidator(sandbox, limits, PythonProgram(lint=False))
    for name, attack in candidates.items() if failure is None else ():
        if backend.pid_namespace or "-1" not in attack:
            code = f"import os\\n\\ndef add(a, b):\\n    {attack}\\n    return 0\\n".encode()
            result["python: " + name] = validate(python, {"solution.py": code, "test_solution.py": tests})
    python.close()
print(json.dumps(result if failure is None else {"": failure}))
"""


# By day every third: its keeper is killed, the first processes of its namespace are, and a crash.
DAY, NIGHT = ("bubblewrap", 3), [("bubblewrap", 1), ("landlock", 1)]


@pytest.mark.services
@pytest.mark.parametrize(("backend", "step"), nightly_but([DAY], [DAY, *NIGHT]))
def test_a_fix_that_ends_its_sandbox_has_failed(backend: str, step: int) -> None:
    with tempfile.TemporaryDirectory(prefix="attacks-undecided-") as folder:
        Path(folder).chmod(0o755)
        python = environment(Path(folder) / "venv", PACKAGES)
        given = [json.dumps(dict([*attacks.items()][::step])) for attacks in (COMMANDS, CANDIDATES)]
        found = run_as_ordinary_user(SCRIPT, backend, *given, python=python)
    if "" in found:
        pytest.skip(f"{backend} as an ordinary user: {found['']}")
    assert {name: status for name, status in found.items() if status in (*UNDECIDED, "passed")} == {}
    assert found["command: kill its keeper"] == ("no_report" if backend == "bubblewrap" else "failed")


# Whatever makes a validator say that it cannot judge.
EXCUSES = [
    "import unittest\ndef add(a, b): raise unittest.SkipTest\n",
    "import builtins, unittest\nbuiltins.AssertionError = unittest.SkipTest\ndef add(a, b): return 0\n",
    "import pytest\ndef add(a, b): pytest.fail('async def functions are not natively supported')\n",
    "import pytest\npytest.skip('no', allow_module_level=True)\n",
    "from _pytest.fixtures import FixtureLookupError\n"
    "def add(a, b): raise FixtureLookupError.__new__(FixtureLookupError)\n",
    "import pytest\nraise pytest.UsageError\n",
    "raise ModuleNotFoundError(\"No module named 'pytest_asyncio'\")\n",
    "def add(a, b): raise MemoryError\n",
]


# By day: an exception that skips, one that ends the collection, and one that blames the environment.
@pytest.mark.parametrize("excuses", [EXCUSES[::3], pytest.param(EXCUSES, marks=pytest.mark.nightly)])
def test_no_excuse_makes_a_fix_undecided(tmp_path: Path, excuses: list[str]) -> None:
    sandbox_or_skip(tmp_path, "bubblewrap")
    found = problem_in(tmp_path).statuses(*excuses)
    assert not {*UNDECIDED, "passed"} & set(found), found


@pytest.mark.services
def test_a_sandbox_that_dies_once_is_tried_again(tmp_path: Path) -> None:
    """What killed it may have been the machine. The first try leaves a mark where the second finds it."""
    mark = tmp_path / "mark"
    mark.mkdir(mode=0o777)
    script = f"[ -e {mark}/x ] && exit 3; touch {mark}/x; kill -9 $PPID"
    sandbox = SandboxRunner(Unsandboxed(), tmp_path / "scratch")
    ended = sandbox.run(Command(["/bin/sh", "-c", script], Tree(Path("/"), ())), Limits())
    assert (ended.status, ended.exit_code) == ("exited", 3)
