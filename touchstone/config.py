"""The evaluation's configuration: one JSON or TOML file, checked before anything runs.

Every weight, limit, k value and path that a user may change is a field here. Paths are relative to the
file that names them. Reading the data the paths point to belongs in `touchstone.ingest`.
"""

import difflib
import json
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from touchstone.errors import TouchstoneError


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CheckLimits(_Section):
    """How much trouble a run may have before an asset check speaks up."""

    max_quarantine_share: float = Field(0.05, ge=0, le=1)
    max_unknown_oid_share: float = Field(0.01, ge=0, le=1)
    min_coverage: float = Field(1.0, ge=0, le=1)


class IntervalSettings(_Section):
    """How confidence intervals are made."""

    confidence: float = Field(0.95, gt=0, lt=1)
    replicates: int = Field(10_000, ge=100)
    seed: int = Field(7, ge=0)


class SyntheticSettings(_Section):
    """What `generate_synthetic_data` writes into `fixes_dir`."""

    problems: int = Field(10, ge=1)
    iterations: int = Field(20, ge=1)
    seed: int = Field(7, ge=0)
    models: dict[str, float] = {"gemini": 0.77, "chatgpt4.1": 0.6, "claude": 0.7}


class EvaluationConfig(_Section):
    """One evaluation: what to read, what to compute, where to put it."""

    fixes_dir: Path
    output_dir: Path
    problems_csv: Path | None = None
    clones_dir: Path | None = None
    k_values: list[StrictInt] = [1, 5, 10]
    models: list[str] = []
    data_type: Literal["all", "synthetic", "real"] = "all"
    generate_synthetic_data: bool = False
    synthetic: SyntheticSettings = SyntheticSettings()
    intervals: IntervalSettings = IntervalSettings()
    checks: CheckLimits = CheckLimits()

    @field_validator("k_values")
    @classmethod
    def _sensible_k(cls, values: list[int]) -> list[int]:
        return sorted_k_values(values)

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                if key not in cls.model_fields:
                    near = difflib.get_close_matches(str(key), cls.model_fields, n=1)
                    hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(cls.model_fields)}"
                    raise ValueError(f"unknown key '{key}' ({hint})")
        return data


def sorted_k_values(values: list[int]) -> list[int]:
    """The distinct k values in rising order.

    >>> sorted_k_values([10, 1, 5, 1])
    [1, 5, 10]
    """
    if not values:
        raise ValueError("give at least one k value")
    for k in values:
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
    return sorted(set(values))


def load_config(path: Path, output_dir: Path | None = None) -> EvaluationConfig:
    """Read and check a configuration file; `output_dir` replaces the one in the file."""
    data = _read_mapping(path)
    if output_dir is not None:
        data["output_dir"] = str(output_dir.absolute())
    try:
        config = EvaluationConfig.model_validate(data)
    except ValidationError as error:
        raise TouchstoneError(f"{path}: {_first_problem(error)}") from None
    base = path.parent.absolute()
    absolute = {
        name: (base / value).resolve()
        for name in ("fixes_dir", "output_dir", "problems_csv", "clones_dir")
        if (value := getattr(config, name)) is not None
    }
    return config.model_copy(update=absolute)


def find_problems_csv(config: EvaluationConfig) -> Path:
    """The problems file: as configured, else `problems.csv` beside the fixes or in the output folder."""
    if config.problems_csv is not None:
        return config.problems_csv
    places = [config.fixes_dir / "problems.csv", config.output_dir / "problems.csv"]
    for place in places:
        if place.is_file():
            return place
    looked = " and ".join(str(place) for place in places)
    raise TouchstoneError(f"no problems file: looked for {looked}; set 'problems_csv' in the config")


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise TouchstoneError(f"{path}: no such config file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TouchstoneError(f"{path}: cannot be read ({error})") from None
    try:
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise TouchstoneError(f"{path}: not valid JSON ({where}: {error.msg})") from None
    except tomllib.TOMLDecodeError as error:
        raise TouchstoneError(f"{path}: not valid TOML ({error})") from None
    if not isinstance(data, dict):
        raise TouchstoneError(f"{path}: the config must be an object of keys and values")
    return data


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"unknown key '{where}'"
    if problem["type"] == "missing":
        return f"the key '{where}' is missing"
    if not where:
        return message
    given = problem["input"]
    shown = f" (got {given!r})" if isinstance(given, str | int | float | bool | None) else ""
    return f"{where}: {message}{shown}"
