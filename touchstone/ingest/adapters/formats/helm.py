"""Adapter for runs of HELM: a folder with `run_spec.json`, `per_instance_stats.json` and `stats.json`.

An instance is a problem of the suite `<run without the model>/<split>`, followed by the sub-split and the perturbation
if there are: HELM states a mean for each. Each train trial is an attempt. The metric that decides is the first that
`run_spec.json` names and that is 0 or 1, such as `exact_match`; HELM chooses its main metric per scenario outside of
these files.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions, not_evaluated
from touchstone.ingest.adapters.folders import beside, is_file
from touchstone.ingest.adapters.json_files import (
    inside,
    list_of,
    number_of,
    raw_values,
    read_document,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.table import AdapterTable, Record, RefusedRecordError, words
from touchstone.ingest.adapters.tool_figures import Sample, is_of_one, scored_table

FORMAT = "helm"
_SPEC, _INSTANCES, _STATS = "run_spec.json", "per_instance_stats.json", "stats.json"
_MODEL = re.compile(r"(?<=[:,])model(?:_deployment)?=(?P<model>[^,]+),?")
# Of `helm-summarize`.
_SUMMARY = words(
    "costs.json groups_metadata.json run_specs.json runs.json runs_to_run_suites.json schema.json summary.json"
)
# About the request, not about the answer.
_REQUESTS = re.compile(
    r"(num|training|inference|finish_reason|batch|estimated_num|max_num)_.*|prompt_truncated|max_prob|logprob|runtime"
    r"|predicted_index"
)
# Of a perturbation: what it is called, what it is for, and where a machine has its data.
_NO_CHANGE = re.compile(r"name|robustness|fairness|computed_on|.*_path")
# Less is better, as HELM's schemas and classes say of their metrics.
_INVERSE = re.compile(
    r".*(toxic|nsfw|nudity|watermark|blacked_out|leakage|difference|distance|edit_similarity|longest_common_prefix).*"
    r"|(chinese_)?[cmw]er(_score)?|.*_bias|error_rate"
)
# Of APPS: the best of all outputs of a request.
_BEST = words("test_avg strict_acc")
_COUNTS = {
    "input_tokens": "num_prompt_tokens",
    "output_tokens": "num_output_tokens",
    "duration_seconds": "inference_runtime",
}


def read_helm(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the instances of one run into rows of text cells."""
    folder = path if path.is_dir() else path.parent
    instances = beside(folder / _SPEC, _INSTANCES)
    files = [beside(instances, name) for name in (_SPEC, _STATS)]
    spec, stats = map(_document, files)
    name, adapter = text_of(inside(spec).get("name")) or folder.name, inside(spec, "adapter_spec")
    named = _MODEL.search(name)
    model = text_of(adapter.get("model")) or (named["model"] if named else "unnamed")
    scenario = _MODEL.sub("", name).rstrip(",:")
    samples: dict[tuple[str, ...], Sample] = {}
    for line, entry in _entries(instances):
        _add(samples, line, entry, model, scenario)
    stated: dict[tuple[str | None, str], float | None] = {}
    for stat in map(inside, list_of(stats)):
        about = inside(stat, "name")
        metric = text_of(about.get("name")) or ""
        # Others are of the worst of several perturbations, or of the originals once more.
        plain = inside(about, "perturbation").get("computed_on", "perturbed") == "perturbed"
        if plain and not _REQUESTS.fullmatch(metric):
            stated[_suite(scenario, about), metric] = number_of(stat.get("mean"))
    names = (list_of(inside(each, "args").get("names")) for each in list_of(inside(spec).get("metric_specs")))
    several = text_of(adapter.get("num_outputs")) != "1"

    def decides(metric: str) -> bool:
        return is_of_one(metric) and not _INVERSE.fullmatch(metric) and not (several and metric in _BEST)

    return scored_table(
        path,
        FORMAT,
        [*samples.values()],
        raw_values(lambda _: _entries(instances)),
        options.score,
        preferred=[text for each in names for text in map(text_of, each) if text],
        stated=stated,
        settings=[
            *stated_settings(model, "generation", adapter, "temperature max_tokens num_outputs top_p top_k_per_token"),
            *stated_settings(model, "problems", adapter, "instructions max_train_instances method"),
        ],
        files=[instances, *filter(is_file, files)],
        decides=decides,
        of_rounds=True,
    )


