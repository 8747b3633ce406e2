"""The assets and their checks: every stage is one step, in which each table, file and check can be selected alone.

`touchstone run`, which makes everything, runs the same stages as ops that log what they made. Dagster stores three
events for an asset that a step declares (planned, output, materialization) and looks up the versions of what it reads;
for one that is logged, a single event. That is a quarter of the processor time of a small run.

Tables and checks are declared in `touchstone.tables`; the files of the last stage, and what publishing says, are in
`assets.publish`.
"""

from collections.abc import Iterator, Set

import dagster as dg

from assets.metadata import DATA_VERSION, rounded, table_metadata, table_result
from assets.models import register_models
from assets.publish import FILES, PUBLISH, PUBLISHED_IN_ORDER, Context, failed_checks
from assets.retries import retry_if_lost
from touchstone.evaluation import Evaluation, checks_due_after
from touchstone.progress import report_step
from touchstone.tables import TABLES, Table
from touchstone.tables.checks import CHECKS, Check, CheckResult, GateResult
from touchstone.text import markdown_paragraph, visible

# A tag of a run: what the comparison with the pinned baseline said.
VERDICT = "touchstone/verdict"
# Dagster gives one of these tags to a run that is re-executed from its failure.
_RESUMED = ("dagster/is_resume_retry", "dagster/is_asset_resume_retry")
_KINDS = {
    "problems": {"csv", "polars"},
    "attempts": {"csv", "polars"},
    "validator_noise": {"python"},
    "baselines": {"python"},
    "outcomes": {"polars"},
}

Logged = dg.AssetMaterialization | dg.AssetCheckEvaluation
Event = dg.MaterializeResult[None] | dg.AssetCheckResult | Logged

STAGES = list(dict.fromkeys(table.group for table in TABLES.values()))
_GROUPS = {name: table.group for name, table in TABLES.items()} | dict.fromkeys(FILES, PUBLISH)
_IN_ORDER = [*(name for name, group in _GROUPS.items() if group != PUBLISH), *PUBLISHED_IN_ORDER]


class CheckFailed(dg.Failure):
    """A check failed with an error. Dagster itself fails a run only for blocking checks."""

    def __init__(self, description: str) -> None:
        super().__init__(description, allow_retries=False)


def stage(group: str) -> dg.AssetsDefinition:
    """The assets and checks of a stage, made in one step in the order of their declaration."""

    @dg.multi_asset(
        name=group,
        specs=[
            _file_spec(name) if name in FILES else _table_spec(TABLES[name])
            for name in _IN_ORDER
            if _GROUPS[name] == group
        ],
        check_specs=[_check_spec(check) for check in CHECKS if TABLES[check.table].group == group],
        can_subset=True,
        op_tags={"dagster/priority": str(-STAGES.index(group))},
    )
    def step(context: dg.AssetExecutionContext, evaluation: dg.ResourceParam[Evaluation]) -> Iterator[Event]:
        assets = {key.to_user_string() for key in context.selected_asset_keys}
        checks = {f"{key.asset_key.to_user_string()}.{key.name}" for key in context.selected_asset_check_keys}
        yield from _run_stage(context, evaluation, group, assets, checks)

    return step


def stage_op(group: str) -> dg.OpDefinition:
    """A stage as an op, which makes all its assets and checks; it runs after the one that is given to it."""
    assets = {name for name in _IN_ORDER if _GROUPS[name] == group}
    checks = {check.full_name for check in CHECKS if check.table in assets}

    @dg.op(name=group, ins={"after": dg.In(dg.Nothing)}, out=dg.Out(dg.Nothing))
    def step(
        context: dg.OpExecutionContext, evaluation: dg.ResourceParam[Evaluation]
    ) -> Iterator[Logged | dg.Output[None]]:
        yield from map(_as_logged, _run_stage(context, evaluation, group, assets, checks))
        yield dg.Output(None)

    return step


def _table_spec(table: Table) -> dg.AssetSpec:
    return dg.AssetSpec(
        table.name,
        deps=table.reads,
        description=table.description,
        group_name=table.group,
        kinds=_KINDS.get(table.name, {"parquet" if table.step else "polars"}),
        metadata=table_metadata(table.name),
    )


def _file_spec(name: str) -> dg.AssetSpec:
    file = FILES[name]
    return dg.AssetSpec(name, deps=file.deps, description=file.make.__doc__, group_name=PUBLISH, kinds=file.kinds)


def _check_spec(check: Check) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(check.name, asset=check.table, description=check.description, blocking=check.gate)


