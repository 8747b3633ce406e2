"""What a command writes to standard error besides its result: progress, notes and warnings, none of them with --quiet.

Light on purpose: rich is imported only where progress is displayed. The displays themselves belong in `live`.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from touchstone.cli.json_logs import is_json, json_progress
from touchstone.errors import shown
from touchstone.progress import Bar, set_display


def show_progress(what: str, stages: bool = False, quiet: bool = False) -> AbstractContextManager[object]:
    """Display the progress of the block: live on a terminal; elsewhere one line per stage with `stages`, else none."""
    if is_json():
        return json_progress(quiet)
    live = sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    if quiet:
        return _silence()
    if not (live or stages):
        return nullcontext()
    from touchstone.cli.live import LineDisplay, LiveDisplay

    return LiveDisplay(what) if live else LineDisplay()


@contextmanager
def _silence() -> Iterator[None]:
    set_display(_NoDisplay())
    try:
        yield
    finally:
        set_display(None)


class _NoDisplay:
    """Takes reports of progress and warnings, and shows none."""

    def show_stage(self, name: str, done: int, total: int) -> None:
        pass

    def show_step(self, text: str) -> None:
        pass

    def add_bar(self, description: str, total: int, cached: int, poll: Callable[[], int] | None) -> Bar:
        return self

    def show_warning(self, text: str) -> None:
        pass

    def update(self, done: int, note: str) -> None:
        pass

    def close(self) -> None:
        pass


def print_messages(level: str, messages: Iterable[str], quiet: bool = False) -> None:
    """Print each message on a line of its own, as `note: …`, `warning: …` or `error: …`; errors are never quiet."""
    for message in messages if level == "error" or not quiet else ():
        print(f"{level}: {shown(message)}", file=sys.stderr)
