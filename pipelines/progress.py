"""The live display of a run on the terminal: a Dagster logger that turns step events into a progress bar."""

import logging

import dagster as dg
from rich.console import Console
from rich.markup import escape

from touchstone.displays import CountingBar, bars
from touchstone.progress import listen

LOGGER = "progress"


class ProgressHandler(logging.Handler):
    """Shows which step runs and what it last said; warnings are printed above the bar."""

    def __init__(self, steps: int) -> None:
        super().__init__(logging.DEBUG)
        self._progress = bars(Console(stderr=True))
        self._task = self._progress.add_task("starting", total=steps, note="")
        listen(
            lambda message: self._progress.update(self._task, description=message),
            lambda what, total: CountingBar(self._progress, what, total),
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Take one event or message of the run."""
        event = getattr(record, "dagster_meta", {}).get("dagster_event")
        if event is None:
            self._say(record)
        elif event.event_type_value == "RUN_START":
            self._progress.start()
        elif event.event_type_value == "STEP_START":
            self._progress.update(self._task, description=str(event.step_key))
        elif event.event_type_value in ("STEP_SUCCESS", "STEP_FAILURE", "STEP_SKIPPED"):
            self._progress.advance(self._task)
        elif event.event_type_value in ("RUN_SUCCESS", "RUN_FAILURE", "RUN_CANCELED"):
            self._progress.stop()

    def _say(self, record: logging.LogRecord) -> None:
        message = getattr(record, "dagster_meta", {}).get("orig_message") or record.getMessage()
        if record.levelno >= logging.WARNING and not message.startswith("Dependencies for step"):
            self._progress.console.print(f"[yellow]warning:[/] {escape(message)}", highlight=False)


@dg.logger(config_schema={})
def progress_logger(context: dg.InitLoggerContext) -> logging.Logger:
    """A logger whose only handler is the progress display."""
    steps = len(context.job_def.graph.node_dict) if context.job_def else 0
    logger = logging.getLogger("touchstone.progress")
    logger.handlers = [ProgressHandler(steps)]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return logger
