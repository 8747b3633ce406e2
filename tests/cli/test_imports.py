"""What a command imports: starting must cost little, so heavy libraries are loaded only where they do the work."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT, Folder, nightly_but

HEAVY = {"altair", "dagster", "dataframely", "duckdb", "numpy", "polars", "pyarrow", "rich", "scipy", "sqlalchemy"}
HEAVY |= {"dask", "distributed", "pydantic"}
FIXES = PROJECT / "data" / "sample"
COMPARING = {"numpy", "polars", "rich"}
LOG = PROJECT / "tests" / "ingest" / "adapters" / "files" / "inspect" / "letters.eval"


def loaded_by(program: str, *arguments: object) -> set[str]:
    """The heavy libraries that a program of a few lines has imported at its end."""
    told = f"\nprint('loaded', *({HEAVY!r} & sys.modules.keys()))"
    command = [sys.executable, "-c", f"import sys\n{program}{told}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_command_line_starts_with_nothing_heavy() -> None:
    assert loaded_by("import touchstone.cli.main") == set()


@pytest.mark.services
def test_the_help_of_every_command_loads_nothing_heavy() -> None:
    program = """
import contextlib, io
from typer.main import get_command
from touchstone.cli.main import app
def ask(command, *names):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        app([*names, "--help"], standalone_mode=False)
    assert f"Usage: {' '.join(['touchstone', *names])} " in shown.getvalue()
    for name, inner in getattr(command, "commands", {}).items():
        ask(inner, *names, name)
sys.argv[0] = "touchstone"
ask(get_command(app))
"""
    # Typer converts values with pydantic and lists commands with rich.
    assert loaded_by(program) == {"pydantic", "rich"}


NEEDED = [
    ("doctor", {"rich"}),
    ("init NEW", set()),
    ("snapshots list --json --data OUT", set()),
    ("export pass_at_k --data OUT", {"polars"}),
    ("show --data OUT m a", {"polars", "rich"}),
    ("chart --list", set()),
    ("snapshots list --data OUT", {"rich"}),
    ("tables --data OUT", {"duckdb", "rich"}),
    ("sql --data OUT SELECT+1", {"numpy", "pyarrow", "rich"}),
    ("compare --baseline OUT --current OUT", COMPARING),
    # Its members are compressed with Zstandard, which pyarrow reads.
    (f"compare {LOG} {LOG}", COMPARING | {"pyarrow"}),
    (f"pass-at-k --problems-csv {FIXES / 'problems.csv'} --fixes-csv {FIXES / 'atlas-large_fixes.csv'}", COMPARING),
]


@pytest.mark.parametrize(("line", "needed"), nightly_but(NEEDED[:1], NEEDED))
def test_a_command_loads_only_what_it_needs(finished: Folder, line: str, needed: set[str], tmp_path: Path) -> None:
    places = {"OUT": str(finished.output), "NEW": str(tmp_path / "new")}
    arguments = [places.get(part, part).replace("+", " ") for part in line.split(" ")]
    program = "import contextlib; from touchstone.cli.main import app\n"
    program += "with contextlib.suppress(SystemExit): app(sys.argv[1:], standalone_mode=False)"
    assert loaded_by(program, *arguments) <= needed | {"pydantic"}


@pytest.mark.services
def test_charts_of_a_run_are_drawn_without_altair_and_without_javascript() -> None:
    program = "from tests.publish.charts.tables import pass_at_k; from touchstone.publish.charts import spec\n"
    program += "from touchstone.publish.previews import inline_chart\n"
    program += "assert spec('leaderboard', pass_at_k(['m'])) and inline_chart('pass_at_k', pass_at_k(['m']).lazy())\n"
    program += "assert 'vl_convert' not in sys.modules"
    assert "altair" not in loaded_by(program)


@pytest.mark.nightly
def test_dagsters_definitions_load_without_the_engine() -> None:
    # Dagster itself uses pydantic and rich.
    assert loaded_by("import pipelines.definitions") - {"pydantic", "rich"} == {"dagster"}


@pytest.mark.nightly
def test_a_run_of_recorded_outcomes_loads_no_validators(folder: Folder) -> None:
    program = "from pathlib import Path; from touchstone.evaluation import Evaluation, run\n"
    program += "run(Evaluation.load(Path(sys.argv[1])))\n"
    program += "assert 'touchstone.validation.session' not in sys.modules"
    assert loaded_by(program, folder.config) <= {"duckdb", "numpy", "polars", "pyarrow", "pydantic"}
