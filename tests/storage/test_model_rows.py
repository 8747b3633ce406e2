"""One changed model costs one model: what is kept of a table equals what would be made again."""

import json
import shutil
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.conftest import Folder, nightly_but
from touchstone.config import load_config
from touchstone.evaluation import Evaluation
from touchstone.storage.model_rows import scan_models
from touchstone.tables import TABLES, Table, conform

BY_MODEL = [table for table in TABLES.values() if table.by_model]
HEADER = "oid,iteration_id,tier,plausible_fix,weighted_score,cost_usd,suite,run_id,latency_ms"
# Tier T0 has enough problems for every kind of interval. Those of T1 share clusters, whose first problems only some of
# the models attempt.
CLUSTERED, CLUSTERS, PROBLEMS = 30, 10, 240

# A model's file: its first problem, how many problems it attempts, and how its attempts turn out.
Contents = Mapping[str, tuple[int, int, int]]
MODELS: Contents = {"atlas": (0, 240, 1), "boreal": (3, 230, 2), "@cedar": (8, 40, 0), "none": (0, 0, 0)}


def attempts(first: int, count: int, luck: int) -> list[str]:
    """Attempts at some of the problems, some without cost or score."""
    return [
        f"p{problem:03},{attempt},{'T1' if problem < CLUSTERED else 'T0'},"
        f"{'true' if (problem * problem * attempt + luck) % 5 > 1 else 'false'},"
        f"{(problem * 37 + attempt * 11 + luck) % 101 / 101 if luck else ''},"
        f"{'' if luck == 2 and problem % 2 else 0.25 * attempt + luck / 8},"
        f"{'s' if problem % 3 else 't'},run-{attempt % 2},{10 * attempt}"
        for problem in range(first, min(PROBLEMS, first + count))
        for attempt in range(1, 3 + problem % 2)
    ]


def write_models(folder: Folder, models: Contents) -> Folder:
    cutoffs = {"column": "created", "cutoff": {"atlas": "2026-01-10", "@cedar": "2025-01-01"}}
    folder.configure(intervals={"replicates": 500}, slices=["cluster", cutoffs])
    clusters = [f"c{problem % CLUSTERS}" if problem < CLUSTERED else "" for problem in range(PROBLEMS)]
    lines = [f"p{n:03},f.py,{cluster},2026-01-{1 + n % 28:02}\n" for n, cluster in enumerate(clusters)]
    folder.problems("oid,filename,cluster,created\n" + "".join(lines))
    for path in (folder.root / "fixes").glob("*_fixes.csv"):
        path.unlink()
    for model, content in models.items():
        folder.fixes(model, "\n".join([HEADER, *attempts(*content)]) + "\n")
    return folder


def made(folder: Folder, *wanted: str) -> Evaluation:
    """The evaluation after the wanted tables and what they read were made; by default all but those of several runs."""
    needed = set(wanted) or {table.name for table in TABLES.values() if table.group != "publish"}
    for table in reversed(TABLES.values()):
        needed |= set(table.reads) if table.name in needed else set()
    evaluation = Evaluation(load_config(folder.config))
    for name in TABLES:
        if name in needed:
            evaluation.materialize(name)
    return evaluation


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """An evaluation with the tables that are kept by model, to be read only."""
    return made(write_models(Folder(tmp_path_factory.mktemp("first")), MODELS), *(table.name for table in BY_MODEL))


@pytest.fixture
def folder(first: Evaluation, tmp_path: Path) -> Folder:
    """The same, as a copy of the test's own."""
    return Folder(shutil.copytree(first.config.output_dir.parent, tmp_path / "copy"))


def rows(evaluation: Evaluation, table: Table, *models: str) -> pl.DataFrame:
    """What the table's function makes of the given models' rows."""
    frames = [scan_models(evaluation.store, name, models) for name in table.reads]
    frame = evaluation.functions[table.name](*frames, *evaluation._settings(table))
    return conform(frame, table).collect()


