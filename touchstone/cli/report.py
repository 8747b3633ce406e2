"""Commands that draw pages and pictures: `report`, `site` over several runs, `explore` in the browser, and `chart`."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import typer

from touchstone.cli.console import print_data, print_messages, show_progress
from touchstone.cli.options import DATA_OPTION, DRAFT_OPTION, output_folder, tables_folder
from touchstone.errors import TouchstoneError
from touchstone.locations import output_location

commands = typer.Typer()


@commands.command()
def report(
    data: Annotated[Path | None, DATA_OPTION] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    format: Annotated[
        Literal["html", "markdown", "latex"] | None,
        typer.Option(
            help="A page, Markdown for a pull request, or LaTeX tables for a paper. "
            "[default: the one --save-to implies, else html]"
        ),
    ] = None,
    save_to: Annotated[
        Path | None, typer.Option(help="Write to this file. [default: report.html in DATA; the others are printed]")
    ] = None,
    draft: Annotated[bool, DRAFT_OPTION] = False,
) -> None:
    """Write the report on a run: one page that needs nothing else, Markdown, or LaTeX tables."""
    folder = output_folder(data)
    implied = {".md": "markdown", ".tex": "latex"}.get(save_to.suffix if save_to is not None else "", "html")
    if (wanted := format or implied) != "html":
        _text(tables_folder(folder, draft).parent, wanted, save_to, open_=open_)
        return
    page = _page(folder, save_to, draft=draft)
    print(page)
    if open_:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())


def _text(results: Path, format: str, save_to: Path | None, *, open_: bool) -> None:
    from touchstone.publish.report import report_latex, report_markdown

    if open_:
        raise TouchstoneError(f"--open is for the page: leave --format {format} out")
    with show_progress("writing the report"):
        text = report_markdown(results) if format == "markdown" else report_latex(results)
    if save_to is None:
        print_data(text)
    else:
        _save(text, save_to)


def _page(folder: Path, save_to: Path | None, *, draft: bool) -> Path:
    """The file of the page. The one that the run published is up to date and is not drawn again."""
    from touchstone.publish.report import report_html
    from touchstone.storage.store import REPORT_PAGE

    results = tables_folder(folder, draft).parent
    place = save_to or (folder if draft else results) / REPORT_PAGE
    if save_to is None and draft:
        raise TouchstoneError(f"--draft: name the file with --save-to; {place} is about the published run")
    is_published = place.is_symlink() or results != folder
    if save_to is None and is_published and place.is_file():
        return place
    with show_progress("drawing the report"):
        text = report_html(results)
    _save(text, place)
    return place


def _save(text: str, path: Path) -> None:
    from touchstone.publish.formats import saving

    with saving(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


@commands.command()
def site(
    folders: Annotated[
        list[Path],
        typer.Argument(parser=output_location, metavar="DIR", help="Output folders of runs, one per benchmark."),
    ],
    output: Annotated[
        Path, typer.Option(metavar="SITE", help="Folder for the pages: a new one, or an earlier site to replace.")
    ],
) -> None:
    """Write a site over several runs: a leaderboard across benchmarks, a page per model and per benchmark.

    Static pages for any web host, or to open from disk. A folder that cannot be read is named, and the exit code is 2.
    """
    from touchstone.publish.site import INDEX, write_site

    with show_progress("reading the runs"):
        unread = write_site(folders, output)
    print(output / INDEX)
    print_messages("error", unread)
    if unread:
        raise typer.Exit(2)


_PORT = 2718


@commands.command()
def explore(
    data: Annotated[Path | None, DATA_OPTION] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=f"Port. [default: {_PORT}, else any that is free]")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
) -> None:
    """Explore the results in the browser. Stop with Ctrl-C."""
    from touchstone.publish.dashboard.server import open_in_browser, serve
    from touchstone.publish.local_server import is_loopback, listen
    from touchstone.publish.views import require_tables
    from touchstone.storage.output_folders import is_of_any_run, results_folder

    folder = results_folder(output_folder(data), is_of_any_run)
    require_tables(folder / "tables")
    try:
        listening = listen(host, _PORT if port is None else port)
    except TouchstoneError:
        if port is not None:
            raise
        listening = listen(host, 0)
    if not is_loopback(host):
        print(
            f"warning: everyone who can reach {host} and has the address with its token can read these results "
            "and comment and rule on attempts",
            file=sys.stderr,
        )

    def announce(address: str) -> None:
        print(f"{address} (stop with Ctrl-C)", flush=True)
        if not no_open:
            open_in_browser(address)

    with suppress(KeyboardInterrupt):
        serve(folder, host, listening, announce)


_SUFFIXES = {".svg": "svg", ".png": "png", ".html": "html", ".htm": "html", ".json": "json"}


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
