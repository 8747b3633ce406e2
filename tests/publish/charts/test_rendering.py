"""Pages of charts: self-contained, and made with scripts that are kept in a safe place."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert

from tests.publish.charts.tables import HOSTILE, pass_at_k
from touchstone.publish.charts import rendering, spec
from touchstone.publish.charts.rendering import html


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A list of the bundles that were made: real ones take seconds each, and only the browser looks inside."""
    found: list[str] = []

    def bundled(snippet: str) -> str:
        found.append(snippet)
        return f"/* {snippet} */"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", bundled)
    rendering.javascript.cache_clear()
    yield found
    rendering.javascript.cache_clear()


def javascript() -> str:
    """As another process would get it."""
    rendering.javascript.cache_clear()
    return rendering.javascript()


def test_scripts_are_made_once(made: list[str], tmp_path: Path) -> None:
    assert javascript() == javascript()
    assert len(made) == 1
    assert (tmp_path / "touchstone").stat().st_mode & 0o777 == 0o700


def test_a_damaged_copy_is_made_again(made: list[str], tmp_path: Path) -> None:
    whole = javascript()
    (kept,) = (tmp_path / "touchstone").iterdir()
    kept.write_text(kept.read_text() + "alert(1)")
    assert javascript() == whole
    assert len(made) == 2
    assert javascript() == whole
    assert len(made) == 2


@pytest.mark.parametrize("trouble", ["writable by others", "a link", "a file"])
def test_a_folder_that_others_may_write_is_not_used(made: list[str], tmp_path: Path, trouble: str) -> None:
    folder = tmp_path / "touchstone"
    if trouble == "a file":
        folder.write_text("")
    elif trouble == "a link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        os.chmod(folder, 0o777)  # noqa: PTH101 - the mode, whatever the umask
    assert javascript() == javascript()
    assert len(made) == 2
    assert not list(tmp_path.rglob("*.js"))


def test_a_page_has_no_outside_address_and_no_markup_of_names(made: list[str]) -> None:
    page = html(spec("leaderboard", pass_at_k([HOSTILE.replace("https://example.org", ""), "</script><b>x", "m"])))
    assert made and "vegaEmbed" in page
    assert "</script><b>" not in page and '<script>alert("1")' not in page
    assert not re.findall(r"https?:|(?:src|href)=", page)
    assert "default-src 'none'" in page


def test_a_page_follows_the_reader_unless_a_theme_is_chosen(made: list[str]) -> None:
    chart = spec("leaderboard", pass_at_k(["m"]), theme="dark")
    assert '"dark":{' in html(chart)
    assert '"dark":{' not in html(chart, follow=False)
    assert "#181A1B" in html(chart, follow=False)


def test_a_process_whose_address_space_is_limited_goes_on_without_charts() -> None:
    """The engine would end it."""
    program = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
from touchstone.errors import TouchstoneError
from touchstone.publish.charts.rendering import vl_convert
try:
    vl_convert().vegalite_to_svg({"mark": "point"})
except TouchstoneError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "raise `ulimit -v`" in done.stdout
