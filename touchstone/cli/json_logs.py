"""Logs for programs: with `--log-format json` or TOUCHSTONE_LOG=json, standard error is one JSON object per line.

Every line has `time` (UTC), `level`, `event` and `message`, and where they are known `stage`, `rows`, `seconds` and the
other figures of a step. The steps come from the logger "touchstone", progress through a display, and whatever else a
command writes to standard error becomes a line with the event `message`.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TextIO, cast

from touchstone.errors import TouchstoneError
from touchstone.progress import Bar, set_display

VARIABLE = "TOUCHSTONE_LOG"
_FORMATS = ("text", "json")
_LEVELS = {"error: ": logging.ERROR, "warning: ": logging.WARNING, "note: ": logging.INFO}
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}

_logger = logging.getLogger("touchstone")


def start_logs(log_format: str | None) -> None:
    """Turn JSON logs on if the option or else the environment variable asks for them."""
    chosen = log_format or os.environ.get(VARIABLE) or "text"
    if chosen not in _FORMATS:
        raise TouchstoneError(f"{VARIABLE}: '{chosen}' is not a log format (expected {' or '.join(_FORMATS)})")
    if chosen == "json" and not is_json():
        handler = logging.StreamHandler(_duplicate(sys.stderr))
        handler.setFormatter(_JsonFormatter())
        _logger.handlers, _logger.propagate = [handler], False
        _logger.setLevel(logging.INFO)
        sys.stderr = cast(TextIO, _LoggedStream(sys.stderr))


def is_json() -> bool:
    """Whether JSON logs are on."""
    return isinstance(sys.stderr, _LoggedStream)


def json_progress(quiet: bool) -> AbstractContextManager[object]:
    """Log the progress of the block; only errors if `quiet`."""
    _logger.setLevel(logging.ERROR if quiet else logging.INFO)
    return _displayed()


@contextmanager
def _displayed() -> Any:
    set_display(_LogDisplay())
    try:
        yield
    finally:
        set_display(None)


class _JsonFormatter(logging.Formatter):
    """A record as one line: its time, level and message, and what was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{seconds}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "message"),
            **{name: value for name, value in vars(record).items() if name not in _OWN and name != "event"},
            "message": record.getMessage(),
        }
        return json.dumps({name: value for name, value in line.items() if value is not None}, default=str)


class _LoggedStream:
    """Standard error: each line that is written becomes a record."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._line = stream, ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in filter(str.strip, lines):
            prefix = next((known for known in _LEVELS if line.startswith(known)), "")
            _logger.log(_LEVELS.get(prefix, logging.INFO), "%s", line.removeprefix(prefix))
        return len(text)

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _LogDisplay:
    """Logs progress."""

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
        _logger.warning("%s", text, extra={"event": "warning", "stage": self._stage})

    def update(self, done: int, note: str) -> None:
        """A line per item would be too many."""

    def close(self) -> None:
        """The step's own line follows."""

    def _log(self, event: str, message: str, **figures: int) -> None:
        _logger.info("%s", message, extra={"event": event, "stage": self._stage, **figures})


def _duplicate(stream: TextIO) -> TextIO:
    """The same file under another descriptor, because Dagster may redirect the original."""
    try:
        return os.fdopen(os.dup(stream.fileno()), "w", buffering=1)
    except OSError:  # not a file: a test captures it
        return stream
