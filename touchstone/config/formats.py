"""Formats of a user's own: JSON that is declared (`formats` in the configuration), and adapters in Python (`adapters`).

Adapters of well-known tools are declared in the same way. Reading files and loading Python belong in
`touchstone.ingest.adapters`, in `mapping` and `own`.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from touchstone.config.file import Section, expanded, refuse_unknown_keys
from touchstone.config.json_paths import JsonPath, parse_field, parse_path, parse_records
from touchstone.errors import TouchstoneError
from touchstone.regular_files import read_bytes
from touchstone.vocabulary import Dimension

ENTRY_POINTS = "touchstone.adapters"
_MAX_CODE_BYTES = 10_000_000

Word = str | bool | int | float | None
# The columns of attempts, by the keys that give their paths.
_OWN_COLUMNS = {
    "problem": "oid",
    "model": "llm_name",
    "attempt": "iteration_id",
    "suite": "suite",
    "cost": "cost_usd",
    "duration": "duration_seconds",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "error": "error",
    "fix": "fixed_code",
}


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _each_is(parse: Callable[[str], object]) -> AfterValidator:
    def check(texts: tuple[str, ...]) -> tuple[str, ...]:
        for text in texts:
            parse(text)
        return texts

    return AfterValidator(check)


# One path or several, of which the first that a record has counts; text with paths in it, too.
Fields = Annotated[tuple[str, ...], BeforeValidator(_listed), _each_is(parse_field)]
Paths = Annotated[tuple[str, ...], BeforeValidator(_listed), _each_is(parse_path)]


class JsonFormat(Section):
    """A format of JSON documents or JSON Lines: where the attempts are, and paths to what they say."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,99}$")
    """Name of the format, in lower case."""
    title: str = ""
    """Name of such a file in messages; by default that of the format."""
    records: Annotated[str, AfterValidator(lambda text: parse_records(text).text)]
    """Path to the attempts: `results[].cases[]`, `tests.*`, `[]` (also JSON Lines), `$` (the document is one)."""
    problem: Fields
    """The id of the problem."""
    passed: Fields
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
    model: Fields = ()
    """The model; by default the name of the file."""
    attempt: Fields = ()
    """Distinguishes attempts at a problem; by default their order."""
    suite: Fields = ()
    """The suite of the problem."""
    cost: Fields = ()
    """Cost in US dollars."""
    duration: Fields = ()
    """Duration in seconds."""
    input_tokens: Fields = ()
    """Tokens of the prompt."""
    output_tokens: Fields = ()
    """Tokens of the answer."""
    error: Fields = ()
    """Why the attempt failed."""
    fix: Fields = ()
    """The code that the model wrote."""
    columns: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")], Fields] = {}
    """Further columns of the attempts, with their paths."""
    settings: dict[Dimension, Paths] = {}
    """Settings of the run by what they say something about, such as `generation`, for comparisons."""
    files: str | None = Field(None, min_length=1)
    """Names of such files, with `*` for any text; by default any."""
    requires: Paths = ()
    """Further paths from the document that a file must have to be recognized."""

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_keys(cls, data: Any) -> Any:
        return refuse_unknown_keys(data, cls.model_fields)

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
        taken = next((name for name in self.columns if name in {*_OWN_COLUMNS.values(), "passed"}), None)
        if taken is not None:
            raise ValueError(f"the column '{taken}' has a key of its own; give its path there")
        return self

    def fields(self) -> dict[str, Fields]:
        """The columns of the attempts with their paths, as far as given."""
        own = {column: getattr(self, key) for key, column in _OWN_COLUMNS.items()}
        return {name: paths for name, paths in (own | self.columns).items() if paths}

    def marks(self) -> list[str]:
        """The paths from the document that every file has; alternatives are separated by ` | `."""
        records = self.records.removeprefix("$")
        found = [*self.requires]
        for field in (self.problem, self.passed):
            own = [path.text for path in paths_of(field) if path.start == "record" and not path.up and path.steps]
            found += [" | ".join(f"{records}{'.' if records else ''}{text}" for text in own)] if own else []
        return found


def paths_of(fields: tuple[str, ...]) -> list[JsonPath]:
    """All paths in the alternatives of a field."""
    return [part for text in fields for part in parse_field(text) if isinstance(part, JsonPath)]


class AdapterSource(Section):
    """The source of an adapter in Python: a file, or a module of an installed package."""

    # As in the configuration.
    name: str
    path: Path
    # Of the file: files that other code read are read again.
    sha256: str
    # Of an entry point: module and attribute.
    entry: str | None = None


def find_adapters(given: Any, base: Path) -> Any:
    """The source that a text in the configuration names: a file `….py`, or an entry point."""
    if not isinstance(given, str):
        return given
    entry = None if given.endswith(".py") else _entry_point(given)
    path = _module_file(entry) if entry else (base / expanded(Path(given))).absolute()
    try:
        code = read_bytes(path, _MAX_CODE_BYTES)
    except OSError as error:
        raise TouchstoneError(f"{given}: cannot be read ({error.strerror or error})") from None
    return AdapterSource(name=given, path=path, sha256=hashlib.sha256(code).hexdigest(), entry=entry)


def _entry_point(name: str) -> str:
    # Imported here: it looks through all installed packages.
    from importlib.metadata import entry_points

    known = {each.name: each.value for each in entry_points(group=ENTRY_POINTS)}
    if name not in known:
        there = f"installed are: {', '.join(sorted(known))}" if known else "none is installed"
        raise TouchstoneError(f"'{name}' is neither a file that ends in .py nor an installed adapter ({there})")
    return known[name]


def _module_file(entry: str) -> Path:
    from importlib.util import find_spec

    module = entry.partition(":")[0]
    try:
        found = find_spec(module)
    except ImportError:
        found = None
    if found is None or found.origin is None:
        raise TouchstoneError(f"{entry}: the module '{module}' cannot be found; install its package again")
    return Path(found.origin)
