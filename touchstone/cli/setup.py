"""Commands to get started: `doctor` checks the installation, `synth` writes synthetic data."""

from pathlib import Path
from typing import Annotated

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.init import init
from touchstone.cli.options import MultiValueCommand

commands = typer.Typer()
commands.command()(init)


@commands.command(cls=MultiValueCommand)
def synth(
    output: Annotated[Path, typer.Option(help="Folder to write to.")],
    problems: Annotated[int, typer.Option(help="Number of problems.")] = 10,
    iterations: Annotated[int, typer.Option(help="Attempts per problem.")] = 20,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed writes the same bytes.")] = 7,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME=RATE…", help="Models and their mean pass rates.")
    ] = None,
    tiers: Annotated[int, typer.Option(help="Number of tiers.")] = 1,
    force: Annotated[bool, typer.Option(help="Overwrite existing files.")] = False,
) -> None:
    """Write synthetic problems and outcomes, for trying things out."""
    from touchstone.ingest.synthetic import parse_models, synthesise

    models = parse_models(model) if model else None
    with show_progress("writing"):
        paths = synthesise(
            output, problems=problems, iterations=iterations, seed=seed, models=models, tiers=tiers, force=force
        )
    for path in paths:
        print(path)


@commands.command()
def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Also prove sandboxes, estimators and validators on known answers.")
    ] = False,
) -> None:
    """Check the installation: what is there, what is missing, and how to get it."""
    from touchstone.cli.doctor import check_requirements
    from touchstone.cli.tables import show_doctor

    items = check_requirements()
    show_doctor(items)
    if any(item.required and not item.met for item in items):
        raise typer.Exit(1)
    if deep:
        _prove()


def _prove() -> None:
    """Prove the installation and say in one sentence whether its figures can be trusted."""
    from touchstone.cli.doctor_deep import prove_installation, verdict
    from touchstone.cli.tables import show_proofs

    with show_progress("proving the installation"):
        proofs = prove_installation()
    show_proofs(proofs)
    trusted, sentence = verdict(proofs)
    print(sentence)
    if not trusted:
        raise typer.Exit(1)
