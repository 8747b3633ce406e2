"""Formats of JSON files that are declared instead of programmed: where the records are, and what their keys mean.

The key `formats` of the configuration has those of a user; adapters of well-known tools are declared in the same way.
Reading files belongs in `touchstone.ingest.adapters.mapping`.
"""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from touchstone.config.json_paths import JsonPath, parse_field, parse_path, parse_records
from touchstone.vocabulary import Dimension

Word = str | bool | int | float | None


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _are_fields(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        parse_field(text)
    return texts


def _are_records(text: str) -> str:
    parse_records(text)
    return text


def _are_paths(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        parse_path(text)
    return texts


# One path or several, of which the first that a record has counts.
Paths = Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_are_fields)]


class JsonFormat(BaseModel):
    """A format: JSON documents or JSON Lines. See `touchstone.config.json_paths` for paths."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,99}$")
    """Name of the format, in lower case."""
    title: str = ""
    """What messages call such a file; by default the name."""
    records: Annotated[str, AfterValidator(_are_records)]
    """Path to the attempts: `results[].cases[]`, `tests.*`, `[]` (also JSON Lines), `$` (the document is one)."""
    problem: Paths
    """The id of the problem."""
    passed: Paths
    """Whether the attempt passed: a boolean, or a word or number that the next keys judge. Null is undecided, and an
    unknown value is refused."""
    pass_values: tuple[Word, ...] = ()
    """Values of `passed` that are a pass."""
    fail_values: tuple[Word, ...] = ()
    """Values that are a failure."""
    undecided_values: tuple[Word, ...] = ()
    """Values that decide nothing."""
    at_least: float | None = None
    """The number from which on `passed` is a pass."""
    model: Paths = ()
    """The model; by default the name of the file."""
    attempt: Paths = ()
    """What tells attempts at a problem apart; by default their order."""
    suite: Paths = ()
    """The suite of the problem."""
    cost: Paths = ()
    """Cost in US dollars."""
    duration: Paths = ()
    """Duration in seconds."""
    input_tokens: Paths = ()
    """Tokens of the prompt."""
    output_tokens: Paths = ()
    """Tokens of the answer."""
    error: Paths = ()
    """Why the attempt failed."""
    fix: Paths = ()
    """The code that the model wrote."""
    columns: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")], Paths] = {}
    """Further columns of the attempts, with their paths."""
    settings: dict[Dimension, Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_are_paths)]] = {}
    """Settings of the run by what they say something about, such as `generation`, for comparisons."""
    files: str | None = Field(None, min_length=1)
    """Names of such files, with `*` for any text; by default any."""
    requires: Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_are_paths)] = ()
    """Further paths from the document that a file must have to be recognized."""

    @model_validator(mode="after")
    def _one_way_to_judge(self) -> Self:
        listed = (*self.pass_values, *self.fail_values, *self.undecided_values)
        if self.at_least is not None and listed:
            raise ValueError("give at_least or the values of passed, not both")
        if listed and not self.pass_values:
            raise ValueError("no value is a pass: give pass_values")
        twice = next((word for word in listed if [str(each) for each in listed].count(str(word)) > 1), None)
        if twice is not None:
            raise ValueError(f"the value {twice!r} is listed twice")
        return self

    def fields(self) -> dict[str, Paths]:
        """The columns of the attempts with their paths, as far as given."""
        own = {
            "oid": self.problem,
            "llm_name": self.model,
            "iteration_id": self.attempt,
            "suite": self.suite,
            "cost_usd": self.cost,
            "duration_seconds": self.duration,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "error": self.error,
            "fixed_code": self.fix,
            **self.columns,
        }
        return {name: paths for name, paths in own.items() if paths}


def paths_of(fields: tuple[str, ...]) -> list[JsonPath]:
    """All paths in the alternatives of a field."""
    return [part for text in fields for part in parse_field(text) if isinstance(part, JsonPath)]
