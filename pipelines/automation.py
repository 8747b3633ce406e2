"""What starts runs: the schedule of the evaluation, and the sensor that notices changed files.

A tick must not start a run that cannot publish: the sensor has then noted the change, and would not run for it again.
"""

import json
import os

import dagster as dg

from assets.models import register_models
from pipelines.jobs import evaluate
from pipelines.resources import TickParam
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.publish.up_to_date import PublishedRun, up_to_date
from touchstone.storage.output_folders import is_latest
from touchstone.text import counted

# When a deployment runs, in UTC.
CRON_VARIABLE = "TOUCHSTONE_CRON"


@dg.schedule(
    job=evaluate,
    cron_schedule=os.environ.get(CRON_VARIABLE, "0 2 * * *"),
    default_status=dg.DefaultScheduleStatus.STOPPED,
)
def nightly(context: dg.ScheduleEvaluationContext, evaluation: TickParam) -> dg.RunRequest | dg.SkipReason:
    """Every night at 02:00, or at the time of TOUCHSTONE_CRON, if anything changed since the published run."""
    try:
        loaded = evaluation.load()
        register_models(context.instance, loaded)
        published = _published_run(loaded)
    except TouchstoneError as error:
        return dg.SkipReason(str(error))
    return dg.RunRequest() if published is None else dg.SkipReason(published.reason)


@dg.sensor(job=evaluate, minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.STOPPED)
def fixes_folder(context: dg.SensorEvaluationContext, evaluation: TickParam) -> dg.RunRequest | dg.SkipReason:
    """Runs the evaluation if a fixes file was added, changed in content or removed, or the problems file changed."""
    before: dict[str, str] = json.loads(context.cursor) if context.cursor else {}
    try:
        loaded = evaluation.load()
        now = loaded.inputs.state()
        loaded.inputs.save_hashes()
        if now == before:
            return dg.SkipReason(f"{counted(len(now), 'file')}, none changed")
        register_models(context.instance, loaded)
        published = _published_run(loaded)
    except TouchstoneError as error:
        return dg.SkipReason(str(error))
    new = sorted(now.keys() - before.keys())
    gone = sorted(before.keys() - now.keys())
    changed = sorted(name for name in now.keys() & before.keys() if now[name] != before[name])
    context.log.info(f"new: {new}, changed: {changed}, gone: {gone}")
    context.update_cursor(json.dumps(now))
    if published is not None:
        return dg.SkipReason(published.reason)
    tags = {"touchstone/new": len(new), "touchstone/changed": len(changed), "touchstone/gone": len(gone)}
    counts = {name: str(count) for name, count in tags.items()}
    # No run key: a file that was changed and changed back must be evaluated again, which a key would prevent.
    return dg.RunRequest(tags=counts)


def _published_run(evaluation: Evaluation) -> PublishedRun | None:
    """The published run if it is up to date, else None; an error if the bucket of the output folder is out of reach."""
    is_latest(evaluation.config.output_dir)
    return up_to_date(evaluation.config)
