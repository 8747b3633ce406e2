"""Modules that tests and fixes often use, imported once in the warm worker instead of in every job.

A process takes longer to start the more it has loaded, so the large ones are loaded only in workers for code that
speaks of them.
"""

import importlib
from collections.abc import Iterable
from contextlib import suppress

_LIGHT = """
    abc bisect collections contextlib copy dataclasses datetime decimal enum fractions functools heapq io itertools json
    math numbers operator os os.path pathlib random re string struct textwrap time traceback types typing unittest
    warnings
"""
_HEAVY = """
    argparse asyncio calendar cmath csv difflib hashlib inspect logging pytest queue secrets shutil statistics tempfile
    threading timeit unicodedata unittest.mock uuid zlib
"""


def light_modules() -> None:
    """Import what is small."""
    _import(_LIGHT.split())


def heavy_modules() -> None:
    """Import what is large, where it is installed."""
    _import(_HEAVY.split())


def speaks_of_heavy(texts: Iterable[str]) -> bool:
    """Whether any of the texts names a large module.

    >>> speaks_of_heavy(["import math"]), speaks_of_heavy(["from unittest import mock"])
    (False, True)
    """
    words = [name.rpartition(".")[2] for name in _HEAVY.split()]
    return any(word in text for text in texts for word in words)


def _import(names: Iterable[str]) -> None:
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)
