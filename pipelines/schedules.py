"""The schedule of the evaluation."""

import os

import dagster as dg

from assets.models import register_models
from pipelines.jobs import evaluate
from pipelines.resources import TickParam
from pipelines.ticks import published_run
from touchstone.errors import TouchstoneError

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
        published = published_run(loaded)
    except TouchstoneError as error:
        return dg.SkipReason(str(error))
    return dg.RunRequest() if published is None else dg.SkipReason(published.reason)
