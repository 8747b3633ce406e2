"""Values taken without pydantic are those that Typer makes of them, and so is every message."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.core import TyperCommand

from touchstone.cli.options import LocalPathsCommand, MultiValueCommand, data_option


def result_of(cls: type[TyperCommand], line: str) -> object:
    """What a command of a class gets from a command line, or what it is refused with."""
    app, got = typer.Typer(), []

    @app.command(cls=cls)
    def command(
        name: str,
        paths: list[Path] | None = None,
        folder: Path = Path("here"),
        present: Annotated[Path | None, typer.Option(exists=True)] = None,
        kind: Literal["csv", "json"] | None = None,
        count: Annotated[int, typer.Option(min=1, max=9)] = 3,
        share: float = 0.5,
        data: Annotated[Path | None, data_option("Folder.")] = None,
        quiet: bool = False,
    ) -> None:
        got.append((name, paths, folder, present, kind, count, share, data, quiet))

    try:
        app([word.replace("NUL", "a\0b") for word in line.split()], standalone_mode=False)
    except Exception as error:
        message: Any = getattr(error, "format_message", error.__str__)
        return type(error).__name__, message()
    return got


@pytest.mark.parametrize(
    "line",
    [
        "text",
        "1",
        "",
        "text --paths a --paths /",
        "text --folder / --quiet",
        "text --folder NUL",
        "text --present /",
        "text --present /missing",
        "text --kind csv",
        "text --kind CSV",
        "text --count 5 --share 1",
        "text --count 10",
        "text --count five",
        "text --share much",
        "text --data out",
        "text --data ftp://host/out",
    ],
)
@pytest.mark.parametrize("cls", [LocalPathsCommand, MultiValueCommand])
def test_a_value_is_what_typer_makes_of_it(cls: type[TyperCommand], line: str) -> None:
    assert result_of(cls, line) == result_of(TyperCommand, line)
