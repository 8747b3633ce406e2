"""The parts of the page that marimo draws: tables, choices, downloads and messages. None renders foreign text."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import marimo as mo
import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.publish.dashboard.charting import chart_rows, chart_svg, charts_by_theme, description
from touchstone.publish.dashboard.downloads import csv_bytes, parquet_bytes
from touchstone.publish.dashboard.figures import descriptions
from touchstone.publish.dashboard.markup import column_cell, labels, listing, paragraph, text
from touchstone.publish.dashboard.selection import Selection
from touchstone.publish.dashboard.side_by_side import SideBySide
from touchstone.publish.dashboard.sql_cell import shown_rows
from touchstone.text import counted

if TYPE_CHECKING:
    import pyarrow as pa

# The labels that were chosen, by the label of the choice.
Kept = dict[str, Sequence[str]]

_PAGE_ROWS = 15


def rows_table(frame: pl.DataFrame, select: Literal["single"] | None = None) -> Any:
    """A table to sort, search and turn over. Its value is the selected row as it is in the frame."""
    numbers = [name for name, dtype in frame.schema.items() if dtype.is_numeric()]
    return mo.ui.table(
        frame,
        selection=select,
        page_size=_PAGE_ROWS,
        pagination=frame.height > _PAGE_ROWS,
        format_mapping={column.name: column_cell(column) for column in frame},
        text_justify_columns=dict.fromkeys(numbers, "right"),
        header_tooltip=descriptions(frame.columns),
        max_columns=None,
        show_column_summaries=False,
        show_data_types=False,
        show_download=False,
    )


def selected(table: Any) -> dict[str, Any] | None:
    """The selected row of a table; None if there is none."""
    rows = table.value
    return rows.row(0, named=True) if isinstance(rows, pl.DataFrame) and rows.height else None


def choice(values: Iterable[str | None], label: str, kept: Kept) -> Any:
    """Any number of values to choose from; none means all. What was chosen stays chosen in another run."""
    options = labels(values)
    before = [name for name in kept.get(label, ()) if name in options]

    def keep(chosen: list[Any]) -> None:
        kept[label] = [name for name, value in options.items() if value in chosen]

    return mo.ui.multiselect(options, value=before, label=label, on_change=keep)


def one_of(values: Iterable[str] | Mapping[str, str], label: str, kept: Kept, *, needed: bool = False) -> Any:
    """One value to choose, with labels if it is a mapping; none to begin with, or the first if one is needed."""
    options = dict(values) if isinstance(values, Mapping) else labels(values)
    first = next(iter(options), None) if needed else None
    before = next((name for name in kept.get(label, ()) if name in options), first)

    def keep(chosen: str | None) -> None:
        kept[label] = [name for name, value in options.items() if value == chosen]

    return mo.ui.dropdown(
        options, value=before, label=label, allow_select_none=not (needed and options), on_change=keep
    )


def downloads(rows: "pl.DataFrame | pa.Table", name: str) -> Any:
    """Buttons that save the rows as CSV and as Parquet; the files are made when they are asked for."""
    return mo.hstack(
        [
            mo.download(lambda: csv_bytes(rows), filename=f"{name}.csv", mimetype="text/csv", label="CSV"),
            mo.download(
                lambda: parquet_bytes(rows),
                filename=f"{name}.parquet",
                mimetype="application/vnd.apache.parquet",
                label="Parquet",
            ),
        ],
        justify="start",
    )


def message(words: str, kind: str = "refused") -> Any:
    """A line of plain text instead of what cannot be shown."""
    return mo.Html(paragraph(words, kind))


def or_message(make: Callable[[], Any]) -> Any:
    """What is made, or one line that says why it cannot be."""
    try:
        return make()
    except (TouchstoneError, OSError, pl.exceptions.PolarsError) as error:
        return message(_reason(error))


def or_stop(make: Callable[[], Any]) -> Any:
    """What is made; otherwise the cell ends with one line that says why, and so do the cells that need it."""
    try:
        return make()
    except (TouchstoneError, OSError, pl.exceptions.PolarsError) as error:
        return mo.stop(True, message(_reason(error)))


def _reason(error: Exception) -> str:
    if isinstance(error, TouchstoneError):
        return str(error)
    return f"the tables cannot be read; if a run has replaced them, reload this page ({type(error).__name__})"


def chart_with_downloads(selection: Selection, name: str) -> Any:
    """A chart in the colours of the page, its picture and its table to save."""
    pictures = [_picture(drawn, theme) for theme, drawn in charts_by_theme(selection, name).items()]
    svg = mo.download(lambda: chart_svg(selection, name), filename=f"{name}.svg", mimetype="image/svg+xml", label="SVG")
    rows = chart_rows(selection, name).collect()
    return mo.vstack([mo.Html("".join(pictures)), mo.hstack([svg, downloads(rows, name)], justify="start")])


class _Picture:
    """A chart as marimo's page draws it: without Vega's own menu, which has no name for screen readers."""

    def __init__(self, chart: dict[str, Any]) -> None:
        self._chart = {**chart, "usermeta": {"embedOptions": {"actions": False, "renderer": "canvas"}}}

    def _mime_(self) -> tuple[str, str]:
        return "application/vnd.vegalite.v6+json", json.dumps(self._chart)


def _picture(drawn: dict[str, Any], theme: str) -> str:
    picture = mo.as_html(_Picture(drawn)).text
    # On a phone it scrolls, so the keyboard must reach it.
    label = text(description(drawn))
    return f'<div class="{theme}-only" role="img" tabindex="0" aria-label="{label}">{picture}</div>'


def side_choices(runs: Sequence[str], models: Iterable[str]) -> Any:
    """Which run and which model, or all models, to put on either side."""
    names = {"all models": None, **labels(models)}
    choices: dict[str, Any] = {}
    for side, run in (("Baseline", runs[-1]), ("Current", runs[0])):
        choices[f"{side} run"] = mo.ui.dropdown(list(runs), value=run, label=f"{side} run")
        choices[f"{side} model"] = mo.ui.dropdown(names, value="all models", label=f"{side} model")
    return mo.ui.dictionary(choices)


def comparison(found: SideBySide) -> Any:
    """The verdicts in words, the number of cases by kind, and the cases that changed."""
    counts = ", ".join(f"{kind} {count:,}" for kind, count in found.counts.items())
    words = mo.Html(listing([*found.verdicts, *found.remarks]) + paragraph(f"Cases: {counts}.", "n"))
    if found.cases.is_empty():
        return mo.vstack([words, message("No case changed.", "n")])
    return mo.vstack([words, rows_table(found.cases), downloads(found.cases, "changed_cases")])


def query_result(result: "pa.Table") -> Any:
    """The rows that a query gave."""
    count = message(counted(result.num_rows, "row"), "n")
    return mo.vstack([count, rows_table(shown_rows(result)), downloads(result, "query")])
