"""The Dagster definitions. Tests and `touchstone run` call `build_defs` too."""

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
    """All definitions, with the given evaluation as resource."""
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
    """The definitions that Dagster loads: the configuration file is set by an environment variable."""
    evaluation = EvaluationResource(
        config_file=os.environ.get(CONFIG_VARIABLE, str(sample_config())),
        output_dir=os.environ.get(OUTPUT_VARIABLE),
    )
    # Not when a run's process reloads the definitions: the run registers the models that it reads.
    if DefinitionsLoadContext.get().load_type == DefinitionsLoadType.INITIALIZATION and "DAGSTER_HOME" in os.environ:
        _register_models(evaluation)
    return build_defs(evaluation)


def _register_models(evaluation: EvaluationResource) -> None:
    """Show the models before the first run. An empty fixes folder must not prevent the UI from loading."""
    try:
        with dg.DagsterInstance.get() as instance:
            register_models(instance, evaluation.load())
    except TouchstoneError as error:
        logging.getLogger("dagster").warning(str(error))
