"""`touchstone init`: a new folder with the sample data and a configuration to edit."""

import json
import shutil
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from touchstone.errors import TouchstoneError


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
