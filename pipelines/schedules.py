"""The schedule of the evaluation."""

import os

import dagster as dg

from assets.common import EvaluationParam
from assets.models import register_models
from pipelines.jobs import evaluate
from touchstone.errors import TouchstoneError
from touchstone.publish.up_to_date import up_to_date

# The time of a deployment's own, in UTC.
CRON_VARIABLE = "TOUCHSTONE_CRON"


@dg.schedule(
    job=evaluate,
    cron_schedule=os.environ.get(CRON_VARIABLE, "0 2 * * *"),
    default_status=dg.DefaultScheduleStatus.STOPPED,
)
def nightly(context: dg.ScheduleEvaluationContext, evaluation: EvaluationParam) -> dg.RunRequest | dg.SkipReason:
    """Every night at 02:00, or at the time of TOUCHSTONE_CRON, if anything changed since the published run."""
    try:
        register_models(context.instance, evaluation)
    except TouchstoneError as error:
        return dg.SkipReason(str(error))
    published = up_to_date(evaluation.config)
    return dg.RunRequest() if published is None else dg.SkipReason(published.reason)
