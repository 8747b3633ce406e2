"""The same errors as Terraform, in the same words and places, for every recorded module."""

import csv
import json
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.validation.hcl.providers import served
from tests.validation.hcl.recordings import TERRAFORM, ask_terraform, comparable, recordings, terraform_version
from tests.validation.hcl.repairs import DATA, MODULES, TYPES
from touchstone.config import load_config
from touchstone.validation.fixes.apply_fix import AppliedFix, apply_fix, choose_fix
from touchstone.validation.hcl import check_module
from touchstone.validation.hcl.module import read_file
from touchstone.validation.targets import Target, Targets, problem_rows

RECORDED = recordings()
SAMPLE = Path(__file__).parents[3] / "data" / "sample" / "terraform"
SCHEMA = json.loads((SAMPLE / "schema" / "provider_schema.json").read_text())
SCHEMAS = {
    "resource_schemas": {**TYPES, **SCHEMA["resource_schemas"]},
    "data_source_schemas": {**DATA, **SCHEMA["data_source_schemas"]},
}
# What providers say of null, and what Terraform says only when it plans: of references to itself, of sensitive
# attributes, and of what a dynamic block or a function makes of a collection that is not known.
NOT_WHEN_VALIDATED = {
    *(f"aws instance {number}" for number in (4, 20, 21, 23)),
    "aws lambda 15",
    *(f"google bucket {number}" for number in (3, 4, 6)),
    *(f"azure storage {number}" for number in (5, 6)),
    *(f"random {number}" for number in (2, 10, 11)),
}


def test_errors_are_those_that_terraform_gave() -> None:
    found = {recording.name: check_module(recording.root_files, None) for recording in RECORDED}
    wrong = {
        recording.name: (comparable(found[recording.name].diagnostics), recording.errors)
        for recording in RECORDED
        if comparable(found[recording.name].diagnostics) != recording.errors
    }
    assert wrong == {}
    assert {each.fidelity for each in found.values()} == {"static"}


def test_files_that_are_remembered_are_judged_the_same() -> None:
    for recording in RECORDED:
        first = check_module(recording.root_files, None)
        again = check_module(recording.root_files, None)
        read_file.cache_clear()
        assert first == again == check_module(recording.root_files, None), recording.name


def test_diagnostics_name_files_by_their_path_in_the_tree() -> None:
    for recording in RECORDED:
        moved: Mapping[str, bytes] = {f"modules/x/{path}": content for path, content in recording.root_files.items()}
        here, there = check_module(recording.root_files, None), check_module(moved, None)
        assert [error.detail for error in here.diagnostics] == [error.detail for error in there.diagnostics]
        assert [error.file and f"modules/x/{error.file}" for error in here.diagnostics] == [
            error.file for error in there.diagnostics
        ], recording.name


@pytest.fixture(scope="module")
def terraform() -> None:
    if shutil.which("terraform") is None:
        pytest.skip("no terraform on PATH: the recorded errors were compared instead")
    version = terraform_version()
    if version != TERRAFORM:
        pytest.skip(f"terraform on PATH is {version}; its words are only known to be the same in {TERRAFORM}")


@pytest.mark.nightly
@pytest.mark.usefixtures("terraform")
def test_terraform_still_says_what_was_recorded() -> None:
    for recording in RECORDED:
        assert ask_terraform(recording.files) == recording.errors, recording.name


@pytest.fixture(scope="module")
def providers(terraform: None) -> Iterator[dict[str, str]]:
    names = ("aws", "azurerm", "forge", "google", "null", "random")
    with served(
        SCHEMAS, "registry.example/forge/forge", *(f"registry.terraform.io/hashicorp/{n}" for n in names)
    ) as made:
        yield made


@pytest.mark.nightly
def test_terraform_accepts_right_repairs_and_refuses_wrong_ones(providers: dict[str, str]) -> None:
    right = {f"{name} {n}": text for name, module in MODULES.items() for n, text in enumerate(module.right)}
    wrong = {f"{name} {n}": text for name, module in MODULES.items() for n, text in enumerate(module.wrong)}
    assert {name for name, text in right.items() if ask_terraform({"main.tf": text.encode()}, providers)} == set()
    accepted = {name for name, text in wrong.items() if not ask_terraform({"main.tf": text.encode()}, providers)}
    assert accepted == NOT_WHEN_VALIDATED


def _fixed_modules() -> Iterator[tuple[Target, dict[str, bytes]]]:
    """Every fix of the sample that can be applied: its problem, and the files of the fixed module."""
    config = load_config(SAMPLE / "evaluation_config.json")
    targets = Targets(config.clones_dir, config.validation).find(problem_rows(config).values())
    for path in sorted(SAMPLE.glob("*_fixes.csv")):
        for row in csv.DictReader(path.open(encoding="utf-8", newline="")):
            target = targets[row["oid"]]
            assert isinstance(target, Target)
            fix = choose_fix(row, "auto", has_range=True)
            applied = apply_fix(target.tree, fix, target.problem) if fix is not None else None
            if isinstance(applied, AppliedFix):
                tree, folder = (
                    target.tree.with_changes(applied.changes, applied.executable),
                    Path(target.problem.path).parent,
                )
                yield target, {Path(file).name: tree.read(file) for file in tree.files if Path(file).parent == folder}


@pytest.mark.nightly
def test_the_static_checker_says_of_every_fix_of_the_sample_what_terraform_says(providers: dict[str, str]) -> None:
    fixes = list(_fixed_modules())
    with ThreadPoolExecutor(2) as threads:
        said = threads.map(lambda fix: ask_terraform(fix[1], providers), fixes)
    found = [comparable(check_module(files, target.problem.resource_schema).diagnostics) for target, files in fixes]
    disagreed = [mine for errors, mine in zip(said, found, strict=True) if bool(errors) != bool(mine)]
    assert len(found) == 117, "of 120, three cannot be applied"
    assert [error.summary for mine in disagreed for error in mine] == ["Nesting too deep"], (
        "a limit of the checker alone"
    )
