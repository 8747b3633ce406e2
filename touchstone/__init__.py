"""Touchstone: whether an LLM's code fixes work, how often, and how sure that is.

The public Python API is what this module exports; see `docs/python.md`. Everything is imported on first use, so that
`import touchstone` costs next to nothing. Only `touchstone run` and `touchstone ui` import Dagster.

>>> import touchstone
>>> touchstone.pass_at_k(n=10, c=5, k=1)
0.5
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from touchstone.vocabulary import VERSION

__version__ = VERSION

__all__ = ["Results", "__version__", "compare", "evaluate", "load_results", "pass_at_k"]

if TYPE_CHECKING:
    from touchstone.evaluation import Results, compare, evaluate, load_results, pass_at_k


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import a name of the API when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'touchstone' has no attribute '{name}'")
    return getattr(import_module("touchstone.evaluation"), name)
