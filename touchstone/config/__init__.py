"""The evaluation's configuration: one JSON or TOML file, checked before anything runs.

Every weight, limit, k value and path that a user may change is a field here. Paths are relative to the
configuration file. `file` reads it; `validation`, `scoring`, `gates`, `audit` and `formats` are its larger sections.
Reading the data that the paths point to belongs in `touchstone.ingest`.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    SecretStr,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from touchstone.config.audit import AuditSettings
from touchstone.config.file import (
    Section,
    anchored,
    expanded,
    first_problem,
    local_places,
    read_config_file,
    refuse_addresses,
    refuse_system_folder,
    refuse_unknown_keys,
    require_folder,
    require_local,
    resolved,
    translate_settings,
)
from touchstone.config.formats import AdapterSource, JsonFormat, find_adapters
from touchstone.config.gates import GateSettings
from touchstone.config.scoring import Scoring, read_price_file
from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.locations import output_location
from touchstone.vocabulary import REQUIRED_DIMENSIONS, Dimension

_MAX_WEIGHT = 1_000_000
# Beyond these a run would take days, or all memory, and no figure would be better.
_MAX_K = 1_000_000
_MAX_K_VALUES = 100
_MAX_FACTORS = 4
_NO_FACTORS = ("model", "tier", "oid", "iteration_id")
_MAX_REPLICATES = 1_000_000
_MAX_ROWS = 10_000_000
_MAX_SEED = 2**63 - 1
_MAX_DAYS = 36_500
# Not `.jsonl`: other tools have a file of that name.
_PROBLEMS_FORMS = (".csv", ".csv.gz", ".csv.zst", ".parquet")
WEB_ADDRESS = re.compile(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?")
_MAX_MB = 2**24
_MIB = 1 << 20
_MAX_BINS = 49
_MAX_SLICES = 20
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}")


class AlertSettings(Section):
    """Destination of one JSON document if a gate, or the comparison with the baseline, does not pass. A failure to send
    it never fails a run. See [alerts](ci.md#alerts)."""

    webhook: SecretStr | None = None
    """Address that the document is posted to: `https://…`, or `$NAME` for the one in an environment variable. It is
    never printed or stored."""
    command: list[Annotated[str, Field(min_length=1)]] = []
    """Program and arguments; it gets the document on standard input. A program with a `/` is relative to the
    configuration file."""
    timeout_seconds: float = Field(10, gt=0, le=600)
    """How long each of three tries may take."""

    @model_validator(mode="after")
    def _web_address(self) -> Self:
        # Of the section, because the message about a wrong field would quote the address.
        address = self.webhook.get_secret_value() if self.webhook is not None else "$_"
        if not WEB_ADDRESS.fullmatch(address) and not re.fullmatch(r"\$[A-Za-z_]\w*", address):
            raise ValueError("webhook must be an http:// or https:// address without a user name, or $NAME")
        return self

    def anchored(self, base: Path) -> Self:
        """A copy in which the path of the program is absolute."""
        command = [str((base / each).absolute()) if "/" in each else each for each in self.command[:1]]
        return self.model_copy(update={"command": [*command, *self.command[1:]]})


class InputLimits(Section):
    """Limits that keep one file from filling memory or disk; larger input is refused, never cut.

    `file_mb` is the text of a file, after decompression. `unpack_ratio` is how many times its size a compressed file
    may unpack to; the first `unpack_free_mb` are always allowed.
    """

    file_mb: int = Field(262_144, ge=1, le=_MAX_MB)
    """MiB of text in one file, after decompression; a larger file is refused."""
    row_mb: int = Field(64, ge=1, le=2_047)
    """MiB of one row or line; a longer line of JSON is refused, a longer CSV row refuses its file."""
    cell_mb: int = Field(32, ge=1, le=2_047)
    """MiB of one cell; a row with a longer one is refused."""
    # Results repeat themselves and shrink to a fiftieth; a bomb shrinks to a thousandth or less.
    unpack_ratio: int = Field(250, ge=1, le=100_000)
    """How many times its size a compressed file or log may unpack to."""
    unpack_free_mb: int = Field(256, ge=1, le=_MAX_MB)
    """MiB that it may unpack to whatever its size."""

    @property
    def file_bytes(self) -> int:
        """The most bytes of text that are read from a file."""
        return self.file_mb * _MIB

    @property
    def row_bytes(self) -> int:
        """The longest row."""
        return self.row_mb * _MIB

    @property
    def cell_bytes(self) -> int:
        """The longest cell."""
        return self.cell_mb * _MIB

    def unpacked_bytes(self, packed: int) -> int:
        """The most bytes that a compressed file of this size may unpack to.

        >>> InputLimits(unpack_ratio=100, unpack_free_mb=1).unpacked_bytes(1000)
        1148576
        """
        return self.unpack_free_mb * _MIB + self.unpack_ratio * packed


class SliceSettings(Section):
    """One column, by its values, by bins of its numbers, or by dates before and after each model's cutoff.

    >>> SliceSettings(column="loc", bins=[0, 100]).bins
    [0.0, 100.0]
    """

    column: str = Field(min_length=1)
    bins: list[float] | None = Field(None, min_length=1, max_length=_MAX_BINS)
    cutoff: dict[str, date] | None = Field(None, min_length=1)

    @field_validator("bins")
    @classmethod
    def _ascending(cls, bins: list[float] | None) -> list[float] | None:
        if bins is not None and not all(map(math.isfinite, bins)):
            raise ValueError("bins must be finite numbers")
        if bins is not None and any(low >= high for low, high in pairwise(bins)):
            raise ValueError(f"bins must ascend, got {bins}")
        return bins

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.bins is not None and self.cutoff is not None:
            raise ValueError(f"the slice '{self.column}' has bins and a cutoff; keep one")
        return self


def listed_slices(given: Any) -> Any:
    """Slices as a list of sections: a name alone is a column, split by its values.

    >>> listed_slices(["difficulty", {"column": "loc", "bins": [100]}])[0]
    {'column': 'difficulty'}
    """
    return [{"column": one} if isinstance(one, str) else one for one in given] if isinstance(given, list) else given


def require_distinct(slices: list[SliceSettings]) -> list[SliceSettings]:
    """The slices, unless there are too many or two of one column."""
    if len(slices) > _MAX_SLICES:
        raise ValueError(f"give at most {_MAX_SLICES} slices, got {len(slices)}")
    _refuse_repeated([each.column for each in slices])
    return slices


def _refuse_repeated(columns: list[str]) -> None:
    for column in columns:
        if columns.count(column) > 1:
            raise ValueError(f"the column '{column}' is listed twice; keep one")


class TlsFiles(Section):
    """The certificates by which this machine and a cluster know each other, as PEM files."""

    ca_file: Path
    cert_file: Path
    key_file: Path


class WorkerSettings(Section):
    """Who does the work. `auto` starts processes where that pays; `count` is their number, or the most of a cluster."""

    kind: Literal["auto", "in_process", "processes", "dask"] = "auto"
    """`in_process`, `processes`, or a `dask` cluster; `auto` starts processes where that pays."""
    count: int | None = Field(None, ge=1, le=100_000)
    """Number of processes, or the most workers of a cluster that are used. By default one per core."""
    address: str | None = None
    """Address of a Dask scheduler: `tcp://host:port` or `tls://host:port`."""
    tls: TlsFiles | None = None
    """For `tls://`: the PEM files `ca_file`, `cert_file` and `key_file`; for `tls://127.0.0.1:port` by default those
    of `touchstone workers start`."""

    @model_validator(mode="after")
    def _an_address_for_a_cluster(self) -> Self:
        if (self.kind == "dask") != (self.address is not None):
            raise ValueError('kind "dask" and an address go together, such as "tcp://127.0.0.1:8786"')
        if self.address is not None and not _ADDRESS.fullmatch(self.address):
            raise ValueError(f"'{self.address}' is not an address such as tcp://127.0.0.1:8786 or tls://host:8786")
        is_local = (self.address or "").startswith("tls://127.0.0.1:")
        # The files of `touchstone workers start` are found by its port.
        if (self.tls is not None) != self.uses_tls and not is_local:
            raise ValueError("an address that starts with tls:// and the files in 'tls' go together")
        if self.kind == "in_process" and (self.count or 1) > 1:
            raise ValueError('kind "in_process" is a single worker, so count cannot be more than 1')
        return self

    @property
    def uses_tls(self) -> bool:
        """Whether the connection to a cluster is encrypted, and open to holders of its key only."""
        return (self.address or "").startswith("tls://")


class RegisteredPlan(Section):
    """The items that a plan fixes; null is open."""

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


class CheckLimits(Section):
    """Thresholds of the asset checks."""

    max_quarantine_share: float = Field(0.05, ge=0, le=1)
    """Share of refused rows in a file above which the run fails."""
    max_unknown_oid_share: float = Field(0.01, ge=0, le=1)
    """Share of rows with an unknown oid above which a check warns."""
    min_coverage: float = Field(1.0, ge=0, le=1)
    """Share of the problems that a model attempted below which a check warns."""
    max_undecided_share: float = Field(0.1, ge=0, le=1)
    """Share of fixes that validators could not decide above which nothing is scored."""
    max_untrusted_share: float = Field(0.0, ge=0, le=1)
    """Share of problems whose unmodified files do not fail, or whose reference fix does not pass, above which
    nothing is scored."""


class IntervalSettings(Section):
    """How confidence intervals are computed."""

    confidence: float = Field(0.95, gt=0, lt=1)
    """Confidence level."""
    replicates: int = Field(10_000, ge=100, le=_MAX_REPLICATES)
    """Bootstrap replicates."""
    seed: int = Field(7, ge=0, le=_MAX_SEED)
    """Seed of the bootstrap."""


class ComparisonConfig(Section):
    """How models are compared with each other, and a run with its baseline snapshot."""

    baseline: str = Field("baseline", min_length=1)
    """Snapshot that a run is compared with before it is published: a pinned name, an id, or `latest`. No comparison
    until it exists."""
    on_worse: Literal["ignore", "warn", "fail"] = "fail"
    """Whether a worse model is ignored, warned about, or blocks publishing."""
    on_regression: Literal["ignore", "warn", "fail"] = "warn"
    """The same for a case that was lost (judged in the baseline, no decided attempt now) and for regressed cases:
    `warn` if there are more than chance explains, `fail` if there is any."""
    require: list[Dimension] = list(REQUIRED_DIMENSIONS)
    """In what both sides must agree: `problems`, `task_version`, `validator`, `scorer`, `generation`, `attempts`,
    `agent`, `limits`, `harness`. Otherwise the comparison is exploratory and does not pass the gate; what the files
    do not state does not count. See [comparable sides](defending.md#were-the-two-sides-comparable)."""
    threshold: float = Field(0.05, ge=0, le=_MAX_WEIGHT)
    """Drop in a case's score above which it is a regression."""
    score: Literal["auto", "best", "mean", "composite", "code", "pass_rate"] = "auto"
    """The score of a case: `best` or `mean` of its attempts, or the mean `composite`, `code` or `pass_rate`. `auto` is
    `best`, and `mean` for cases with more attempts on one side. A case without it on one side is compared by pass
    rate."""
    alpha: float = Field(0.05, gt=0, lt=1)
    """Error rate of `better` and `worse` over the whole `family`."""
    looks: int = Field(60, ge=0, le=_MAX_ROWS)
    """Runs since the baseline that share `alpha`, so that the chance of any false `worse` among them is at most that
    ([every night](statistics.md#a-gate-that-looks-every-night)). 0 tests each run at `alpha` by itself."""
    relevant: float = Field(0.05, gt=0, le=1)
    """Smallest difference in pass@1 that matters: the margin of `no relevant difference`."""
    power: float = Field(0.8, gt=0, lt=1)
    """Probability of detecting the minimum detectable effect."""
    permutations: int = Field(20_000, ge=100, le=_MAX_REPLICATES)
    """Random sign flips when there are too many to enumerate."""
    family: Literal["all", "baseline", "fdr"] = "all"
    """`all`: probability of any false verdict over all pairs (Holm). `baseline`: the same over pairs with
    `baseline_model`. `fdr`: expected share of false verdicts over all pairs (Benjamini-Yekutieli)."""
    baseline_model: str | None = Field(None, min_length=1)
    """Model that family `baseline` compares the others with."""
    plan: RegisteredPlan | None = None
    """The [plan](planning.md#registering-a-plan) that the run is held to: its file, or what it says."""

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


class SyntheticSettings(Section):
    """Data that `generate_synthetic_data` writes into `fixes_dir`."""

    problems: int = Field(10, ge=1, le=_MAX_ROWS)
    """Number of problems."""
    iterations: int = Field(20, ge=1, le=_MAX_ROWS)
    """Attempts per problem."""
    seed: int = Field(7, ge=0, le=_MAX_SEED)
    """Random seed; the same seed gives the same bytes."""
    models: dict[str, float] = {"gemini": 0.77, "chatgpt4.1": 0.6, "claude": 0.7}
    """Names of models and their mean pass rates."""


class PublishSettings(Section):
    """Files in addition to the tables, for other programs and for people."""

    warehouse: bool = True
    """Write `warehouse.duckdb`. `touchstone sql` and `explore` do without it."""
    # DuckDB takes 2 s of CPU per table and million rows, more than everything else that is done with an attempt.
    warehouse_max_rows: int = Field(500_000, ge=0, le=_MAX_SEED)
    """Tables with more rows are left out of `warehouse.duckdb`, where querying them is an error; `touchstone sql`
    still reads them."""
    csv: Literal["auto", True, False] = "auto"
    """Write `csv/<model>_outcomes.csv` and `csv/<model>_pass_at_k.csv`; `auto`: up to 1,000,000 attempts."""
    report: bool = True
    """Draw `report.html` in every run."""
    # Attempts that the report shows in full: the diff of a fix, diagnostics and the model's answer take space.
    report_cases_kb: int = Field(500, ge=0, le=100_000)
    """How many kB of the report are attempts in full: regressed, flipping and hard ones. 0 leaves them out."""
    metrics: Path | None = None
    """File that every `touchstone run` writes for Prometheus's textfile collector."""
    # For the Dagster UI: pictures on the pages of assets, who answers for them, and when the summary counts as old.
    charts: bool = True
    """Show charts on the pages of assets in the Dagster UI."""
    owners: list[Annotated[str, Field(pattern=r"^(team:[\w.-]+|[^@\s]+@[^@\s]+\.[^@\s]+)$")]] = ["team:evaluation"]
    """Owners of all assets in the Dagster UI: `team:<name>` or e-mail addresses."""
    fresh_days: float | None = Field(14, gt=0.01, le=_MAX_DAYS)
    """Days without a new summary after which Dagster calls it out of date; it warns after half of them. `null`:
    never."""


class RetentionSettings(Section):
    """How long earlier runs are kept, by `touchstone run` and the scheduled job `retention`. Null keeps everything."""

    runs_days: float | None = Field(90, gt=0, le=_MAX_DAYS)
    """Days after which a finished run is removed from Dagster's history."""
    snapshots: int | None = Field(400, ge=1, le=1_000_000)
    """How many snapshots are kept besides the pinned ones."""
    cache_days: float | None = Field(365, gt=0, le=_MAX_DAYS)
    """Days after which a cached validation report that no run has used is removed."""


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


class EvaluationConfig(Section):
    """One evaluation: what to read, what to compute, and where to write the results."""

    fixes_dir: Path
    """Folder with the fixes files, or its address in [object storage](object_storage.md); see
    [which files are read](inputs.md#which-files-are-read)."""
    output_dir: Path
    """Folder for the results, or its address in object storage; `touchstone run --output-dir` overrides it. Links
    inside it other than Touchstone's own are refused, and so are system folders and the home folder itself."""
    name: str | None = Field(None, min_length=1, max_length=200)
    """Title of the report. By default the name of the output folder."""
    inputs: list[str] = []
    """Files and folders below `fixes_dir`; only these are read, and folders among them are searched. By default
    everything directly in `fixes_dir`."""
    score: str | None = Field(None, min_length=1)
    """Which score decides in files that have several, such as Inspect logs."""
    junit_pattern: str | None = Field(None, min_length=1)
    """Which parts of the path of a test report are model, tier and attempt: `{model}/{attempt}.xml`."""
    problems_csv: Path | None = None
    """The problems file, or its address; JSON Lines only if named here. By default `problems.csv` (else `.csv.gz`,
    `.csv.zst`, `.parquet`) in `fixes_dir`, in `output_dir`, or in a folder `problems` in or beside `fixes_dir`.
    Without one, CSVs with outcomes name the problems."""
    problem_key: str = Field("oid", min_length=1)
    """Column that identifies a problem in the problems and fixes files; unique in the problems file."""
    cluster_columns: list[str] = []
    """Columns of the problems file that group problems which are not independent, such as `["repository", "file"]`;
    the outermost level counts. By default `cluster`, else `project_name`."""
    columns: dict[str, str] = {}
    """Renames columns of CSV, JSON Lines and Parquet inputs, theirs to ours: `{"task": "oid", "ok": "passed"}`.
    Other names become further columns."""
    formats: list[JsonFormat] = []
    """JSON formats of your own: where the attempts are and what their keys mean. See
    [your own formats](own_formats.md)."""
    adapters: list[AdapterSource] = []
    """Python files with adapters of your own, relative to the configuration file, and names of installed ones (entry
    points `touchstone.adapters`). They run as you."""
    rulings: Path | None = None
    """File with [rulings by people](defending.md#rulings-by-people), which `touchstone rule` writes. By default
    `rulings.jsonl` in `fixes_dir`."""
    clones_dir: Path | None = None
    """Folder with the broken files; without it no fix is validated. `touchstone run PATH…` takes `clones` beside the
    files."""
    k_values: Annotated[list[StrictInt], AfterValidator(sorted_k_values)] = [1, 5, 10]
    """The k of pass@k: at most 100 values, each up to 1,000,000."""
    models: list[str] = []
    """Keep models whose names contain one of these strings; empty keeps all."""
    data_type: Literal["all", "synthetic", "real"] = "all"
    """`synthetic`: only files with "synthetic" in the name. `real`: only files without."""
    generate_synthetic_data: bool = False
    """Write synthetic files into `fixes_dir` before the run, unless it already has some."""
    synthetic: SyntheticSettings = SyntheticSettings()
    input_limits: InputLimits = InputLimits()
    validation: ValidationSettings = ValidationSettings()
    workers: WorkerSettings = WorkerSettings()
    intervals: IntervalSettings = IntervalSettings()
    comparison: ComparisonConfig = ComparisonConfig()
    scoring: Scoring = Scoring()
    slices: Annotated[list[SliceSettings], AfterValidator(require_distinct)] = []
    """Columns of the problems by which pass@1 is split: a name, `{"column": "loc", "bins": [0, 100]}`, or
    `{"column": "created", "cutoff": {"model-a": "2025-06-01"}}`. See [slices](metrics.md#slices)."""
    factors: list[str] = []
    """Columns of the attempts, such as `effort`, `prompt` or `temperature`, whose effect on pass@1 is measured. See
    [factors](metrics.md#factors-of-an-attempt)."""
    gates: GateSettings = GateSettings()
    alerts: AlertSettings = AlertSettings()
    checks: CheckLimits = CheckLimits()
    audit: AuditSettings = AuditSettings()
    publish: PublishSettings = PublishSettings()
    retention: RetentionSettings = RetentionSettings()
    _notes: tuple[str, ...] = PrivateAttr(())

    @property
    def rulings_file(self) -> Path:
        """The file with rulings by people, which need not exist."""
        return self.rulings or self.fixes_dir / "rulings.jsonl"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user on how the file was read."""
        return self._notes

    @field_validator("inputs")
    @classmethod
    def _inside_fixes_dir(cls, inputs: list[str]) -> list[str]:
        for text in inputs:
            path = PurePath(text)
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"'{text}' is not below fixes_dir; give a path relative to it")
        return inputs

    @field_validator("rulings")
    @classmethod
    def _lines_of_json(cls, rulings: Path | None) -> Path | None:
        if rulings is not None and rulings.suffix != ".jsonl":
            raise ValueError("the name of the file must end with .jsonl")
        return rulings

    @field_validator("columns")
    @classmethod
    def _one_column_each(cls, columns: dict[str, str]) -> dict[str, str]:
        for theirs, ours in columns.items():
            if not theirs.strip() or not ours.strip():
                raise ValueError("a column's name cannot be empty")
            if list(columns.values()).count(ours) > 1:
                raise ValueError(f"two columns are renamed to '{ours}'; keep one")
        return columns

    @field_validator("formats")
    @classmethod
    def _one_format_each(cls, formats: list[JsonFormat]) -> list[JsonFormat]:
        names = [each.name for each in formats]
        for each in formats:
            if names.count(each.name) > 1:
                raise ValueError(f"two formats are called '{each.name}'; rename one")
            if not (each.files or each.marks() or re.search(r"\w", each.records)):
                raise ValueError(f"'{each.name}' names no key, so any JSON would fit; name its files in 'files'")
        return formats

    @field_validator("gates", mode="before")
    @classmethod
    def _gates_alone(cls, gates: Any) -> Any:
        return {"expressions": gates} if isinstance(gates, list) else gates

    @field_validator("slices", mode="before")
    @classmethod
    def _columns_by_name(cls, slices: Any) -> Any:
        return listed_slices(slices)

    @field_validator("factors")
    @classmethod
    def _attempt_columns(cls, factors: list[str]) -> list[str]:
        for name in factors:
            if name in _NO_FACTORS:
                raise ValueError(f"'{name}' names an attempt and is compared anyway; give another column")
        _refuse_repeated(factors)
        if len(factors) > _MAX_FACTORS:
            raise ValueError(f"give at most {_MAX_FACTORS} factors, got {len(factors)}")
        return factors

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
        return refuse_unknown_keys(data, cls.model_fields)


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
    for name, key, read in (("comparison", "plan", read_plan), ("scoring", "price_file", read_price_file)):
        section = data.get(name)
        if isinstance(section, dict) and isinstance(section.get(key), str):
            data = {**data, name: {**section, key: read(base / expanded(Path(section[key])))}}
    try:
        if isinstance(data.get("adapters"), list):
            data = {**data, "adapters": [find_adapters(each, base) for each in data["adapters"]]}
    except TouchstoneError as error:
        raise TouchstoneError(f"{path}: adapters: {error}") from None
    try:
        config = EvaluationConfig.model_validate(data)
    except ValidationError as error:
        raise TouchstoneError(f"{path}: {first_problem(error)}") from None
    config._notes = notes
    try:
        refuse_addresses(config)
        config = anchored(config, base)
        places = ("fixes_dir", "output_dir", "problems_csv", "rulings", "clones_dir")
        given = {name: getattr(config, name) for name in places}
        config = config.model_copy(update={name: path and resolved(name, path) for name, path in given.items()})
        for refuse in (refuse_system_folder, require_folder, require_local):
            refuse("output_dir", config.output_dir)
        if config.generate_synthetic_data:
            require_local("generate_synthetic_data writes to fixes_dir", config.fixes_dir)
        if config.validation.cache_dir is not None:
            refuse_system_folder("validation.cache_dir", config.validation.cache_dir)
    except TouchstoneError as error:
        raise TouchstoneError(f"{path}: {error}") from None
    return config.model_copy(
        update={
            "validation": config.validation.with_environments_dir(config.output_dir),
            "alerts": config.alerts.anchored(base),
        }
    )


def first_problems_csv(config: EvaluationConfig) -> Path | None:
    """The problems file: as configured, else the first at the usual places; at each, `problems.csv` comes first."""
    if config.problems_csv is not None:
        return config.problems_csv
    forms = (place.with_suffix(form) for place in _problem_places(config) for form in _PROBLEMS_FORMS)
    return next((place for place in forms if place.is_file()), None)


def find_problems_csv(config: EvaluationConfig) -> Path:
    """The same as `first_problems_csv`; an error if there is none."""
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
