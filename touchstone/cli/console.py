"""What a command writes to standard error besides its result: progress, notes and warnings.

Light on purpose: rich is imported only where progress is displayed. The displays themselves belong in `live`.
"""

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext


def show_progress(what: str, stages: bool = False) -> AbstractContextManager[object]:
    """Display the progress of the block: live on a terminal; elsewhere one line per stage with `stages`, else none."""
    if not sys.stderr.isatty() and not stages:
        return nullcontext()
    from touchstone.cli.live import LineDisplay, LiveDisplay

    return LiveDisplay(what) if sys.stderr.isatty() else LineDisplay()


def print_messages(level: str, messages: Iterable[str]) -> None:
    """Print each message on a line of its own, as `note: …`, `warning: …` or `error: …`."""
    for message in messages:
        print(f"{level}: {message}", file=sys.stderr)
