"""The same errors as Terraform, with the same messages and positions, for every recorded module."""

import shutil
from collections.abc import Mapping

import pytest

from tests.validation.hcl.recordings import (
    TERRAFORM,
    Recording,
    ask_terraform,
    comparable,
    recordings,
    terraform_version,
)
from touchstone.validation.hcl import check_module
from touchstone.validation.hcl.files import read_file

RECORDED = recordings()
each_module = pytest.mark.parametrize("recording", RECORDED, ids=[recording.name for recording in RECORDED])


def test_there_are_enough_modules_of_both_kinds() -> None:
    valid = [recording for recording in RECORDED if not recording.errors]
    assert len(valid) >= 15
    assert len(RECORDED) - len(valid) >= 40


@each_module
def test_errors_are_those_that_terraform_gave(recording: Recording) -> None:
    found = check_module(recording.root_files, None)
    assert comparable(found.diagnostics) == recording.errors
    assert found.fidelity == "static"


@each_module
def test_cached_files_give_the_same_errors(recording: Recording) -> None:
    first = check_module(recording.root_files, None)
    again = check_module(recording.root_files, None)
    read_file.cache_clear()
    assert first == again == check_module(recording.root_files, None)


@each_module
def test_diagnostics_name_files_by_their_path_in_the_tree(recording: Recording) -> None:
    moved: Mapping[str, bytes] = {f"modules/x/{path}": content for path, content in recording.root_files.items()}
    here, there = check_module(recording.root_files, None), check_module(moved, None)
    assert [error.detail for error in here.diagnostics] == [error.detail for error in there.diagnostics]
    assert [error.file and f"modules/x/{error.file}" for error in here.diagnostics] == [
        error.file for error in there.diagnostics
    ]


@pytest.fixture(scope="module")
def terraform() -> None:
    if shutil.which("terraform") is None:
        pytest.skip("no terraform on PATH: the recorded errors were compared instead")
    version = terraform_version()
    if version != TERRAFORM:
        pytest.skip(f"terraform on PATH is {version}; its words are only known to be the same in {TERRAFORM}")


@each_module
@pytest.mark.usefixtures("terraform")
def test_terraform_still_says_what_was_recorded(recording: Recording) -> None:
    assert ask_terraform(recording.files) == recording.errors
