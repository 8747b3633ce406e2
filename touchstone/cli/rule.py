"""`touchstone rule`: a person's ruling on an attempt or a problem, kept beside the inputs."""

from pathlib import Path
from typing import Annotated

import typer

from touchstone.cli.options import DATA_OPTION, output_folder
from touchstone.errors import TouchstoneError
from touchstone.text import counted, visible
from touchstone.vocabulary import RULINGS

commands = typer.Typer()


@commands.command()
def rule(
    first: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model. Leave it out, or give '*', to exclude a problem for all.")
    ],
    second: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, by its oid.")],
    third: Annotated[
        str | None, typer.Argument(metavar="ATTEMPT", help="Attempt, by its iteration_id. [default: all attempts]")
    ] = None,
    fourth: Annotated[
        str | None, typer.Argument(metavar="RULING", help=f"One of {', '.join(RULINGS)}: the last word.")
    ] = None,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the report shows it.")],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who rules.")],
    tier: Annotated[str | None, typer.Option(help="Tier. [default: all, or the one that has the attempt]")] = None,
    data: Annotated[Path | None, DATA_OPTION] = None,
) -> None:
    """Rule on an attempt or a problem. The next run counts the ruling and keeps the measured outcome beside it.

    Adds a line to rulings.jsonl beside the inputs. To take a ruling back, delete its line.
    """
    from touchstone.cli.console import relative_path
    from touchstone.publish.ruling import rule_on_attempts, rule_on_problem, rulings_file
    from touchstone.storage.output_folders import results_folder

    *names, ruling = [word for word in (first, second, third, fourth) if word is not None]
    if ruling not in RULINGS:
        raise TouchstoneError(f"'{ruling}' is not a ruling; end with one of {', '.join(RULINGS)}")
    results = results_folder(output_folder(data))
    if len(names) == 1 or names[0] == "*":
        if len(names) == 3 or tier is not None:
            raise TouchstoneError("a problem is excluded as a whole; name no attempt and no tier, or name the model")
        rulings = rule_on_problem(results, names[-1], ruling, reason, by)
    else:
        model, problem, attempt = names[0], names[1], names[2] if len(names) == 3 else None
        rulings = rule_on_attempts(results, model, tier, problem, attempt, ruling, reason, by)
    for each in rulings:
        who = f"{each.model}, {each.tier}, {each.problem}, attempt {each.attempt}" if each.model else each.problem
        print(visible(f"{who}: {each.was or 'counted'} → {'excluded' if ruling == 'exclude' else ruling}"))
    added = f"{counted(len(rulings), 'line')} added to {relative_path(rulings_file(results))}"
    print(f"{added}; `touchstone run` applies {'it' if len(rulings) == 1 else 'them'}")
