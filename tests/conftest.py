"""What the tests share: small input folders made of real files, and the command line as a user calls it."""

import functools
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from unittest.mock import patch

import filelock
import pytest
from hypothesis import settings

from tests import collecting

if TYPE_CHECKING:
    import pyarrow as pa


# The same examples every time on a desk; others in every run of CI, where a failure names the seed that repeats it.
# `make test-nightly` tries many more.
settings.register_profile("desk", deadline=None, max_examples=2, derandomize=True, print_blob=True)
settings.register_profile("ci", deadline=None, max_examples=4, derandomize=False, print_blob=True, database=None)
settings.register_profile("nightly", deadline=None, max_examples=200, print_blob=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

PROJECT = Path(__file__).parent.parent

# No test writes a key to the home folder of the user.
os.environ["TOUCHSTONE_CACHE_KEY"] = "the key of the tests"


# What a small run writes in addition, drawings left out.
WITH_WAREHOUSE = {"report": False, "charts": False}
# What takes longer than the rest of such a run; its tests ask for it.
NOT_DRAWN = {"publish": WITH_WAREHOUSE | {"warehouse": False}}


@dataclass
class Folder:
    """An evaluation on disk: problems, fixes and a configuration."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "evaluation_config.json"

    @property
    def output(self) -> Path:
        return self.root / "out"

    def problems(self, text: str | bytes) -> Path:
        return _write(self.root / "fixes" / "problems.csv", text)

    def fixes(self, model: str, text: str | bytes) -> Path:
        return _write(self.root / "fixes" / f"{model}_fixes.csv", text)

    def configure(self, **keys: object) -> Path:
        defaults = {"fixes_dir": "fixes", "output_dir": "out", "k_values": [1, 2], **NOT_DRAWN}
        return _write(self.config, json.dumps(defaults | keys))


def _write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def small_folder(root: Path) -> Folder:
    """Two problems, one model with two attempts at each: a passes once, b never."""
    made = Folder(root)
    made.problems("oid,filename\na,a.tf\nb,b.tf\n")
    made.fixes("m", "oid,iteration_id,plausible_fix\na,1,true\na,2,false\nb,1,false\nb,2,false\n")
    made.configure()
    return made


def nightly_but(kept: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """Cases as parameters, values or tuples of them: the ones that are kept run by day, the rest nightly.

    One case per mechanism is kept; the others would all catch the same change.
    """
    every, always = list(cases), list(kept)
    assert all(case in every for case in always)
    return [case if case in always else _nightly(case) for case in every]


def _nightly(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly)


def more_examples(test: Callable[..., None]) -> Callable[..., None]:
    """Try a property that is cheap and has many corners three times as often as others, whatever the profile."""
    return settings(max_examples=3 * settings().max_examples)(test)


def fewer_examples(test: Callable[..., None]) -> Callable[..., None]:
    """Try a property that takes long less often in CI; at night as often as others."""
    usual = settings().max_examples
    return settings(max_examples=usual if usual > 10 else 2)(test)


@pytest.fixture(scope="session", autouse=True)
def _packages_stay() -> Iterator[None]:
    """No test installs anything beside Touchstone, tens of thousands of files that every session would look at."""
    from touchstone.validation.files.file_identity import packages_stay

    with packages_stay(*map(Path, (sys.prefix, sys.base_prefix, "/usr"))):
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A small evaluation of the test's own."""
    return small_folder(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A small evaluation after one run, shared by all tests: to be read only."""
    from tests.pipelines.test_run import evaluate

    def make(root: Path) -> None:
        assert evaluate(small_folder(root)).exit_code == 0

    return Folder(made_once(tmp_path_factory, "finished", make))


@pytest.fixture(scope="session")
def finished_with_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The same with a DuckDB file."""
    from tests.pipelines.test_run import evaluate

    def make(root: Path) -> None:
        folder = small_folder(root)
        folder.configure(publish=WITH_WAREHOUSE)
        assert evaluate(folder).exit_code == 0

    return Folder(made_once(tmp_path_factory, "finished_with_warehouse", make))


@pytest.fixture(scope="session")
def finished_pair(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The same with a second model, n, which has an odd name of an attempt and an open outcome."""
    from tests.pipelines.test_run import HEADER, evaluate

    def make(root: Path) -> None:
        folder = small_folder(root)
        folder.fixes("n", HEADER + "a,-1,true\nb,2,\n")
        first = evaluate(folder)
        assert (first.exit_code, first.made, first.reused) == (0, parts_of(2), 0)

    return Folder(made_once(tmp_path_factory, "pair", make))


def parts_of(models: int) -> int:
    """The number of parts of tables that a run of so many models makes."""
    from touchstone.tables import TABLES

    return sum(models if table.per_model else 1 for table in TABLES.values() if table.written_with is None)


@pytest.fixture(scope="session")
def sample_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of the sample after one run, shared by all tests: to be read only."""
    from tests.pipelines.test_run import evaluate_config

    def make(root: Path) -> None:
        config = PROJECT / "data" / "sample" / "evaluation_config.json"
        assert evaluate_config(config, output=root / "out").exit_code == 0

    return made_once(tmp_path_factory, "sample", make) / "out"


def made_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is made by the first of the workers to ask for it, and read by all.

    It is made where it stays: an evaluation that is moved is no longer up to date.
    """
    shared = temporary.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else temporary.getbasetemp()
    made, finished = shared / f"shared-{name}", shared / f"{name}.made"
    with filelock.FileLock(shared / f"{name}.lock"):
        if not finished.exists():
            shutil.rmtree(made, ignore_errors=True)  # of a worker that failed to make it
            made.mkdir()
            make(made)
            finished.touch()
    return made


@pytest.fixture
def evaluated(finished: Folder, tmp_path: Path) -> Folder:
    """The same, as a copy of the test's own."""
    return copy_of(finished, tmp_path / "evaluated")


def copy_of(folder: Folder, root: Path) -> Folder:
    """An evaluation with all its results in another place."""
    return type(folder)(shutil.copytree(folder.root, root, symlinks=True))


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def touchstone() -> Command:
    """The `touchstone` command, called in this process: starting another one takes seconds."""
    return call_here


class Screen(io.StringIO):
    """Collects output; `terminal=True` makes it report itself as a terminal."""

    def __init__(self, terminal: bool = False) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def call_here(
    *arguments: object, columns: int = 160, terminal: bool = False, dagster: bool = False, apart: bool = False
) -> subprocess.CompletedProcess[str]:
    """The command line's own entry, with what it prints and its exit code.

    `run` leaves Dagster out, which takes a second less, or keeps its history in memory. `sql` asks in this process, or
    `apart` as users do.
    """
    import typer.main

    from touchstone.cli.main import main

    line = ["touchstone", *(str(argument) for argument in arguments)]
    out, err, code = Screen(terminal), Screen(), 0
    with ExitStack() as changes:
        changes.enter_context(redirect_stdout(out))
        changes.enter_context(redirect_stderr(err))
        changes.enter_context(patch.object(sys, "argv", line))
        changes.enter_context(patch.dict(os.environ, COLUMNS=str(columns), TERM="xterm-256color"))
        # Typer would read the signatures of all commands in every call, which takes longer than many of them run.
        changes.enter_context(patch.object(typer.main, "get_command", _once_for_each(typer.main.get_command)))
        if "run" in arguments:
            changes.enter_context(_history_in_memory() if dagster else _without_dagster())
        if "sql" in arguments and not apart:
            changes.enter_context(patch("touchstone.publish.query._ask", answer_here))
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    without_colours = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    return subprocess.CompletedProcess(line, code, without_colours if terminal else out.getvalue(), err.getvalue())


@functools.cache
def _once_for_each(function: Callable[..., Any]) -> Callable[..., Any]:
    return functools.cache(function)


def _history_in_memory() -> AbstractContextManager[object]:
    import dagster as dg

    return patch.object(dg.DagsterInstance, "get", dg.DagsterInstance.ephemeral)


def _without_dagster() -> AbstractContextManager[object]:
    from touchstone.evaluation import run

    return patch("pipelines.launch.run_evaluation", lambda evaluation, _: run(evaluation))


def query_here(tables_dir: Path, sql: str, **_: object) -> "pa.Table":
    """What `run_query` answers, asked in this process and without its limits: to start one takes half a second."""
    from touchstone.publish import query

    with patch("touchstone.publish.query._ask", answer_here):
        return query.run_query(tables_dir, sql)


def answer_here(tables_dir: Path, sql: str, _: object, answer: IO[bytes]) -> None:
    from touchstone.errors import TouchstoneError
    from touchstone.publish import query

    query.require_tables(tables_dir)
    try:
        query._stream_result(tables_dir.resolve(), sql, query.DEFAULT_LIMITS, answer)
    except TouchstoneError:
        raise
    except Exception as error:
        raise TouchstoneError(query._explained(str(error), sql)) from error


def command_environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a command under test: its Dagster instance lies in the test's own folder."""
    home = tmp_path / "dagster_home"
    home.mkdir(exist_ok=True)
    settings_file = home / "dagster.yaml"
    if not settings_file.exists():
        settings_file.write_text((PROJECT / "dagster.yaml").read_text())
    return {**os.environ, "DAGSTER_HOME": str(home), "COLUMNS": "160"}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose a seed in CI, before hypothesis reads it; the workers of xdist are given the same options."""
    if os.environ.get("CI") and config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))
    config.pluginmanager.register(collecting)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which seed was used; the header would be hidden by -q."""
    seed = config.getoption("hypothesis_seed")
    if seed is not None:
        terminalreporter.write_line(f"hypothesis seed {seed}; repeat with --hypothesis-seed={seed}")
