"""The section `validation` of the configuration: which validator, in which sandbox, within which limits."""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from touchstone.errors import TouchstoneError
from touchstone.vocabulary import CommandReport, Success, TestEdits

# How a command's result is read: by exit code, in our JSON, or as the report of a known test runner.

_WEEK = 7 * 86_400
_MAX_MB = 2**24

ValidatorName = Literal["hcl", "terraform", "python", "rust", "command"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def expanded(path: Path) -> Path:
    """The path with a leading `~` or `~user` replaced by the home folder."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise TouchstoneError(f"'{path}': there is no such home folder") from None


class LimitSettings(_Section):
    """Resource limits of one validation; the default is the validator's own. `seconds` is CPU time."""

    seconds: float | None = Field(None, gt=0, le=_WEEK)
    wall_seconds: float | None = Field(None, gt=0, le=_WEEK)
    memory_mb: int | None = Field(None, ge=64, le=_MAX_MB)
    disk_mb: int | None = Field(None, ge=1, le=_MAX_MB)
    output_mb: int | None = Field(None, ge=1, le=_MAX_MB)
    processes: int | None = Field(None, ge=1, le=100_000)


class TerraformProgram(_Section):
    """The Terraform or OpenTofu program, and a folder with providers for offline use."""

    program: Path | None = None
    plugin_dir: Path | None = None


class PythonProgram(_Section):
    """The interpreter, whose packages tests and fixes can import, and whether ruff's warnings and doctests count."""

    interpreter: Path | None = None
    lint: bool = True
    doctest: bool = False


class RustProgram(_Section):
    """The cargo program, and a folder with vendored crates."""

    cargo: Path | None = None
    vendor_dir: Path | None = None


class CommandProgram(_Section):
    """A custom validator: {file} and {directory} are replaced by the repaired file and its folder."""

    arguments: list[str] = []
    version_arguments: list[str] = []
    report: CommandReport = "exit_code"
    report_file: str = ""
    fidelity: str = Field("full", min_length=1)
    readable: list[Path] = []
    environment: dict[str, str] = {}


class ValidationSettings(_Section):
    """How fixes without an outcome are validated."""

    mode: Literal["missing", "always", "never"] = "missing"
    apply: Literal["auto", "file", "block"] = "auto"
    test_edits: TestEdits = "ignore"
    success: Success = "plausible"
    controls: bool = True
    validators: dict[str, ValidatorName] = {}
    sandbox: Literal["auto", "bubblewrap", "landlock"] = "auto"
    unsandboxed: bool = False
    workers: int | None = Field(None, ge=1, le=1024)
    cache_dir: Path | None = None
    repeat: int = Field(1, ge=1, le=1000)
    repeat_fixes: int = Field(100, ge=0, le=1_000_000)
    exclude_flaky: bool = False
    environments_dir: Path | None = None
    kept_characters: int = Field(200_000, ge=0, le=10_000_000)
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

    def anchored(self, base: Path, output_dir: Path) -> Self:
        """A copy with absolute paths: relative ones are resolved against `base`, the config file's folder.

        Environments lie beside the validation cache, unless configured otherwise.
        """

        def absolute(path: Path | None) -> Path | None:
            return None if path is None else (base / expanded(path)).absolute()

        cache_dir = absolute(self.cache_dir)
        beside = cache_dir.parent if cache_dir is not None else output_dir
        return self.model_copy(
            update={
                "cache_dir": cache_dir,
                "environments_dir": absolute(self.environments_dir) or beside / "environments",
                "terraform": TerraformProgram(
                    program=absolute(self.terraform.program), plugin_dir=absolute(self.terraform.plugin_dir)
                ),
                "python": self.python.model_copy(update={"interpreter": absolute(self.python.interpreter)}),
                "rust": RustProgram(cargo=absolute(self.rust.cargo), vendor_dir=absolute(self.rust.vendor_dir)),
                "command": self.command.model_copy(
                    update={"readable": [(base / expanded(path)).absolute() for path in self.command.readable]}
                ),
            }
        )
