"""The results of a run in the formats of other tools, so that leaving is as easy as coming.

Belongs here: a module per tool or kind of report, which writes the files of one folder. How a single table is exported
belongs in `touchstone.publish.export`.
"""

from collections.abc import Mapping

from touchstone.publish.interchange.evalplus import write_evalplus
from touchstone.publish.interchange.every_eval_ever import write_every_eval_ever
from touchstone.publish.interchange.inspect_logs import write_inspect
from touchstone.publish.interchange.lm_eval import write_lm_eval
from touchstone.publish.interchange.results import Writer, write_native_csv, write_published_files
from touchstone.publish.interchange.runner_reports import write_ctrf, write_junit, write_swebench

# By the name after `--to`.
WRITERS: Mapping[str, Writer] = {
    "csv": write_native_csv,
    "inspect": write_inspect,
    "swe-bench": write_swebench,
    "junit": write_junit,
    "ctrf": write_ctrf,
    "lm-eval": write_lm_eval,
    "evalplus": write_evalplus,
    "every-eval-ever": write_every_eval_ever,
    "files": write_published_files,
}
