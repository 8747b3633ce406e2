"""The code location. Everything is put together by `build_defs`; tests and `touchstone run` call the same function."""

import os
from pathlib import Path

import dagster as dg

from assets import comparison, economics, ingest, metrics, publish, reliability, scores, validation
from pipelines.jobs import evaluate
from pipelines.resources import EvaluationResource
from pipelines.schedules import nightly
from pipelines.sensors import fixes_folder

SAMPLE_CONFIG = Path(__file__).parent.parent / "data" / "sample" / "evaluation_config.json"
CONFIG_VARIABLE = "TOUCHSTONE_CONFIG"


def build_defs(evaluation: EvaluationResource) -> dg.Definitions:
    """All definitions, around one evaluation."""
    stages = [ingest, validation, metrics, scores, reliability, economics, comparison, publish]
    return dg.Definitions(
        assets=dg.load_assets_from_modules(stages),
        asset_checks=dg.load_asset_checks_from_modules(stages),
        jobs=[evaluate],
        schedules=[nightly],
        sensors=[fixes_folder],
        resources={"evaluation": evaluation},
        executor=dg.in_process_executor,
    )


defs = build_defs(EvaluationResource(config_file=os.environ.get(CONFIG_VARIABLE, str(SAMPLE_CONFIG))))
