"""The models as partitions: one dynamic partition per model that has a fixes file, with its published figures.

The assets that compute are not partitioned. Dagster cannot put partitioned and unpartitioned assets into one run in the
UI: "Materialize all" would be a backfill of many runs. So every run covers all models, and the UI shows them one by
one in the asset `models`. Nothing computes it; publishing a run reports a materialization per model that changed.
"""

from collections.abc import Sequence
from uuid import uuid4

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.events import DagsterEvent, DagsterEventBatchMetadata

from assets.metadata import rounded
from touchstone.evaluation import Evaluation
from touchstone.storage.parts import digest
from touchstone.text import visible

PARTITIONS = "models"

models = dg.AssetSpec(
    "models",
    deps=["warehouse"],
    group_name="publish",
    kinds={"polars"},
    description="Every model that has a fixes file, with its last published figures.",
    partitions_def=dg.DynamicPartitionsDefinition(name=PARTITIONS),
)


def register_models(instance: dg.DagsterInstance, evaluation: Evaluation) -> None:
    """Set the partitions to the models that have a fixes file; an error if there are none."""
    found, known = evaluation.inputs.require_models(), instance.get_dynamic_partitions(PARTITIONS)
    for gone in set(known) - set(found):
        instance.delete_dynamic_partition(PARTITIONS, gone)
    new = [model for model in found if model not in known]
    if new:
        instance.add_dynamic_partitions(PARTITIONS, new)


def published_models(evaluation: Evaluation, instance: dg.DagsterInstance) -> list[dg.AssetMaterialization]:
    """A materialization per changed model: the row counts of its files, and pass@k per tier as numbers to plot."""
    import polars as pl

    files = evaluation.store.scan("sources").group_by("model").agg(pl.col("rows", "accepted", "quarantined").sum())
    counts = {row.pop("model"): row for row in files.collect().to_dicts()}
    figures = evaluation.store.scan("pass_at_k").select("model", "tier", "k", "pass_at_k").collect()
    shown: dict[str, dict[str, float]] = {model: counts[model] for model in figures["model"].unique().sort()}
    for model, tier, k, value in figures.drop_nulls().iter_rows():
        shown[model][visible(f"{tier} pass@{k}")] = value
    versions = {model: digest(seen) for model, seen in shown.items()}
    known = _known_versions(instance)
    return [
        dg.AssetMaterialization(
            models.key, partition=model, metadata=rounded(seen), tags={DATA_VERSION_TAG: versions[model]}
        )
        for model, seen in shown.items()
        if known.get(model) != versions[model]
    ]


def log_together(context: dg.AssetExecutionContext, found: Sequence[dg.AssetMaterialization]) -> None:
    """Log materializations like `context.log_event`, but as a batch, which one transaction may store."""
    step, batch = context.get_step_execution_context(), uuid4().hex
    for number, materialization in enumerate(found, 1):
        place = DagsterEventBatchMetadata(batch, is_end=number == len(found))
        logged = DagsterEvent.asset_materialization(step, materialization, place)
        context.op_execution_context._events.append(logged)


def _known_versions(instance: dg.DagsterInstance) -> dict[str, str]:
    """The version of the figures that each model shows, so that a run of many models stores an event for few."""
    latest = instance.event_log_storage.get_latest_tags_by_partition(
        models.key, dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION_TAG]
    )
    return {model: tags[DATA_VERSION_TAG] for model, tags in latest.items()}
