"""Charts straight from the tables of a run, and files of them."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.publish.charts import ThemeName, find_chart, spec
from touchstone.publish.charts.vega import Spec
from touchstone.publish.export import scan_table
from touchstone.publish.views import require_tables, table_files
from touchstone.storage.files import replacing


def draw_results(tables_dir: Path, name: str, *, theme: ThemeName = "light", **options: Any) -> Spec:
    """The chart of that name from the tables of a run."""
    chart = find_chart(name)
    require_tables(tables_dir)
    present = table_files(tables_dir)
    if chart.table not in present:
        raise TouchstoneError(f"the chart '{name}' shows the table '{chart.table}', which these results do not have")
    beside: dict[str, pl.LazyFrame] = {
        option: scan_table(tables_dir, table) for option, table in chart.beside.items() if table in present
    }
    return spec(name, scan_table(tables_dir, chart.table), theme=theme, **beside | options)


def save_chart(chart: Spec, path: Path, format: str, *, follow: bool) -> None:
    """Write the chart as svg, png, html or json; `follow` as in `rendering.html`."""
    from touchstone.publish.charts import rendering

    if format == "png":
        content = rendering.png(chart)
    elif format == "json":
        content = (json.dumps(chart, indent=1, allow_nan=False) + "\n").encode()
    else:
        content = (rendering.svg(chart) if format == "svg" else rendering.html(chart, follow=follow)).encode()
    if path.exists() and not path.is_file():
        raise TouchstoneError(f"{path}: not a file")
    try:
        with replacing(path) as scratch:
            scratch.write_bytes(content)
    except OSError as error:
        raise TouchstoneError(f"{path}: {error.strerror or error}") from error
