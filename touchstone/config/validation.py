"""The section `validation` of the configuration: which validator, in which sandbox, within which limits."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from touchstone.config.file import Section
from touchstone.vocabulary import CommandReport, Success, TestEdits

_WEEK = 7 * 86_400
_MAX_MB = 2**24

ValidatorName = Literal["hcl", "terraform", "python", "rust", "command"]


class LimitSettings(Section):
    """Resource limits of one validation; the default is the validator's own. `seconds` is CPU time."""

    seconds: float | None = Field(None, gt=0, le=_WEEK)
    """CPU time of all processes: 10, python .1 per test if that is more, terraform 60, command 120, rust 240."""
    wall_seconds: float | None = Field(None, gt=0, le=_WEEK)
    """Wall-clock time, for fixes that sleep or deadlock: 5 times `seconds`, at least 60; rust 480."""
    memory_mb: int | None = Field(None, ge=64, le=_MAX_MB)
    """Memory: 2048."""
    disk_mb: int | None = Field(None, ge=1, le=_MAX_MB)
    """Disk space besides the copy of the files: 512."""
    output_mb: int | None = Field(None, ge=1, le=_MAX_MB)
    """Output that a program may print: 4."""
    processes: int | None = Field(None, ge=1, le=100_000)
    """Processes and threads: 256."""


class TerraformProgram(Section):
    """The Terraform or OpenTofu program, and a folder with providers for offline use."""

    program: Path | None = None
    """Path of the program. By default `terraform` or `tofu` on PATH."""
    plugin_dir: Path | None = None
    """Provider mirror, as created by `terraform providers mirror`."""


class PythonProgram(Section):
    """The interpreter, whose packages tests and fixes can import, and whether ruff's warnings and doctests count."""

    interpreter: Path | None = None
    """Python 3.11 or later of a virtual or conda environment, whose packages tests and fixes see. By default
    Touchstone's own."""
    lint: bool = True
    """Count lint warnings with ruff."""
    doctest: bool = False
    """Also run the doctests of the repaired file, with pytest."""


class RustProgram(Section):
    """The cargo program, and a folder with vendored crates."""

    cargo: Path | None = None
    """Path of the program. By default `cargo` on PATH."""
    vendor_dir: Path | None = None
    """Vendored crates, as created by `cargo vendor`."""


class CommandProgram(Section):
    """A custom validator: {file} and {directory} are replaced by the repaired file and its folder."""

    arguments: list[str] = []
    """Your own program and its arguments; `{file}` and `{directory}` stand for the repaired file and its folder."""
    version_arguments: list[str] = []
    """Arguments that print its version, which is part of the cache key."""
    report: CommandReport = "exit_code"
    """How its result is read."""
    report_file: str = ""
    """File or pattern that it writes its report to, instead of standard output."""
    fidelity: str = Field("full", min_length=1)
    """Fidelity recorded with its verdicts."""
    readable: list[Path] = []
    """Paths it may read besides the system's."""
    environment: dict[str, str] = {}
    """Its complete environment."""


class ValidationSettings(Section):
    """How fixes without an outcome are validated."""

    mode: Literal["missing", "always", "never"] = "missing"
    """Which fixes are validated: those without an outcome, all, or none."""
    apply: Literal["auto", "file", "block"] = "auto"
    """How a fix is applied; `file` or `block` forces one way."""
    test_edits: TestEdits = "ignore"
    """Changes of files on the judge's side: `ignore` puts them back and lists them, `refuse` fails the fix, `allow`
    applies them."""
    success: Success = "plausible"
    """The rule for a pass."""
    controls: bool = True
    """Run the tests of every Python fix that passes once more as negative controls, to show forged passes."""
    validators: dict[str, ValidatorName] = {}
    """Validator by language instead of the default, such as `{"terraform": "hcl"}`: `hcl`, `terraform`, `python`,
    `rust` or `command`."""
    sandbox: Literal["auto", "bubblewrap", "landlock"] = "auto"
    """`bubblewrap` or `landlock` insists on one."""
    unsandboxed: bool = False
    """Run fixes without a sandbox; every outcome then has `sandbox` = `none`."""
    workers: int | None = Field(None, ge=1, le=1024)
    """Number of validation processes; `workers.count` says the same."""
    cache_dir: Path | None = None
    """Folder of cached reports, by default `cache` in `output_dir`. Evaluations can share one; several users or
    machines need the same `TOUCHSTONE_CACHE_KEY`."""
    repeat: int = Field(1, ge=1, le=1000)
    """How often problems, reference fixes and a sample of fixes are validated to find flaky tests; 1 is off."""
    repeat_fixes: int = Field(100, ge=0, le=1_000_000)
    """Fixes per model and tier in that sample."""
    exclude_flaky: bool = False
    """Leave flaky tests out of all verdicts; needs `repeat` of 2 or more."""
    mutants: int = Field(0, ge=0, le=1000)
    """Mutants per problem: variants of its reference fix with one mistake each, to see whether the tests notice it; 0
    is off. Python only."""
    environments_dir: Path | None = None
    """Folder of the packages that `touchstone environments prepare` installs, by default `environments` beside the
    cache."""
    kept_characters: int = Field(200_000, ge=0, le=10_000_000)
    """Longest original file and longest diff of a fix that is kept for people to look at; 0 keeps none."""
    limits: LimitSettings = LimitSettings()
    terraform: TerraformProgram = TerraformProgram()
    python: PythonProgram = PythonProgram()
    rust: RustProgram = RustProgram()
    command: CommandProgram = CommandProgram()

    @model_validator(mode="after")
    def _repeats_to_find_flaky_tests(self) -> Self:
        if self.exclude_flaky and self.repeat == 1:
            raise ValueError("exclude_flaky needs a repeat of at least 2, which finds the flaky tests")
        return self

    def with_environments_dir(self, output_dir: Path) -> Self:
        """A copy in which environments are kept beside the validation cache, unless configured otherwise."""
        beside = self.cache_dir.parent if self.cache_dir is not None else output_dir
        return self.model_copy(update={"environments_dir": self.environments_dir or beside / "environments"})
