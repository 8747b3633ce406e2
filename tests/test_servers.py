"""The last line of the table of servers in SECURITY.md: the tests' own servers are on loopback."""

import re

from tests.conftest import PROJECT

_SERVERS = re.compile(r"\b(?:HTTPServer|CommentsApi|MotoServer|create_server|bind|super\(\).__init__)\((?=\(|ip_)(.*)")


def test_the_servers_of_the_tests_listen_on_this_machine_only() -> None:
    texts = [file.read_text() for file in (PROJECT / "tests").rglob("*.py")]
    started = [rest for text in texts for rest in _SERVERS.findall(text)]
    assert len(started) >= 7 and all("127.0.0.1" in rest for rest in started), started
