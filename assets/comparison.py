"""Stage 4: models against each other, and the run against its pinned baseline. The last check is a gate.

The statistics belong in `touchstone.compare.pairs`, the gate's decision in `touchstone.compare.gate`.
"""

import dagster as dg
import polars as pl

from assets.common import check_result, checks_in_one_step, result, tables_in_one_step
from touchstone.compare import gate
from touchstone.compare.pairs import compare_all
from touchstone.evaluation import Evaluation
from touchstone.vocabulary import VERDICTS

GROUP = "comparison"


def model_comparison(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """All pairs of models in a tier and of tiers of a model, compared problem by problem, with a verdict on each."""
    settings = gate.comparison_settings(evaluation.config)
    part = evaluation.refresh(
        "model_comparison",
        ["problem_pass_at_k", "problems"],
        vars(settings),
        lambda figures, problems: compare_all(figures, problems, settings),
    )
    verdicts = pl.read_parquet(part.path)["verdict"].to_list()
    return result("model_comparison", part, {verdict: verdicts.count(verdict) for verdict in VERDICTS})


def baseline_verdicts(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """Every model and tier against the snapshot that is pinned as the baseline; empty where none is."""
    return result("baseline_verdicts", gate.judge_models(evaluation))


def regressions(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """Every case that differs from the pinned baseline: worse, better, new, removed or lost; empty without one."""
    part = gate.find_regressions(evaluation)
    shown = ("regressions", "expected_by_chance", "improvements", "lost", "compared_by_pass_rate")
    counts = pl.read_parquet(gate.count_regressions(evaluation).path).select(pl.col(shown).sum())
    return result("regressions", part, counts.row(0, named=True))


def regression_counts(evaluation: Evaluation) -> dg.MaterializeResult[None]:
    """How many cases regressed per model and tier, and how many would by chance alone; empty without a baseline."""
    return result("regression_counts", gate.count_regressions(evaluation))


def holds_against_baseline(evaluation: Evaluation) -> dg.AssetCheckResult:
    """No model is worse than in the pinned baseline, and no case; whether that warns or stops is configured."""
    held = gate.hold(evaluation)
    told = {}
    if held.report is not None and held.path is not None:
        verdicts = evaluation.store.scan("baseline_verdicts").sort("model", "tier").collect()
        told = {
            "verdict": "; ".join(f"{row['model']} {row['tier']}: {row['verdict']}" for row in verdicts.to_dicts()),
            "baseline": held.baseline,
            "changed_cases": dg.MetadataValue.md(held.report),
            "diff": dg.MetadataValue.path(held.path),
        }
    return check_result(held.finding, told)


comparison_tables = tables_in_one_step(
    GROUP,
    {
        model_comparison: ["problem_pass_at_k", "problems"],
        baseline_verdicts: ["attempt_scores", "problems"],
        regressions: ["attempt_scores", "problems", "baseline_verdicts"],
        regression_counts: ["attempt_scores", "problems"],
    },
)
regression_checks = checks_in_one_step("regressions", [], gates=[holds_against_baseline])
