"""Resources: what the assets are given to work with."""

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path

import dagster as dg

from touchstone.evaluation import Evaluation

# The tag of a run in the UI that does what `touchstone run --only` does: models, separated by commas.
ONLY = "touchstone/only"


class EvaluationResource(dg.ConfigurableResource[Evaluation]):
    """The evaluation that a configuration file describes. Holds the output folder's lock while a run lasts."""

    config_file: str
    output_dir: str | None = None
    wait_for_lock_seconds: float = 3600.0

    def load(self) -> Evaluation:
        """The evaluation as the configuration file describes it now."""
        return Evaluation.load(Path(self.config_file), Path(self.output_dir) if self.output_dir else None)

    @contextlib.contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Generator[Evaluation, None, None]:
        """Load the configuration and hold the lock until the run ends."""
        evaluation = self.load()
        if context.run is None:
            yield evaluation
            return
        if ONLY in context.run.tags:
            evaluation.only = frozenset(context.run.tags[ONLY].replace(",", " ").split())
            evaluation.inputs.require_only(sorted(evaluation.only), ONLY)
        with held(evaluation, self.wait_for_lock_seconds):
            yield evaluation

    def create_resource(self, context: dg.InitResourceContext) -> Evaluation:
        """Not used: `yield_for_execution` makes the resource."""
        return self.load()


def prepared(evaluation: Evaluation) -> dg.ResourceDefinition:
    """A resource for one run in this process, around an evaluation that has already looked at its files."""

    @dg.resource
    def resource(_: dg.InitResourceContext) -> Iterator[Evaluation]:
        with held(evaluation, 0):
            yield evaluation

    return resource


@contextlib.contextmanager
def held(evaluation: Evaluation, wait_seconds: float) -> Iterator[None]:
    """Hold the output folder's lock, and close the evaluation at the end."""
    with evaluation.store.lock(wait_seconds), contextlib.closing(evaluation):
        if evaluation.fresh:
            evaluation.store.discard_draft()
        yield
