"""The warm worker: pytest is imported, its plugins are registered, and a first session has filled its caches.

Every job is a fork of that process. It parses the problem's own pytest configuration, then runs one session.
"""

import functools
import gc
import importlib
import os
import random
import sys
import tempfile
import types
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import Config, ConftestImportFailure, get_config
from _pytest.fixtures import FixtureManager

from touchstone.validation.pytest_runner import options
from touchstone.validation.pytest_runner.channel import WriteLine, open_channel
from touchstone.validation.pytest_runner.own_tests import OwnTests
from touchstone.validation.pytest_runner.plugin import ResultPlugin, last_line
from touchstone.validation.pytest_runner.plugins import import_plugins, missing_module, options_for
from touchstone.validation.pytest_runner.tampering import changed_file, strange_plugin
from touchstone.validation.sandbox import fork_server
from touchstone.validation.sandbox.entrypoint import Policy
from touchstone.validation.sandbox.folders import remove_folder

_ARGUMENTS = ["-p", "no:cacheprovider", "-p", "no:faulthandler"]
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
_KEPT_MODULES = {
    *sys.builtin_module_names,
    *["abc", "codecs", "encodings", "importlib", "io", "os", "pytest", "_pytest", "pluggy", "touchstone"],
}
_MODULES = "asyncio dataclasses decimal difflib logging readline unittest unittest.mock"


def serve(policy: Policy) -> None:
    """Serve jobs with pytest."""
    os.environ.update(_ENVIRONMENT)
    # The folder of this package is in front; without it, the problem's `tests` is never taken for that of Touchstone.
    sys.path[:] = [path for path in sys.path[1:] if path not in policy["paths"]] + policy["paths"]
    for name in _MODULES.split():
        with suppress(ImportError):
            importlib.import_module(name)
    _find_fixtures_of_plugins(get_config(_ARGUMENTS))
    _warm_up(Path(policy["tmp"]) / "warm-up")
    if policy["borrowed"] is not None:
        import_plugins()
    session = _WarmPytest(get_config(_ARGUMENTS), OwnTests())
    fork_server.serve(policy, lambda job, descriptors: run_job(session, job, descriptors[0]))


def serve_with_numpy(policy: Policy) -> None:
    """Serve jobs whose files mention numpy, which takes long to import."""
    os.environ.update(_ENVIRONMENT)
    with suppress(ImportError):
        importlib.import_module("numpy.testing")
    serve(policy)


def _warm_up(folder: Path) -> None:
    """Run a small session, so that what pytest imports and compiles on first use is there before the first fork."""
    here = os.getcwd()  # noqa: PTH109
    folder.mkdir()
    (folder / "test_warm_up.py").write_text(_WARM_UP)
    os.chdir(folder)
    pytest.main([*_ARGUMENTS, "-q", "--tb=no", "--basetemp=basetemp", "test_warm_up.py"])
    sys.modules.pop("test_warm_up", None)
    # Found out once and then kept; a job has another one.
    tempfile.tempdir = None
    os.chdir(here)
    remove_folder(folder)


_FIXTURE = type(pytest.fixture(lambda: None))


def _find_fixtures_of_plugins(config: Config) -> None:
    """pytest searches all names of its own plugins for fixtures in every session. Here they are searched once."""
    only_fixtures: dict[int, types.ModuleType] = {}
    for plugin in config.pluginmanager.get_plugins():
        if isinstance(plugin, types.ModuleType):
            found = types.ModuleType(plugin.__name__)
            vars(found).update({name: value for name, value in vars(plugin).items() if isinstance(value, _FIXTURE)})
            only_fixtures[id(plugin)] = found
    parse = FixtureManager.parsefactories

    def parsefactories(self: FixtureManager, *args: Any, **kwargs: Any) -> None:
        if "holder" in kwargs:
            holder = kwargs["holder"]
            kind: Any = type(holder)
            if _is_known_without_fixtures(kind):
                return
            kwargs["holder"] = only_fixtures.get(id(holder), holder)
        parse(self, *args, **kwargs)

    FixtureManager.parsefactories = parsefactories  # type: ignore[method-assign]


@functools.cache
def _is_known_without_fixtures(kind: type) -> bool:
    """Whether objects of a class are plugins of pytest or of this package that define no fixture."""
    if kind.__module__.partition(".")[0] not in ("_pytest", "touchstone"):
        return False
    return not any(isinstance(value, _FIXTURE) for base in kind.__mro__ for value in vars(base).values())


@dataclass(frozen=True)
class _WarmPytest:
    """What a job inherits: pytest's configuration, and the tests that it is going to know."""

    config: Config
    tests: OwnTests