@pytest.mark.parametrize("table", nightly_but(BY_MODEL[::5], BY_MODEL), ids=lambda table: table.name)
def test_the_rows_of_a_model_depend_on_no_other(first: Evaluation, table: Table) -> None:
    together, alone = rows(first, table, *MODELS), [rows(first, table, model) for model in sorted(MODELS)]
    assert_frame_equal(pl.concat(alone), together, check_exact=True)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "after",
    [
        pytest.param(MODELS | {"@cedar": (1, 50, 1)}, id="edited"),
        pytest.param(MODELS | {"bravo": (20, 220, 2)}, id="added"),
        pytest.param({name: MODELS[name] for name in ("atlas", "@cedar", "none")}, id="removed"),
        pytest.param(
            {"atlas": (0, 0, 0), "@cedar": MODELS["@cedar"], "zulu": (4, 90, 2)}, id="emptied, removed and added"
        ),
    ],
)
def test_tables_after_a_change_of_models_are_those_of_a_first_run(
    folder: Folder, tmp_path: Path, after: Contents
) -> None:
    made(folder)
    kept, fresh = made(write_models(folder, after)), made(write_models(Folder(tmp_path / "fresh"), after))
    assert_same_parts(kept, fresh, TABLES)


def assert_same_parts(kept: Evaluation, fresh: Evaluation, names: Iterable[str]) -> None:
    for name in names:
        parts, expected = kept.store.all_parts(name), fresh.store.all_parts(name)
        assert parts.keys() == expected.keys()
        for part, whole in expected.items():
            assert_frame_equal(pl.read_parquet(parts[part].path), pl.read_parquet(whole.path), check_exact=True)
            assert parts[part].fingerprint == whole.fingerprint, name


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The models that the functions of tables are called with from now on, by table."""
    seen: dict[str, set[str]] = {}
    functions: Any = Evaluation.functions.func

    def recording(table: str, function: Any, *arguments: Any) -> Any:
        frames = [each for each in arguments if isinstance(each, pl.LazyFrame) and "model" in each.collect_schema()]
        seen[table] = {model for each in frames for model in each.collect()["model"].drop_nulls()}
        return function(*arguments)

    def recorded(evaluation: Evaluation) -> dict[str, Any]:
        return {name: partial(recording, name, function) for name, function in functions(evaluation).items()}

    monkeypatch.setattr(Evaluation, "functions", property(recorded))
    return seen


def test_only_the_changed_model_is_made_again_and_a_removed_one_is_dropped(
    folder: Folder, tmp_path: Path, calls: dict[str, set[str]]
) -> None:
    after = {name: MODELS[name] for name in MODELS if name != "boreal"} | {"@cedar": (1, 50, 1)}
    names = [table.name for table in BY_MODEL]
    kept = made(write_models(folder, after), *names)
    assert {name: calls[name] for name in names} == {name: {"@cedar"} for name in names}
    assert_same_parts(kept, made(write_models(Folder(tmp_path / "fresh"), after), *names), names)


@pytest.mark.services
def test_to_drop_a_model_makes_nothing(folder: Folder, calls: dict[str, set[str]]) -> None:
    made(write_models(folder, {name: MODELS[name] for name in MODELS if name != "@cedar"}))
    assert not calls.keys() & {table.name for table in BY_MODEL}


@pytest.mark.parametrize("damage", nightly_but(["setting"], ["setting", "problems", "stamp", "file"]))
def test_what_concerns_every_model_makes_the_whole_table_again(
    folder: Folder, calls: dict[str, set[str]], damage: str
) -> None:
    write_models(folder, MODELS | {"@cedar": (1, 50, 1)})
    draft = folder.output / ".store" / "draft"
    stamp = draft / "stamps" / "pass_at_k" / "pass_at_k.json"
    if damage == "setting":
        folder.configure(intervals={"replicates": 500, "confidence": 0.9})
    elif damage == "problems":
        with (folder.root / "fixes" / "problems.csv").open("a") as file:
            file.write("p999,f.py,\n")
    elif damage == "stamp":
        stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"models": None}))
    else:
        (draft / "tables" / "pass_at_k" / "pass_at_k.parquet").write_bytes(b"PAR1")
    evaluation = made(folder, "pass_at_k", "tier_statistics")
    assert calls["pass_at_k"] == set(MODELS)
    assert calls["tier_statistics"] == ({"atlas", "boreal", "@cedar"} if damage == "problems" else {"@cedar"})
    assert evaluation.store.scan("pass_at_k").collect()["model"].n_unique() == len(MODELS)
