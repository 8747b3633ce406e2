"""The models as partitions: one dynamic partition per model that has a fixes file, with its published figures.

The assets that compute are not partitioned. Dagster cannot put partitioned and unpartitioned assets into one run in the
UI: "Materialize all" would be a backfill of many runs. So every run covers all models, and the UI shows them one by
one in the asset `models`. Nothing computes it; publishing a run reports a materialization per model that changed. It
depends on nothing and has a group of its own: Dagster's command line refuses a selection with partitioned assets in it.
"""

import dagster as dg

from assets.metadata import DATA_VERSION, rounded
from touchstone.evaluation import Evaluation
from touchstone.storage.store import digest
from touchstone.text import visible

PARTITIONS = "models"

models = dg.AssetSpec(
    "models",
    group_name="models",
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
    sources = evaluation.store.scan("sources").select("model", "rows", "accepted", "quarantined")
    files = sources.group_by("model").sum()
    counts = {row.pop("model"): row for row in files.collect().to_dicts()}
    figures = evaluation.store.scan("pass_at_k").select("model", "tier", "k", "pass_at_k").collect()
    shown: dict[str, dict[str, float]] = {model: counts[model] for model in figures["model"].unique().sort()}
    for model, tier, k, value in figures.drop_nulls().iter_rows():
        shown[model][visible(f"{tier} pass@{k}")] = value
    versions = {model: digest(seen) for model, seen in shown.items()}
    known = _known_versions(instance, len(shown))
    return [
        dg.AssetMaterialization(
            models.key, partition=model, metadata=rounded(seen), tags={DATA_VERSION: versions[model]}
        )
        for model, seen in shown.items()
        if known.get(model) != versions[model]
    ]


def _known_versions(instance: dg.DagsterInstance, models_shown: int) -> dict[str, str]:
    """The version of the figures that each model shows, so that a run of many models stores an event for few.

    A model that has not changed for long may be missing, and is then reported again.
    """
    newest_first = instance.fetch_materializations(models.key, limit=5 * models_shown + 1).records
    latest = {record.partition_key: record.asset_materialization for record in reversed(newest_first)}
    return {str(model): (made.tags or {}).get(DATA_VERSION, "") for model, made in latest.items() if made}
