"""What became of a SWE-bench instance, as an outcome, and the names that the harness writes into paths.

`error` has no verdict: the container could not be made, or the harness failed. In a run report it also stands for a
patch that does not apply and for tests that time out, because only the logs tell them apart; with the logs, both are
failures. An empty patch is the model's failure, in the class `wrong_format`.

From version 5 the harness marks likely failures of the infrastructure, and leaves them among the unresolved. They are
undecided here, except `out_of_memory`, which a fix can cause. A failure that it calls ambiguous stays a failure.
"""

import re

from touchstone.ingest.adapters.table import Cells

COLUMNS = (
    "oid",
    "iteration_id",
    "llm_name",
    "cluster",
    "run_id",
    "passed",
    "classification",
    "swebench_status",
    "error",
    "sample_uuid",
)

RESOLVED = "resolved"
UNRESOLVED = "unresolved"
EMPTY_PATCH = "empty_patch"
PATCH_FAILED = "patch_failed"
TIMEOUT = "timeout"
OUT_OF_MEMORY = "out_of_memory"
ERROR = "error"
INFRA_FAILURE = "infra_failure"
NO_LOGS = "no_logs"
NOT_RUN = "not_run"

_OUTCOMES: dict[str, tuple[str | None, str | None]] = {
    RESOLVED: ("true", "pass"),
    UNRESOLVED: ("false", "fail"),
    EMPTY_PATCH: ("false", "wrong_format"),
    PATCH_FAILED: ("false", "wrong_format"),
    TIMEOUT: ("false", "timeout"),
    OUT_OF_MEMORY: ("false", "crash"),
    ERROR: (None, None),
    INFRA_FAILURE: (None, None),
    NO_LOGS: (None, None),
    NOT_RUN: (None, None),
}
_TIMED_OUT = "tests_timed_out"
_ID = re.compile(r"(.+)-\d+")


def attempt_cells(oid: str, model: str, run: str | None, status: str, error: str | None = None) -> Cells:
    """The cells of an attempt. The harness makes one attempt per instance and run."""
    passed, word = _OUTCOMES[status]
    return {
        "oid": oid,
        "iteration_id": "1",
        "llm_name": model,
        "cluster": repository_of(oid),
        "run_id": run,
        "passed": passed,
        "classification": word,
        "swebench_status": status,
        "error": error,
        # A run's report and its logs have the same attempts.
        "sample_uuid": None if run is None else f"{model}/{run}/{oid}",
    }


def outcome_of(status: str) -> bool | None:
    """Whether an instance of this status is solved; None if that was not judged."""
    passed, _ = _OUTCOMES[status]
    return None if passed is None else passed == "true"


def status_of_failure(status: str, infra: bool, reason: str | None) -> str:
    """The status of an instance that is not resolved, given what the harness says about its infrastructure."""
    if reason == OUT_OF_MEMORY:
        return OUT_OF_MEMORY
    if infra:
        return INFRA_FAILURE
    if status == ERROR and reason is not None:
        return TIMEOUT if reason == _TIMED_OUT else UNRESOLVED
    return status


def repository_of(oid: str) -> str | None:
    """The repository of an instance, whose problems are not independent; None for ids of another form.

    >>> repository_of("django__django-11099"), repository_of("own-problem")
    ('django__django', None)
    """
    match = _ID.fullmatch(oid)
    return match[1] if match else None


def model_of_folder(name: str) -> str:
    """The model of a folder or file name, in which the harness replaces "/" with "__"."""
    return name.replace("__", "/")


def folder_of_model(model: str) -> str:
    """The name of the folder that the harness writes a model's logs to."""
    return model.replace("/", "__")
