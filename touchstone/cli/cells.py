"""How single values look in the tables on the terminal: figures, which the report shows too, and paths."""

from pathlib import Path

from touchstone.publish.figures import dollars, interval, number, p_value, with_interval

__all__ = ["dollars", "interval", "number", "p_value", "relative_path", "with_interval"]


def relative_path(path: Path) -> Path:
    """The path relative to the current folder, if it is inside."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path
