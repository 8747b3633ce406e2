"""The results of checks, kept in the draft: a check runs again only if the tables, settings or code behind it changed.

What a check finds belongs in the `checks` module of its stage.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from touchstone.checks import CHECKS, Check, CheckOutcome, CheckResult
from touchstone.regular_files import read_json
from touchstone.storage.files import replacing
from touchstone.storage.model_rows import fingerprints, scan_models
from touchstone.storage.store import CHECKS_FOLDER, Store


@dataclass(frozen=True)
class _Kept:
    """A result with what it was found in: a fingerprint of everything, and one of each model's rows."""

    made_from: str
    models: Mapping[str, str]
    result: CheckResult


def checked(store: Store, check: Check, version: str, run: Callable[..., CheckResult]) -> CheckResult:
    """The result of a check: the kept one, or else what `run` finds in the frames of the tables that it reads.

    If a check with `by_model` passed and says the same of the models that changed, it says the same of all of them.
    """
    name = f"{check.table}.{check.name}"
    path = store.draft / CHECKS_FOLDER / f"{name}.json"
    made_from, models = fingerprints(store, name, check.reads, version)
    kept = _read(path)
    if kept is not None and kept.made_from == made_from:
        return kept.result
    changed = [model for model, each in models.items() if kept is None or kept.models.get(model) != each]
    result = None
    if kept is not None and kept.result.passed and check.by_model and len(changed) < len(models):
        result = run(*(scan_models(store, table, changed) for table in check.reads))
    if kept is None or result != kept.result:
        result = run(*(store.scan(table) for table in check.reads))
    _write(path, _Kept(made_from, models, result))
    return result


def _read(path: Path) -> _Kept | None:
    """The kept result; None if it is missing or damaged."""
    try:
        found = read_json(path)
        return _Kept(found["made_from"], dict(found["models"]), CheckResult(**found["result"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, kept: _Kept) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        scratch.write_text(json.dumps(asdict(kept)))


def keep(store: Store, check: Check, result: CheckResult) -> None:
    """Keep the result of a check that runs every time, for later readers of the results."""
    kept = CheckResult(result.passed, result.message, result.error, dict(result.figures))
    _write(store.draft / CHECKS_FOLDER / f"{check.full_name}.json", _Kept("", {}, kept))


def kept_outcomes(folder: Path) -> list[CheckOutcome]:
    """The outcomes of the checks of the tables in a draft or published run, in the order of `CHECKS`.

    Results of tables that are not there are from an earlier run.
    """
    due = [check for check in CHECKS if (folder / "tables" / check.table).is_dir()]
    results = {check: _read(folder / CHECKS_FOLDER / f"{check.full_name}.json") for check in due}
    return [CheckOutcome.of(check, kept.result) for check, kept in results.items() if kept is not None]
