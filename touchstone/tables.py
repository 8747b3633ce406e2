"""Every table, declared once: its columns, what it reads, which settings matter, what makes it, and its Dagster group.

The Dagster assets and their dependencies, the fingerprints that tell whether a table is current, the data dictionary
and the warehouse are all derived from these declarations. A function that makes a table is named, not imported, so that
this module stays at the bottom of the package and loads fast.
"""

from collections.abc import Iterator, Sequence

from touchstone import contracts
from touchstone.contracts import PAIR_SETTINGS, Table

_INPUT_COLUMNS = "Further columns of the input travel along as text."
_PASS_COLUMNS = "One further column `pass_at_<k>` per configured k."
_PASS_COLUMNS_WITH_INTERVALS = (
    "Further columns `pass_at_<k>`, `pass_at_<k>_ci_low` and `pass_at_<k>_ci_high` per configured k."
)


def _ingest() -> Iterator[Table]:
    # Adapters are imported by name, when a file asks for them.
    stage, code = "touchstone.ingest.stage:IngestStage", ("touchstone.ingest.adapters",)
    yield Table(
        "problems",
        contracts.Problems,
        "problem",
        "ingest",
        f"{stage}.problems",
        extras=_INPUT_COLUMNS,
        step=True,
        code=code,
    )
    yield Table(
        "problem_slices",
        contracts.ProblemSlices,
        "configured slice and problem, and model if it has a cutoff",
        "ingest",
        f"{stage}.problem_slices",
        reads=("problems",),
        step=True,
        code=code,
    )
    yield Table(
        "attempts",
        contracts.Attempts,
        "attempt, as ingested",
        "ingest",
        f"{stage}.attempts",
        reads=("problems",),
        extras=_INPUT_COLUMNS,
        per_model=True,
        step=True,
        code=code,
        in_snapshots=False,
    )
    for name, schema, grain in (
        ("quarantine", contracts.Quarantine, "refused row"),
        ("sources", contracts.Sources, "input file and model"),
        ("reported_figures", contracts.ReportedFigures, "figure that another tool's file states"),
    ):
        yield Table(
            name,
            schema,
            grain,
            "ingest",
            f"{stage}.{name}",
            reads=("problems", "attempts"),
            step=True,
            code=code,
            made_with="attempts",
            in_snapshots=name == "sources",
        )


def _validation() -> Iterator[Table]:
    stage, code = "touchstone.validation.stage:ValidationStage", ("touchstone.validation",)
    yield Table(
        "validator_noise",
        contracts.ValidatorNoise,
        "problem, repeated validation and test",
        "validation",
        f"{stage}.validator_noise",
        reads=("problems", "attempts"),
        step=True,
        code=code,
    )
    yield Table(
        "baselines",
        contracts.Baselines,
        "problem with fixes to validate",
        "validation",
        f"{stage}.baselines",
        reads=("problems", "attempts", "validator_noise"),
        step=True,
        code=code,
    )
    yield Table(
        "outcomes",
        contracts.Outcomes,
        "attempt, validated",
        "validation",
        f"{stage}.outcomes",
        reads=("problems", "attempts", "validator_noise", "baselines"),
        per_model=True,
        step=True,
        code=code,
        in_snapshots=False,
    )
    for name, schema, grain, made_with in (
        ("problem_files", contracts.ProblemFiles, "problem with fixes to validate", "baselines"),
        ("validated_fixes", contracts.ValidatedFixes, "attempt whose fix was applied and validated", "outcomes"),
    ):
        yield Table(
            name,
            schema,
            grain,
            "validation",
            f"{stage}.{name}",
            reads=(made_with,),
            step=True,
            code=code,
            made_with=made_with,
            in_snapshots=False,
        )


