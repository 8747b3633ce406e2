"""The warm worker: a pytest session that has started, and goes on with its tests in a fork for every job.

A problem with a configuration, conftest files or plugins of its own gets a session of its own in the fork instead,
because all of that is read before a session starts.
"""

import ast
import gc
import hashlib
import importlib
import importlib.machinery
import json
import os
import pkgutil
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from touchstone.validation.pytest_runner import options
from touchstone.validation.pytest_runner.channel import open_channel
from touchstone.validation.pytest_runner.own_tests import CompiledTests, OwnTests, compile_controls, compile_tests
from touchstone.validation.pytest_runner.plugin import ResultPlugin, last_line
from touchstone.validation.pytest_runner.plugins import import_plugins, options_for
from touchstone.validation.pytest_runner.pytest_internals import (
    ConftestImportFailure,
    get_config,
    search_plugins_once,
    start_session,
)
from touchstone.validation.sandbox.entrypoint import WORK, Policy, close_standard_streams, remove_folder, wait_for_job

_ARGUMENTS = ["-p", "no:cacheprovider", "-p", "no:faulthandler"]
# Of a failure only its message is read, so no source lines are looked up for it.
_OPTIONS = ["-q", "--tb=no", "--continue-on-collection-errors"]
_ENVIRONMENT = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    # One thread: the process forks, and the number of threads is limited.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
_FINISHED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
_WARM_UP = """
import pytest

@pytest.fixture
def one():
    return 1

@pytest.mark.parametrize("two", [2])
def test_it(one, two, capsys, monkeypatch):
    assert one == two

def test_error():
    raise ValueError

def test_plain():
    assert 1
"""
# A file of a problem never replaces these: Python or pytest imports them first.
_KEPT_MODULES = {
    *sys.builtin_module_names,
    *["abc", "codecs", "encodings", "importlib", "io", "os", "pytest", "_pytest", "pluggy"],
}
# A model has one fix after another for all problems, so that a small cache would never help.
_MOST_COMPILED = 512
_MOST_DESCRIPTORS = 64
_MODULES = "asyncio dataclasses decimal difflib logging readline unittest unittest.mock"


def serve(policy: Policy) -> None:
    """Serve jobs with pytest."""
    os.environ.update(_ENVIRONMENT)
    # The folder of this package is in front; without it, the problem's `tests` is never taken for that of Touchstone.
    sys.path[:] = [path for path in sys.path[1:] if path not in policy["paths"]] + policy["paths"]
    for name in _MODULES.split():
        with suppress(ImportError):
            importlib.import_module(name)
    if policy["borrowed"] is not None:
        import_plugins()
    tests = OwnTests()
    search_plugins_once(get_config(_ARGUMENTS))
    _warm_up(Path(policy["tmp"]) / "warm-up")
    worker = _Worker(policy, get_config(_ARGUMENTS), tests, ResultPlugin(tests))
    Path(worker.root).mkdir()
    os.chdir(worker.root)
    # Before pytest keeps copies of them, which jobs would inherit.
    close_standard_streams()
    # Jobs are waited for in the middle of this; only their processes go on.
    pytest.main([*_ARGUMENTS, *_OPTIONS, worker.base_folder], plugins=[worker.results, worker])


def serve_with_numpy(policy: Policy) -> None:
    """Serve jobs whose files mention numpy, which takes long to import."""
    os.environ.update(_ENVIRONMENT)
    with suppress(ImportError):
        importlib.import_module("numpy.testing")
    serve(policy)


def _warm_up(folder: Path) -> None:
    """Run a small session, so that what pytest imports and compiles on first use is there before the first fork.

    Ten files, because Python makes functions faster that have been called several times.
    """
    here = os.getcwd()  # noqa: PTH109
    folder.mkdir()
    names = [f"test_warm_up_{number}" for number in range(10)]
    for name in names:
        (folder / f"{name}.py").write_text(_WARM_UP)
    os.chdir(folder)
    pytest.main([*_ARGUMENTS, "-q", "--tb=no", "--basetemp=basetemp", "."])
    for name in names:
        sys.modules.pop(name, None)
    # Found out once and then kept; a job has another one.
    tempfile.tempdir = None
    os.chdir(here)
    remove_folder(folder)


