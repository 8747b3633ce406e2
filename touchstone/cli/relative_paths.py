"""How paths look on the terminal; how figures look is in `touchstone.publish.figures`."""

from pathlib import Path


def relative_path(path: Path) -> Path:
    """The path relative to the current folder, if it is inside."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path
