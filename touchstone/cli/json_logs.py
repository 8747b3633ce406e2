"""Logs for programs: with `--log-format json` or TOUCHSTONE_LOG=json, standard error is one JSON object per line.

Every line has `time` (UTC), `level`, `event` and `message`, and where they are known `stage`, `rows`, `seconds` and the
other figures of a step. The steps come from the logger "touchstone", progress through a display (in `console`), and
whatever else a command writes to standard error becomes a line with the event `message`.
"""

import json
import logging
import os
import sys
import time
from typing import Any, TextIO, cast

from touchstone.errors import TouchstoneError

VARIABLE = "TOUCHSTONE_LOG"
_FORMATS = ("text", "json")
_LEVELS = {"error: ": logging.ERROR, "warning: ": logging.WARNING, "note: ": logging.INFO}
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}

LOGGER = logging.getLogger("touchstone")


def start_logs(log_format: str | None) -> None:
    """Turn JSON logs on if the option or else the environment variable asks for them."""
    chosen = log_format or os.environ.get(VARIABLE) or "text"
    if chosen not in _FORMATS:
        raise TouchstoneError(f"{VARIABLE}: '{chosen}' is not a log format (expected {' or '.join(_FORMATS)})")
    if chosen == "json" and not is_json():
        handler = logging.StreamHandler(_duplicate(sys.stderr))
        handler.setFormatter(_JsonFormatter())
        LOGGER.handlers, LOGGER.propagate = [handler], False
        LOGGER.setLevel(logging.INFO)
        sys.stderr = cast(TextIO, _LoggedStream(sys.stderr))


def is_json() -> bool:
    """Whether JSON logs are on."""
    return isinstance(sys.stderr, _LoggedStream)


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
            LOGGER.log(_LEVELS.get(prefix, logging.INFO), "%s", line.removeprefix(prefix))
        return len(text)

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _duplicate(stream: TextIO) -> TextIO:
    """The same file under another descriptor, because Dagster may redirect the original."""
    try:
        return os.fdopen(os.dup(stream.fileno()), "w", buffering=1)
    except OSError:  # not a file: a test captures it
        return stream
