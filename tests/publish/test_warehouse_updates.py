"""A warehouse that is updated from the last one: the same rows as in one that is built anew."""

import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.conftest import WITH_WAREHOUSE, small_folder
from tests.publish.test_views import write
from tests.publish.test_warehouse import ask
from touchstone.evaluation import Evaluation, run
from touchstone.publish import stage
from touchstone.publish.warehouse import Content, build_warehouse, publish_warehouse
from touchstone.regular_files import read_json

# By table: the number that each of its models has in every row.
Tables = Mapping[str, Mapping[str, int]]
BEFORE: Tables = {"scores": {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, "other": {"x": 1}}


def publish(folder: Path, number: int, tables: Tables, left_out: Mapping[str, int] | None = None) -> Path:
    """Publish the tables as the given generation, in which `scores` is known model by model."""
    generation = folder / str(number)
    for table, models in tables.items():
        rows = [{"model": model, "n": n, "place": place} for model, n in models.items() for place in range(n)]
        write(generation / "tables", table, table, pl.DataFrame(rows))
    contents = {
        table: Content(str(models), "model" if table == "scores" else "", {name: str(n) for name, n in models.items()})
        for table, models in tables.items()
    }
    last = folder / str(number - 1) / "warehouse.duckdb"
    publish_warehouse(generation / "warehouse.duckdb", generation / "tables", last, contents, left_out or {})
    return generation / "warehouse.duckdb"


def content(warehouse: Path) -> dict[str, list[tuple]]:
    """The rows of every table, and of a view that fails its error."""
    found = {}
    for (name,) in ask(warehouse, "SELECT table_name FROM information_schema.tables ORDER BY ALL"):
        try:
            found[name] = ask(warehouse, f"FROM {name} ORDER BY ALL")
        except duckdb.CatalogException as error:
            found[name] = [(str(error).splitlines()[0],)]
    return found


@pytest.mark.parametrize(
    ("after", "left_out"),
    [
        pytest.param({**BEFORE, "scores": {**BEFORE["scores"], "b": 7}}, {}, id="a model changed"),
        *(
            pytest.param(*after_and_left_out, id=name, marks=pytest.mark.nightly)
            for name, after_and_left_out in {
                "a model went": ({**BEFORE, "scores": {"a": 1, "b": 2, "c": 3, "d": 4}}, {}),
                "a model came": ({**BEFORE, "scores": {**BEFORE["scores"], "it's": 2}}, {}),
                "a table without blocks changed": ({**BEFORE, "other": {"x": 2}}, {}),
                "most models changed": ({**BEFORE, "scores": {"a": 9, "b": 8, "c": 7, "d": 6, "e": 5}}, {}),
                "a table went": ({"scores": BEFORE["scores"]}, {}),
                "a table came": ({**BEFORE, "third": {"a": 1}}, {}),
                "a table became too large": ({**BEFORE, "other": {"x": 5}}, {"other": 5}),
            }.items()
        ),
    ],
)
def test_an_update_has_the_rows_of_a_warehouse_built_anew(tmp_path: Path, after: Tables, left_out: dict) -> None:
    publish(tmp_path, 1, BEFORE)
    updated = publish(tmp_path, 2, after, left_out)
    assert read_json(updated.with_name("warehouse.duckdb.json"))["updates"] == 1
    anew = tmp_path / "anew.duckdb"
    build_warehouse(anew, updated.parent / "tables", left_out)
    assert content(updated) == content(anew)
    assert content(publish(tmp_path, 3, BEFORE)) == content(tmp_path / "1" / "warehouse.duckdb"), "and back again"


def test_a_row_that_somebody_added_to_the_last_warehouse_is_not_taken_over(tmp_path: Path) -> None:
    with duckdb.connect(str(publish(tmp_path, 1, BEFORE))) as somebody:
        somebody.execute("INSERT INTO scores VALUES ('a', 1, 99)")
    after = {**BEFORE, "scores": {**BEFORE["scores"], "b": 7}}
    assert len(content(publish(tmp_path, 2, after))["scores"]) == 1 + 7 + 3 + 4 + 5


@pytest.mark.parametrize(
    "damage",
    [
        {"contents": {"scores": {"version": "x", "column": "no such", "blocks": {"a": "1"}}}},
        *(
            pytest.param(damage, marks=pytest.mark.nightly)
            for damage in (
                {"updates": "x"},
                {"contents": []},
                {"contents": {"scores": 3}},
                {"contents": {"scores": {"version": "x", "column": "model", "blocks": [1]}}},
                {"state": None},
            )
        ),
    ],
)
def test_a_damaged_stamp_does_no_harm(tmp_path: Path, damage: dict) -> None:
    stamp = publish(tmp_path, 1, BEFORE).with_name("warehouse.duckdb.json")
    stamp.write_text(json.dumps(read_json(stamp) | damage))
    after = {**BEFORE, "scores": {**BEFORE["scores"], "b": 7}}
    updated = publish(tmp_path, 2, after)
    build_warehouse(tmp_path / "anew.duckdb", updated.parent / "tables", {})
    assert content(updated) == content(tmp_path / "anew.duckdb")


def test_rows_that_do_not_add_up_are_copied_anew(tmp_path: Path) -> None:
    publish(tmp_path, 1, BEFORE)
    generation = tmp_path / "2"
    write(generation / "tables", "scores", "scores", pl.DataFrame({"model": ["a", "z"], "n": [1, 2], "place": [0, 0]}))
    blocks = {name: str(n) for name, n in BEFORE["scores"].items()}
    wrong = {"scores": Content("other", "model", {**blocks, "a": "other"})}
    last = tmp_path / "1" / "warehouse.duckdb"
    publish_warehouse(generation / "w.duckdb", generation / "tables", last, wrong, {})
    assert content(generation / "w.duckdb") == {"scores": [("a", 1, 0), ("z", 2, 0)]}


@pytest.mark.nightly
def test_a_run_with_one_changed_model_publishes_the_same_rows_as_a_fresh_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_LARGE", 0)
    folder = small_folder(tmp_path)
    folder.configure(publish=WITH_WAREHOUSE)
    for model in ("n", "o", "p"):
        folder.fixes(model, "oid,iteration_id,plausible_fix\na,1,true\nb,1,false\n")
    run(Evaluation.load(folder.config))
    folder.fixes("m", "oid,iteration_id,plausible_fix\na,1,false\nb,1,false\nb,2,true\n")
    run(Evaluation.load(folder.config))
    updated = content(folder.output / "warehouse.duckdb")
    build_warehouse(tmp_path / "anew.duckdb", folder.output / "tables", {})
    anew = content(tmp_path / "anew.duckdb")
    # Writing the warehouse is itself a step of the run.
    assert set(updated.pop("run_log")) < set(anew.pop("run_log"))
    assert updated == anew
