"""Commands to get started: `init` writes a project, `synth` synthetic data, and `doctor` checks the installation."""

import importlib.metadata
import json
import shutil
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.options import MultiValueCommand
from touchstone.errors import TouchstoneError

if TYPE_CHECKING:
    from touchstone.cli.doctor_deep import Proof

_PACKAGES = ("polars", "duckdb", "pyarrow", "dagster", "dagster-webserver")
_OPTIONAL_PROGRAMS = {
    "bwrap": "sandbox for validation; Debian and Ubuntu: apt-get install bubblewrap",
    "terraform": "full validation of Terraform fixes; installation: terraform.io",
    "cargo": "validation of Rust fixes; Debian and Ubuntu: apt-get install cargo",
}

commands = typer.Typer()


@commands.command()
def init(directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")]) -> None:
    """Write the sample data and a commented configuration to a new folder."""
    write_project(directory)
    print(f"{directory}: sample data and configuration written. Next:")
    if directory.resolve() != Path.cwd():
        print(f"  cd {directory}")
    print("  touchstone run --config evaluation_config.json\n  touchstone ui")
    print("evaluation_config.toml explains the settings; data/ is where your own files go.")


def write_project(directory: Path) -> None:
    """Fill a new or empty folder: `evaluation_config.json`, the same as TOML with comments, and `data/`."""
    from touchstone.locations import commented_config, sample_folder

    try:
        if directory.is_dir() and any(directory.iterdir()):
            raise TouchstoneError(f"{directory}: the folder is not empty; name a new or empty one")
        data = directory / "data"
        data.mkdir(parents=True)
        for source in sorted(sample_folder().glob("*.csv")):
            shutil.copyfile(source, data / source.name)
        commented = commented_config().read_text()
        (directory / "evaluation_config.toml").write_text(commented)
        (directory / "evaluation_config.json").write_text(_without_comments(commented))
    except OSError as error:
        raise TouchstoneError(f"{directory}: cannot be written ({error.strerror})") from None


def _without_comments(toml: str) -> str:
    """The settings of a TOML file as JSON, a line each; sections in which everything is commented out are left out."""
    settings = {key: value for key, value in tomllib.loads(toml).items() if not isinstance(value, dict)}
    lines = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in settings.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


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
    items = check_requirements()
    show_doctor(items)
    if any(item.required and not item.met for item in items):
        raise typer.Exit(1)
    if deep:
        _prove()


def _prove() -> None:
    """Prove the installation and say in one sentence whether its figures can be trusted."""
    from touchstone.cli.doctor_deep import prove_installation, verdict

    with show_progress("proving the installation"):
        proofs = prove_installation()
    show_proofs(proofs)
    trusted, sentence = verdict(proofs)
    print(sentence)
    if not trusted:
        raise typer.Exit(1)


@dataclass(frozen=True)
class Requirement:
    """One requirement, and whether it is met."""

    name: str
    met: bool
    required: bool
    detail: str


def check_requirements() -> list[Requirement]:
    """Check the interpreter, the packages and the optional programs."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    items = [Requirement("python", sys.version_info >= (3, 11), True, f"{version} (3.11 or later required)")]
    items += [_package(name) for name in _PACKAGES]
    for program, purpose in _OPTIONAL_PROGRAMS.items():
        found = shutil.which(program)
        items.append(Requirement(program, found is not None, False, found or f"not found: {purpose}"))
    return items


def _package(name: str) -> Requirement:
    try:
        return Requirement(name, True, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Requirement(name, False, True, "missing: reinstall Touchstone (in a checkout: make setup)")


def show_doctor(items: Iterable["Requirement"]) -> None:
    """Print what was found, and how to get the rest."""
    from rich.text import Text

    from touchstone.cli.terminal_tables import names, print_table, prose

    def state(item: Requirement) -> Text:
        words = ("ok", "green") if item.met else ("missing", "red") if item.required else ("optional", "yellow")
        return Text(*words)

    print_table([*names("", "what"), *prose("detail")], ((state(item), item.name, item.detail) for item in items))


def show_proofs(proofs: Iterable["Proof"]) -> None:
    """Print what was proven on known answers."""
    from rich.text import Text

    from touchstone.cli.terminal_tables import names, print_table, prose

    styles = {"proven": "green", "wrong": "red", "not available": "yellow"}
    rows = ((Text(proof.result, styles[proof.result]), proof.name, proof.detail) for proof in proofs)
    print_table([*names("", "what"), *prose("detail")], rows)
