"""`touchstone report`: the report on a run as a page, as Markdown, or its tables as LaTeX."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.options import DATA_OPTION, DRAFT_OPTION, output_folder, tables_folder
from touchstone.cli.safe_output import print_data
from touchstone.errors import TouchstoneError

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
