"""The code location. Everything is put together by `build_defs`; tests and `touchstone run` call the same function."""

import logging
import os

import dagster as dg
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType

from assets import comparison, economics, ingest, metrics, publish, reliability, scores, validation
from assets.models import models, register_models
from pipelines.jobs import evaluate
from pipelines.resources import EvaluationResource
from pipelines.schedules import nightly
from pipelines.sensors import fixes_folder
from touchstone.errors import TouchstoneError
from touchstone.project_files import sample_config

CONFIG_VARIABLE = "TOUCHSTONE_CONFIG"
OUTPUT_VARIABLE = "TOUCHSTONE_OUTPUT_DIR"


def build_defs(evaluation: EvaluationResource | dg.ResourceDefinition) -> dg.Definitions:
    """All definitions, around one evaluation."""
    stages = [ingest, validation, metrics, scores, reliability, economics, comparison, publish]
    return dg.Definitions(
        assets=[*dg.load_assets_from_modules(stages), models],
        asset_checks=dg.load_asset_checks_from_modules(stages),
        jobs=[evaluate],
        schedules=[nightly],
        sensors=[fixes_folder],
        resources={"evaluation": evaluation},
        executor=dg.in_process_executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads: the evaluation of the configuration file that the environment names."""
    evaluation = EvaluationResource(
        config_file=os.environ.get(CONFIG_VARIABLE, str(sample_config())),
        output_dir=os.environ.get(OUTPUT_VARIABLE),
    )
    # Not where a process of a run loads the same definitions again: the run itself registers what it reads.
    if DefinitionsLoadContext.get().load_type == DefinitionsLoadType.INITIALIZATION and "DAGSTER_HOME" in os.environ:
        _register_models(evaluation)
    return build_defs(evaluation)


def _register_models(evaluation: EvaluationResource) -> None:
    """Show the models before the first run. A folder without files must not keep the UI from loading."""
    try:
        with dg.DagsterInstance.get() as instance:
            register_models(instance, evaluation.load())
    except TouchstoneError as error:
        logging.getLogger("dagster").warning(str(error))
