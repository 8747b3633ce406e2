"""`touchstone show`: the attempts of a model at a problem, or one attempt in full."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from touchstone.cli.options import DATA_OPTION, output_folder
from touchstone.cli.safe_output import print_data
from touchstone.errors import TouchstoneError

if TYPE_CHECKING:
    import polars as pl

commands = typer.Typer()


@commands.command()
def show(
    model: Annotated[str, typer.Argument(help="Model.")],
    problem: Annotated[str, typer.Argument(help="Problem, by its oid.")],
    attempt: Annotated[
        str | None, typer.Argument(help="Attempt, by its iteration_id. [default: list all attempts]")
    ] = None,
    data: Annotated[Path | None, DATA_OPTION] = None,
    tier: Annotated[str | None, typer.Option(help="Tier. [default: all, or the one that has the attempt]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the attempts of a model at a problem, or one attempt in full: diff, diagnostics, tests, cost."""
    from touchstone.publish.attempt_detail import attempt_detail, attempts_of
    from touchstone.storage.output_folders import results_folder

    folder = results_folder(output_folder(data))
    listed = attempts_of(folder, model, tier, problem)
    if attempt is None:
        if as_json:
            print_data(listed.write_json() + "\n")
            return
        from touchstone.cli.attempt_tables import show_attempts

        show_attempts(listed)
        return
    detail = attempt_detail(folder, model, tier or _only_tier(listed, attempt), problem, attempt)
    if as_json:
        print_data(json.dumps(asdict(detail), indent=1) + "\n")
        return
    from touchstone.cli.attempt_tables import show_attempt

    show_attempt(detail)


def _only_tier(listed: "pl.DataFrame", attempt: str) -> str:
    """The tier that has the attempt; of several, the user must choose."""
    having = listed.filter(listed["iteration_id"] == attempt) if attempt in listed["iteration_id"] else listed
    tiers = having["tier"].unique().sort().to_list()
    if len(tiers) > 1:
        raise TouchstoneError(f"attempt '{attempt}' exists in several tiers; add --tier {' or '.join(tiers)}")
    return str(tiers[0])
