"""The schedule of the evaluation."""

import dagster as dg

from assets.common import EvaluationParam
from assets.models import register_models
from pipelines.jobs import evaluate
from touchstone.errors import TouchstoneError
from touchstone.publish.up_to_date import up_to_date


@dg.schedule(job=evaluate, cron_schedule="0 2 * * *", default_status=dg.DefaultScheduleStatus.STOPPED)
def nightly(context: dg.ScheduleEvaluationContext, evaluation: EvaluationParam) -> dg.RunRequest | dg.SkipReason:
    """Every night at 02:00, if anything changed since the published run."""
    try:
        register_models(context.instance, evaluation)
    except TouchstoneError as error:
        return dg.SkipReason(str(error))
    published = up_to_date(evaluation.config)
    return dg.RunRequest() if published is None else dg.SkipReason(published.reason)
