"""The gates of a comparison: answered from the current side, and from its comparison with the baseline.

Tables that a run would have are made here from the scores of the attempts, if a gate names them.
"""

from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import polars as pl

from touchstone.checks import CheckResult
from touchstone.comparison.compare import ComparisonResult
from touchstone.comparison.gate import counts_by_model
from touchstone.comparison.gates import GateData, answer_gates, gates_hold
from touchstone.comparison.pairs import ComparisonSettings
from touchstone.config import EvaluationConfig
from touchstone.config.gates import GateSettings, parse_gate
from touchstone.errors import TouchstoneError
from touchstone.table_functions import TABLE_FUNCTIONS
from touchstone.tables import TABLES


def with_gates(
    comparison: ComparisonResult, gates: GateSettings, settings: ComparisonSettings, config: EvaluationConfig | None
) -> tuple[ComparisonResult, CheckResult]:
    """The comparison with the answers of the gates in its report, and whether they hold."""
    config = config or EvaluationConfig(fixes_dir=Path(), output_dir=Path())
    ks = {1, *(int(k) for each in gates.expressions if (k := parse_gate(each).where.get("k")))}
    intervals = config.intervals.model_copy(update={"confidence": settings.confidence, "seed": settings.seed})
    config = config.model_copy(update={"k_values": sorted(ks), "intervals": intervals})
    before, after = comparison.sides
    scores = _filled(after.attempt_scores, "attempt_scores")
    verdicts = [row | {"baseline": before.label, "sentence": ""} for row in comparison.report.models]
    made = {
        "attempt_scores": scores,
        "problems": _filled(
            scores.select(pl.col("oid").unique()) if after.problems is None else after.problems, "problems"
        ),
        "outcomes": _filled(scores.with_columns(passed=pl.col("pass_rate") == 1), "outcomes"),
        "sources": pl.LazyFrame(schema=TABLES["sources"].dtypes),
        "baseline_verdicts": pl.LazyFrame(verdicts, schema=TABLES["baseline_verdicts"].dtypes),
        "regression_counts": counts_by_model(comparison.report.cases).lazy(),
    }

    def table(name: str) -> pl.LazyFrame:
        if name not in made:
            if name not in TABLE_FUNCTIONS:
                raise TouchstoneError(f"a comparison has no table '{name}' for its gates; use touchstone run --gate")
            values = [attrgetter(key)(config) for key in TABLES[name].settings]
            made[name] = TABLE_FUNCTIONS[name](*map(table, TABLES[name].reads), *values).collect().lazy()
        return made[name]

    reasons = comparison.report.exploratory
    data = GateData(table, intervals, settings.power, before.attempt_scores, reasons)
    answers = answer_gates(gates, data).collect()
    report = replace(comparison.report, gates=answers.to_dicts())
    return replace(comparison, report=report), gates_hold(answers.lazy(), gates)


def _filled(frame: pl.LazyFrame, table: str) -> pl.LazyFrame:
    """The declared columns of a table, null where the frame lacks them."""
    present = frame.collect_schema()
    return frame.select(
        pl.col(name) if name in present else pl.lit(None, dtype).alias(name)
        for name, dtype in TABLES[table].dtypes.items()
    )
