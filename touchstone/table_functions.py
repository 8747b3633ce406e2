"""The functions that make tables from the frames of other tables, and those of the checks, by name.

`tables` and `checks` declare what each of them reads. Tables that a stage of a run writes itself, and those that
compare a run with its pinned baseline, are made by methods of that stage; see `evaluation`.
"""

from collections.abc import Callable, Mapping

import polars as pl

from touchstone.audit import strength
from touchstone.audit.contamination import contamination, reference_overlap
from touchstone.audit.passes import no_flagged_passes, pass_audit
from touchstone.audit.problems import audited_leaderboard, problem_audit
from touchstone.audit.readings import pass_at_k_readings, verdict_readings
from touchstone.checks import CheckResult
from touchstone.comparison.comparability import models_comparable
from touchstone.comparison.factor_effects import factor_effects
from touchstone.comparison.pairs import model_comparison
from touchstone.comparison.registered_plan import as_planned, registered_plan
from touchstone.comparison.slice_leaders import best_in_slices
from touchstone.ingest import checks as ingest_checks
from touchstone.metrics import checks as metric_checks
from touchstone.metrics.aggregates import model_statistics, problem_frontier, problem_statistics
from touchstone.metrics.attempts import attempt_scores, prices
from touchstone.metrics.budgets import budget_curves
from touchstone.metrics.economics import economics
from touchstone.metrics.factors import factors
from touchstone.metrics.failures import failures
from touchstone.metrics.pass_at_k import pass_at_k, problem_pass_at_k
from touchstone.metrics.problem_scores import problem_scores
from touchstone.metrics.reliability import reliability, reliability_curve
from touchstone.metrics.routing import routing, routing_policies
from touchstone.metrics.slices import slices
from touchstone.metrics.suites import run_scores, suite_scores
from touchstone.metrics.tiers import cross_tier, tier_statistics, tiers
from touchstone.metrics.validator_variance import validator_variance
from touchstone.metrics.variance import next_samples, variance_split
from touchstone.validation import checks as validation_checks

TABLE_FUNCTIONS: Mapping[str, Callable[..., pl.LazyFrame]] = {
    "problem_pass_at_k": problem_pass_at_k,
    "pass_at_k": pass_at_k,
    "slices": slices,
    "failures": failures,
    "attempt_scores": attempt_scores,
    "problem_scores": problem_scores,
    "tier_statistics": tier_statistics,
    "tiers": tiers,
    "cross_tier": cross_tier,
    "suite_scores": suite_scores,
    "run_scores": run_scores,
    "model_statistics": model_statistics,
    "problem_statistics": problem_statistics,
    "problem_frontier": problem_frontier,
    "variance_split": variance_split,
    "next_samples": next_samples,
    "validator_variance": validator_variance,
    "reliability": reliability,
    "reliability_curve": reliability_curve,
    "economics": economics,
    "prices": prices,
    "budget_curves": budget_curves,
    "routing": routing,
    "routing_policies": routing_policies,
    "model_comparison": model_comparison,
    "factors": factors,
    "factor_effects": factor_effects,
    "pass_audit": pass_audit,
    "pass_at_k_readings": pass_at_k_readings,
    "verdict_readings": verdict_readings,
    "test_strength": strength.test_strength,
    "contamination": contamination,
    "reference_overlap": reference_overlap,
    "problem_audit": problem_audit,
    "audited_leaderboard": audited_leaderboard,
    "registered_plan": registered_plan,
}

CHECK_FUNCTIONS: Mapping[str, Callable[..., CheckResult]] = {
    "unique_keys": ingest_checks.unique_keys,
    "files_readable": ingest_checks.files_readable,
    "rows_accepted": ingest_checks.rows_accepted,
    "files_accounted_for": ingest_checks.files_accounted_for,
    "quarantine_share": ingest_checks.quarantine_share,
    "unknown_oids": ingest_checks.unknown_oids,
    "figures_reproduced": ingest_checks.figures_reproduced,
    "no_flaky_tests": validation_checks.no_flaky_tests,
    "baselines_fail_as_recorded": validation_checks.baselines_fail_as_recorded,
    "reference_fixes_pass": validation_checks.reference_fixes_pass,
    "undecided_share": validation_checks.undecided_share,
    "funnel_is_monotone": validation_checks.funnel_is_monotone,
    "one_fidelity": validation_checks.one_fidelity,
    "rulings_applied": validation_checks.rulings_applied,
    "all_decided": validation_checks.all_decided,
    "reports_consistent": validation_checks.reports_consistent,
    "coverage": metric_checks.coverage,
    "enough_samples": metric_checks.enough_samples,
    "within_bounds": metric_checks.within_bounds,
    "units_independent": metric_checks.units_independent,
    "every_model_priced": metric_checks.every_model_priced,
    "known_classes": metric_checks.known_classes,
    "classes_match_outcomes": metric_checks.classes_match_outcomes,
    "missing_scores": metric_checks.missing_scores,
    "classes_add_up": metric_checks.classes_add_up,
    "no_empty_suite": metric_checks.no_empty_suite,
    "slices_add_up": metric_checks.slices_add_up,
    "best_in_slices": best_in_slices,
    "no_flagged_passes": no_flagged_passes,
    "tests_notice": strength.tests_notice,
    "models_comparable": models_comparable,
    "as_planned": as_planned,
}
