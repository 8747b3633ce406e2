"""What a command imports: starting must cost little, so heavy libraries are loaded only where they do the work."""

import subprocess
import sys

import pytest

from tests.conftest import PROJECT, Folder

HEAVY = {"altair", "dagster", "dataframely", "duckdb", "numpy", "polars", "pyarrow", "rich", "scipy", "sqlalchemy"}
HEAVY |= {"dask", "distributed"}
FIXES = PROJECT / "data" / "sample"
LOG = PROJECT / "tests" / "ingest" / "adapters" / "files" / "inspect" / "letters.eval"


def loaded_by(program: str, *arguments: object) -> set[str]:
    """The heavy libraries that a program of a few lines has imported at its end."""
    told = f"\nprint('loaded', *({HEAVY!r} & sys.modules.keys()))"
    command = [sys.executable, "-c", f"import sys\n{program}{told}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_command_line_starts_with_nothing_heavy() -> None:
    assert loaded_by("import touchstone.cli.main") == set()


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("doctor", {"rich"}),
        pytest.param("chart --list", set(), marks=pytest.mark.nightly),
        pytest.param("snapshots list --data OUT", {"rich"}, marks=pytest.mark.nightly),
        pytest.param("tables --data OUT", {"duckdb", "rich"}, marks=pytest.mark.nightly),
        pytest.param("sql --data OUT SELECT+1", {"numpy", "pyarrow", "rich"}, marks=pytest.mark.nightly),
        pytest.param("compare --baseline OUT --current OUT", {"numpy", "polars", "rich"}, marks=pytest.mark.nightly),
        # Its members are compressed with Zstandard, which pyarrow reads.
        (f"compare {LOG} {LOG}", {"numpy", "polars", "pyarrow", "rich"}),
        pytest.param(
            f"pass-at-k --problems-csv {FIXES / 'problems.csv'} --fixes-csv {FIXES / 'atlas-large_fixes.csv'}",
            None,
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_command_loads_only_what_it_needs(finished: Folder, line: str, needed: set[str] | None) -> None:
    arguments = [part.replace("OUT", str(finished.output)).replace("+", " ") for part in line.split(" ")]
    program = "import contextlib; from touchstone.cli.main import app\n"
    program += "with contextlib.suppress(SystemExit): app(sys.argv[1:], standalone_mode=False)"
    assert loaded_by(program, *arguments) <= (needed or {"numpy", "polars", "rich"})


def test_charts_of_a_run_are_drawn_without_altair_and_without_javascript() -> None:
    program = "from tests.publish.charts.tables import pass_at_k; from touchstone.publish.charts import spec\n"
    program += "from touchstone.publish.inline_charts import inline_chart\n"
    program += "assert spec('leaderboard', pass_at_k(['m'])) and inline_chart('pass_at_k', pass_at_k(['m']))\n"
    program += "assert 'vl_convert' not in sys.modules"
    assert "altair" not in loaded_by(program)


@pytest.mark.nightly
def test_dagsters_definitions_load_without_the_engine() -> None:
    # Dagster itself uses rich.
    assert loaded_by("import pipelines.definitions") - {"rich"} == {"dagster"}


@pytest.mark.nightly
def test_a_run_of_recorded_outcomes_loads_no_validators(folder: Folder) -> None:
    program = "from pathlib import Path; from touchstone.evaluation import Evaluation, run\n"
    program += "run(Evaluation.load(Path(sys.argv[1])))\n"
    program += "assert 'touchstone.validation.session' not in sys.modules"
    assert loaded_by(program, folder.config) <= {"duckdb", "numpy", "polars", "pyarrow"}
