"""Adapter for instances of Every Eval Ever (schemas 0.2 and 0.3): a JSON object per line, one for each sample.

`is_correct` decides; a sample that has only a score is undecided. Samples are problems of their `evaluation_name`, of
several metrics also of the `evaluation_result_id`; those with the same id are attempts in their order. What `touchstone
export` wrote comes back as it was: attempt, tier, suite and class are in `metadata`. The aggregate file beside the
samples states the figures: `<name>.json` of `<name>_samples.jsonl` or `<name>.jsonl`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from touchstone.config.formats import JsonFormat
from touchstone.config.json_paths import Found
from touchstone.ingest.adapters.adapter import ReadOptions, not_evaluated
from touchstone.ingest.adapters.folders import object_beside
from touchstone.ingest.adapters.json_files import GENERATION, inside, number_of, objects_of, stated_settings, text_of
from touchstone.ingest.adapters.mapping import mapped_adapter
from touchstone.ingest.adapters.table import AdapterTable, Cells, Record, ReportedFigure, StatedSetting, records_of
from touchstone.ingest.adapters.tool_figures import counts_of_records, mean, pass_at_k
from touchstone.ingest.compressed import uncompressed_name

_SAMPLES = JsonFormat(
    name="every-eval-ever",
    title="Every Eval Ever samples",
    records="[]",
    problem=("={evaluation_name}/{evaluation_result_id}/{sample_id}", "={evaluation_name}/{sample_id}"),
    model="model_id",
    passed="evaluation.is_correct",
    suite=("={evaluation_name}/{evaluation_result_id}", "evaluation_name"),
    input_tokens="token_usage.input_tokens",
    output_tokens="token_usage.output_tokens",
    error="error",
    columns={
        "tier": "metadata.tier",
        "run_id": "metadata.run_id",
        "classification": "metadata.classification",
        "weighted_score": "evaluation.score",
        "cache_read_tokens": "token_usage.input_tokens_cache_read",
        "cache_write_tokens": "token_usage.input_tokens_cache_write",
        "latency_ms": "performance.latency_ms",
        "asked_sha": "sample_hash",
        "evaluation_id": "evaluation_id",
        "evaluation_name": "evaluation_name",
        "evaluation_result_id": "evaluation_result_id",
    },
    requires=("[].evaluation_id", "[].interaction_type"),
)


def read_every_eval_ever(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the samples of one file into rows of text cells."""
    table = mapped_adapter(_SAMPLES, fill=_fill).read(path, options)
    name = uncompressed_name(path).removesuffix(".jsonl").removesuffix("_samples")
    file, stated = object_beside(path, f"{name}.json")
    model = text_of(inside(stated, "model_info").get("id")) or ""
    results = objects_of(stated.get("evaluation_results"))
    records = records_of(table, ("oid", "passed", "weighted_score", "evaluation_name", "evaluation_result_id"))
    own = [record for record in records if record.kind is None]
    table = replace(table, files=(path, *file))
    return table.stating(_figures(model, results, own), _settings(model, stated, results))


ADAPTER = replace(mapped_adapter(_SAMPLES), read=read_every_eval_ever)
AGGREGATES = not_evaluated(
    "every-eval-ever-aggregates",
    "Every Eval Ever aggregates",
    lambda head: head.has_keys("schema_version", "evaluation_id", "evaluation_results"),
    "aggregates of Every Eval Ever, without attempts; these are in the .jsonl file beside it, if there is one",
    "ignored",
)


def _fill(cells: Cells, found: Found) -> None:
    score = number_of(cells["weighted_score"])
    # A verdict as a number says nothing more.
    if score is None or not 0 <= score <= 1 or (cells["passed"] == text_of(score == 1) and score in (0, 1)):
        cells["weighted_score"] = None
    attempt = text_of(found.get("metadata.iteration_id"))
    if attempt is not None and cells["tier"] is not None:
        cells |= {"oid": text_of(found.get("sample_id")), "iteration_id": attempt}
        cells["suite"] = text_of(found.get("metadata.suite"))
    else:
        cells["run_id"] = cells["evaluation_id"]


def _figures(model: str, results: Sequence[dict[str, object]], own: list[Record]) -> Iterator[ReportedFigure]:
    """Every aggregate; pass@k and the mean of a score are recomputed where the samples say that they belong to it."""
    names = [text_of(result.get("evaluation_name")) for result in results]
    for name, result in zip(names, results, strict=True):
        metric, identifier = inside(result, "metric_config"), text_of(result.get("evaluation_result_id"))
        k = number_of(inside(metric, "metric_parameters").get("k"))
        is_pass_at_k = metric.get("metric_id") == "pass_at_k" and k is not None and k < 10_000
        samples = [each for each in own if identifier and each.cells["evaluation_result_id"] == identifier]
        suite = f"{name}/{identifier}" if samples else name
        if not samples and (is_pass_at_k or names.count(name) == 1):
            samples = [each for each in own if each.cells["evaluation_name"] == name]
        scores = [_score(each.cells) for each in samples]
        recomputed = pass_at_k(counts_of_records(samples), int(k or 1)) if is_pass_at_k else None
        if not is_pass_at_k and None not in scores and number_of(metric.get("max_score")) == 1:
            recomputed = mean([score for score in scores if score is not None])
        label = text_of(metric.get("metric_name") or metric.get("metric_id")) or "score"
        yield ReportedFigure(model, label, number_of(inside(result, "score_details").get("score")), recomputed, suite)


def _score(cells: Cells) -> float | None:
    passed = cells["passed"]
    return number_of(cells["weighted_score"] or {"true": "1", "false": "0"}.get(passed or ""))


def _settings(model: str, stated: dict[str, object], results: Sequence[dict[str, object]]) -> list[StatedSetting]:
    library = " ".join(text_of(inside(stated, "eval_library").get(name)) or "" for name in ("name", "version"))
    settings = stated_settings(model, "harness", {"eval_library": library.strip()}, "eval_library")
    for result in results:
        arguments = inside(result, "generation_config", "generation_args")
        settings += stated_settings(model, "generation", arguments, GENERATION, text_of(result.get("evaluation_name")))
    return list(dict.fromkeys(settings))
