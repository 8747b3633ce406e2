"""Validates Terraform modules without Terraform: syntax, references and, if the problem has one, the provider schema.

The checks belong in `touchstone.validation.hcl`; this runs them in a warm sandbox, because untrusted input can crash a
parser.
"""

import functools
import importlib.metadata
import json
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from touchstone.validation.files.file_identity import packages_identity
from touchstone.validation.judging.removed_blocks import CHECKED, JSON
from touchstone.validation.protocol import Availability, Diagnostic, Job, Problem, Report
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner, WarmWorker, WorkerLostError
from touchstone.validation.validators.common import sample, stopped_at

_PACKAGES = ("pygohcl", "tree-sitter", "tree-sitter-hcl")
_MAX_REPORT_BYTES = 4 * 2**20
_MAX_FILE_BYTES = 4 * 2**20
_JOBS_BEFORE_REPLACED = 2000
_SAMPLE = b'output "one" {\n  value = %b\n}\n'


class HclValidator:
    """Checks all files of a module together."""

    name = "hcl"

    def __init__(self, sandbox: SandboxRunner, limits: Limits) -> None:
        self._limits = limits
        self.version = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
        packages = Path(sysconfig.get_path("platlib"))
        self._worker = WarmWorker(
            sandbox,
            "touchstone.validation.hcl.worker:serve",
            limits,
            paths=[packages],
            jobs_before_replaced=_JOBS_BEFORE_REPLACED,
        )

    def probe(self) -> Availability:
        """Whether a correct module passes and a broken one fails."""
        jobs = [sample({"main.tf": _SAMPLE % value}, "main.tf") for value in (b"1", b"var.nobody")]
        sound, broken = (self._validate_one(job).status for job in jobs)
        if (sound, broken) == ("passed", "failed"):
            return Availability(True, self.version)
        return Availability(False, f"{self.version}: finds a sound module {sound} and a broken one {broken}")

    def fidelity(self, problem: Problem) -> str:
        """Higher if the problem has a provider schema."""
        return "static+schema" if problem.resource_schema else "static"

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        """The packages beside Touchstone, the parsers among them."""
        return {"packages": self._packages}

    @functools.cached_property
    def _packages(self) -> str:
        return packages_identity(Path(sysconfig.get_path("platlib")))

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        """Yield one report per module."""
        for job in jobs:
            yield self._validate_one(job)

    def declared(self, job: Job) -> tuple[tuple[str, ...], ...] | None:
        """The module's declarations, for a validator that checks all of it; None if it cannot be read."""
        found = self._validate_one(replace(job, problem=replace(job.problem, resource_schema=None))).declared
        if found is None:
            return None
        plain = (address[1:] if address[0] == JSON else address for address in found if address[0] != CHECKED)
        return tuple(sorted(set(plain)))

    def close(self) -> None:
        """Stop the worker."""
        self._worker.close()

    def _validate_one(self, job: Job) -> Report:
        fidelity = self.fidelity(job.problem)
        files = {path: job.tree.read(path) for path in _module_files(job)}
        for path, content in files.items():
            if len(content) > _MAX_FILE_BYTES:
                return Report("unsafe_input", fidelity, note=f"{path} has {len(content):,} bytes")
        payload = {
            "files": {path: content.decode("utf-8", "surrogateescape") for path, content in files.items()},
            "schema": job.problem.resource_schema,
            "folders": sorted({str(parent) for path in job.tree.files for parent in PurePosixPath(path).parents}),
        }
        report = Report("sandbox_error", fidelity)
        # A worker that exits without an answer may have suffered from earlier jobs, so a fresh one retries.
        for _ in range(2):
            try:
                report = self._ask(payload, fidelity)
            except WorkerLostError as error:
                report = Report("sandbox_error", fidelity, note=str(error))
            if report.status in ("passed", "failed", "timeout", "validator_unavailable"):
                break
            self._worker.close()
        return report

    def _ask(self, payload: Mapping[str, Any], fidelity: str) -> Report:
        started = time.monotonic()
        answer = self._worker.answer(payload, self._limits, _MAX_REPORT_BYTES)
        if (exceeded := answer.exceeded) is not None:
            report = stopped_at(exceeded, Report(exceeded.status, fidelity))
        else:
            report = build_report(answer.content, fidelity)
        return replace(report, duration_seconds=time.monotonic() - started)


def build_report(answer: bytes, fidelity: str) -> Report:
    """Parse the worker's answer; an incomplete answer becomes `no_report`."""
    try:
        content = json.loads(answer)
    except ValueError:
        return Report("no_report", fidelity, compiled=False, note="the parser ended before it had reported")
    if "unusable" in content:
        return Report("validator_unavailable", fidelity, note=content["unusable"])
    found = tuple(Diagnostic(**entry) for entry in content["diagnostics"])
    failed = any(entry.severity == "error" for entry in found)
    return Report(
        "failed" if failed else "passed",
        content["fidelity"],
        found,
        compiled=content["compiled"],
        declared=tuple(map(tuple, content["declared"])),
        doubts=tuple(map(tuple, content["doubts"])),
    )


def _module_files(job: Job) -> list[str]:
    """The module's files: the Terraform files directly in its folder."""
    folder = PurePosixPath(job.problem.working_directory or ".") / PurePosixPath(job.problem.filename).parent
    return [
        path
        for path in job.tree.files
        if PurePosixPath(path).parent == folder and path.endswith((".tf", ".tf.json", ".tofu"))
    ]
