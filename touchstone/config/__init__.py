"""The evaluation's configuration: one JSON or TOML file, checked before anything runs.

Every weight, limit, k value and path that a user may change is a field here. Paths are relative to the
configuration file. `file` reads it; `validation`, `scoring`, `slices` and `workers` are its larger sections. Reading
the data that the paths point to belongs in `touchstone.ingest`.
"""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from touchstone.config.file import read_config_file
from touchstone.config.input_limits import InputLimits
from touchstone.config.places import (
    local_places,
    refuse_addresses,
    refuse_system_folder,
    require_folder,
    require_local,
    resolved,
)
from touchstone.config.retention import RetentionSettings
from touchstone.config.scoring import Scoring
from touchstone.config.slices import SliceSettings, listed_slices, require_distinct
from touchstone.config.tf_repair import translate_settings
from touchstone.config.validation import ValidationSettings, expanded
from touchstone.config.workers import WorkerSettings
from touchstone.errors import TouchstoneError
from touchstone.locations import output_location

_MAX_WEIGHT = 1_000_000
# Beyond these a run would take days, or all memory, and no figure would be better.
_MAX_K = 1_000_000
_MAX_K_VALUES = 100
_MAX_REPLICATES = 1_000_000
_MAX_ROWS = 10_000_000
_MAX_SEED = 2**63 - 1
# Not `.jsonl`: other tools have a file of that name.
_PROBLEMS_FORMS = (".csv", ".csv.gz", ".csv.zst", ".parquet")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CheckLimits(_Section):
    """Thresholds of the asset checks."""

    max_quarantine_share: float = Field(0.05, ge=0, le=1)
    max_unknown_oid_share: float = Field(0.01, ge=0, le=1)
    min_coverage: float = Field(1.0, ge=0, le=1)
    max_undecided_share: float = Field(0.1, ge=0, le=1)
    max_untrusted_share: float = Field(0.0, ge=0, le=1)


class IntervalSettings(_Section):
    """How confidence intervals are computed."""

    confidence: float = Field(0.95, gt=0, lt=1)
    replicates: int = Field(10_000, ge=100, le=_MAX_REPLICATES)
    seed: int = Field(7, ge=0, le=_MAX_SEED)


class ComparisonConfig(_Section):
    """How models are compared with each other, and a run with its baseline snapshot."""

    baseline: str = Field("baseline", min_length=1)
    on_worse: Literal["ignore", "warn", "fail"] = "warn"
    on_regression: Literal["ignore", "warn", "fail"] = "warn"
    threshold: float = Field(0.05, ge=0, le=_MAX_WEIGHT)
    score: Literal["best", "mean", "composite", "code", "pass_rate"] = "best"
    alpha: float = Field(0.05, gt=0, lt=1)
    relevant: float = Field(0.05, gt=0, le=1)
    power: float = Field(0.8, gt=0, lt=1)
    permutations: int = Field(20_000, ge=100, le=_MAX_REPLICATES)
    family: Literal["all", "baseline", "fdr"] = "all"
    baseline_model: str | None = Field(None, min_length=1)

    @model_validator(mode="after")
    def _names_its_baseline(self) -> Self:
        if self.family == "baseline" and self.baseline_model is None:
            raise ValueError('family "baseline" needs baseline_model, the model that all others are compared with')
        if self.family != "baseline" and self.baseline_model is not None:
            raise ValueError(f'baseline_model goes with family "baseline", not "{self.family}"')
        return self


def require_baseline_model(baseline: str | None, models: Iterable[str]) -> None:
    """Raise an error if `comparison.baseline_model` is not one of the models."""
    known = sorted(models)
    if baseline is not None and baseline not in known:
        raise TouchstoneError(f"comparison.baseline_model: there is no model '{baseline}'; models: {', '.join(known)}")


class SyntheticSettings(_Section):
    """What `generate_synthetic_data` writes into `fixes_dir`."""

    problems: int = Field(10, ge=1, le=_MAX_ROWS)
    iterations: int = Field(20, ge=1, le=_MAX_ROWS)
    seed: int = Field(7, ge=0, le=_MAX_SEED)
    models: dict[str, float] = {"gemini": 0.77, "chatgpt4.1": 0.6, "claude": 0.7}


