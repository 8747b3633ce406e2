"""No text from fixes, data or names controls the terminal, a CI system, or the reader of a Markdown report."""

import io
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.syntax import Syntax
from rich.text import Text

from tests.conftest import Command
from touchstone.cli.safe_streams import SafeStream
from touchstone.cli.terminal_tables import FittedTable, SafeConsole, names
from touchstone.text import markdown_paragraph, markdown_text, without_commands

TITLE = "\x1b]0;pwned\x07"
HOSTILE = f"{TITLE}\x9b31m\u202eevil\r::error::x"
COMMAND = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)


def test_an_error_message_is_made_safe_too(touchstone: Command, tmp_path: Path) -> None:
    done = touchstone("tables", "--data", tmp_path / f"x\n::error::{TITLE}")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr and not COMMAND.search(done.stderr)


def test_rich_colours_its_own_text_only() -> None:
    out = io.StringIO()
    screen = SafeConsole(out, force_terminal=True, color_system="standard", width=60)
    screen.print(Text(HOSTILE, style="red"))
    screen.print(Syntax(f"+{HOSTILE}\n-b", "diff", background_color="default", word_wrap=True))
    table = FittedTable(names(HOSTILE), title=HOSTILE, caption=HOSTILE)
    table.add_row(Text(HOSTILE))
    table.print(screen)
    assert "\x1b[31m" in out.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", plain)


@given(st.lists(st.text(alphabet=":#[a \nv"), max_size=6))
def test_a_command_written_in_pieces_is_disarmed(pieces: list[str]) -> None:
    out = io.StringIO()
    stream = SafeStream(out)
    for piece in pieces:
        stream.write(piece)
    assert not COMMAND.search(out.getvalue())
    assert out.getvalue().replace("\\", "") == "".join(pieces)


def test_printing_through_the_stream_reaches_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    print("a\tb", "::c", file=SafeStream(sys.stdout))
    assert capsys.readouterr().out == "a\tb ::c\n"
    assert without_commands("  ::stop") == "  :\\:stop"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("@octocat, (@octocat)", "@&#8203;octocat, (@&#8203;octocat)"),
        ("é@octocat _@octocat", r"é@&#8203;octocat \_@&#8203;octocat"),
        ("@org/team", "@&#8203;org/team"),
        ("me@example.org", "me@&#8203;example.org"),
        ("https://evil.example", "https:&#8203;//evil.example"),
        ("WWW.evil.example", "WWW&#8203;.evil.example"),
        ("_www.evil.example", r"\_www&#8203;.evil.example"),
        ("mailto:me@example.org", "mailto:me@&#8203;example.org"),
        ("gh-12", "gh&#8203;-12"),
        ("fixes #12", r"fixes \#&#8203;12"),
        ("![a](b)", r"!\[a\](b)"),
        ("<img src=x>", r"\<img src=x\>"),
        ("pass@1 of a_b", "pass@1 of a_b"),
    ],
)
def test_markdown_neither_links_nor_notifies(text: str, written: str) -> None:
    assert markdown_text(text) == markdown_paragraph(text) == written


def test_a_paragraph_of_markdown_is_no_command() -> None:
    assert markdown_paragraph("::error::x") == r"\::error::x"
    assert not COMMAND.search(markdown_paragraph("##[group]"))
