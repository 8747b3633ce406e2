"""Results as run reports of SWE-bench, one per model, tier and attempt: the harness has one attempt per instance.

An undecided attempt is an error of the harness. A report has no fixes.
"""

import json
from pathlib import Path

from touchstone.ingest.adapters.exported import KEY
from touchstone.publish.interchange.results import Row, Run, carried

_LISTS = {True: "resolved", False: "unresolved", None: "error"}


def write_swebench(run: Run, folder: Path) -> list[str]:
    """Write `<model>.attempt-<n>.json` for every attempt."""
    # The harness writes the slash in a model's name so.
    for path, file, rows in run.attempt_files(folder, "json", slash="__"):
        ids: dict[str, list[str]] = {name: [] for name in (*_LISTS.values(), "empty_patch", "incomplete")}
        attempts: Row = {}
        for row in rows:
            ids[_LISTS[row["passed"]]].append(row["oid"])
            attempts[row["oid"]] = carried(row)
        ids |= {"completed": ids["resolved"] + ids["unresolved"], "submitted": list(attempts)}
        report: Row = {"total_instances": len(attempts)}
        report |= {f"{name}_instances": len(ids[name]) for name in ids if name != "incomplete"}
        report |= {f"{name}_ids": ids[name] for name in ids}
        report |= {"schema_version": 2, KEY: {"model": file["model"], "attempts": attempts}}
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return []
