"""Terraform files that try to crash the parser or to escape its checks: never a pass, and never undecided.

After each of them, the next module on the worker is still validated.
"""

import csv
import re
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from tests.conftest import PROJECT, nightly_but
from tests.validation.attacks.arena import job_of
from tests.validation.attacks.conftest import USED
from tests.validation.pytest_runner.support import sandbox_or_skip
from touchstone.config.validation import ValidationSettings
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.protocol import Report
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Target, Targets
from touchstone.validation.validators.hcl import HclValidator

SAMPLE = PROJECT / "data" / "sample" / "terraform"
REQUIRED = '\nterraform {\n  required_providers {\n    forge = {\n      source = "other/forge"\n    }\n  }\n}\n'
GOOD = 'variable "name" {\n  type = string\n}\n\noutput "name" {\n  value = var.name\n}\n'
BAD = 'output "name" {\n  value = var.missing\n}\n'


@pytest.fixture(scope="module", params=USED)
def validator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HclValidator]:
    made = HclValidator(sandbox_or_skip(tmp_path_factory.mktemp("scratch"), request.param), Limits(seconds=1.5))
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
    "half a megabyte of blocks": BAD + 'resource "a" "b" {\n  c = "d"\n}\n' * 15_000,
    "heredocs that look endless": 'output "a" {\n  value = ' + "".join(f"<<E{n}\n${{" for n in range(5_000)) + "\n}\n",
    "heredocs without an end": "a = <<EOF\n" + "%{ for x in y }${x}\n" * 5_000,
    "one long name": f'output "a" {{\n  value = var.{"x" * 1_000_000}\n}}\n',
    "many steps": f'output "a" {{\n  value = var{".x" * 50_000}\n}}\n',
    "a byte order mark and more": b"\xef\xbb\xbf\xef\xbb\xbf" + BAD.encode(),
    "control characters": b'output "\x1b]0;x\x07" {\n  value = var.\x00\n}\n',
}


# Bytes that are no text, depth, length, and what has no end. Some others take the parser a second or two.
BY_DAY = ("NUL", "not UTF-8", "nested lists left open", "nested templates", "heredocs without an end", "one long name")


@pytest.mark.parametrize("what", nightly_but(BY_DAY, ATTACKS))
def test_a_file_that_wants_to_break_the_parser(validator: HclValidator, what: str) -> None:
    report = validate(validator, ATTACKS[what])
    assert report.status not in ("passed", "sandbox_error", "validator_unavailable"), report
    assert str(report).encode("utf-8")
    assert validate(validator, GOOD).status == "passed"
    assert validate(validator, BAD).status == "failed"


def test_a_file_beyond_the_limit_is_not_looked_at(validator: HclValidator) -> None:
    assert validate(validator, b"#" * (5 << 20)).status == "unsafe_input"


def in_resources(text: str, added: str) -> str:
    return re.sub(r"(?m)^(resource .*\{\n)", rf"\1  {added}\n", text)


class TestEscapingTheChecks:
    """Fixes that repair nothing and hide that: none passes, and none becomes undecided."""

    @pytest.fixture(scope="class")
    @classmethod
    def session(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValidationSession]:
        folder = tmp_path_factory.mktemp("session")
        sandbox_or_skip(folder / "probe", "bubblewrap")
        settings = ValidationSettings(validators={"terraform": "hcl"}, workers=1)
        with ValidationSession(settings, folder / "cache", folder / "scratch") as session:
            yield session

    HIDDEN: ClassVar[dict[str, Callable[[str], str]]] = {
        "an exponent": lambda text: text + "\nlocals {\n  z = 1E5\n}\n",
        "a huge exponent": lambda text: text + "\nlocals {\n  z = 1E999999\n}\n",
        "what only one parser reads": lambda text: text + "\nlocals {\n  z = true(1)\n}\n",
        "what only one parser reads, elsewhere": lambda text: "locals {\n  z = [0] . *\n}\n" + text,
        "an escaping block": lambda text: in_resources(text, "_ {\n  }"),
        "a provider without a schema": lambda text: in_resources(text, "provider = other.x"),
        "a provider from elsewhere": lambda text: text + REQUIRED,
        "another resource type": lambda text: text.replace('resource "forge_', 'resource "other_'),
        "a data source": lambda text: text.replace('resource "forge_', 'data "forge_'),
        "a resource type in escapes": lambda text: text.replace('resource "forge_', 'resource "f\\u006frge_'),
        "nothing but a comment": lambda text: "# nothing\n",
        "everything in a comment": lambda text: f"/*\n{text.replace('*/', '')}\n*/\n",
        "everything in a heredoc": lambda text: f"locals {{\n  z = <<EOT\n{text.replace('${', '$')}\nEOT\n}}\n",
        "everything replaced by one block": lambda text: 'resource "terraform_data" "x" {\n}\n',
    }

    @pytest.mark.parametrize(
        "how",
        nightly_but(["another resource type", "everything in a heredoc", "everything replaced by one block"], HIDDEN),
    )
    def test_of_every_sample_problem(self, session: ValidationSession, how: str) -> None:
        rows = list(csv.DictReader((SAMPLE / "problems.csv").read_text().splitlines(keepends=True)))
        targets = Targets(SAMPLE / "clones", session.settings).find(rows)
        attempts = []
        for row in rows:
            target = targets[row["oid"]]
            assert isinstance(target, Target)
            fixed = self.HIDDEN[how](target.tree.read(target.problem.path).decode())
            attempts.append({"model": "m", "tier": "T0", "oid": row["oid"], "iteration_id": "1", "fixed_file": fixed})
        found = outcome_rows(attempts, targets, session)
        assert {row["oid"]: row["passed"] for row in found} == {row["oid"]: False for row in rows}, found
