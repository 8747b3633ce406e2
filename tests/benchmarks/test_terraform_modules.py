"""The Terraform modules of the benchmark: all different, and broken where they say so."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from touchstone.validation.hcl import check_module

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "terraform_modules.py"))
FILENAME = SCRIPT["FILENAME"]


def is_sound(files: dict[str, str]) -> bool:
    return not check_module({name: text.encode() for name, text in files.items()}, None).diagnostics


def test_every_way_of_breaking_a_module_is_found_and_sound_ones_are_not() -> None:
    for number in (0, 1):
        files = SCRIPT["make_module"](number).files
        assert len(files) == 2 + number
        assert 1200 < sum(map(len, files.values())) < 2200
        attempts = list(SCRIPT["make_attempts"](number, 30))
        assert sum(sound for _, sound in attempts) == 20
        assert [is_sound({**files, FILENAME: text}) for text, _ in attempts] == [sound for _, sound in attempts]


@pytest.mark.nightly
def test_no_two_of_10000_modules_are_the_same() -> None:
    modules = [
        (number, text, *SCRIPT["make_module"](number).files.values())
        for number in range(100)
        for text, _ in SCRIPT["make_attempts"](number, 100)
    ]
    assert len({module[1:] for module in modules}) == 10_000


def test_what_lies_on_disk_is_broken(tmp_path: Path) -> None:
    for module in SCRIPT["write_modules"](tmp_path, 8):
        written = {path.name: path.read_text() for path in (tmp_path / module.name).iterdir()}
        assert written.keys() == module.files.keys()
        assert not is_sound(written)
