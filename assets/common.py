"""Shared by the asset files: assets and checks built from their declarations. What they show is in `assets.metadata`.

A Dagster step costs more than making or checking a small table. So one step makes the tables of a group, and one step
runs the checks of a table; each is still a separate asset or check.
"""

from collections.abc import Iterator, Mapping

import dagster as dg

from assets.metadata import Plot, chart_metadata, per_model, result, rounded, table_metadata
from touchstone.checks import CHECKS, Check, CheckResult, GateResult
from touchstone.contracts import Table
from touchstone.evaluation import Evaluation
from touchstone.progress import report_step
from touchstone.tables import TABLES
from touchstone.text import markdown_paragraph, visible

EvaluationParam = dg.ResourceParam[Evaluation]

# Tags of a run.
SNAPSHOT, VERDICT = "touchstone/snapshot", "touchstone/verdict"

_STAGES = list(dict.fromkeys(table.group for table in TABLES.values()))


def table_spec(table: Table, *kinds: str) -> dg.AssetSpec:
    """The asset of a table: its dependencies, description, group and columns as declared."""
    return dg.AssetSpec(
        table.name,
        deps=table.reads,
        description=table.description,
        group_name=table.group,
        kinds=set(kinds or ("polars",)),
        metadata=table_metadata(table.name),
    )


def step_order(group: str) -> dict[str, str]:
    """The tag of a step that has Dagster execute the stages in the order of their declaration."""
    return {"dagster/priority": str(-_STAGES.index(group))}


def derived_tables(group: str, plots: Mapping[str, Plot] | None = None) -> dg.AssetsDefinition:
    """The assets of a group's tables, made in one step. `plots` adds numbers to a table's metadata."""
    tables = [table for table in TABLES.values() if table.group == group and not table.step]

    @dg.multi_asset(
        name=f"{group}_tables",
        specs=[table_spec(table) for table in tables],
        can_subset=True,
        op_tags=step_order(group),
    )
    def step(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> Iterator[dg.MaterializeResult[None]]:
        for table in tables:
            if dg.AssetKey(table.name) in context.selected_asset_keys:
                report_step(table.name)
                yield materialized(context, evaluation, table.name, (plots or {}).get(table.name))

    return step


def materialized(
    context: dg.AssetExecutionContext, evaluation: Evaluation, name: str, plot: Plot | None = None
) -> dg.MaterializeResult[None]:
    """Materialize a table if stale, and return its metadata for the UI."""
    parts = evaluation.materialize(name)
    if TABLES[name].per_model:
        made = per_model(name, parts)
        return made._replace(metadata={**(made.metadata or {}), **rounded(evaluation.run_log.figures(name))})
    import polars as pl

    [part] = parts.values()
    chart = chart_metadata(context, name, part) if evaluation.config.publish.charts else {}
    figures = plot(pl.read_parquet(part.path)) if plot else {}
    return result(name, part, {**chart, **figures, **evaluation.run_log.figures(name)})


def checks_of(*tables: str) -> dg.AssetChecksDefinition:
    """The checks of one or more tables. If a gate fails with an error, nothing that depends on its table is made.

    An error of any other check fails the step and therefore the run, but the other steps continue and publish.
    """
    declared = [check for check in CHECKS if check.table in tables]

    @dg.multi_asset_check(
        name=f"{tables[0]}_checks",
        specs=[_check_spec(check) for check in declared],
        op_tags=step_order(TABLES[tables[0]].group),
    )
    def step(context: dg.AssetCheckExecutionContext, evaluation: EvaluationParam) -> Iterator[dg.AssetCheckResult]:
        errors = []
        for check in declared:
            found = evaluation.check(check)
            if isinstance(found, GateResult):
                context.instance.add_run_tags(context.run.run_id, {VERDICT: gate_verdict(found)})
            yield check_result(check, found)
            if found.error and not found.passed and not check.gate:
                errors.append(f"{check.full_name}: {found.message}")
        if errors:
            raise CheckFailed("; ".join(errors))

    return step


def _check_spec(check: Check) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(check.name, asset=check.table, description=check.description, blocking=check.gate)


class CheckFailed(dg.Failure):
    """A check of severity error failed. Dagster itself fails a run only for blocking checks."""

    def __init__(self, description: str) -> None:
        super().__init__(description, allow_retries=False)


def gate_verdict(found: GateResult) -> str:
    """What the comparison with the baseline says, in words to filter runs by."""
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
