"""The one place that registers models as partitions, for `touchstone run`, the schedule and the sensor alike."""

from collections.abc import Mapping

import dagster as dg

from assets.common import ALL_MODELS, models
from touchstone.evaluation import Evaluation
from touchstone.preparation import require_models

# Tags of a run. The last one is ours: the run is meant to cover every model that has a file.
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


def register_models(instance: dg.DagsterInstance, evaluation: Evaluation) -> Mapping[str, str]:
    """Make the registered partitions the models that have a file; returns the run tags that cover them all."""
    name = str(models.name)
    wanted = list(require_models(evaluation))
    for gone in set(instance.get_dynamic_partitions(name)) - set(wanted):
        instance.delete_dynamic_partition(name, gone)
    instance.add_dynamic_partitions(name, wanted)
    registered = instance.get_dynamic_partitions(name)
    return {RANGE_START: registered[0], RANGE_END: registered[-1], ALL_MODELS: "true"}
