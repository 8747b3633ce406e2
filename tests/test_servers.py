"""The table of servers in SECURITY.md: every line names a test, and the tests' own servers are on loopback."""

import re

from tests.conftest import PROJECT

_SERVERS = re.compile(r"\b(?:HTTPServer|CommentsApi|MotoServer|create_server|bind|super\(\).__init__)\((?=\(|ip_)(.*)")


def test_every_line_of_the_table_names_a_test_that_exists() -> None:
    table = (PROJECT / "SECURITY.md").read_text().partition("## Servers")[2]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(lines) == 11
    for line in lines:
        (named,) = re.findall(r"\| `(tests/\S+\.py)` \|$", line)
        assert (PROJECT / named).is_file(), line


def test_the_servers_of_the_tests_listen_on_this_machine_only() -> None:
    texts = [file.read_text() for file in (PROJECT / "tests").rglob("*.py")]
    started = [rest for text in texts for rest in _SERVERS.findall(text)]
    assert len(started) >= 7 and all('"127.0.0.1"' in rest for rest in started), started
