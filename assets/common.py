"""What the asset files share: steps, and how an asset tells the UI what it made.

A step of Dagster's costs more than making a small table or judging it. So tables that belong together are made in one
step, and the checks of a table judge in one; each is an asset or a check of its own all the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl

from touchstone.checks import Finding
from touchstone.contracts import TABLES
from touchstone.evaluation import Evaluation
from touchstone.progress import report_step
from touchstone.storage.store import Part, digest

EvaluationParam = dg.ResourceParam[Evaluation]
Metadata = dict[str, Any]
Figures = dict[str, int | float | None]

# How a table is made, and how one is judged: functions whose names and docstrings are those of the asset or check.
Maker = Callable[[Evaluation], dg.MaterializeResult[None]]
Judge = Callable[[Evaluation], dg.AssetCheckResult]

# Metadata of an asset: whether its table was up to date already, or how many models' parts were.
REUSED = "unchanged_and_reused"
PARTS_MADE, PARTS_REUSED = "models_made", "models_reused"

_PREVIEW_ROWS = 5
_MAX_MODELS = 200
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
                report_step(name)
                yield make(evaluation)._replace(asset_key=dg.AssetKey(name))

    return step


def checks_in_one_step(asset: str, judges: Sequence[Judge], gates: Sequence[Judge] = ()) -> dg.AssetChecksDefinition:
    """Checks of one asset. Where a gate finds an error, nothing that depends on the asset is made.

    An error of another check fails the step too, and so the run, but everything else goes on and is published.
    """
    by_name = {_name(judge): judge for judge in (*gates, *judges)}
    specs = [
        dg.AssetCheckSpec(_name(judge), asset=asset, description=judge.__doc__, blocking=judge in gates)
        for judge in by_name.values()
    ]

    @dg.multi_asset_check(name=f"{asset}_checks", specs=specs)
    def step(evaluation: EvaluationParam) -> Iterator[dg.AssetCheckResult]:
        errors = []
        for name, judge in by_name.items():
            found = judge(evaluation)._replace(check_name=name, asset_key=dg.AssetKey(asset))
            yield found
            if not found.passed and found.severity == dg.AssetCheckSeverity.ERROR:
                if judge in gates:
                    evaluation.stopped_by_gate = True
                else:
                    errors.append(f"{asset}.{name}: {found.description}")
        if errors:
            raise CheckFailed("; ".join(errors))

    return step


class CheckFailed(dg.Failure):
    """A check of severity error failed. Dagster itself fails a run only where a check blocks."""

    def __init__(self, description: str) -> None:
        super().__init__(description, allow_retries=False)


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
        REUSED: part.reused,
    }


def preview(frame: pl.LazyFrame, most: int = _PREVIEW_ROWS) -> dg.MetadataValue:
    """The first rows as a Markdown table."""
    rows = frame.head(most).collect()
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


def each_model(evaluation: Evaluation, what: str) -> Iterator[str]:
    """Every model that has a fixes file, with progress reported as the work comes to it."""
    models = list(evaluation.discovery.sources)
    for place, model in enumerate(models, start=1):
        report_step(f"{what} of {model} ({place} of {len(models)})")
        yield model


def per_model(table: str, parts: Mapping[str, Part], figures: Mapping[str, Figures]) -> dg.MaterializeResult[None]:
    """The result of a table that has a part per model: totals, and a line per model with its figures."""
    lines = [
        {"model": model, "rows": part.rows, REUSED: part.reused, **figures.get(model, {})}
        for model, part in parts.items()
    ]
    reused = sum(part.reused for part in parts.values())
    made_from = {model: part.fingerprint for model, part in parts.items()}
    return dg.MaterializeResult(
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


def check_result(finding: Finding, told: Metadata | None = None) -> dg.AssetCheckResult:
    """A finding as Dagster shows it, with whatever else there is to tell."""
    return dg.AssetCheckResult(
        passed=finding.passed,
        severity=dg.AssetCheckSeverity.ERROR if finding.error else dg.AssetCheckSeverity.WARN,
        description=finding.message,
        metadata={**finding.figures, **(told or {})},
    )