class PublishSettings(_Section):
    """What is written in addition to the tables, for other programs and for people."""

    warehouse: bool = True
    # DuckDB takes 2 s of CPU per table and million rows, more than everything else that is done with an attempt.
    warehouse_max_rows: int = Field(500_000, ge=0, le=_MAX_SEED)
    csv: Literal["auto", True, False] = "auto"
    report: bool = True
    # Attempts that the report shows in full: the diff of a fix, diagnostics and the model's answer take space.
    report_cases_kb: int = Field(500, ge=0, le=100_000)
    # A file for Prometheus's textfile collector.
    metrics: Path | None = None
    # For the Dagster UI: pictures on the pages of assets, who answers for them, and when the summary counts as old.
    charts: bool = True
    owners: list[Annotated[str, Field(pattern=r"^(team:[\w.-]+|[^@\s]+@[^@\s]+\.[^@\s]+)$")]] = ["team:evaluation"]
    fresh_days: float | None = Field(14, gt=0.01, le=36_500)


class EvaluationConfig(_Section):
    """One evaluation: what to read, what to compute, and where to write the results."""

    fixes_dir: Path
    output_dir: Path
    # What the report calls it; no figure depends on it.
    name: str | None = Field(None, min_length=1, max_length=200)
    inputs: list[str] = []
    score: str | None = Field(None, min_length=1)
    junit_pattern: str | None = Field(None, min_length=1)
    problems_csv: Path | None = None
    problem_key: str = Field("oid", min_length=1)
    columns: dict[str, str] = {}
    clones_dir: Path | None = None
    k_values: list[StrictInt] = [1, 5, 10]
    models: list[str] = []
    data_type: Literal["all", "synthetic", "real"] = "all"
    generate_synthetic_data: bool = False
    synthetic: SyntheticSettings = SyntheticSettings()
    input_limits: InputLimits = InputLimits()
    validation: ValidationSettings = ValidationSettings()
    workers: WorkerSettings = WorkerSettings()
    intervals: IntervalSettings = IntervalSettings()
    comparison: ComparisonConfig = ComparisonConfig()
    scoring: Scoring = Scoring()
    slices: list[SliceSettings] = []
    checks: CheckLimits = CheckLimits()
    publish: PublishSettings = PublishSettings()
    retention: RetentionSettings = RetentionSettings()
    _notes: tuple[str, ...] = PrivateAttr(())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about how the file was read."""
        return self._notes

    @field_validator("inputs")
    @classmethod
    def _inside_fixes_dir(cls, inputs: list[str]) -> list[str]:
        for text in inputs:
            path = PurePath(text)
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"'{text}' is not below fixes_dir; give a path relative to it")
        return inputs

    @field_validator("columns")
    @classmethod
    def _one_column_each(cls, columns: dict[str, str]) -> dict[str, str]:
        for theirs, ours in columns.items():
            if not theirs.strip() or not ours.strip():
                raise ValueError("a column's name cannot be empty")
            if list(columns.values()).count(ours) > 1:
                raise ValueError(f"two columns are renamed to '{ours}'; keep one")
        return columns

    @field_validator("slices", mode="before")
    @classmethod
    def _columns_by_name(cls, slices: Any) -> Any:
        return listed_slices(slices)

    @field_validator("slices")
    @classmethod
    def _one_slice_each(cls, slices: list[SliceSettings]) -> list[SliceSettings]:
        return require_distinct(slices)

    @field_validator("k_values")
    @classmethod
    def _sensible_k(cls, values: list[int]) -> list[int]:
        return sorted_k_values(values)

    @model_validator(mode="after")
    def _one_worker_count(self) -> Self:
        if self.validation.workers is not None and self.workers != WorkerSettings():
            raise ValueError("'workers' and 'validation.workers' both say who works; keep 'workers', with a 'count'")
        return self

    @property
    def worker_settings(self) -> WorkerSettings:
        """Who does the work; `validation.workers` is an older way to give the count."""
        count = self.validation.workers
        return self.workers if count is None else WorkerSettings(count=count)

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
    """The distinct k values in ascending order.

    >>> sorted_k_values([10, 1, 5, 1])
    [1, 5, 10]
    """
    if not values:
        raise ValueError("give at least one k value")
    for k in values:
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if k > _MAX_K:
            raise ValueError(f"k must be at most {_MAX_K:,}, got {k:,}")
    distinct = sorted(set(values))
    if len(distinct) > _MAX_K_VALUES:
        raise ValueError(f"give at most {_MAX_K_VALUES} k values, got {len(distinct):,}")
    return distinct


def load_config(source: Path | Mapping[str, Any], output_dir: Path | None = None) -> EvaluationConfig:
    """Read and check a configuration; `output_dir` overrides its own.

    The paths of a configuration file are relative to it, those of a mapping to the current folder.
    """
    path = source if isinstance(source, Path) else Path("configuration")
    if isinstance(source, Path):
        data = read_config_file(source)
    else:
        data = {name: str(value) if isinstance(value, Path) else value for name, value in source.items()}
    data, base, notes = translate_settings(path, data)
    try:
        if output_dir is not None:
            data["output_dir"] = str(expanded(output_location(output_dir)).absolute())
        data |= local_places(data)
    except TouchstoneError as error:
        raise TouchstoneError(f"{path}: {error}") from None
    try:
        config = EvaluationConfig.model_validate(data)
    except ValidationError as error:
        raise TouchstoneError(f"{path}: {_first_problem(error)}") from None
    config._notes = notes
    try:
        absolute = {
            name: resolved(name, base / expanded(value))
            for name in ("fixes_dir", "output_dir", "problems_csv", "clones_dir")
            if (value := getattr(config, name)) is not None
        }
        refuse_addresses(config)
        refuse_system_folder("output_dir", absolute["output_dir"])
        require_folder("output_dir", absolute["output_dir"])
        require_local("output_dir", absolute["output_dir"])
        if config.generate_synthetic_data:
            require_local("generate_synthetic_data writes to fixes_dir", absolute["fixes_dir"])
        if config.publish.metrics is not None:
            metrics = (base / expanded(config.publish.metrics)).resolve()
            absolute_publish = config.publish.model_copy(update={"metrics": metrics})
            config = config.model_copy(update={"publish": absolute_publish})
        validation = config.validation.anchored(base, absolute["output_dir"])
        if validation.cache_dir is not None:
            refuse_system_folder("validation.cache_dir", validation.cache_dir)
        return config.model_copy(
            update={
                **absolute,
                "validation": validation,
                "workers": config.workers.anchored(base),
            }
        )
    except TouchstoneError as error:
        raise TouchstoneError(f"{path}: {error}") from None


def first_problems_csv(config: EvaluationConfig) -> Path | None:
    """The first problems file at the usual places, if there is one; at each, `problems.csv` comes first."""
    forms = (place.with_suffix(form) for place in _problem_places(config) for form in _PROBLEMS_FORMS)
    return next((place for place in forms if place.is_file()), None)


def find_problems_csv(config: EvaluationConfig) -> Path:
    """The problems file: as configured, otherwise `problems.csv` at the usual places."""
    if config.problems_csv is not None:
        return config.problems_csv
    found = first_problems_csv(config)
    if found is None:
        looked = " and ".join(str(place) for place in _problem_places(config))
        raise TouchstoneError(f"no problems file: looked for {looked}; add one, or set 'problems_csv' in the config")
    return found


def _problem_places(config: EvaluationConfig) -> list[Path]:
    """Beside the fixes, in the output folder, in a folder `problems`. Nothing above a folder that a user named."""
    root = config.fixes_dir
    beside = [] if config.inputs else [root.parent]
    folders = [root, config.output_dir, *(place / "problems" for place in (root, *beside))]
    return [folder / "problems.csv" for folder in folders]


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
    shown = f" (got {repr(given)[:80]})" if isinstance(given, str | int | float | bool | None) else ""
    return f"{where}: {message}{shown}"
