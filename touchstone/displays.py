"""Live displays on the terminal: bars with counts, rate and time left, drawn by rich."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def bars(console: Console) -> Progress:
    """A display that vanishes when it is done. Its tasks have a field `note`."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
    )


class CountingBar:
    """One line of a display: work whose amount is known."""

    def __init__(self, display: Progress, what: str, total: int) -> None:
        self._display = display
        self._task = display.add_task(what, total=total, note="")

    def show(self, done: int, total: int, note: str) -> None:
        """So much is done."""
        self._display.update(self._task, completed=done, total=total, note=note)

    def close(self) -> None:
        """Take the line away."""
        self._display.remove_task(self._task)
