"""The Dagster definitions. Tests call `build_defs` too."""

import contextlib
import logging
import os
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from assets.models import models, register_models
from assets.stages import STAGES, stage
from pipelines.automation import evaluate, fixes_folder, nightly
from pipelines.resources import EvaluationResource
from pipelines.retention import retention_job, retention_schedule
from touchstone.config import PublishSettings, load_config
from touchstone.errors import TouchstoneError
from touchstone.locations import sample_config

CONFIG_VARIABLE = "TOUCHSTONE_CONFIG"
OUTPUT_VARIABLE = "TOUCHSTONE_OUTPUT_DIR"
_SUMMARY = dg.AssetKey("summary_pass_at_k")


def build_defs(evaluation: EvaluationResource, shown: PublishSettings | None = None) -> dg.Definitions:
    """All definitions, with the given evaluation as resource. `shown` says who owns them and when they are old."""
    assets: Iterable[Any] = [*map(stage, STAGES), models]
    return dg.Definitions(
        assets=dg.map_asset_specs(partial(_maintained, shown=shown or PublishSettings()), assets),
        jobs=[evaluate, retention_job(evaluation)],
        schedules=[nightly, retention_schedule(evaluation)],
        sensors=[fixes_folder],
        resources={"evaluation": evaluation},
        executor=dg.in_process_executor,
    )


def _maintained(spec: dg.AssetSpec, shown: PublishSettings) -> dg.AssetSpec:
    """An asset with its owners; the summary also with the age at which it is out of date."""
    spec = spec.replace_attributes(owners=shown.owners)
    if spec.key != _SUMMARY or shown.fresh_days is None:
        return spec
    age = timedelta(days=shown.fresh_days)
    policy = dg.FreshnessPolicy.time_window(fail_window=age, warn_window=age / 2)
    return spec.replace_attributes(freshness_policy=policy)


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions that Dagster loads: the configuration file is set by an environment variable."""
    evaluation = EvaluationResource(
        config_file=os.environ.get(CONFIG_VARIABLE, str(sample_config())), output_dir=os.environ.get(OUTPUT_VARIABLE)
    )
    if os.environ.get("DAGSTER_HOME"):
        _register_models(evaluation)
    return build_defs(evaluation, _publish_settings(evaluation))


def _publish_settings(evaluation: EvaluationResource) -> PublishSettings | None:
    """The settings, unless the configuration cannot be read: a run says what is wrong with it."""
    with contextlib.suppress(TouchstoneError):
        return load_config(Path(evaluation.config_file)).publish
    return None


def _register_models(evaluation: EvaluationResource) -> None:
    """Show the models before the first run. An empty fixes folder must not prevent the UI from loading."""
    try:
        with dg.DagsterInstance.get() as instance:
            register_models(instance, evaluation.load())
    except TouchstoneError as error:
        logging.getLogger("dagster").warning(str(error))
