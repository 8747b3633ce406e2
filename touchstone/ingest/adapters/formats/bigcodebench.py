"""Adapter for BigCodeBench's `*_eval_results.json`: the status of every sample of a task.

The file's name says the model, what it was asked and how:
`acme--fixer-7b--main--bigcodebench-hard-instruct--vllm-0.8-3-sanitized_calibrated_eval_results.json`. All suites
(`complete`, `instruct`, `hard-complete`, `hard-instruct`) have the same tasks, so a problem is `<suite>/<task>`, in the
cluster `<task>`. The list's order is the attempt. BigCodeBench states its figures in `*_pass_at_k.json` beside the
results; they count tasks whose reference solution failed on that machine, too.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from touchstone.config.formats import JsonFormat
from touchstone.config.json_paths import Found
from touchstone.ingest.adapters.adapter import ReadOptions, not_evaluated
from touchstone.ingest.adapters.folders import object_beside
from touchstone.ingest.adapters.json_files import list_of, stated_settings, text_of
from touchstone.ingest.adapters.mapping import mapped_adapter
from touchstone.ingest.adapters.table import AdapterTable, Cells, NamedModel, model_of_name
from touchstone.ingest.adapters.tool_figures import counts_of_table, pass_at_k_figures, reported_pass_at_k
from touchstone.ingest.compressed import uncompressed_name
from touchstone.text import counted

_RESULTS = JsonFormat(
    name="bigcodebench",
    title="BigCodeBench results",
    records="eval.*[]",
    problem="task_id",
    passed="status",
    pass_values=("pass",),
    fail_values=("fail", "timeout"),
    fix="solution",
    columns={"classification": "status", "date": "$.date"},
)
_ENDING = re.compile(r"[_.]?eval_results\.json$|\.json$")
_NAME = re.compile(
    r"(?P<model>.+?)--bigcodebench-(?P<suite>(?:hard-)?(?:complete|instruct))--(?P<backend>[a-z_-]+?)-"
    r"(?P<temperature>\d+(?:\.\d+)?)-\d+(?:-sanitized[-_]calibrated)?(?P<rest>.*)"
)
_KS = (1, 5, 10, 25, 100)


def read_bigcodebench(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the statuses of one results file into rows of text cells."""
    stem = _ENDING.sub("", uncompressed_name(path))
    file, stated = object_beside(path, f"{stem}_pass_at_k.json" if stem else "pass_at_k.json")
    named, suite, settings = _from_name(model_of_name(path, stem), stated)

    def fill(cells: Cells, found: Found) -> None:
        task = cells["oid"]
        cells |= {"suite": suite, **settings, "error": _error(found.get("details"))}
        if suite:
            cells |= {"oid": f"{suite}/{task}", "cluster": task}

    table = mapped_adapter(_RESULTS, fill=fill, named=lambda _: named).read(path, options)
    known = reported_pass_at_k({key.removeprefix("pass@"): value for key, value in stated.items()})
    names = {f"pass@{k}": value for k, value in known.items()}
    figures = pass_at_k_figures(named.name, counts_of_table(table), sorted({*_KS, *known}), names, suite)
    notes, broken = [named.note], len(list_of(stated.get("failed_tasks")))
    if broken:
        notes.append(f"the reference solutions of {counted(broken, 'task')} failed where it was evaluated")
    generated = stated_settings(named.name, "generation", settings, "temperature", suite)
    judged = stated_settings(named.name, "validator", stated, "calibrated", suite)
    table = replace(table, files=(path, *file))
    return table.stating(figures, [*generated, *judged], notes)


ADAPTER = replace(mapped_adapter(_RESULTS), read=read_bigcodebench)
FIGURES = not_evaluated(
    "bigcodebench-figures",
    "BigCodeBench figures",
    lambda head: head.has_keys("pass@1", "split", "subset", "calibrated"),
    "figures of BigCodeBench; the attempts are in the *_eval_results.json beside it",
    "ignored",
)


def _from_name(named: NamedModel, stated: Mapping[str, object]) -> tuple[NamedModel, str | None, Cells]:
    """The model, suite and settings, by the name of the file or by what stands beside it."""
    found = _NAME.fullmatch(named.name)
    if found is None:
        parts = [text_of(stated.get(name)) for name in ("subset", "split")]
        return named, "-".join(part for part in parts if part and part != "full") or None, {}
    model = found["model"].removesuffix("--main").replace("--", "/") + found["rest"]
    note = named.note.replace(named.name, model)
    return NamedModel(model, note), found["suite"], {name: found[name] for name in ("backend", "temperature")}


def _error(details: object) -> str | None:
    """The last line of the first traceback."""
    first = next(iter(details.values()), None) if isinstance(details, dict) else None
    lines = (text_of(first) or "").strip().splitlines()
    return lines[-1][:1000] if lines else None
