"""Stage 4: compare models with each other and the run with its pinned baseline. The check is a gate.

The statistics belong in `touchstone.compare.pairs`, the gate's decision in `touchstone.compare.gate`.
"""

from typing import TYPE_CHECKING

from assets.common import checks_of, derived_tables
from assets.metadata import Figures
from touchstone.vocabulary import VERDICTS

if TYPE_CHECKING:
    import polars as pl

_CASES = ("regressions", "expected_by_chance", "improvements", "lost", "compared_by_pass_rate")


def _verdicts(table: "pl.DataFrame") -> Figures:
    verdicts = table["verdict"].to_list()
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def _cases(table: "pl.DataFrame") -> Figures:
    import polars as pl

    return table.select(pl.col(_CASES).sum()).row(0, named=True)


comparison_tables = derived_tables("comparison", {"model_comparison": _verdicts, "regression_counts": _cases})
regression_checks = checks_of("regressions")
