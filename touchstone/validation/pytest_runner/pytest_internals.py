"""The parts of pytest that have no public name, all in this module.

pytest offers no public way to start a session from a configuration that is already loaded, to judge the options that a
problem's configuration adds, to compile a test file other than from the file, or to list a plugin's fixtures.
"""

import functools
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from _pytest.config import ConftestImportFailure, get_config
from _pytest.fixtures import FixtureManager

__all__ = ["ConftestImportFailure", "get_config"]

Compile = Callable[[Path, pytest.Config], Any]
rewrite_asserts = rewrite.rewrite_asserts
FIXTURE = type(pytest.fixture(lambda: None))


def replace_compiler(make: Callable[[Compile], Compile], run: Callable[[types.CodeType, dict[str, Any]], None]) -> None:
    """Have test modules compiled by what `make` returns, given pytest's own way, and run by `run`."""
    vars(rewrite).update({"_rewrite_test": make(rewrite._rewrite_test), "exec": run})
    # A fix could have written compiled files, too.
    vars(rewrite)["_read_pyc"] = lambda *args, **kwargs: None


def start_session(
    config: pytest.Config, arguments: list[str], choose: Callable[[list[str], Callable[[str], bool]], list[str]]
) -> int | pytest.ExitCode:
    """Run a session; `choose` picks the usable ones of added options, given also which options pytest knows."""
    config.invocation_params = pytest.Config.InvocationParams(args=arguments, plugins=None, dir=Path.cwd())
    validate = config._validate_args

    def usable(given: list[str], via: str) -> list[str]:
        known = config._parser.optparser._option_string_actions
        return validate(choose(given, known.__contains__), via)

    vars(config)["_validate_args"] = usable
    config.parse(arguments)
    status: int | pytest.ExitCode = config.hook.pytest_cmdline_main(config=config)
    config._ensure_unconfigure()
    return status


def search_plugins_once(config: pytest.Config) -> None:
    """pytest searches all names of its own plugins for fixtures in every session. Here they are searched once.

    Saves a third of the CPU time of a job with a session of its own.
    """
    only_fixtures: dict[int, types.ModuleType] = {}
    for plugin in config.pluginmanager.get_plugins():
        if isinstance(plugin, types.ModuleType):
            found = types.ModuleType(plugin.__name__)
            vars(found).update({name: value for name, value in vars(plugin).items() if isinstance(value, FIXTURE)})
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
    if kind.__module__.partition(".")[0] not in ("_pytest", "touchstone") or issubclass(kind, types.ModuleType):
        return False
    return not any(isinstance(value, FIXTURE) for base in kind.__mro__ for value in vars(base).values())
