"""The sensor that starts the evaluation when files change."""

import json

import dagster as dg

from assets.models import register_models
from pipelines.jobs import evaluate
from pipelines.resources import TickParam
from pipelines.ticks import published_run
from touchstone.errors import TouchstoneError
from touchstone.text import counted


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
        published = published_run(loaded)
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
