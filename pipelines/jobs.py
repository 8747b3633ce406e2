"""The job that evaluates everything, in one process: a process per step would only add seconds."""

import dagster as dg

from pipelines.retries import one_process

EVALUATE = "evaluate"

evaluate = dg.define_asset_job(
    EVALUATE,
    selection=dg.AssetSelection.all(),
    executor_def=one_process,
    description="Ingest, validate, score and publish every model. Tables that are up to date are reused.",
)
