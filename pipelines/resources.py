"""The Dagster resource that gives the assets their evaluation."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from assets.retries import retry_rules
from touchstone.evaluation import Evaluation

# Run tag for the UI, equivalent to `touchstone run --only`: models, separated by commas.
ONLY = "touchstone/only"


class EvaluationResource(dg.ResourceDefinition):
    """The evaluation described by a configuration file. Holds the lock of the output folder during a run.

    A configuration names programs, so the file is fixed here: the configuration of a run cannot set it, and has no
    other settings for this resource.
    """

    def __init__(self, config_file: str, output_dir: str | None = None, wait_for_lock_seconds: float = 3600.0) -> None:
        self.config_file, self.output_dir, self.wait_for_lock_seconds = config_file, output_dir, wait_for_lock_seconds
        super().__init__(self._yield_for_execution, config_schema={})

    def load(self) -> Evaluation:
        """The evaluation, from the current content of the configuration file."""
        return Evaluation.load(Path(self.config_file), Path(self.output_dir) if self.output_dir else None)

    def _yield_for_execution(self, context: dg.InitResourceContext) -> "Iterator[Evaluation | EvaluationResource]":
        """For a run, load the configuration and hold the lock until the run ends; a tick gets the resource itself."""
        if context.run is None:
            # Dagster makes a tick's resources before it calls the function, which could not say why that failed.
            yield self
            return
        with contextlib.ExitStack() as until_the_end:
            with retry_rules(context.instance, context.run):
                evaluation = self._evaluation_of(context.run)
                until_the_end.enter_context(locked_run(evaluation, self.wait_for_lock_seconds))
            evaluation.run_log.run_id = context.run.run_id
            yield evaluation

    def _evaluation_of(self, run: dg.DagsterRun) -> Evaluation:
        """The evaluation of all models, or of those that a tag of the run names."""
        evaluation = self.load()
        if ONLY in run.tags:
            evaluation.only = frozenset(filter(None, map(str.strip, run.tags[ONLY].split(","))))
            evaluation.inputs.require_only(sorted(evaluation.only), ONLY)
        return evaluation


# What a sensor or schedule gets: it calls `load`, and is skipped with the reason if that fails.
TickParam = dg.ResourceParam[EvaluationResource]


def prepared(evaluation: Evaluation) -> dg.ResourceDefinition:
    """A resource for one run in this process, with an evaluation that is already loaded."""

    @dg.resource
    def resource(context: dg.InitResourceContext) -> Iterator[Evaluation]:
        if context.run is not None:
            evaluation.run_log.run_id = context.run.run_id
        with locked_run(evaluation, 0):
            yield evaluation

    return resource


@contextlib.contextmanager
def locked_run(evaluation: Evaluation, wait_seconds: float) -> Iterator[None]:
    """Hold the lock of the output folder, and close the evaluation at the end."""
    with evaluation.store.lock(wait_seconds), contextlib.closing(evaluation):
        evaluation.begin()
        yield
