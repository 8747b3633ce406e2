"""Shared by the asset files: assets and checks built from their declarations, and table metadata for the UI.

A Dagster step costs more than making or checking a small table. So one step makes the tables of a group, and one step
runs the checks of a table; each is still a separate asset or check.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from touchstone.checks import CHECKS, Check, CheckResult, GateResult
from touchstone.contracts import Table
from touchstone.evaluation import Evaluation
from touchstone.progress import report_step
from touchstone.storage.store import Part, digest
from touchstone.tables import TABLES
from touchstone.text import markdown_text

if TYPE_CHECKING:
    import polars as pl

EvaluationParam = dg.ResourceParam[Evaluation]
Metadata = dict[str, Any]
Figures = Mapping[str, int | float | None]
# Numbers that the UI plots over time, from a table's frame.
Plot = Callable[["pl.DataFrame"], Figures]

# Metadata of an asset: whether its table was already up to date, or how many models' parts were.
REUSED = "unchanged_and_reused"
PARTS_MADE, PARTS_REUSED = "models_made", "models_reused"

_STAGES = list(dict.fromkeys(table.group for table in TABLES.values()))

_PREVIEW_ROWS = 5
_MAX_MODELS = 200
_PREVIEW_WIDTH = 80


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
                yield materialized(evaluation, table.name, (plots or {}).get(table.name))

    return step


def materialized(evaluation: Evaluation, name: str, plot: Plot | None = None) -> dg.MaterializeResult[None]:
    """Materialize a table if stale, and return its metadata for the UI."""
    parts = evaluation.materialize(name)
    if TABLES[name].per_model:
        return per_model(name, parts)
    import polars as pl

    [part] = parts.values()
    figures = plot(pl.read_parquet(part.path)) if plot else {}
    return result(name, part, figures)


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
    def step(evaluation: EvaluationParam) -> Iterator[dg.AssetCheckResult]:
        errors = []
        for check in declared:
            found = evaluation.check(check)
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


def column_schema(table: str, part: Part | None = None) -> dg.TableSchema:
    """The contract's columns with their descriptions, and the extra input columns of a part."""
    contract = TABLES[table]
    columns = [
        dg.TableColumn(name, column.type_name, description=column.description)
        for name, column in contract.schema.columns().items()
    ]
    if part is not None and contract.extras:
        import polars as pl

        present = pl.read_parquet_schema(part.path)
        extras = [name for name in present if name not in contract.dtypes]
        columns += [dg.TableColumn(name, str(present[name]), description=contract.extras) for name in extras]
    return dg.TableSchema(columns)


def table_metadata(table: str) -> Metadata:
    """The metadata of a table before it is materialized."""
    return {"dagster/column_schema": column_schema(table), "grain": f"one row per {TABLES[table].grain}"}


def made(table: str, part: Part) -> Metadata:
    """The metadata of a part: its row count, first rows and extra columns, and whether it was reused."""
    import polars as pl

    # The asset spec lists the contract's columns; repeating them in every event would bloat the history.
    columns = {"dagster/column_schema": column_schema(table, part)} if TABLES[table].extras else {}
    return {
        "dagster/row_count": part.rows,
        **columns,
        "preview": preview(pl.scan_parquet(part.path, glob=False)),
        REUSED: part.reused,
    }


def preview(frame: "pl.LazyFrame", most: int = _PREVIEW_ROWS) -> dg.MetadataValue:
    """The first rows as a Markdown table."""
    import polars as pl

    cut = frame.head(most).select(pl.all().cast(pl.String)).collect()
    lines = [" | ".join(map(markdown_text, cut.columns)), " | ".join("---" for _ in cut.columns)]
    lines += [" | ".join(markdown_text(_one_line(cell or "")) for cell in row) for row in cut.iter_rows()]
    return dg.MetadataValue.md("\n".join(f"| {line} |" for line in lines))


def _one_line(cell: str) -> str:
    return re.sub(r"[\r\n]+", " ", cell)[:_PREVIEW_WIDTH]


def result(table: str, part: Part, figures: Figures) -> dg.MaterializeResult[None]:
    """The result of a table with one part."""
    shown = {name: value for name, value in figures.items() if value is not None}
    return dg.MaterializeResult(
        asset_key=table, metadata={**made(table, part), **shown}, data_version=dg.DataVersion(part.fingerprint)
    )


def plotted(names: Sequence[str], figures: Sequence[str]) -> Plot:
    """A plot of the given figures, each labelled with the values of `names`."""

    def plot(table: "pl.DataFrame") -> Figures:
        rows = table.select(*names, *figures).iter_rows(named=True)
        return {f"{' '.join(str(row[each]) for each in names)} {name}": row[name] for row in rows for name in figures}

    return plot


def per_model(
    table: str, parts: Mapping[str, Part], figures: Mapping[str, Figures] | None = None
) -> dg.MaterializeResult[None]:
    """The result of a table with a part per model: totals, and a line per model with its figures."""
    import polars as pl

    lines = [
        {"model": model, "rows": part.rows, REUSED: part.reused, **(figures or {}).get(model, {})}
        for model, part in parts.items()
    ]
    reused = sum(part.reused for part in parts.values())
    made_from = {model: part.fingerprint for model, part in parts.items()}
    return dg.MaterializeResult(
        asset_key=table,
        metadata={
            "dagster/row_count": sum(part.rows for part in parts.values()),
            PARTS_MADE: len(parts) - reused,
            PARTS_REUSED: reused,
            "models": preview(pl.LazyFrame(lines), _MAX_MODELS),
        },
        data_version=dg.DataVersion(digest(made_from)),
    )


def parts_of(metadata: Mapping[str, dg.MetadataValue]) -> tuple[int, int]:
    """How many parts of tables a materialization made, and how many it found up to date."""
    if REUSED in metadata:
        reused = bool(metadata[REUSED].value)
        return int(not reused), int(reused)
    made, kept = (metadata[name].value if name in metadata else 0 for name in (PARTS_MADE, PARTS_REUSED))
    return int(str(made)), int(str(kept))


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
        description=found.message,
        metadata={**found.figures, **report},
    )
