"""Fixes that start processes, and problems that are named like a module that is loaded already."""

import signal
from pathlib import Path

import pytest

from tests.conftest import nightly_but
from tests.validation.attacks.arena import job_of
from tests.validation.pytest_runner.support import run_pytest, warm_validator
from touchstone.config.validation import PythonProgram
from touchstone.validation.judging.verdicts import only_judged
from touchstone.validation.protocol import Report
from touchstone.validation.sandbox.backends import Unsandboxed
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.processes import descendants
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.validators.python import PythonValidator

ADD = "def add(a, b):\n    return a + b\n"


def validate(validator: PythonValidator, module: str, code: str) -> Report:
    tests = f"from {module} import add\n\ndef test_add(tmp_path):\n    assert add(1, 2) == 3\n"
    filename = f"{module.replace('.', '/')}.py"
    return run_pytest(validator, {filename: code, "test_it.py": tests}, filename)


# Each is the body of an `add` that is right and that plain pytest passes.
PROCESSES = {
    "a daemon": "Process(target=time.sleep, args=(600,), daemon=True).start()\nreturn a + b",
    "a manager": "global manager\nmanager = Manager()\nreturn manager.list([a + b])[0]",
    "a pool that stays open": "global pool\npool = Pool(2)\nreturn pool.apply(sum, [(a, b)])",
    # As many as a large machine has processors, all at the same time, and longer than it takes to look at them.
    "a large pool": "with Pool(24) as pool: return [pool.map(time.sleep, [0.3] * 24), a + b][1]",
    "an executor": "with ProcessPoolExecutor(2) as pool: return pool.submit(sum, (a, b)).result()",
    "a lock and shared memory": (
        "shared = SharedMemory(create=True, size=10)\nwith Lock(): shared.buf[0] = a + b\nreturn shared.buf[0]"
    ),
    "a new interpreter": "with get_context('spawn').Pool(1) as pool: return pool.apply(sum, [(a, b)])",
    "a fork that goes on with the tests": "os.fork()\nreturn a + b",
}
# A child, many at once that are waited for, one that stays, and the job itself twice.
BY_DAY = ("a daemon", "a pool that stays open", "a large pool", "a fork that goes on with the tests")
HEAD = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import Lock, Manager, Pool, Process, get_context
from multiprocessing.shared_memory import SharedMemory
"""


def processes(what: str) -> str:
    body = "\n    ".join(PROCESSES[what].splitlines())
    return f"{HEAD}\n\ndef add(a, b):\n    {body}\n"


@pytest.mark.parametrize("what", nightly_but(BY_DAY, PROCESSES))
def test_a_fix_may_start_processes_and_leave_them(validator: PythonValidator, what: str) -> None:
    if validator._sandbox.name == "landlock":
        pytest.skip("in landlock, a Python fix can start no process")
    assert validate(validator, "solution", processes(what)).status == "passed"


@pytest.mark.services
def test_a_fix_may_end_its_processes_although_touchstone_ignores_signals(
    validator: PythonValidator, tmp_path: Path
) -> None:
    if validator._sandbox.name == "landlock":
        pytest.skip("in landlock, a Python fix can start no process")
    code = f"{HEAD}\n\ndef add(a, b):\n    child = Process(target=time.sleep, args=(30,))\n"
    code += "    child.start()\n    child.terminate()\n    child.join(25)\n"
    code += "    return a + b if child.exitcode == -15 else 0\n"
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        for ignoring in warm_validator(tmp_path):
            assert validate(ignoring, "solution", code).status == "passed"
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_fork_does_not_report_for_a_process_that_left(validator: PythonValidator) -> None:
    code = "import os\n\ndef add(a, b):\n    if os.fork(): os._exit(0)\n    return a + b\n"
    report = validate(validator, "solution", code)
    assert not report.tests["test_add"] and report.decided and report.status != "passed"


@pytest.mark.services
def test_what_is_left_ends_with_the_job_also_without_a_sandbox(tmp_path_factory: pytest.TempPathFactory) -> None:
    sandbox = SandboxRunner(Unsandboxed(), tmp_path_factory.mktemp("scratch"))
    validator = PythonValidator(sandbox, Limits(seconds=30), PythonProgram(lint=False))
    try:
        assert validate(validator, "solution", processes("a daemon")).status == "passed"
        (worker,) = validator.workers.values()
        assert list(descendants(worker.process)) == [worker.process]
    finally:
        validator.close()


@pytest.mark.parametrize("module", ["touchstone", "touchstone.validation.worker"])
def test_a_module_may_have_the_name_of_one_of_ours(validator: PythonValidator, module: str) -> None:
    assert validate(validator, module, ADD).status == "passed"


@pytest.mark.parametrize(
    ("directory", "folder"), nightly_but([("shop", "src")], [("", "src"), ("", "lib"), ("shop", "src")])
)
def test_a_package_in_a_source_folder_is_imported_as_if_it_were_installed(
    validator: PythonValidator, directory: str, folder: str
) -> None:
    # A package of this name is installed beside Touchstone.
    tests = """
        import subprocess, sys
        from click.sums import add

        def test_add():
            assert add(1, 2) == 3

        def test_a_program():
            program = "from click.sums import add; print(add(1, 2))"
            assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "3"
        """
    for code, status in ((ADD, "passed"), (ADD.replace("+", "-"), "failed")):
        files = {f"{folder}/click/__init__.py": "", f"{folder}/click/sums.py": code, "tests/test_it.py": tests}
        placed = {f"{directory}/{name}".strip("/"): text for name, text in files.items()}
        report = run_pytest(validator, placed, f"{folder}/click/sums.py", working_directory=directory)
        assert (report.status, len(report.tests)) == (status, 2), report.note


@pytest.mark.parametrize("module", ["codecs", "pytest", "time", "stat", "io.buffers"])
def test_a_module_that_python_never_looks_for_leaves_it_undecided(validator: PythonValidator, module: str) -> None:
    report = validate(validator, module, ADD)
    name, file = module.partition(".")[0], f"{module.replace('.', '/')}.py"
    note = f"the tests cannot be run: `import {name}` finds a module of Python or pytest, never {file}; rename that"
    assert (report.status, report.note) == ("validator_unavailable", note)


@pytest.mark.parametrize(
    "file", nightly_but(["", "test_it.py::"], ["", "test_it.py::", "./test_it.py::", "code/test_it.py::"])
)
def test_judged_tests_are_named_with_their_file_or_without(validator: PythonValidator, file: str) -> None:
    tests = "from solution import add\n\ndef test_add(): assert add(1, 2) == 3\ndef test_no(): assert not add(1, 1)\n"
    jobs = [
        job_of(
            {"code/solution.py": code, "code/test_it.py": tests},
            working_directory="code",
            fail_to_pass=(f"{file}test_add",),
        )
        for code in (ADD.replace("+", "-"), ADD)
    ]
    before, after = (only_judged(report, jobs[0].problem) for report in validator.validate(jobs))
    assert (before.status, after.status) == ("failed", "passed")
    assert before.diagnostics[0].summary == f"test failed: {file}test_add"


def test_a_module_that_python_has_may_be_loaded_from_its_file(validator: PythonValidator) -> None:
    tests = """
        import io
        import runpy

        def test_add():
            assert io.StringIO("x").read() == "x"
            assert runpy.run_path("io.py")["add"](1, 2) == 3
        """
    for code, status in ((ADD, "passed"), (ADD.replace("+", "-"), "failed")):
        assert run_pytest(validator, {"io.py": code, "test_it.py": tests}, "io.py").status == status
