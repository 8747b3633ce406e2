"""The pytest plugins that run coroutines: loaded if the problem's tests or its configuration mention them."""

import importlib.metadata
import os
import re
from collections.abc import Iterable

# By the name under which pytest knows a plugin: what is installed to have it, and what tests that use it mention.
_PLUGINS = {
    "asyncio": ("pytest-asyncio", r"pytest_asyncio|\bmark\.asyncio\b|\basyncio_(?:mode|default\w*)\b|pytest-asyncio"),
    "anyio": ("anyio", r"\bmark\.anyio\b|\banyio_(?:backend|mode)\w*|\bfree_(?:tcp|udp)_port"),
    "trio": ("pytest-trio", r"pytest_trio|\bmark\.trio\b|\btrio_mode\b|pytest-trio"),
}
_MISSING_MODULE = re.compile(r"No module named '((?:pytest_|anyio|trio)\w*)")


def mentioned_plugins(texts: Iterable[str]) -> list[str]:
    """The plugins for coroutines that the problem's tests and configuration mention.

    >>> mentioned_plugins(["@pytest.mark.asyncio", "[pytest]"]), mentioned_plugins(["import asyncio"])
    (['asyncio'], [])
    """
    whole = "\n".join(texts)
    return [name for name, (_, pattern) in _PLUGINS.items() if re.search(pattern, whole)]


def options_for(plugins: list[str]) -> tuple[list[str], list[str]]:
    """The options that load those plugins that are installed, and what to install for the others."""
    if not plugins:
        return [], []
    installed = {entry.name for entry in importlib.metadata.entry_points(group="pytest11")}
    # A plugin of the same name in the problem's folder, which is searched first, is not the one that is meant.
    here = importlib.metadata.distributions(path=[os.getcwd()])  # noqa: PTH109
    installed -= {entry.name for found in here for entry in found.entry_points if entry.group == "pytest11"}
    loaded = [option for name in plugins if name in installed for option in ("-p", name)]
    return loaded, [_PLUGINS[name][0] for name in plugins if name not in installed]


def missing_module(message: str) -> str | None:
    """What to install, if tests could not be imported for lack of a plugin."""
    found = _MISSING_MODULE.search(message)
    return f"the tests import {found[1]}, which is not installed in its environment" if found else None
