"""`touchstone chart`: one chart of a run as SVG, PNG, a page or Vega-Lite."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.options import DATA_OPTION, DRAFT_OPTION, tables_folder
from touchstone.errors import TouchstoneError

_SUFFIXES = {".svg": "svg", ".png": "png", ".html": "html", ".htm": "html", ".json": "json"}

commands = typer.Typer()


@commands.command()
def chart(
    name: Annotated[str | None, typer.Argument(help="Name of a chart; --list shows them.")] = None,
    data: Annotated[Path | None, DATA_OPTION] = None,
    save_to: Annotated[Path | None, typer.Option(help="File to write: .svg, .png, .html or .json (Vega-Lite).")] = None,
    theme: Annotated[
        Literal["light", "dark"] | None,
        typer.Option(help="Colours. [default: light; a page follows the reader's system]"),
    ] = None,
    list_charts: Annotated[bool, typer.Option("--list", help="List the charts and the tables they show.")] = False,
    draft: Annotated[bool, DRAFT_OPTION] = False,
) -> None:
    """Draw a chart of the results as SVG, PNG or an interactive page."""
    from touchstone.publish.charts import CHARTS, find_chart

    if list_charts:
        for each in CHARTS.values():
            print(f"{each.name:<18} {each.title} (table {each.table})")
        return
    if name is None:
        raise TouchstoneError("name a chart: touchstone chart NAME --save-to FILE.svg (--list shows them)")
    find_chart(name)
    if save_to is None:
        raise TouchstoneError("a chart is a file: add --save-to FILE.svg, .png, .html or .json")
    format = _SUFFIXES.get(save_to.suffix.lower())
    if format is None:
        raise TouchstoneError(f"--save-to {save_to.name}: end the name in .svg, .png, .html or .json")
    from touchstone.publish.charts.rendering import draw_results, save_chart

    with show_progress("drawing"):
        drawn = draw_results(tables_folder(data, draft), name, theme=theme or "light")
        save_chart(drawn, save_to, format, follow=theme is None)
