"""The job that evaluates everything, and what starts it: the schedule, and the sensor that notices changed files.

A tick must not start a run that cannot publish. A run that is lost (its process, machine or code location) is started
again for the same change, a few times; one that failed on its own would fail again.
"""

import json
import os
import uuid
from datetime import UTC, datetime

import dagster as dg

from assets.models import register_models
from assets.retries import failed_on_its_own
from pipelines.resources import TickParam
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.publish.up_to_date import PublishedRun, up_to_date
from touchstone.storage.output_folders import is_latest
from touchstone.text import counted

EVALUATE = "evaluate"

# In one process: a process per step would only add seconds.
evaluate = dg.define_asset_job(
    EVALUATE,
    selection=dg.AssetSelection.all(),
    executor_def=dg.in_process_executor,
    description="Ingest, validate, score and publish every model. Tables that are up to date are reused.",
)

# When a deployment runs, in UTC.
CRON_VARIABLE = "TOUCHSTONE_CRON"
# The tag of all runs for one change of the files.
_CHANGE = "touchstone/change"
_MOST_RUNS = 8
_PATIENCE_SECONDS = 30


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
    seen = json.loads(context.cursor) if context.cursor else {}
    before: dict[str, str] = seen.get("files", {})
    change: str | None = seen.get("change")
    try:
        loaded = evaluation.load()
        now = loaded.inputs.state()
        loaded.inputs.save_hashes()
        if now == before and (reason := _why_not_again(context.instance, change)):
            return dg.SkipReason(f"{counted(len(now), 'file')}, {reason}")
        register_models(context.instance, loaded)
        published = _published_run(loaded)
    except TouchstoneError as error:
        return dg.SkipReason(str(error))
    new = sorted(now.keys() - before.keys())
    gone = sorted(before.keys() - now.keys())
    changed = sorted(name for name in now.keys() & before.keys() if now[name] != before[name])
    context.log.info(f"new: {new}, changed: {changed}, gone: {gone}" if now != before else "the last run was lost")
    # A file that was changed and changed back is a change too.
    change = None if published is not None else change if now == before else uuid.uuid4().hex
    context.update_cursor(json.dumps({"change": change, "files": now}))
    if published is not None:
        return dg.SkipReason(published.reason)
    tags = {"touchstone/new": len(new), "touchstone/changed": len(changed), "touchstone/gone": len(gone)}
    return dg.RunRequest(tags={name: str(count) for name, count in tags.items()} | {_CHANGE: str(change)})


def _why_not_again(instance: dg.DagsterInstance, change: str | None) -> str:
    """Why the files that runs were started for need no further run; empty if all of those runs were lost."""
    records = instance.get_run_records(dg.RunsFilter(tags={_CHANGE: change})) if change else []
    if not records:
        return "none changed"
    last = records[0].dagster_run
    name = f"none changed; run {last.run_id[:8]}"
    if not last.is_finished or last.is_success or failed_on_its_own(last):
        return f"{name}: {last.status.value.lower()}"
    if len(records) >= _MOST_RUNS:
        return f"{name} and {len(records) - 1} before it were lost: see why in their logs, then start one by hand"
    waited = datetime.now(UTC) - records[0].update_timestamp.astimezone(UTC)
    # Dagster may start it again itself.
    return f"{name} was lost" if waited.total_seconds() < _PATIENCE_SECONDS else ""


def _published_run(evaluation: Evaluation) -> PublishedRun | None:
    """The published run if it is up to date, else None; an error if the bucket of the output folder is out of reach."""
    is_latest(evaluation.config.output_dir)
    return up_to_date(evaluation.config)
