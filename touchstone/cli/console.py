"""Output of commands: results to standard output; progress and messages, none with --quiet, to standard error.

No foreign text can control a terminal or a CI system (`safe_streams`); only data in a format for programs goes into a
pipe unchanged. With `--log-format json` or TOUCHSTONE_LOG=json, standard error is one JSON object per line,
with `time` (UTC), `level`, `event` and `message`, and where they are known `stage`, `rows`, `seconds` and the other
figures of a step. The steps come from the logger "touchstone", progress through a display, and whatever else a command
writes to standard error becomes a line with the event `message`.

Light on purpose: rich is imported only where progress is displayed. The displays themselves belong in `live`.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TextIO, cast

from touchstone.cli.safe_streams import unguarded
from touchstone.errors import TouchstoneError, shown
from touchstone.progress import Bar, Display
from touchstone.text import json_number


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


def print_data(text: str | Iterable[str]) -> None:
    """Print data in a format for programs: unchanged and in UTF-8 into a pipe or file, made safe on a terminal.

    Data in pieces may be larger than memory.
    """
    pieces = [text] if isinstance(text, str) else text
    if sys.stdout.isatty():
        for piece in pieces:  # not `writelines`, which is the stream's own
            sys.stdout.write(piece)
        return
    stream = unguarded(sys.stdout)
    stream.flush()
    if hasattr(stream, "buffer"):
        stream.buffer.writelines(piece.encode("utf-8", "replace") for piece in pieces)
        stream.buffer.flush()
    else:
        stream.writelines(pieces)


def print_json(document: object) -> None:
    """Print one document for --json: figures unrounded, undefined ones null, infinite ones the text "Infinity".

    Lone surrogates, from file names that are not UTF-8, are replaced. Described in docs/terminal.md.
    """
    text = json.dumps(plain(document), ensure_ascii=False, allow_nan=False, indent=1)
    print_data(text.encode("utf-8", "replace").decode() + "\n")


def plain(value: Any) -> Any:
    """The value in JSON's types."""
    match value:
        case float():
            return json_number(value)
        case dict() | Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case None | bool() | int() | str():
            return value
    return str(value)
