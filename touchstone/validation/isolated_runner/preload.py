"""Modules that tests and fixes often use, imported once in the warm worker instead of in every job.

A forked process starts more slowly the more is loaded, so large modules are loaded only in workers for code that
mentions them.
"""

import importlib
from collections.abc import Iterable
from contextlib import suppress

_LIGHT = """
    abc bisect collections contextlib copy dataclasses datetime decimal enum fractions functools heapq io itertools json
    math numbers operator os os.path pathlib random re string struct textwrap time traceback types typing warnings
"""
_HEAVY = """
    argparse asyncio calendar cmath csv difflib hashlib inspect logging pytest queue secrets shutil statistics tempfile
    threading timeit unicodedata unittest.mock uuid zlib
"""


def import_light_modules() -> None:
    """Import the small modules."""
    _import(_LIGHT.split())


def import_heavy_modules() -> None:
    """Import the large modules that are installed."""
    _import(_HEAVY.split())


def mentions_heavy_modules(texts: Iterable[str]) -> bool:
    """Whether any of the texts mentions a large module.

    >>> mentions_heavy_modules(["import math"]), mentions_heavy_modules(["from unittest import mock"])
    (False, True)
    """
    words = [name.rpartition(".")[2] for name in _HEAVY.split()]
    return any(word in text for text in texts for word in words)


def _import(names: Iterable[str]) -> None:
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)