def _modules_by_first_name() -> dict[str, list[str]]:
    """The loaded modules that a file of a problem can be named like."""
    found: dict[str, list[str]] = {}
    for name in sys.modules:
        found.setdefault(name.partition(".")[0], []).append(name)
    return {first: names for first, names in found.items() if first not in _KEPT_MODULES}


def out_of_reach(names: Iterable[str], tests: Iterable[str]) -> str | None:
    """Which of the names a module of Python or pytest has, if the tests want something that this one does not have.

    >>> out_of_reach(["codecs"], ["from codecs import solve"]), out_of_reach(["io"], ["import io\\nio.solve"])
    ('codecs', 'io')
    >>> out_of_reach(["io"], ["import io\\nio.StringIO"]), out_of_reach(["solution"], ["import solution.x"])
    (None, None)
    """
    kept = {name for name in names if name in _KEPT_MODULES or importlib.machinery.FrozenImporter.find_spec(name)}
    for wanted in (wanted for text in tests if kept for wanted in _imported_names(text)):
        if (first := wanted.partition(".")[0]) in kept:
            try:
                pkgutil.resolve_name(wanted)
            except (ImportError, AttributeError):
                return first
    return None


def _imported_names(text: str) -> Iterator[str]:
    """The modules that a file imports, and what it takes from them, as dotted names."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    yield from modules
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{node.value.id}.{node.attr}"


@dataclass(eq=False)
class _Worker:
    """The session that has started, what a job's own session starts from, and the tests, compiled before a fork."""

    policy: Policy
    config: pytest.Config
    tests: OwnTests
    results: ResultPlugin
    compiled: CompiledTests = field(default_factory=lambda: CompiledTests({}))
    _cache: dict[str, CompiledTests] = field(default_factory=dict)
    # The name of the recorder in the modules of a control.
    _recorder_name: str = field(default_factory=lambda: f"_{random.SystemRandom().getrandbits(32):08x}")
    _loaded: dict[str, list[str]] = field(default_factory=_modules_by_first_name)
    _job: dict[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The folder of a job's files."""
        return f"{self.policy['tmp']}/{WORK}"

    @property
    def base_folder(self) -> str:
        """The option for the folder of `tmp_path`."""
        return f"--basetemp={self.policy['tmp']}/basetemp"

    def pytest_collection(self, session: pytest.Session) -> None:
        """Wait for jobs. In the process of a job, go on with this session or run one of its own."""
        capture: Any = session.config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        self._job, (descriptor,) = wait_for_job(self.policy, self._prepare)
        gc.disable()
        _replace_descriptors(descriptor)
        self._write_line = open_channel(descriptor, self._job.pop("token"))
        try:
            self._start()
            tests = [self._job["files"][name] for name in self._job["judge_files"] if name.endswith(".py")]
            if (name := out_of_reach(self._job["fix_names"], tests)) is not None:
                needs = f"`import {name}` finds a module of Python or pytest, never {self._job['fix']}; rename that"
                self._write_line(needs=needs, of=None)
                os._exit(0)
            if not self._job["own_session"]:
                capture.start_global_capturing()
                capture.suspend_global_capture()
                session.config.args = self._job["arguments"]
                return
            self.config.pluginmanager.register(self.results, "touchstone-results")
            status = self._run_own_session()
            if status is not None:
                self._write_end(status)
        except BaseException as error:
            self._crash(error)
        os._exit(0)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Say how the session of a job ended. Nothing after it matters to the job."""
        try:
            self._write_end(int(exitstatus))
        except BaseException as error:
            self._crash(error)
        finally:
            os._exit(0)

    def _write_end(self, status: int) -> None:
        self._write_line(done=status in _FINISHED, status=status)

    def _crash(self, error: BaseException) -> None:
        # SystemExit and the like end the session before its end; anything else is a fault of this runner.
        self._write_line(crashed=f"{type(error).__name__}: {error}"[:500])

    def _prepare(self, job: dict[str, Any]) -> None:
        """Compile the tests of a job, unless a job before had the same."""
        judge_files = {name: job["files"][name] for name in job["judge_files"] if name.endswith(".py")}
        control = job["tests"] if job["control"] else None
        key = hashlib.sha256(json.dumps([judge_files, control]).encode()).hexdigest()
        made = self._cache.pop(key, None)
        if made is None:
            files = {f"{self.root}/{name}": _content(text) for name, text in judge_files.items()}
            if control is None:
                made = compile_tests(files)
            else:
                made = compile_controls(self.root, files, frozenset(control), self._recorder_name)
        self._cache[key] = self.compiled = made
        while len(self._cache) > _MOST_COMPILED:
            del self._cache[next(iter(self._cache))]

    def _start(self) -> None:
        """Write the job's files, and make the process what a new one would be."""
        job, root = self._job, Path(self.root)
        os.environ.update(_ENVIRONMENT)
        files = {f"{root}/{name}": _content(text) for name, text in job["files"].items()}
        # The code of the tests is compiled already: in a control, their files hold nothing that a fix could read.
        written = files | dict.fromkeys(self.compiled.hidden, b"")
        write_files(written, self.root, job["directory"])
        self.tests.use(root, files, self.compiled, job)
        here = os.getcwd()  # noqa: PTH109
        sources = [f"{here}/{name}" for name in job["sources"]]
        sys.path[:0] = [here, *sources]
        # For what the tests start, which would have both from the environment that they are run in.
        os.environ["PYTHONPATH"] = os.pathsep.join([*sources, *self.policy["paths"]])
        # A file of the problem comes before a module of that name that happens to be loaded, as in a fresh process.
        for name in [name for first in job["names"] for name in self._loaded.get(first, ())]:
            del sys.modules[name]
        random.seed(0)
        judged = {f"{root}/{name}": written[f"{root}/{name}"] for name in job["judge_files"]}
        self.results.start(self._write_line, here, lambda: changed_file(judged))
        # Hides all of the above from `gc.get_objects`, and leaves its pages shared.
        gc.freeze()
        gc.enable()

    def _run_own_session(self) -> int | None:
        """The exit code of a session of its own; None if pytest could not start it, which has been reported."""
        texts, here = self._job["files"].items(), Path.cwd()
        conftests = "\n".join(text for name, text in texts if name.endswith("conftest.py"))

        def usable(given: list[str], is_known: Callable[[str], bool]) -> list[str]:
            def may_be_known(name: str) -> bool:
                short = is_known(name[:2]) and not name.startswith("--")
                # A conftest file may define an option, and is loaded later.
                return short or is_known(name) or f'"{name}"' in conftests or f"'{name}'" in conftests

            used, ignored = options.usable_options(given, may_be_known)
            if ignored:
                self._write_line(ignored=ignored)
            return used

        loaded, missing = options_for(self._job["plugins"])
        arguments = [*_OPTIONS, *loaded, *self._job["arguments"], self.base_folder]
        try:
            return int(start_session(self.config, arguments, usable))
        except ConftestImportFailure as error:
            message = f"{type(error.cause).__name__}: {error.cause}"[:500]
            self._write_line(broken=os.path.relpath(error.path, here), message=message)
            self._write_line(done=True, status=1)
        except pytest.UsageError as error:
            said = last_line(str(error))
            hint = "".join(f"; it needs {name}" for name in missing if name not in said)
            self._write_line(unusable=f"{said}{hint}")
        return None


def _replace_descriptors(kept: int) -> None:
    """Replace what this process shares with other jobs: a position, flags and an owner, which those could read."""
    close_standard_streams()
    for descriptor in range(3, _MOST_DESCRIPTORS):
        with suppress(OSError):
            if descriptor != kept and os.fstat(descriptor):
                os.dup2(0, descriptor, inheritable=False)


def _content(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def changed_file(files: Mapping[str, bytes]) -> str | None:
    """The first of these files that is gone or has another content; None if there is none."""
    for name, content in files.items():
        try:
            if Path(name).read_bytes() != content:
                return name
        except OSError:
            return name
    return None


def write_files(files: dict[str, bytes], root: str, directory: str) -> None:
    """Write a tree, given by absolute paths below a new folder, and change to one of its directories.

    Plain os calls, because this runs for every job and every object that a forked process touches is copied.
    """
    made = {root}
    os.makedirs(root, exist_ok=True)  # noqa: PTH103
    for path, text in files.items():
        parent = path.rpartition("/")[0]
        if parent not in made:
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103
            made.add(parent)
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        content = memoryview(text)
        while content:
            content = content[os.write(target, content) :]
        os.close(target)
    if directory:
        os.makedirs(f"{root}/{directory}", exist_ok=True)  # noqa: PTH103
    os.chdir(f"{root}/{directory}")
