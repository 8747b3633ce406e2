"""Terraform itself judges where it can judge every problem; otherwise the static checker does, for all of them.

The program is a stand-in that answers as Terraform does: no package provides the real one for every machine.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.validation.sandbox.conftest import need
from tests.validation.validators.support import tree_of
from touchstone.config.validation import ValidationSettings
from touchstone.validation.outcomes import baseline_rows, outcome_rows
from touchstone.validation.registry import validator_for
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Targets
from touchstone.validation.terraform_choice import choose_terraform_validator

# Finds `unclosed` to be a syntax error, an undeclared variable, and providers other than `here` missing.
PROGRAM = r"""#!/bin/sh
say() { echo "{\"format_version\": \"1.0\", \"valid\": $1, \"error_count\": $2, \"diagnostics\": [$3]}"; }
error() { say false 1 "{\"severity\": \"error\", \"summary\": \"$1\", \"detail\": \"$2\", \"range\": $3}"; exit 1; }
place() { grep -n "$1" main.tf | sed 's/:.*//;s/.*/{"filename": "main.tf", "start": {"line": &}}/'; }
case "$1" in
version) echo '{"terraform_version": "1.11.4"}' ;;
fmt) grep -q unclosed *.tf && echo "Error: Unclosed configuration block" >&2 ;;
validate)
  grep -q unclosed *.tf && error "Unclosed configuration block" "" "$(place unclosed)"
  grep -q '^[rd][a-z]* "absent_' *.tf && error "Missing required provider" "absent is not installed" null
  grep -q var.nobody *.tf && error "Reference to undeclared input variable" nobody "$(place var.nobody)"
  say true 0 "" ;;
esac
"""
BROKEN = 'resource "here_thing" "a" {\n  name = var.nobody\n}\n'


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("bubblewrap")
    path = tmp_path_factory.mktemp("program") / "terraform"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    for folder in path.parents[:2]:
        folder.chmod(0o755)
    return path


Rows = list[dict[str, str]]
Made = tuple[ValidationSession, Rows, Path]


@pytest.fixture
def make(tmp_path: Path, program: Path) -> Callable[..., Made]:
    def made(problems: Mapping[str, str], **settings: object) -> Made:
        for oid, text in problems.items():
            tree_of(tmp_path / "clones" / oid, {"main.tf": text})
        given = ValidationSettings.model_validate({"terraform": {"program": program}, "workers": 1, **settings})
        session = ValidationSession(given, tmp_path / "cache", tmp_path / "scratch")
        return session, [{"oid": oid, "filename": "main.tf"} for oid in problems], tmp_path / "clones"

    return made


MISSING = BROKEN.replace("here_", "absent_")
UNCLOSED = 'resource "here_x" "a" {\n# unclosed\n'
CANNOT = "terraform cannot judge problem {}: a provider is missing"


@pytest.mark.parametrize(
    ("problems", "settings", "validator", "reason"),
    [
        pytest.param({"a": BROKEN, "b": BROKEN}, {}, "terraform", "", id="all"),
        pytest.param({"a": BROKEN, "b": MISSING}, {}, "hcl", CANNOT.format("b"), id="not all"),
        pytest.param({"a": UNCLOSED}, {}, "terraform", "", id="a syntax error", marks=pytest.mark.nightly),
        pytest.param(
            {"a": UNCLOSED.replace("here_", "absent_")},
            {},
            "hcl",
            CANNOT.format("a"),
            id="hidden by a syntax error",
            marks=pytest.mark.nightly,
        ),
        pytest.param({}, {}, "hcl", "", id="no problem"),
        pytest.param({"a": BROKEN}, {"terraform": {"program": "/nonexistent/terraform"}}, "hcl", "", id="no program"),
        *(
            pytest.param({"a": MISSING}, {"validators": {"terraform": name}}, name, "", id=f"{name} is configured")
            for name in ("hcl", "terraform", "command")
        ),
    ],
)
def test_one_choice_for_all_problems_and_the_screen_says_why(
    make: Callable[..., Made],
    monkeypatch: pytest.MonkeyPatch,
    problems: dict[str, str],
    settings: dict[str, object],
    validator: str,
    reason: str,
) -> None:
    said: list[str] = []
    monkeypatch.setattr("touchstone.validation.terraform_choice.report_warning", said.append)
    session, rows, clones = make(problems, **settings)
    with session:
        chosen = choose_terraform_validator(rows, clones, session)
    assert validator_for("terraform", chosen) == validator
    why = f"Terraform files are judged by the static checker 'hcl', because {reason}"
    assert [words[: len(why)] for words in said] == ([why] if reason else [])


@pytest.mark.services
def test_every_outcome_names_the_validator_and_deleting_code_is_no_repair(make: Callable[..., Made]) -> None:
    session, rows, clones = make({"a": BROKEN})
    fixes = {
        "right": BROKEN.replace("var.nobody", "1"),
        "unrepaired": BROKEN,
        "deleted": "# nothing\n",
        "hidden": f"locals {{\n  z = <<EOT\n{BROKEN.replace('var.nobody', '')}\nEOT\n}}\n",
        "unreadable": "locals {\n  z = true(1)\n}\n" + BROKEN.replace("var.nobody", "1"),
        "invented": BROKEN.replace("var.nobody", "1") + 'resource "absent_x" "b" {}\n',
    }
    attempts = [
        {"model": "m", "tier": "T0", "oid": "a", "iteration_id": name, "fixed_file": text}
        for name, text in fixes.items()
    ]
    with session:
        targets = Targets(clones, choose_terraform_validator(rows, clones, session)).find(rows)
        (baseline,) = baseline_rows(targets, session)
        found = {row["iteration_id"]: row for row in outcome_rows(attempts, targets, session)}
    assert (baseline["validator"], baseline["fails_as_recorded"]) == ("terraform", True)
    assert {(row["validator"], row["fidelity"]) for row in found.values()} == {("terraform", "full")}
    assert [name for name, row in found.items() if row["passed"]] == ["right"]
    assert all(row["passed"] is not None for row in found.values())
    assert 'Block removed: resource "here_thing" "a"' in found["deleted"]["diagnostics"]
