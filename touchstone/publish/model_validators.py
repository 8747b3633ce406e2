"""The validators behind the outcomes of a run, for its snapshot: kept per model, so that only new outcomes are read."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.regular_files import read_json
from touchstone.storage.batches import batches
from touchstone.storage.code_version import module_code_version
from touchstone.storage.files import replacing
from touchstone.storage.model_rows import fingerprints
from touchstone.storage.store import Store
from touchstone.validation import validators_used as behind

_KEPT = "validators.json"


def model_validators(store: Store) -> pl.DataFrame:
    """Every validator that decided an attempt, per model and tier; see `validators_used`."""
    path = store.draft / _KEPT
    _, models = fingerprints(store, _KEPT, ("outcomes",), module_code_version(behind.__name__))
    kept = {model: each for model, each in _read(path).items() if each["made_from"] == models.get(model)}
    parts = store.all_parts("outcomes")
    for batch in batches({model: parts[model].rows for model in models if model not in kept}):
        found = behind.validators_used(store.scan("outcomes", batch)).rows_by_key("model", named=True)
        for model in batch:
            rows = [{"model": model, **row} for row in found.get(model, [])]
            kept[model] = {"made_from": models[model], "rows": rows}
    with replacing(path) as scratch:
        scratch.write_text(json.dumps(kept))
    return behind.snapshot_validators([row for each in kept.values() for row in each["rows"]]).sort(list(behind.SCHEMA))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """What was kept; empty if it is missing or damaged."""
    try:
        found = read_json(path)
        whole = all(isinstance(each["made_from"], str) and isinstance(each["rows"], list) for each in found.values())
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return {}
    return found if whole else {}
