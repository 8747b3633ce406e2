"""What the ticks of sensor and schedule share: whether the published run is up to date.

A tick must not start a run that cannot publish: the sensor has then noted the change, and would not run for it again.
"""

from touchstone.evaluation import Evaluation
from touchstone.publish.up_to_date import PublishedRun, up_to_date
from touchstone.storage.output_folders import is_latest


def published_run(evaluation: Evaluation) -> PublishedRun | None:
    """The published run if it is up to date, else None; an error if the bucket of the output folder is out of reach."""
    is_latest(evaluation.config.output_dir)
    return up_to_date(evaluation.config)
