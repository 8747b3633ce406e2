"""The progress of a run: a Dagster logger that forwards step events to `touchstone.progress`."""

import logging
import sys

import dagster as dg

from assets.stages import STAGES
from touchstone import progress

LOGGER = "progress"
_STEP_ENDS = (
    dg.DagsterEventType.STEP_SUCCESS,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.STEP_SKIPPED,
)


class ProgressHandler(logging.Handler):
    """Reports each stage that starts, which is a step of the run, the number of finished ones, and warnings."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._done = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one event or message of the run."""
        event: dg.DagsterEvent | None = getattr(record, "dagster_meta", {}).get("dagster_event")
        if event is None:
            self._warn(record)
        elif event.event_type == dg.DagsterEventType.STEP_START:
            progress.report_stage(str(event.step_key), self._done, len(STAGES))
        elif event.event_type in _STEP_ENDS:
            self._done += 1

    def _warn(self, record: logging.LogRecord) -> None:
        message = getattr(record, "dagster_meta", {}).get("orig_message") or record.getMessage()
        if record.levelno < logging.WARNING or message.startswith("Dependencies for step"):
            return
        if not progress.report_warning(message):
            print(f"warning: {message}", file=sys.stderr)


@dg.logger(config_schema={})
def progress_logger(_: dg.InitLoggerContext) -> logging.Logger:
    """A logger whose only handler reports progress."""
    logger = logging.getLogger("touchstone.progress")
    logger.handlers = [ProgressHandler()]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return logger
