"""What commands print with --json: one document on standard output, figures unrounded, undefined ones null, infinite
ones the text "Infinity" or "-Infinity". Everything else goes to standard error. Described in docs/terminal.md.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from touchstone.cli.safe_output import print_data
from touchstone.errors import shown
from touchstone.text import json_number
from touchstone.vocabulary import VERSION

if TYPE_CHECKING:
    import polars as pl

    from touchstone.checks import CheckOutcome
    from touchstone.ingest.discovery import Discovery
    from touchstone.ingest.recognized import RecognizedSource
    from touchstone.storage.snapshots import Snapshot

# The tables behind what `run` shows.
RUN_TABLES = ("pass_at_k", "tiers", "cross_tier", "suite_scores", "run_scores", "model_comparison", "gate_results")


def print_json(document: object) -> None:
    """Print the document. Lone surrogates, from file names that are not UTF-8, are replaced."""
    text = json.dumps(plain(document), ensure_ascii=False, allow_nan=False, indent=1)
    print_data(text.encode("utf-8", "replace").decode() + "\n")


def plain(value: Any) -> Any:
    """The value in JSON's types."""
    match value:
        case float():
            return json_number(value)
        case dict() | Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case None | bool() | int() | str():
            return value
    return str(value)


def run_document(
    scan: "Callable[[str], pl.LazyFrame] | None", checks: "Sequence[CheckOutcome]", output_dir: Path, **facts: object
) -> dict[str, object]:
    """The result of a run: how it ended, its checks, and the rows of `RUN_TABLES`; null without `scan`."""
    tables = {name: None if scan is None else scan(name).collect().to_dicts() for name in RUN_TABLES}
    head = {"touchstone": VERSION, "output_dir": shown(str(output_dir)), **facts}
    return {**head, "checks": [asdict(check) for check in checks], **tables}


def snapshots_document(snapshots: "Iterable[Snapshot]", pins: Mapping[str, str]) -> list[dict[str, object]]:
    """Snapshots, newest first."""
    names = "id made_at fingerprint config_hash inputs versions rows validation settings attempts model_versions"
    return [
        {name: getattr(snapshot, name) for name in names.split()}
        | {"pinned_as": sorted(pin for pin, identity in pins.items() if identity == snapshot.id)}
        for snapshot in snapshots
    ]


def files_document(found: "Iterable[RecognizedSource]", discovery: "Discovery") -> dict[str, object]:
    """What files hold, those that are not evaluated, and the figures that they state."""
    from touchstone.ingest.sources_table import reported_figures_frame

    named = {"name": "file", "title": "format"}
    return {
        "files": [{named.get(key, key): value for key, value in asdict(each).items()} for each in found],
        "not_evaluated": [
            {"file": each.file, "status": each.status, "reason": each.reason} for each in discovery.not_evaluated
        ],
        "reported_figures": reported_figures_frame(discovery).to_dicts(),
    }
