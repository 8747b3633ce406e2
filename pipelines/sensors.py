"""The sensor that starts the evaluation when files change."""

import json

import dagster as dg

from assets.common import EvaluationParam
from assets.models import register_models
from pipelines.jobs import evaluate
from touchstone.errors import TouchstoneError
from touchstone.publish.up_to_date import up_to_date
from touchstone.text import counted


@dg.sensor(job=evaluate, minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.STOPPED)
def fixes_folder(context: dg.SensorEvaluationContext, evaluation: EvaluationParam) -> dg.RunRequest | dg.SkipReason:
    """Runs the evaluation if a fixes file was added, changed in content or removed, or the problems file changed."""
    before: dict[str, str] = json.loads(context.cursor) if context.cursor else {}
    try:
        now = evaluation.inputs.state()
        evaluation.inputs.save_hashes()
        if now == before:
            return dg.SkipReason(f"{counted(len(now), 'file')}, none changed")
        register_models(context.instance, evaluation)
    except TouchstoneError as error:
        return dg.SkipReason(str(error))
    new = sorted(now.keys() - before.keys())
    gone = sorted(before.keys() - now.keys())
    changed = sorted(name for name in now.keys() & before.keys() if now[name] != before[name])
    context.log.info(f"new: {new}, changed: {changed}, gone: {gone}")
    context.update_cursor(json.dumps(now))
    published = up_to_date(evaluation.config)
    if published is not None:
        return dg.SkipReason(published.reason)
    tags = {"touchstone/new": len(new), "touchstone/changed": len(changed), "touchstone/gone": len(gone)}
    counts = {name: str(count) for name, count in tags.items()}
    # No run key: a file that was changed and changed back must be evaluated again, which a key would prevent.
    return dg.RunRequest(tags=counts)
