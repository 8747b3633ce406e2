"""The job that removes old runs, snapshots and cached reports, as `retention` in the configuration says. So does
`touchstone run`, after it has published.

Kept in any case: unfinished runs, the run that published the newest snapshot, runs of pinned snapshots, and pinned
snapshots. Old ticks of schedules and sensors are removed by Dagster itself (`retention` in dagster.yaml).
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets.publish import SNAPSHOT
from pipelines.resources import EvaluationResource
from touchstone.config import EvaluationConfig
from touchstone.errors import TouchstoneError
from touchstone.storage.snapshots import list_snapshots, pins, prune
from touchstone.text import counted, some_of

RETENTION = "retention"
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_RUNS_AT_ONCE = 100


def retention_job(evaluation: EvaluationResource) -> dg.JobDefinition:
    """The job, for the evaluation's configuration as it is when the job runs."""

    @dg.op
    def remove_old(context: dg.OpExecutionContext) -> None:
        """Removes everything older than the configuration keeps."""
        loaded = evaluation.load()
        with loaded.store.lock(evaluation.wait_for_lock_seconds):
            for line in remove_expired(loaded.config, context.instance):
                context.log.info(line)

    @dg.job(name=RETENTION, executor_def=dg.in_process_executor, description=(__doc__ or "").splitlines()[0])
    def retention() -> None:
        remove_old()

    return retention


def retention_schedule(evaluation: EvaluationResource) -> dg.ScheduleDefinition:
    """Every night at 04:00, unless the configuration keeps everything."""

    @dg.schedule(
        job_name=RETENTION, cron_schedule="0 4 * * *", name=RETENTION, default_status=dg.DefaultScheduleStatus.RUNNING
    )
    def schedule() -> dg.RunRequest | dg.SkipReason:
        try:
            asked = evaluation.load().config.retention.model_dump(exclude_none=True)
        except TouchstoneError as error:
            return dg.SkipReason(str(error))
        return dg.RunRequest() if asked else dg.SkipReason("`retention` in the configuration keeps everything")

    return schedule


def remove_expired(config: EvaluationConfig, instance: dg.DagsterInstance) -> Iterator[str]:
    """Remove expired runs, snapshots and reports; yields a line on each kind that had any. The folder is locked."""
    keep, output = config.retention, config.output_dir
    if keep.runs_days is not None:
        protected = {*pins(output).values(), *(snapshot.id for snapshot in list_snapshots(output)[-1:])}
        if runs := remove_runs(instance, datetime.now(UTC) - timedelta(days=keep.runs_days), protected):
            yield f"{counted(runs, 'run')} older than {keep.runs_days:g} days removed from Dagster's history"
    if keep.snapshots is not None and (snapshots := prune(output, keep.snapshots)):
        kept = f"the newest {keep.snapshots:,} and the pinned ones are kept (`retention` in the configuration)"
        yield f"{counted(len(snapshots), 'snapshot')} removed, {some_of(snapshots)}; {kept}"
    if keep.cache_days is not None and (reports := _prune_cache(config, keep.cache_days)):
        yield f"{counted(reports, 'cached report')} removed, unused for {keep.cache_days:g} days"


def remove_runs(instance: dg.DagsterInstance, before: datetime, protected: set[str]) -> int:
    """Remove the runs that ended before a time, with their events, unless they made one of the protected snapshots."""
    old = dg.RunsFilter(statuses=_FINISHED, updated_before=before)
    kept = set(instance.get_run_ids(dg.RunsFilter(tags={SNAPSHOT: sorted(protected)}))) if protected else set()
    gone = 0
    while runs := set(instance.get_run_ids(old, limit=len(kept) + _RUNS_AT_ONCE)) - kept:
        for run in runs:
            instance.delete_run(run)
        gone += len(runs)
    return gone


def _prune_cache(config: EvaluationConfig, unused_for_days: float) -> int:
    from touchstone.validation.cache import find_cache

    try:
        with find_cache(config.validation.cache_dir or config.output_dir) as cache:
            return cache.prune(unused_for_days)
    except TouchstoneError:
        return 0  # nothing was validated here
