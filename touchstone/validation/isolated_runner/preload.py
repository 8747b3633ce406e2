"""Modules that tests and fixes often use, imported once in the warm worker instead of in every job.

A forked process starts more slowly the more is loaded, so large modules are loaded only in workers for code that
imports them.
"""

import functools
import importlib
import re
from collections.abc import Iterable
from contextlib import suppress

_LIGHT = """
    abc bisect collections contextlib copy dataclasses datetime decimal enum fractions functools heapq io itertools json
    math numbers operator os os.path pathlib random re string struct textwrap time traceback types typing warnings
"""
# Small ones such as csv are in neither list: a job imports them faster than workers with all of these start.
_HEAVY = """
    argparse asyncio difflib hashlib inspect logging pytest queue secrets shutil statistics tempfile threading
    unittest.mock uuid
"""


def import_light_modules() -> None:
    """Import the small modules."""
    _import(_LIGHT.split())


def import_heavy_modules() -> None:
    """Import the large modules that are installed."""
    _import(_HEAVY.split())


def uses_heavy_modules(texts: Iterable[str]) -> bool:
    """Whether any of the texts seems to import a large module. A job that imports one unseen is only slower.

    >>> uses_heavy_modules(["import math  # and not asyncio"]), uses_heavy_modules(["from unittest import mock"])
    (False, True)
    """
    return any(_heavy_import().search(text) for text in texts)


@functools.cache
def _heavy_import() -> re.Pattern[str]:
    names = "|".join(name.rpartition(".")[2] for name in _HEAVY.split())
    return re.compile(rf"\b(?:from|import)\b[^\n#]*\b(?:{names})\b")


def _import(names: Iterable[str]) -> None:
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)