def _metrics() -> Iterator[Table]:
    module = "touchstone.metrics.pass_at_k"
    yield Table(
        "problem_pass_at_k",
        contracts.ProblemPassAtK,
        "model, tier, problem and k",
        "metrics",
        f"{module}:problem_pass_at_k",
        reads=("outcomes",),
        settings=("k_values",),
        by_model=True,
    )
    yield Table(
        "pass_at_k",
        contracts.PassAtK,
        "model, tier and k",
        "metrics",
        f"{module}:pass_at_k",
        reads=("problem_pass_at_k", "problems", "sources"),
        settings=("k_values", "intervals"),
        by_model=True,
    )

    yield Table(
        "slices",
        contracts.Slices,
        "model, tier and value of a column",
        "metrics",
        "touchstone.metrics.slices:slices",
        reads=("problem_pass_at_k", "problems", "problem_slices"),
        settings=("intervals",),
        by_model=True,
    )


def _scores() -> Iterator[Table]:
    group = "scores"
    yield Table(
        "settings",
        contracts.Settings,
        "setting that the figures depend on",
        group,
        "touchstone.publish.settings:settings_table",
        settings=("name", "k_values", "problem_key", "intervals", "comparison", "scoring", "slices", "checks"),
    )
    yield Table(
        "attempt_scores",
        contracts.AttemptScores,
        "attempt",
        group,
        "touchstone.metrics.attempts:attempt_scores",
        reads=("attempts", "outcomes"),
        settings=("scoring",),
        per_model=True,
    )
    yield Table(
        "problem_scores",
        contracts.ProblemScores,
        "model, tier, run, suite and problem",
        group,
        "touchstone.metrics.problem_scores:problem_scores",
        reads=("attempt_scores",),
        by_model=True,
    )
    yield Table(
        "tier_statistics",
        contracts.TierStatistics,
        "model, tier and metric",
        group,
        "touchstone.metrics.tiers:tier_statistics",
        reads=("attempt_scores",),
        by_model=True,
    )
    yield Table(
        "tiers",
        contracts.Tiers,
        "model and tier",
        group,
        "touchstone.metrics.tiers:tiers",
        reads=("tier_statistics", "attempt_scores", "problem_scores", "problems"),
        settings=("scoring", "intervals"),
        by_model=True,
    )
    yield Table(
        "cross_tier",
        contracts.CrossTier,
        "model",
        group,
        "touchstone.metrics.tiers:cross_tier",
        reads=("tier_statistics", "tiers"),
        by_model=True,
    )
    yield Table(
        "suite_scores",
        contracts.SuiteScores,
        "model, tier, run and suite",
        group,
        "touchstone.metrics.suites:suite_scores",
        reads=("attempt_scores", "problem_scores", "problems"),
        settings=("scoring.suites", "intervals"),
        by_model=True,
    )
    yield Table(
        "run_scores",
        contracts.RunScores,
        "model, tier and run",
        group,
        "touchstone.metrics.suites:run_scores",
        reads=("suite_scores", "problem_scores", "problems"),
        settings=("intervals",),
        by_model=True,
    )
    yield Table(
        "model_statistics",
        contracts.ModelStatistics,
        "model and tier",
        group,
        "touchstone.metrics.aggregates:model_statistics",
        reads=("problem_scores", "pass_at_k", "problems"),
        settings=("k_values", "intervals"),
        extras=_PASS_COLUMNS_WITH_INTERVALS,
        by_model=True,
    )
    yield Table(
        "problem_statistics",
        contracts.ProblemStatistics,
        "model, tier and problem",
        group,
        "touchstone.metrics.aggregates:problem_statistics",
        reads=("problem_scores", "problem_pass_at_k"),
        settings=("k_values",),
        extras=_PASS_COLUMNS,
        reuses_previous=True,
    )
    yield Table(
        "problem_frontier",
        contracts.ProblemFrontier,
        "problem",
        group,
        "touchstone.metrics.aggregates:problem_frontier",
        reads=("problem_statistics",),
    )


