"""What a command writes to standard error besides its result (progress, notes, warnings; none with --quiet), and paths.

Light on purpose: rich is imported only where progress is displayed. The displays themselves belong in `live`.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from touchstone.cli.json_logs import LOGGER, is_json
from touchstone.errors import shown
from touchstone.progress import Bar, Display


def show_progress(what: str, stages: bool = False, quiet: bool = False) -> AbstractContextManager[object]:
    """Display the progress of the block: live on a terminal; elsewhere one line per stage with `stages`, else none."""
    if is_json():
        LOGGER.setLevel(logging.ERROR if quiet else logging.INFO)
        return _LogDisplay()
    live = sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    if quiet:
        return Display()
    if not (live or stages):
        return nullcontext()
    from touchstone.cli.live import LineDisplay, LiveDisplay

    return LiveDisplay(what) if live else LineDisplay()


class _LogDisplay(Display):
    """Logs stages, steps and warnings. A line per item would be too many."""

    def __init__(self) -> None:
        self._stage: str | None = None

    def show_stage(self, name: str, done: int, total: int) -> None:
        if name != self._stage:
            self._stage = name
            self._log("stage", name, done=done, total=total)

    def show_step(self, text: str) -> None:
        self._log("progress", text)

    def add_bar(self, description: str, total: int, cached: int, poll: Callable[[], int] | None) -> Bar:
        self._log("work", description, done=cached, total=total)
        return self

    def show_warning(self, text: str) -> None:
        LOGGER.warning("%s", text, extra={"event": "warning", "stage": self._stage})

    def _log(self, event: str, message: str, **figures: int) -> None:
        LOGGER.info("%s", message, extra={"event": event, "stage": self._stage, **figures})


def relative_path(path: Path) -> str:
    """The path relative to the current folder, if it is inside; the address if it stands for one."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return shown(str(path))


def print_messages(level: str, messages: Iterable[str], quiet: bool = False) -> None:
    """Print each message on a line of its own, as `note: …`, `warning: …` or `error: …`; errors are never quiet."""
    for message in messages if level == "error" or not quiet else ():
        print(f"{level}: {shown(message)}", file=sys.stderr)
