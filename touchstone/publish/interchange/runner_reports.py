"""Results as reports of test runners: JUnit XML, CTRF and reports of SWE-bench, one file per model, tier and attempt.

A problem is a test, a suite its class or suite. An undecided attempt is a skipped test, for SWE-bench's harness, which
has one attempt per instance, an error. No report has fixes.
"""

import json
import re
import time
from pathlib import Path
from xml.sax.saxutils import quoteattr

from touchstone.ingest.adapters.exported import ATTEMPT_PROPERTY, KEY, MODEL_PROPERTY
from touchstone.publish.interchange.results import STATUS, Row, Run, carried, write_pieces
from touchstone.vocabulary import VERSION

_STATUSES = {True: "passed", False: "failed", None: "skipped"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(run: Run, folder: Path) -> list[str]:
    """Write `<model>.attempt-<n>.xml` for every attempt."""
    for path, file, rows in run.attempt_files(folder, "xml"):
        counts = f'tests="{file["total"]}" failures="{file["failures"]}" errors="0" skipped="{file["undecided"]}"'
        start = (
            f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n<testsuite name={_quoted(file["model"])} {counts}>'
        )
        model = f"<properties>{_property(MODEL_PROPERTY, file['model'])}</properties>"
        write_pieces(path, f"{start}\n{model}\n", map(_test_case, rows), "\n</testsuite>\n</testsuites>\n", "\n")
    return []


def write_ctrf(run: Run, folder: Path) -> list[str]:
    """Write `<model>.attempt-<n>.json` for every attempt."""
    now = int(time.time() * 1000)
    for path, file, rows in run.attempt_files(folder, "json"):
        counts = {"passed": file["passes"], "failed": file["failures"], "skipped": file["undecided"]}
        results = {
            "tool": {"name": KEY, "version": VERSION},
            "summary": {"tests": file["total"], **counts, "pending": 0, "other": 0, "start": now, "stop": now},
            "extra": {KEY: {"model": file["model"]}},
        }
        start = json.dumps({"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results})
        write_pieces(path, start[:-2] + ', "tests": [\n', (json.dumps(_test(row)) for row in rows), "\n]}}\n")
    return []


def _reason(row: Row) -> str:
    return str(row["error"] or (row[STATUS] if row["passed"] is None else row["classification"]) or "")


def _test_case(row: Row) -> str:
    seconds = "" if row["duration_seconds"] is None else f' time="{row["duration_seconds"]:.6f}"'
    message = _quoted(_reason(row))
    outcome = {True: "", False: f"<failure message={message}/>", None: f"<skipped message={message}/>"}[row["passed"]]
    properties = f"<properties>{_property(ATTEMPT_PROPERTY, json.dumps(carried(row)))}</properties>"
    named = f"classname={_quoted(row['suite'])} name={_quoted(row['oid'])}"
    return f"<testcase {named}{seconds}>{properties}{outcome}</testcase>"


def _property(name: str, value: str) -> str:
    return f"<property name={_quoted(name)} value={_quoted(value)}/>"


def _quoted(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _test(row: Row) -> Row:
    test = {
        "name": row["oid"],
        "status": _STATUSES[row["passed"]],
        "duration": round((row["duration_seconds"] or 0) * 1000),
        "suite": [row["suite"]],
        "extra": {KEY: carried(row)},
    }
    return test if row["passed"] else test | {"message": _reason(row)}


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
