"""What the UI shows about a table: columns, row count, first rows, figures over time, and whether it was reused.

How a table looks belongs in `touchstone.publish.previews`; the metadata of single assets in the file of their stage.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from touchstone.publish.inline_charts import INLINE, inline_chart
from touchstone.storage.parts import Part, digest
from touchstone.tables import TABLES
from touchstone.text import visible

if TYPE_CHECKING:
    import polars as pl

Metadata = dict[str, Any]
Figures = Mapping[str, int | float | None]
# What a table's asset shows besides its first rows, mostly numbers that the UI plots over time.
Plot = Callable[["pl.DataFrame"], Mapping[str, Any]]

# Metadata of an asset: whether its table was already up to date, or how many models' parts were.
REUSED = "unchanged_and_reused"
PARTS_MADE, PARTS_REUSED = "models_made", "models_reused"

CHART, LEADERBOARD = "chart", "leaderboard"

_MAX_MODELS = 200


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
        columns += [dg.TableColumn(visible(name), str(present[name]), description=contract.extras) for name in extras]
    return dg.TableSchema(columns)


def table_metadata(table: str) -> Metadata:
    """The metadata of a table before it is materialized."""
    declared = TABLES[table]
    return {
        "dagster/column_schema": column_schema(table),
        "grain": f"one row per {declared.grain}",
        "made_by": declared.made_by,
        **({"settings": ", ".join(declared.settings)} if declared.settings else {}),
    }


def made(table: str, part: Part) -> Metadata:
    """The metadata of a part: its row count, first rows and extra columns, and whether it was reused."""
    import polars as pl

    # The asset spec lists the contract's columns; repeating them in every event would bloat the history.
    columns = {"dagster/column_schema": column_schema(table, part)} if TABLES[table].extras else {}
    return {
        "dagster/row_count": part.rows,
        **columns,
        "preview": shown_rows(pl.scan_parquet(part.path, glob=False), table),
        REUSED: part.reused,
    }


def shown_rows(frame: "pl.LazyFrame", table: str, most: int | None = None) -> dg.MarkdownMetadataValue:
    """The first rows of a table in Markdown, which the UI puts behind a link from 1,000 characters on.

    Most tables are wider than the panel beside the graph, where a table of Dagster would hide everything else.
    """
    from touchstone.publish.previews import ROWS, preview

    return dg.MetadataValue.md(preview(frame, table, most or ROWS).markdown)


def leaderboard_metadata(pass_at_k: "pl.DataFrame") -> Metadata:
    """The leaderboard as a table that the UI shows at once, the methods of its intervals, and what it leaves out."""
    from touchstone.publish.previews import leaderboard

    board = leaderboard(pass_at_k)
    cut = {"leaderboard_rows": f"the best {len(board.rows):,} of {board.total:,}"} if board.is_cut else {}
    methods = sorted(pass_at_k["ci_method"].drop_nulls().unique())
    records = [dg.TableRecord(dict(zip(board.columns, row, strict=True))) for row in board.rows]
    schema = dg.TableSchema([dg.TableColumn(name) for name in board.columns])
    return {
        LEADERBOARD: dg.MetadataValue.table(records, schema),
        **cut,
        "confidence_intervals": ", ".join(methods) or "none",
    }


def result(table: str, part: Part, figures: Mapping[str, Any]) -> dg.MaterializeResult[None]:
    """The result of a table with one part: its leaderboard or chart first, its numbers last."""
    first = {name: figures[name] for name in (CHART, LEADERBOARD) if name in figures}
    metadata = {**first, **made(table, part), **rounded(figures)}
    return dg.MaterializeResult(asset_key=table, metadata=metadata, data_version=dg.DataVersion(part.fingerprint))


def rounded(figures: Mapping[str, Any]) -> Metadata:
    """Figures with as many digits as people read and compare; those that are undefined are left out.

    >>> rounded({"a": 2 / 3, "b": None, "c": 0.00012345678, "d": 7})
    {'a': 0.6667, 'c': 0.0001235, 'd': 7}
    """
    short = {name: float(f"{value:.4g}") for name, value in figures.items() if isinstance(value, float)}
    return {name: short.get(name, value) for name, value in figures.items() if value is not None}


def chart_metadata(context: dg.AssetExecutionContext, table: str, part: Part) -> Metadata:
    """The chart of a table, if it has one: that of the last run if the table is the same, else drawn anew."""
    if table not in INLINE:
        return {}
    last = context.instance.get_latest_materialization_event(dg.AssetKey(table))
    known = last.asset_materialization if last else None
    if known and (known.tags or {}).get(DATA_VERSION_TAG) == part.fingerprint and CHART in known.metadata:
        return {CHART: known.metadata[CHART]}
    import polars as pl

    drawn = inline_chart(table, pl.read_parquet(part.path))
    return {CHART: dg.MetadataValue.md(drawn)} if drawn else {}


def plotted(names: Sequence[str], figures: Sequence[str]) -> Plot:
    """A plot of the given figures, each labelled with the values of `names`."""

    def plot(table: "pl.DataFrame") -> Figures:
        rows = table.select(*names, *figures).iter_rows(named=True)
        return {
            visible(" ".join([*(str(row[of]) for of in names), name])): row[name] for row in rows for name in figures
        }

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
            "models": shown_rows(pl.LazyFrame(lines), "", _MAX_MODELS),
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