def _recognizes(head: Head) -> bool:
    if head.is_folder:
        named = any(name.startswith(_INSTANCES) for name in head.names)
        return named and Head(beside(head.path / _SPEC, _INSTANCES)).text[:1] == "["
    paths = head.key_paths
    return {("[]", "instance_id"), ("[]", "stats", "[]")} <= paths


def _is_part(head: Head) -> bool:
    parts = (
        {("[]", "name", "split"), ("[]", "sum_squared")},  # stats.json
        {("adapter_spec",), ("request_states",)},  # scenario_state.json
        {("adapter_spec",), ("metric_specs",)},  # run_spec.json
        {("name",), ("definition_path",)},  # scenario.json
        {("[]", "instance_id"), ("[]", "predicted_text")},  # display_predictions.json
        {("[]", "header"), ("[]", "rows"), ("[]", "links")},  # groups/*.json
    )
    summarized = head.name in _SUMMARY and is_file(head.path.with_name("runs_to_run_suites.json"))
    return summarized or any(part <= head.key_paths for part in parts)


ADAPTER = Adapter(FORMAT, "a HELM run", _recognizes, read_helm)
PARTS = not_evaluated(
    "helm-parts",
    "a part of a HELM run",
    _is_part,
    "a part of HELM's results without verdicts per attempt; these are in the per_instance_stats.json of each run",
    "ignored",
)


def _document(path: Path) -> object:
    return read_document(path) if is_file(path) else None


def _entries(path: Path) -> list[tuple[int, object]]:
    document = _document(path)
    if not isinstance(document, list):
        raise InputFileError(f"{path}: a run of HELM needs a list of instances")
    return list(enumerate(document, start=1))


def _suite(scenario: str, about: Mapping[str, object]) -> str:
    """The suite of the metric with this name."""
    changed = inside(about, "perturbation")
    told = (f"{key}={text_of(each)}" for key, each in changed.items() if not _NO_CHANGE.fullmatch(key))
    perturbation = ",".join(part for part in (text_of(changed.get("name")), *told) if part)
    parts = (scenario, text_of(about.get("split")), text_of(about.get("sub_split")), perturbation)
    return "/".join(part for part in parts if part)


def _add(samples: dict[tuple[str, ...], Sample], line: int, entry: object, model: str, scenario: str) -> None:
    """Add an entry, of which each metric of a run may have written one per instance, some without values."""
    if inside(entry).get("stats") == []:
        return
    instance, trial = text_of(inside(entry).get("instance_id")), text_of(inside(entry).get("train_trial_index")) or "0"
    stats = {
        text_of(inside(each, "name").get("name")) or "": inside(each) for each in list_of(inside(entry).get("stats"))
    }
    suites = {_suite(scenario, inside(each, "name")) for each in stats.values()}
    record = Record(line, {"llm_name": model})
    if instance is None or not trial.isdecimal() or len(suites) != 1:
        record.refuse(RefusedRecordError("bad_id", "the instance_id, the train_trial_index or the split is missing"))
        samples[str(line),] = Sample(record, {})
        return
    suite = suites.pop()
    record.cells |= {"oid": f"{suite}/{instance}", "suite": suite, "iteration_id": str(int(trial) + 1)}
    values = {name: number_of(each.get("mean")) for name, each in stats.items()}
    scores = {name: value for name, value in values.items() if not _REQUESTS.fullmatch(name)}
    sample = samples.setdefault((suite, instance, trial), Sample(record, {}))
    twice = next((name for name, value in scores.items() if sample.values.get(name) not in (None, value)), None)
    if twice is not None:
        record.refuse(RefusedRecordError("duplicate", f"another entry of this attempt has another {twice}"))
        samples[str(line),] = Sample(record, {})
        return
    known = {ours: values[theirs] for ours, theirs in _COUNTS.items() if values.get(theirs) is not None}
    sample.record.cells.update({name: f"{value:.12g}" for name, value in known.items()})
    sample.values.update(scores)
