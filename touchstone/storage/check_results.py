"""The results of checks, kept in the draft: a check runs again only if the tables, settings or code behind it changed.

The checks themselves are in the `checks` module of each stage.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from touchstone.checks import CHECKS, Check, CheckOutcome, CheckResult
from touchstone.regular_files import read_json
from touchstone.storage.files import replacing
from touchstone.storage.store import CHECKS_FOLDER, Store, digest


def check_if_stale(store: Store, check: Check, version: str, run: Callable[[], CheckResult]) -> CheckResult:
    """The kept result if it was found in the same tables by the same `version` of settings and code, else a new one."""
    made_from = digest([check.full_name, version, [store.fingerprint(table) for table in check.reads]])
    kept = _read(store.draft, check)
    if kept is not None and kept[0] == made_from:
        return kept[1]
    result = run()
    keep_result(store, check, result, made_from)
    return result


def keep_result(store: Store, check: Check, result: CheckResult, made_from: str = "") -> None:
    """Keep the result of a check for later readers of the results, and for the next run if it says `made_from`."""
    plain = CheckResult(result.passed, result.message, result.error, dict(result.figures))
    path = _path(store.draft, check)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        scratch.write_text(json.dumps({"made_from": made_from, "result": asdict(plain)}))


def kept_outcomes(folder: Path) -> list[CheckOutcome]:
    """The outcomes of the checks of the tables in a draft or published run, in the order of `CHECKS`.

    Results of tables that are not there are from an earlier run.
    """
    due = [check for check in CHECKS if (folder / "tables" / check.table).is_dir()]
    return [CheckOutcome.of(check, kept[1]) for check in due if (kept := _read(folder, check)) is not None]


def _read(folder: Path, check: Check) -> tuple[str, CheckResult] | None:
    """What the kept result was found in, and the result; None if it is missing or damaged."""
    try:
        found = read_json(_path(folder, check))
        return found["made_from"], CheckResult(**found["result"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(folder: Path, check: Check) -> Path:
    return folder / CHECKS_FOLDER / f"{check.full_name}.json"