def run_job(warm: _WarmPytest, job: dict[str, Any], descriptor: int) -> None:
    """Write the files, run one pytest session over the tests, and say how it ended."""
    gc.disable()
    write_line = open_channel(descriptor, job.pop("token"))
    try:
        _run_job(warm, job, write_line)
    except BaseException as error:
        # SystemExit and the like end the session before its end; anything else is a fault of this runner.
        write_line(crashed=f"{type(error).__name__}: {error}"[:500])


def _run_job(warm: _WarmPytest, job: dict[str, Any], write_line: WriteLine) -> None:
    os.environ.update(_ENVIRONMENT)
    root = Path.cwd() / "work"
    files = {str(root / name): text.encode("utf-8", "surrogateescape") for name, text in job["files"].items()}
    judge_files = [str(root / name) for name in job["judge_files"]]
    if control := job.get("control"):
        tests, modes = frozenset(job["tests"]), {"lenient": not job["is_fix"], "quiet": job["quiet"]}
        files.update(warm.tests.prepare_controls(root, files, judge_files, tests, f"_{control}", **modes))
    warm.tests.prepare(root, files, judge_files)
    write_files(files, str(root), job["directory"])
    here = os.getcwd()  # noqa: PTH109
    sys.path.insert(0, here)
    _forget_modules_named_like(job["names"])
    if control:
        warm.tests.import_controls()
    random.seed(0)
    plugins = warm.config.pluginmanager
    judged = {name: files[name] for name in judge_files}
    plugins.register(ResultPlugin(write_line, here, lambda: changed_file(judged), warm.tests), "touchstone-results")
    known = plugins.get_plugins()
    # Hides all of the above from `gc.get_objects`.
    gc.freeze()
    conftests = [text.decode("utf-8", "replace") for name, text in files.items() if name.endswith("conftest.py")]
    loaded, missing = options_for(job["plugins"])
    status = _run_session(warm.config, [*loaded, *job["arguments"]], write_line, "\n".join(conftests), missing)
    if status is not None:
        found = strange_plugin(plugins.get_plugins(), known, str(root / job["fix"]))
        write_line(done=status in _FINISHED, status=status, tampered=found)


def write_files(files: dict[str, bytes], root: str, directory: str) -> None:
    """Write a tree, given by absolute paths below a new folder, and change to one of its directories.

    Plain os calls, because this runs for every job and every object that a forked process touches is copied.
    """
    made = {root}
    os.mkdir(root)  # noqa: PTH102
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


def _run_session(
    config: Config, arguments: list[str], write_line: WriteLine, conftests: str, missing: list[str]
) -> int | None:
    """The exit code of the session; None if pytest could not start it, which has been reported.

    `missing`: plugins that the tests mention and that are not installed.
    """
    here = Path.cwd()
    config.invocation_params = Config.InvocationParams(args=arguments, plugins=None, dir=here)
    validate = config._validate_args

    def usable(given: list[str], via: str) -> list[str]:
        known = config._parser.optparser._option_string_actions

        def is_known(name: str) -> bool:
            short = name[:2] in known and not name.startswith("--")
            # A conftest file may define an option, and is loaded later.
            return short or name in known or f'"{name}"' in conftests or f"'{name}'" in conftests

        used, ignored = options.usable_options(given, is_known)
        if ignored:
            write_line(ignored=ignored)
        return validate(used, via)

    vars(config)["_validate_args"] = usable
    try:
        config.parse([*arguments, f"--basetemp={os.environ['TMPDIR']}/basetemp"])
        status = config.hook.pytest_cmdline_main(config=config)
    except ConftestImportFailure as error:
        cause = error.cause
        message = f"{type(cause).__name__}: {cause}"[:500]
        write_line(broken=os.path.relpath(error.path, here), message=message)
        if needs := missing_module(message):
            write_line(needs=needs, of=None)
        write_line(done=True, status=1, tampered=None)
        return None
    except pytest.UsageError as error:
        said = last_line(str(error))
        hint = "".join(f"; it needs {name}" for name in missing if name not in said)
        write_line(unusable=f"{said}{hint}")
        return None
    config._ensure_unconfigure()
    return int(status)


def _forget_modules_named_like(names: list[str]) -> None:
    """A file of the problem comes before a module of that name that happens to be loaded, as in a fresh process."""
    wanted = set(names) - _KEPT_MODULES
    for name in [loaded for loaded in sys.modules if loaded.partition(".")[0] in wanted]:
        del sys.modules[name]
