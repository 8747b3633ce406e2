"""`--help`: commands by panel, nothing cut at 80 columns, examples that the command takes, and shell completion."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.conftest import Command
from touchstone.cli.main import EXAMPLES, PANELS, app


def leaves(command: Any, *names: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(names), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, *names, name)


COMMANDS = dict(leaves(get_command(app)))


def test_commands_are_listed_by_panel_and_nothing_is_cut(touchstone: Command) -> None:
    shown = touchstone("-h", columns=80).stdout
    assert [panel for panel in re.findall(r"─ ([A-Z][a-z ]+) ─", shown) if panel != "Options"] == list(PANELS)
    for text in (shown, *(touchstone(*name.split(), "-h", columns=80).stdout for name in COMMANDS)):
        assert "..." not in re.sub(r"[\]}]\.\.\.", "", text) and "list[" not in text
        assert max(map(len, text.splitlines())) <= 80, text
    assert "--install-completion" in shown


def test_every_command_has_an_example_that_it_takes() -> None:
    assert sorted(EXAMPLES) == sorted(COMMANDS)
    for name, examples in EXAMPLES.items():
        for example in examples:
            _, *words = shlex.split(example.replace("\\\n", ""))
            COMMANDS[name].make_context(name, words[len(name.split()) :])


@pytest.mark.services
@pytest.mark.parametrize(("words", "expected"), [("touchstone sna", "snapshots"), ("touchstone report --op", "--open")])
def test_shell_completion(words: str, expected: str) -> None:
    asked = {"_TOUCHSTONE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    program = Path(sys.executable).with_name("touchstone")
    done = subprocess.run([program], env=os.environ | asked, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [expected]
