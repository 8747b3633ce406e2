"""Comparing two evaluations: inputs, pairs of models, regressions, verdicts, the gate and the report.

Belongs here: anything that needs a baseline and a current evaluation, or a model a and a model b. Figures of a single
evaluation belong in `metrics`, tests and intervals in `inference`, and drawing on the terminal in `cli`.
"""

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    """Lets `touchstone.compare(baseline, current)` call the API's function, although it is also this package."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from touchstone.api import compare

        return compare(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
