"""How paths look on the terminal; how figures look is in `touchstone.publish.figures`."""

from pathlib import Path

from touchstone.errors import shown


def relative_path(path: Path) -> str:
    """The path relative to the current folder, if it is inside; the address if it stands for one."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return shown(str(path))
