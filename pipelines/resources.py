"""Resources: what the assets are given to work with."""

import contextlib
from collections.abc import Generator
from pathlib import Path

import dagster as dg
from pydantic import Field

from touchstone.config import load_config
from touchstone.evaluation import Evaluation
from touchstone.preparation import generate_if_asked, require_only

# The tag of a run in the UI that does what `touchstone run --only` does: models, separated by commas.
ONLY = "touchstone/only"


class EvaluationResource(dg.ConfigurableResource[Evaluation]):
    """The evaluation that a configuration file describes. Holds the output folder's lock while a run lasts."""

    config_file: str
    output_dir: str | None = None
    only: list[str] = Field(default_factory=list)
    accept: bool = False
    fresh: bool = False
    wait_for_lock_seconds: float = 3600.0

    def load(self) -> Evaluation:
        """The evaluation as the configuration file has it now."""
        output_dir = Path(self.output_dir) if self.output_dir else None
        config = load_config(Path(self.config_file), output_dir)
        generate_if_asked(config)
        return Evaluation(config, only=frozenset(self.only), accept=self.accept, fresh=self.fresh)

    @contextlib.contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Generator[Evaluation, None, None]:
        """Load the configuration and hold the lock until the run ends."""
        evaluation = self.load()
        if context.run is None:
            yield evaluation
            return
        if ONLY in context.run.tags:
            evaluation.only = frozenset(context.run.tags[ONLY].replace(",", " ").split())
            require_only(evaluation, sorted(evaluation.only), ONLY)
        with evaluation.store.lock(self.wait_for_lock_seconds), contextlib.closing(evaluation):
            if self.fresh:
                evaluation.store.discard_draft()
            yield evaluation

    def create_resource(self, context: dg.InitResourceContext) -> Evaluation:
        """Not used: `yield_for_execution` makes the resource."""
        return self.load()
