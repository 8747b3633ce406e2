"""What the UI shows about a table: its chart, figures over time, row count, first rows, and columns.

How rows look belongs in `touchstone.publish.previews`; which figures are plotted is declared in `assets.figures`.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.figures import FIGURES, outcome_counts, rounded
from touchstone.evaluation import Evaluation
from touchstone.publish.inline_charts import MAX_CHARACTERS, inline_chart
from touchstone.storage.store import Part
from touchstone.tables import TABLES
from touchstone.text import visible

# Dagster's tag of a materialization.
DATA_VERSION = "dagster/data_version"
# Not Dagster's own key, whose columns fill the page before the figures.
COLUMNS = "columns"
_MAX_MODELS = 200


def table_metadata(table: str) -> dict[str, Any]:
    """The metadata of a table before it is materialized."""
    declared = TABLES[table]
    return {
        "grain": f"one row per {declared.grain}",
        "made_by": f"{declared.code[0]}:{table}",
        **({"settings": ", ".join(declared.settings)} if declared.settings else {}),
        COLUMNS: _columns(table),
    }


def table_result(evaluation: Evaluation, table: str, parts: Mapping[str, Part]) -> dg.MaterializeResult[None]:
    """A table that was made or found current, for the UI: what people look for first comes first."""
    import polars as pl

    from touchstone.publish.previews import preview

    store, declared = evaluation.store, TABLES[table]
    frame = store.scan(table)
    chart = inline_chart(table, frame) if evaluation.config.publish.charts else None
    # The parts of models can be many and large: the largest shows what is in them.
    part = max(parts.values(), key=lambda part: part.rows)
    rows = pl.scan_parquet(part.path, glob=False) if declared.per_model or len(parts) == 1 else frame
    snapshot = evaluation.publish.snapshot if table == "history" else None
    metadata = {
        **({"chart": dg.MetadataValue.md(chart)} if chart else {}),
        **rounded(FIGURES[table](frame) if table in FIGURES else {}),
        "dagster/row_count": sum(part.rows for part in parts.values()),
        # Of most tables some rows are shown at once; a table of Dagster would fill the panel beside the graph.
        "preview": dg.MetadataValue.md(preview(rows, table).markdown(MAX_CHARACTERS)),
        **(_models(evaluation, table, parts) if declared.per_model else {}),
        **({} if declared.per_model else {"unchanged_and_reused": all(part.reused for part in parts.values())}),
        **({"snapshot": snapshot.id} if snapshot else {}),
        **rounded(evaluation.run_log.figures(table)),
        # The asset spec lists the contract's columns; repeating them in every event would bloat the history.
        **({COLUMNS: _columns(table, part)} if declared.extras else {}),
    }
    return dg.MaterializeResult(table, metadata=metadata, data_version=dg.DataVersion(store.fingerprint(table)))


def _columns(table: str, part: Part | None = None) -> dg.TableSchema:
    """The contract's columns with their descriptions, and the extra input columns of a part."""
    contract = TABLES[table]
    columns = [
        dg.TableColumn(name, field.type_name, description=field.description) for name, field in contract.fields.items()
    ]
    if part is not None:
        import polars as pl

        present = pl.read_parquet_schema(part.path)
        extras = [name for name in present if name not in contract.dtypes]
        columns += [dg.TableColumn(visible(name), str(present[name]), description=contract.extras) for name in extras]
    return dg.TableSchema(columns)


def _models(evaluation: Evaluation, table: str, parts: Mapping[str, Part]) -> dict[str, Any]:
    """A line per model, and how many models were made or reused."""
    import polars as pl

    from touchstone.publish.previews import preview

    counts = outcome_counts(evaluation.store.scan(table, list(parts))) if table == "outcomes" else {}
    lines = [
        {"model": model, "rows": part.rows, "reused": part.reused, **counts.get(model, {})}
        for model, part in parts.items()
    ]
    reused = sum(part.reused for part in parts.values())
    shown = dg.MetadataValue.md(preview(pl.LazyFrame(lines), "", _MAX_MODELS).markdown())
    return {"models": shown, "models_made": len(parts) - reused, "models_reused": reused}
