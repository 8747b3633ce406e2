"""`touchstone audit`: one screen on what a hostile reader would attack in a run."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.options import DATA_OPTION, JSON_OPTION, input_argument, output_folder
from touchstone.errors import TouchstoneError

commands = typer.Typer()


@commands.command()
def audit(
    paths: Annotated[
        list[Path] | None, input_argument("Files and folders with results of any known format; see also --data.")
    ] = None,
    data: Annotated[Path | None, DATA_OPTION] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Say what a hostile reader would attack: problems, passes, rulings, undecided attempts, comparability, tests."""
    from touchstone.storage.output_folders import results_folder

    if not paths:
        _show(results_folder(output_folder(data)), as_json)
        return
    if data is not None:
        raise TouchstoneError("give either PATH… or --data, not both")
    for path in paths:
        if not path.exists():
            raise TouchstoneError(f"{path}: no such file or folder")
    from touchstone.api import evaluate

    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        with show_progress("evaluating"):
            results = evaluate(paths, output_dir=Path(scratch) / "results")
        _show(results.folder, as_json)


def _show(folder: Path, as_json: bool) -> None:
    from touchstone.cli.json_output import print_json
    from touchstone.cli.terminal_tables import show_table, terminal
    from touchstone.publish.audit import audit_table
    from touchstone.publish.reported_run import ReportedRun

    run = ReportedRun(folder)
    table = audit_table(run)
    if as_json:
        print_json({"findings": list(table.rows), "first": table.notes[0]})
    else:
        show_table(terminal(), table, len(table.rows))
    if any(check.error and not check.passed for check in run.checks):
        raise typer.Exit(1)
