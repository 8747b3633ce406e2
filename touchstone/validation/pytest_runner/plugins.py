"""Which installed pytest plugins are loaded.

All of those in an environment that the problem chose, as pytest does. Of those beside Touchstone, which nobody chose,
only the ones that run coroutines, and only if the problem's tests or its configuration mention them.
"""

import importlib.metadata
import os
import re
from collections.abc import Iterable
from contextlib import suppress

# By the name under which pytest knows a plugin: what is installed to have it, and what tests that use it mention.
_PLUGINS = {
    "asyncio": ("pytest-asyncio", r"pytest_asyncio|\bmark\.asyncio\b|\basyncio_(?:mode|default\w*)\b|pytest-asyncio"),
    "anyio": ("anyio", r"\bmark\.anyio\b|\banyio_(?:backend|mode)\w*|\bfree_(?:tcp|udp)_port"),
    "trio": ("pytest-trio", r"pytest_trio|\bmark\.trio\b|\btrio_mode\b|pytest-trio"),
}
# They start processes of their own, run tests again or in another order, or measure: none of it helps one job.
_LEFT_OUT = frozenset({"xdist", "xdist.looponfail", "rerunfailures", "randomly", "random_order", "pytest_cov"})


def mentioned_plugins(texts: Iterable[str]) -> list[str]:
    """The plugins for coroutines that the problem's tests and configuration mention.

    >>> mentioned_plugins(["@pytest.mark.asyncio", "[pytest]"]), mentioned_plugins(["import asyncio"])
    (['asyncio'], [])
    """
    whole = "\n".join(texts)
    return [name for name, (_, pattern) in _PLUGINS.items() if re.search(pattern, whole)]


def options_for(plugins: list[str] | None) -> tuple[list[str], list[str]]:
    """The options that load those plugins that are installed (None: all), and what to install for the others."""
    if plugins == []:
        return [], []
    installed = {entry.name for entry in importlib.metadata.entry_points(group="pytest11")}
    # A plugin of the same name in the problem's folder, which is searched first, is not the one that is meant.
    here = importlib.metadata.distributions(path=[os.getcwd()])  # noqa: PTH109
    installed -= {entry.name for found in here for entry in found.entry_points if entry.group == "pytest11"}
    wanted = sorted(installed - _LEFT_OUT) if plugins is None else plugins
    loaded = [option for name in wanted if name in installed for option in ("-p", name)]
    return loaded, [_PLUGINS[name][0] for name in wanted if name not in installed]


def import_plugins() -> None:
    """Import all installed plugins once, before the first job is forked."""
    for entry in importlib.metadata.entry_points(group="pytest11"):
        if entry.name not in _LEFT_OUT:
            # A plugin that cannot be imported fails in the session that loads it, with pytest's message.
            with suppress(Exception):
                entry.load()
