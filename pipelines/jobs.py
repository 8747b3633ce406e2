"""The job that evaluates everything, in one process: a process per step would only add seconds."""

from collections.abc import Set as AbstractSet

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

EVALUATE = "evaluate"


def evaluation_job(hooks: AbstractSet[dg.HookDefinition] = frozenset()) -> UnresolvedAssetJobDefinition:
    """The job, with hooks that are called after every step."""
    return dg.define_asset_job(
        EVALUATE,
        selection=dg.AssetSelection.all(),
        executor_def=dg.in_process_executor,
        description="Ingest, validate, score and publish every model. Tables that are up to date are reused.",
        hooks=hooks,
    )
