"""docs/own_formats.md, done as it says: its files are written, its commands print what it shows."""

import re
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.test_tool_pages import output_of, pattern_of, recipes

PAGE = PROJECT / "docs" / "own_formats.md"
_FILE = re.compile(r"`([\w./]+)`:\n\n```(?:json|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_files(folder: Path) -> None:
    for name, content in _FILE.findall(PAGE.read_text()):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)


def test_the_page_shows_what_its_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = list(recipes(PAGE))
    assert len(found) == 2
    for arguments, printed in found:
        shown = output_of(arguments)
        assert re.fullmatch(pattern_of(printed), shown), shown
