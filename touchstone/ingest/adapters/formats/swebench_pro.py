"""Adapter for `eval_results.json` of SWE-bench Pro: an object that says of each instance whether it was resolved.

The evaluation script writes a failure for an instance whose tests gave no report, and none for one whose container did
not start (`infra_errors.json`). The file does not name the model; its folder does.
"""

import re
from collections.abc import Iterable

from touchstone.config.formats import JsonFormat
from touchstone.ingest.adapters.adapter import Head
from touchstone.ingest.adapters.mapping import mapped_adapter
from touchstone.ingest.adapters.table import Record, ReportedFigure
from touchstone.ingest.adapters.tool_figures import mean

_NAME = "eval_results.json"
_OUTCOME = r'\s*"(?:[^"\\]|\\.)*"\s*:\s*(?:true|false)\s*'
# Its first outcomes: one value of another kind among them, and it is another file.
_FIRST = re.compile(r"\{" + _OUTCOME + r"(?:," + _OUTCOME + r"){0,20}[,}]")


def _recognizes(head: Head) -> bool:
    found = _FIRST.match(head.text)
    return found is not None and (head.name == _NAME or head.text[1:].lstrip().startswith('"instance_'))


def _figures(records: Iterable[Record], _: object) -> list[ReportedFigure]:
    """The accuracy that the script prints and does not write."""
    counted = [record.cells for record in records if record.kind is None]
    outcomes = [float(cells["passed"] == "true") for cells in counted]
    return [ReportedFigure(counted[0]["llm_name"] or "", "accuracy", None, mean(outcomes))] if counted else []


ADAPTER = mapped_adapter(
    JsonFormat(
        name="swebench-pro",
        title="SWE-bench Pro results",
        records="*",
        problem="@key",
        passed="@",
        pass_values=(True,),
        fail_values=(False,),
        model="@folder",
    ),
    recognizes=_recognizes,
    figures=_figures,
    marks="an object with true or false by instance, called eval_results.json or with ids that start with instance_",
)
