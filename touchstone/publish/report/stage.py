"""The report as a step of publishing: drawn from the draft, kept while nothing that it shows has changed."""

import json
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from touchstone.config import PublishSettings
from touchstone.progress import report_step, report_warning
from touchstone.publish.report import report_html
from touchstone.regular_files import read_json, read_json_object
from touchstone.storage.code_version import package_code_version
from touchstone.storage.files import file_mark, is_as_written, replacing
from touchstone.storage.store import CHECKS_FOLDER, REPORT_PAGE, Store, digest

_STAMP = "report.json"
_LIBRARIES = ("itables", "jinja2", "vl-convert-python")


def write_report(store: Store, settings: PublishSettings, tables: str) -> Path | None:
    """Write the report to the draft unless it is current; `tables` identifies the content of all tables.

    Returns None if no report is wanted or it could not be drawn: then the draft has none, and a warning says why.
    """
    page, stamp = store.draft / REPORT_PAGE, store.draft / _STAMP
    if not settings.report:
        page.unlink(missing_ok=True)
        return None
    made_from = digest([tables, settings.report_cases_kb, _checks(store), _code_version()])
    kept = read_json_object(stamp)
    if kept.get("made_from") == made_from and is_as_written(page, kept.get("file")):
        return page
    report_step("drawing the report")
    stamp.unlink(missing_ok=True)
    try:
        with replacing(page) as scratch:
            scratch.write_text(report_html(store.draft, settings.report_cases_kb), encoding="utf-8")
    except Exception as error:
        page.unlink(missing_ok=True)
        words = " ".join(str(error).split()) or type(error).__name__
        report_warning(f"there is no {REPORT_PAGE}: {words}; the results are complete, `touchstone report` tries again")
        return None
    with replacing(stamp) as scratch:
        scratch.write_text(json.dumps({"made_from": made_from, "file": file_mark(page)}))
    return page


def _checks(store: Store) -> dict[str, Any]:
    """The results of the checks, without what they were found in."""
    found = sorted((store.draft / CHECKS_FOLDER).glob("*.json"))
    return {file.name: read_json(file).get("result") for file in found}


def _code_version() -> list[str]:
    templates = files(__package__) / "templates"
    texts = {each.name: digest(each.read_text(encoding="utf-8")) for each in templates.iterdir() if each.is_file()}
    return [package_code_version(), digest(texts), *(version(name) for name in _LIBRARIES)]
