"""The same errors as Terraform, in the same words and places, for every recorded module."""

import shutil
from collections.abc import Mapping

import pytest

from tests.validation.hcl.recordings import TERRAFORM, ask_terraform, comparable, recordings, terraform_version
from touchstone.validation.hcl import check_module
from touchstone.validation.hcl.module import read_file

RECORDED = recordings()


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
