"""Every example of docs/sql.md, run as it is written, on the results of the sample."""

import io
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import closing, redirect_stdout
from pathlib import Path

import duckdb
import pytest

from tests.conftest import PROJECT

# The whole sample is evaluated for them.
pytestmark = pytest.mark.services
PAGE = (PROJECT / "docs" / "sql.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
CONSOLE = re.findall(r"^\$ (.*)\n((?:(?!\$|```).*\n)*)", PAGE, re.MULTILINE)


@pytest.fixture
def here(sample_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which `results` is the output folder of the sample."""
    (tmp_path / "results").symlink_to(sample_results)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def client(code: str) -> str:
    return re.findall(r"^import (\w+)", code, re.MULTILINE)[0]


@pytest.mark.parametrize(("code", "shown"), PYTHON, ids=[client(code) for code, _ in PYTHON])
@pytest.mark.usefixtures("here")
def test_python(code: str, shown: str) -> None:
    if client(code) == "sqlalchemy":
        pytest.importorskip("duckdb_engine", reason="the SQLAlchemy dialect of DuckDB (duckdb-engine) is not installed")
    out = io.StringIO()
    with redirect_stdout(out):
        exec(code, {})
    # Three dots stand for further digits.
    assert re.fullmatch(re.escape(shown).replace(r"\.\.\.", r"\d*"), out.getvalue()), out.getvalue()


@pytest.mark.parametrize(("command", "shown"), CONSOLE, ids=["file", "parquet"])
@pytest.mark.usefixtures("here")
def test_the_shell(command: str, shown: str) -> None:
    program, *arguments = shlex.split(command)
    beside = Path(sys.executable).with_name(program)
    found = str(beside) if beside.exists() else shutil.which(program)
    if found is None:
        pytest.skip("the DuckDB shell (duckdb-cli) is not installed")
    done = subprocess.run([found, *arguments], capture_output=True, text=True)
    assert (done.stdout.replace("\r\n", "\n"), done.stderr) == (shown, "")


def test_a_panel_of_a_figure_over_time(here: Path) -> None:
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    with closing(duckdb.connect(str(here / "results" / "warehouse.duckdb"), read_only=True)) as connection:
        rows = connection.execute(query).fetchall()
        assert len(rows) == 6 and rows[0][1] == "atlas-large T0"
        ((tags,),) = connection.execute("SELECT tags FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
    assert tags["storage_version"].startswith("v1.2"), "clients with an older DuckDB can open it"
