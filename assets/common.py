"""What the asset files share: the partition per model, steps, and how an asset tells the UI what it made.

A step of Dagster's costs more than making a small table or judging it. So tables that belong together are made in one
step, and the checks of a table judge in one; each is an asset or a check of its own all the same.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl

from touchstone.checks import Finding
from touchstone.contracts import TABLES
from touchstone.evaluation import Evaluation
from touchstone.progress import tell
from touchstone.store import Part, digest

EvaluationParam = dg.ResourceParam[Evaluation]
Metadata = dict[str, Any]
Figures = dict[str, int | float | None]

# One run for all models is what the graph is built on; the notice that the feature is young helps no user.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

models = dg.DynamicPartitionsDefinition(name="models")
ALL_MODELS = "touchstone/all_models"
all_models_in_one_run = dg.BackfillPolicy.single_run()

# How a table is made, and how one is judged: functions whose names and docstrings are those of the asset or check.
Maker = Callable[[Evaluation], dg.MaterializeResult[None]]
Judge = Callable[[Evaluation], dg.AssetCheckResult]

_PREVIEW_ROWS = 5
_PREVIEW_WIDTH = 80


def tables_in_one_step(group: str, tables: Mapping[Maker, Sequence[str]]) -> dg.AssetsDefinition:
    """Assets for tables that are made one after the other; each maker comes with the assets that it reads."""
    makers = {_name(make): make for make in tables}
    specs = [
        dg.AssetSpec(
            _name(make),
            deps=reads,
            description=make.__doc__,
            group_name=group,
            kinds={"polars"},
            metadata=table_metadata(_name(make)),
        )
        for make, reads in tables.items()
    ]

    @dg.multi_asset(name=f"{group}_tables", specs=specs, can_subset=True)
    def step(context: dg.AssetExecutionContext, evaluation: EvaluationParam) -> Iterator[dg.MaterializeResult[None]]:
        for name, make in makers.items():
            if dg.AssetKey(name) in context.selected_asset_keys:
                tell(name)
                yield make(evaluation)._replace(asset_key=dg.AssetKey(name))

    return step


def checks_in_one_step(asset: str, judges: Sequence[Judge], gates: Sequence[Judge] = ()) -> dg.AssetChecksDefinition:
    """Checks of one asset. Where a gate finds an error, nothing that depends on the asset is made."""
    by_name = {_name(judge): judge for judge in (*gates, *judges)}
    specs = [
        dg.AssetCheckSpec(_name(judge), asset=asset, description=judge.__doc__, blocking=judge in gates)
        for judge in by_name.values()
    ]

    @dg.multi_asset_check(name=f"{asset}_checks", specs=specs)
    def step(evaluation: EvaluationParam) -> Iterator[dg.AssetCheckResult]:
        for name, judge in by_name.items():
            yield judge(evaluation)._replace(check_name=name, asset_key=dg.AssetKey(asset))

    return step


def _name(function: Maker | Judge) -> str:
    # A table that has the name of its module ends in an underscore there.
    return function.__name__.rstrip("_")


def column_schema(table: str, part: Part | None = None) -> dg.TableSchema:
    """The contract's columns with their descriptions, and the input's own columns where a part has them."""
    contract = TABLES[table]
    columns = [
        dg.TableColumn(name, str(dtype), description=contract.descriptions[name])
        for name, dtype in contract.dtypes.items()
    ]
    if part is not None and contract.extras:
        present = pl.read_parquet_schema(part.path)
        extras = [name for name in present if name not in contract.dtypes]
        columns += [dg.TableColumn(name, str(present[name]), description=contract.extras) for name in extras]
    return dg.TableSchema(columns)


def table_metadata(table: str) -> Metadata:
    """What the UI knows of a table before it is made."""
    return {"dagster/column_schema": column_schema(table), "grain": f"one row per {TABLES[table].grain}"}


def made(table: str, part: Part) -> Metadata:
    """What the UI shows of a part: rows, the first of them, the input's own columns, and whether it was made anew."""
    # The contract's columns are told by the asset itself; repeated with every event they would be most of the history.
    columns = {"dagster/column_schema": column_schema(table, part)} if TABLES[table].extras else {}
    return {
        "dagster/row_count": part.rows,
        **columns,
        "preview": preview(pl.scan_parquet(part.path, glob=False)),
        "unchanged_and_reused": part.reused,
    }


def preview(frame: pl.LazyFrame) -> dg.MetadataValue:
    """The first rows as a Markdown table."""
    rows = frame.head(_PREVIEW_ROWS).collect()
    cut = rows.select(pl.all().cast(pl.String).str.replace_all(r"[|\r\n]+", " ").str.head(_PREVIEW_WIDTH))
    lines = [" | ".join(cut.columns), " | ".join("---" for _ in cut.columns)]
    lines += [" | ".join(cell if cell is not None else "" for cell in row) for row in cut.iter_rows()]
    return dg.MetadataValue.md("\n".join(f"| {line} |" for line in lines))


def result(table: str, part: Part, figures: Figures | None = None) -> dg.MaterializeResult[None]:
    """An asset's result for a table that is one part."""
    shown = {name: value for name, value in (figures or {}).items() if value is not None}
    return dg.MaterializeResult(metadata={**made(table, part), **shown}, data_version=dg.DataVersion(part.fingerprint))


def plotted(part: Part, names: list[str], figures: list[str]) -> Figures:
    """Figures as numbers under their group's name, so that the UI plots their history."""
    rows = pl.read_parquet(part.path).select(*names, *figures).iter_rows(named=True)
    return {f"{' '.join(str(row[name]) for name in names)} {figure}": row[figure] for row in rows for figure in figures}


def per_model(context: dg.AssetExecutionContext, table: str, parts: dict[str, Part]) -> dg.MaterializeResult[None]:
    """A partitioned asset's result: each model's partition gets its own figures."""
    for model, part in parts.items():
        figures = {"dagster/row_count": part.rows, "unchanged_and_reused": part.reused}
        context.add_asset_metadata(figures, partition_key=model)
    reused = sum(part.reused for part in parts.values())
    context.log.info(f"{table}: {len(parts) - reused} of {len(parts)} models made, {reused} unchanged and reused")
    made_from = {model: part.fingerprint for model, part in parts.items()}
    return dg.MaterializeResult(data_version=dg.DataVersion(digest(made_from)))


def check_result(finding: Finding, told: Metadata | None = None) -> dg.AssetCheckResult:
    """A finding as Dagster shows it, with whatever else there is to tell."""
    return dg.AssetCheckResult(
        passed=finding.passed,
        severity=dg.AssetCheckSeverity.ERROR if finding.error else dg.AssetCheckSeverity.WARN,
        description=finding.message,
        metadata={**finding.figures, **(told or {})},
    )
