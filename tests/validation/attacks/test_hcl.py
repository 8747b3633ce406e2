"""Terraform files that try to crash the parser: never a pass, and the next module on the worker is still validated."""

from collections.abc import Iterator

import pytest

from tests.validation.attacks.arena import job_of
from tests.validation.attacks.conftest import sandbox_runner
from touchstone.validation.protocol import Report
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.validators.hcl import HclValidator

GOOD = 'variable "name" {\n  type = string\n}\n\noutput "name" {\n  value = var.name\n}\n'
BAD = 'output "name" {\n  value = var.missing\n}\n'


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def validator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HclValidator]:
    made = HclValidator(sandbox_runner(request.param, tmp_path_factory.mktemp("scratch")), Limits(seconds=1.5))
    yield made
    made.close()


def validate(validator: HclValidator, content: str | bytes) -> Report:
    (report,) = validator.validate([job_of({"main.tf": content}, "main.tf")])
    return report


ATTACKS: dict[str, str | bytes] = {
    "NUL": b'output "a" {\n  value = "\0"\n}\n\0',
    "not UTF-8": b'output "a" {\n  value = "\xff\xfe\xc3\x28"\n}\n',
    "half a character": 'output "a" {\n  value = "\\ud800"\n}\n',
    "nested lists": f'output "a" {{\n  value = {"[" * 100_000}{"]" * 100_000}\n}}\n',
    "nested lists left open": f'output "a" {{\n  value = {"[" * 100_000}\n',
    "nested blocks": "a {\n" * 100_000,
    "nested objects": f'output "a" {{\n  value = {"{a=" * 100_000}1{"}" * 100_000}\n}}\n',
    "nested calls": f'output "a" {{\n  value = {"f(" * 100_000}1{")" * 100_000}\n}}\n',
    "nested templates": f'output "a" {{\n  value = {chr(34) + "${" * 1}{(chr(34) + "${") * 50_000}\n}}\n',
    "negations": f'output "a" {{\n  value = {"!" * 100_000}x\n}}\n',
    "conditions": f'output "a" {{\n  value = {"a ? b : " * 100_000}\n}}\n',
    "a large file of nonsense": b"\x7f{[(\"'<<~" * 300_000,
    "three megabytes of blocks": BAD + 'resource "a" "b" {\n  c = "d"\n}\n' * 80_000,
    "heredocs that look endless": 'output "a" {\n  value = ' + "".join(f"<<E{n}\n${{" for n in range(5_000)) + "\n}\n",
    "heredocs without an end": "a = <<EOF\n" + "%{ for x in y }${x}\n" * 5_000,
    "one long name": f'output "a" {{\n  value = var.{"x" * 1_000_000}\n}}\n',
    "many steps": f'output "a" {{\n  value = var{".x" * 50_000}\n}}\n',
    "a byte order mark and more": b"\xef\xbb\xbf\xef\xbb\xbf" + BAD.encode(),
    "control characters": b'output "\x1b]0;x\x07" {\n  value = var.\x00\n}\n',
}


@pytest.mark.parametrize("what", ATTACKS)
def test_a_file_that_wants_to_break_the_parser(validator: HclValidator, what: str) -> None:
    report = validate(validator, ATTACKS[what])
    assert report.status not in ("passed", "sandbox_error", "validator_unavailable"), report
    assert str(report).encode("utf-8")
    assert validate(validator, GOOD).status == "passed"
    assert validate(validator, BAD).status == "failed"


def test_a_file_beyond_the_limit_is_not_looked_at(validator: HclValidator) -> None:
    assert validate(validator, b"#" * (5 << 20)).status == "unsafe_input"
