"""The job that evaluates everything, in one process: a process per step would only add seconds."""

import dagster as dg

EVALUATE = "evaluate"

evaluate = dg.define_asset_job(
    EVALUATE,
    selection=dg.AssetSelection.all(),
    executor_def=dg.in_process_executor,
    description="Ingest, validate, score and publish every model. Tables that are up to date are reused.",
)
