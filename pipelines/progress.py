"""The progress of a run: a Dagster logger that forwards step events to `touchstone.progress`."""

import logging
import sys
from collections.abc import Mapping

import dagster as dg

from touchstone import progress

LOGGER = "progress"
_STEP_ENDS = (
    dg.DagsterEventType.STEP_SUCCESS,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.STEP_SKIPPED,
)


class ProgressHandler(logging.Handler):
    """Reports the stage of each started step, the number of finished steps, and warnings."""

    def __init__(self, stages: Mapping[str, str]) -> None:
        super().__init__(logging.DEBUG)
        self._stages = stages
        self._done = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one event or message of the run."""
        event: dg.DagsterEvent | None = getattr(record, "dagster_meta", {}).get("dagster_event")
        if event is None:
            self._warn(record)
        elif event.event_type == dg.DagsterEventType.STEP_START:
            progress.report_stage(self._stages.get(str(event.step_key), ""), self._done, len(self._stages))
        elif event.event_type in _STEP_ENDS:
            self._done += 1

    def _warn(self, record: logging.LogRecord) -> None:
        message = getattr(record, "dagster_meta", {}).get("orig_message") or record.getMessage()
        if record.levelno < logging.WARNING or message.startswith("Dependencies for step"):
            return
        if not progress.report_warning(message):
            print(f"warning: {message}", file=sys.stderr)


def stages_of(defs: dg.Definitions) -> dict[str, str]:
    """The stage of every step: the group of the assets that it materializes or checks."""
    graph = defs.resolve_asset_graph()
    steps = {one.op.name: next(iter(one.keys)) for one in graph.assets_defs if one.is_executable and one.keys}
    checked = {one.op.name: next(iter(one.check_keys)).asset_key for one in graph.assets_defs if one.check_keys}
    return {step: str(graph.get(key).group_name) for step, key in (checked | steps).items()}


def progress_logger(stages: Mapping[str, str]) -> dg.LoggerDefinition:
    """A logger whose only handler reports progress."""

    def start(_: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.getLogger("touchstone.progress")
        logger.handlers = [ProgressHandler(stages)]
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        return logger

    return dg.LoggerDefinition(start, config_schema={})
