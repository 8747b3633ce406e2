"""The schedule of the evaluation."""

import dagster as dg

from assets.common import EvaluationParam
from assets.models import register_models
from pipelines.jobs import evaluate
from touchstone.errors import TouchstoneError


@dg.schedule(job=evaluate, cron_schedule="0 2 * * *", default_status=dg.DefaultScheduleStatus.STOPPED)
def nightly(context: dg.ScheduleEvaluationContext, evaluation: EvaluationParam) -> dg.RunRequest | dg.SkipReason:
    """Every night at 02:00."""
    try:
        register_models(context.instance, evaluation)
    except TouchstoneError as error:
        return dg.SkipReason(str(error))
    return dg.RunRequest()