def _reliability() -> Iterator[Table]:
    group, reads = "reliability", ("problem_pass_at_k", "problems")
    yield Table(
        "variance_split",
        contracts.VarianceSplit,
        "model and tier",
        group,
        "touchstone.metrics.variance:variance_split",
        reads=reads,
        by_model=True,
    )
    yield Table(
        "next_samples",
        contracts.NextSamples,
        "model, tier and plan",
        group,
        "touchstone.metrics.variance:next_samples",
        reads=("variance_split", "problem_scores"),
        settings=("intervals",),
        by_model=True,
    )
    yield Table(
        "validator_variance",
        contracts.ValidatorVariance,
        "model and tier with fixes that were validated several times",
        group,
        "touchstone.metrics.validator_variance:validator_variance",
        reads=("validator_noise", *reads),
        settings=("intervals", "validation.exclude_flaky"),
    )
    for name, schema, grain in (
        ("reliability", contracts.Reliability, "model and tier"),
        ("reliability_curve", contracts.ReliabilityCurve, "model, tier and k"),
    ):
        yield Table(
            name,
            schema,
            grain,
            group,
            f"touchstone.metrics.reliability:{name}",
            reads=reads,
            settings=("intervals",),
            by_model=True,
        )


def _economics() -> Iterator[Table]:
    reads = ("problem_scores", "problems")
    for name, schema, grain, module, tables in (
        ("economics", contracts.Economics, "model and tier", "economics", reads),
        ("routing", contracts.Routing, "suite", "routing", reads),
        ("routing_policies", contracts.RoutingPolicies, "policy", "routing", ("attempt_scores", *reads)),
    ):
        yield Table(
            name,
            schema,
            grain,
            "economics",
            f"touchstone.metrics.{module}:{name}",
            reads=tables,
            settings=("intervals",),
        )


def _comparison() -> Iterator[Table]:
    group, gate, reads = "comparison", "touchstone.compare.gate:Gate", ("attempt_scores", "problems")
    yield Table(
        "model_comparison",
        contracts.ModelComparison,
        "pair of models of a tier, or of tiers of a model",
        group,
        "touchstone.compare.pairs:model_comparison",
        reads=("problem_pass_at_k", "problems"),
        settings=PAIR_SETTINGS,
    )
    by_case = ("comparison.threshold", "comparison.score")
    for name, schema, grain, settings in (
        (
            "baseline_verdicts",
            contracts.BaselineVerdicts,
            "model and tier that the pinned baseline has too",
            PAIR_SETTINGS,
        ),
        ("regressions", contracts.Regressions, "case that differs from the pinned baseline", by_case),
        (
            "regression_counts",
            contracts.RegressionCounts,
            "model and tier of the run or of the pinned baseline",
            by_case,
        ),
    ):
        yield Table(name, schema, grain, group, f"{gate}.{name}", reads=reads, settings=settings, in_snapshots=False)


def _publish(tables: Sequence[Table]) -> Iterator[Table]:
    stage = "touchstone.publish.stage:PublishStage"
    read = {name for table in tables for name in table.reads}
    yield Table(
        "history",
        contracts.History,
        "snapshot and figure of a model and tier",
        "publish",
        f"{stage}.history",
        reads=tuple(table.name for table in tables if table.name not in read),
        step=True,
        in_snapshots=False,
    )
    for name, schema, grain, reads, made_with in (
        ("problem_history", contracts.ProblemHistory, "snapshot, model, tier and problem", ("history",), None),
        ("run_log", contracts.RunLog, "run and step", ("problem_history",), "problem_history"),
    ):
        made_by = f"{stage}.{name}"
        yield Table(name, schema, grain, "publish", made_by, reads, step=True, made_with=made_with, in_snapshots=False)


def _declared() -> dict[str, Table]:
    stages = (_ingest, _validation, _metrics, _scores, _reliability, _economics, _comparison)
    tables = [table for stage in stages for table in stage()]
    return {table.name: table for table in [*tables, *_publish(tables)]}


# In an order in which they can be made.
TABLES: dict[str, Table] = _declared()
