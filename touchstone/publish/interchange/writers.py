"""The writers of all formats, by the name after `--to`."""

from collections.abc import Mapping

from touchstone.publish.interchange.evalplus import write_evalplus
from touchstone.publish.interchange.every_eval_ever import write_every_eval_ever
from touchstone.publish.interchange.inspect_logs import write_inspect
from touchstone.publish.interchange.lm_eval import write_lm_eval
from touchstone.publish.interchange.results import Writer, write_native_csv, write_published_files
from touchstone.publish.interchange.runner_reports import write_ctrf, write_junit
from touchstone.publish.interchange.swebench import write_swebench

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