def _last_stage(run: dg.DagsterRun) -> str:
    """The last stage of a run, which may be limited to some assets, checks or steps."""
    keys = [*(run.asset_selection or ()), *(check.asset_key for check in run.asset_check_selection or ())]
    stages = {_GROUPS.get(key.to_user_string(), PUBLISH) for key in keys} or set(STAGES)
    return max(stages.intersection(run.step_keys_to_execute or STAGES) or stages, key=STAGES.index)


def _run_stage(
    context: Context, evaluation: Evaluation, group: str, assets: Set[str], checks: Set[str]
) -> Iterator[Event]:
    """Make assets of a stage and run checks of it. The last stage of a run fails if a check did."""
    with retry_if_lost(context.instance, context.run):
        yield from _make(context, evaluation, group, assets, checks)
        if group == _last_stage(context.run) and (failed := failed_checks(evaluation)):
            raise CheckFailed(failed)


def _make(context: Context, evaluation: Evaluation, group: str, assets: Set[str], checks: Set[str]) -> Iterator[Event]:
    """Make assets of a stage and run checks of it; a gate that fails ends the run.

    Before the last stage, and in a run that is re-executed from its failure, whatever comes before is brought up to
    date too: what is published must fit together, and the cause of a failure may have been put right anywhere.
    """
    repeats = bool(assets) and (group == PUBLISH or any(tag in context.run.tags for tag in _RESUMED))
    last = max((_IN_ORDER.index(name) for name in assets), default=-1)
    # Once something earlier was made again, so must be what this run made from it before.
    made, checked = set(evaluation.made_assets), set(evaluation.checked)
    for place, name in enumerate(_IN_ORDER):
        needed = repeats and place < last
        if name in assets or (needed and name not in made):
            report_step(name)
            made_asset = _result(context, evaluation, name)
            evaluation.made_assets.add(name)
            if name in assets:
                yield made_asset
            else:
                made, checked = set(), set()
                yield _as_logged(made_asset)
        for check in checks_due_after(name):
            if check.full_name in checks or (needed and check.full_name not in checked):
                found = evaluation.check(check)
                if isinstance(found, GateResult):
                    context.instance.add_run_tags(context.run.run_id, {VERDICT: gate_verdict(found)})
                shown = check_result(check, found)
                yield shown if check.full_name in checks else _as_logged(shown)
        if evaluation.stopped_by_gate:
            raise CheckFailed(failed_checks(evaluation))


def _result(context: Context, evaluation: Evaluation, name: str) -> dg.MaterializeResult[None]:
    """Bring an asset up to date; returns what the UI shows of it."""
    if name in FILES:
        return FILES[name].make(context, evaluation)
    if name == "attempts":
        register_models(context.instance, evaluation)
    parts = evaluation.materialize(name)
    if name == "attempts" and evaluation.ingest.removed_models:
        context.log.warning(evaluation.ingest.removal_warning)
    return table_result(evaluation, name, parts)


def _as_logged(event: Event) -> Logged:
    """The event of an asset or check that the step does not declare, or is not to make."""
    if isinstance(event, dg.MaterializeResult):
        tags = {DATA_VERSION: event.data_version.value} if event.data_version else {}
        return dg.AssetMaterialization(event.asset_key or "", metadata=event.metadata, tags=tags)
    if isinstance(event, dg.AssetCheckResult):
        return dg.AssetCheckEvaluation(
            event.asset_key or dg.AssetKey([]),
            event.check_name or "",
            event.passed,
            metadata=event.metadata,
            severity=event.severity,
            description=event.description,
        )
    return event


def gate_verdict(found: GateResult) -> str:
    """The result of the comparison with the baseline, in words to filter runs by."""
    if found.baseline is None:
        return "no baseline"
    return "passed" if found.passed else "failed" if found.error else "warning"


def check_result(check: Check, found: CheckResult) -> dg.AssetCheckResult:
    """A check's result for Dagster, with the report if it is a `GateResult`."""
    report = {}
    if isinstance(found, GateResult) and found.report is not None and found.path is not None:
        report = {
            "verdict": found.verdicts,
            "baseline": found.baseline,
            "changed_cases": dg.MetadataValue.md(found.report),
            "diff": dg.MetadataValue.path(found.path),
        }
    return dg.AssetCheckResult(
        passed=found.passed,
        check_name=check.name,
        asset_key=dg.AssetKey(check.table),
        severity=dg.AssetCheckSeverity.ERROR if found.error else dg.AssetCheckSeverity.WARN,
        # The UI takes it for Markdown, and the names in it for tags, links and pictures.
        description=markdown_paragraph(found.message),
        metadata={**{visible(name): value for name, value in rounded(found.figures).items()}, **report},
    )
