"""A comparison as it was planned, before its results were known: `touchstone plan … --save-to plan.json` writes it.

Whether a run or a comparison departs from its plan belongs in `touchstone.comparison.registered_plan`.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from touchstone.config.file import Section, read_config_file
from touchstone.errors import TouchstoneError


class RegisteredPlan(Section):
    """What a plan fixes. What is null was left open."""

    metric: Literal["pass@k"]
    """The figure that is compared."""
    k: Literal[1]
    """Its k; sides are compared by pass@1."""
    margin: float = Field(gt=0, le=1)
    """Smallest difference that matters; `comparison.relevant` of the run."""
    alpha: float = Field(gt=0, lt=1)
    """Level of the test over all pairs; `comparison.alpha`."""
    power: float = Field(gt=0, lt=1)
    """Probability of finding that difference; `comparison.power`."""
    pairs: int = Field(ge=1)
    """Number of pairs that the test is corrected for."""
    problems: int | None = Field(None, ge=1)
    """Number of problems."""
    problems_digest: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    """SHA-256 of their sorted ids."""
    attempts_per_problem: int | None = Field(None, ge=1)
    """Attempts per problem and model."""
    models: tuple[str, ...] = ()
    """The models to compare; empty: any."""
    made_at: str = ""
    """When the plan was saved."""


def read_plan(path: Path) -> RegisteredPlan:
    """The plan in a file; an error of one line if it is not one."""
    try:
        return RegisteredPlan.model_validate(read_config_file(path, "plan"))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        hint = "write one with `touchstone plan … --save-to plan.json`"
        raise TouchstoneError(f"{path}: not a plan: {where}: {problem['msg']}; {hint}") from None
