"""Rulings by people: what they change, that they can be taken back, and what is refused."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Command, Folder, copy_of, made_once, more_examples
from tests.pipelines.test_run import evaluate
from tests.storage.test_model_rows import made
from touchstone.config import load_config
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest.rulings import Ruling, append_rulings, attempt_sha, read_rulings
from touchstone.publish.report import report_markdown
from touchstone.publish.up_to_date import dependencies
from touchstone.tables import TABLES
from touchstone.validation.recorded import apply_rulings
from touchstone.vocabulary import RULINGS

MODELS = ("atlas", "cedar", "fir")
PROBLEMS = tuple(f"p{place}" for place in range(8))
HEADER = "oid,iteration_id,plausible_fix,fixed_code\n"


def passes(model: str, problem: str, attempt: int) -> bool:
    return (MODELS.index(model) + 3 * PROBLEMS.index(problem) + attempt) % 3 > 0


def rows_of(model: str) -> list[str]:
    return [
        f"{oid},{attempt},{passes(model, oid, attempt)},code of {attempt}" for oid in PROBLEMS for attempt in (1, 2, 3)
    ]


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Three models with three attempts at eight problems, after one run: to be read only."""

    def make(root: Path) -> None:
        folder = Folder(root)
        folder.problems("oid,filename\n" + "".join(f"{oid},{oid}.tf\n" for oid in PROBLEMS))
        for model in MODELS:
            folder.fixes(model, HEADER + "\n".join(rows_of(model)) + "\n")
        folder.configure()
        assert evaluate(folder).exit_code == 0

    return Folder(made_once(tmp_path_factory, "judged", make))


@pytest.fixture
def folder(judged: Folder, tmp_path: Path) -> Folder:
    return copy_of(judged, tmp_path / "copy")


def rulings_of(folder: Folder) -> Path:
    return folder.root / "fixes" / "rulings.jsonl"


def rule(folder: Folder, touchstone: Command, *about: str, reason: str = "looked at it") -> str:
    done = touchstone("rule", *about, "--reason", reason, "--by", "R. Li", "--data", folder.output)
    assert done.returncode == 0, done.stderr
    return done.stdout


def table(folder: Folder, name: str) -> pl.DataFrame:
    """A table as it was last made, published or not."""
    parts = sorted((folder.output / ".store" / "draft" / "tables" / name).glob("*.parquet"))
    return pl.concat([pl.read_parquet(part) for part in parts], how="diagonal")


def files(folder: Folder) -> dict[str, bytes]:
    """Every table of figures and the summary; the tables about all runs grow with each."""
    lasting = {name for name, each in TABLES.items() if each.group == "publish"}
    found = [path for path in folder.output.glob("tables/*/*.parquet") if path.parent.name not in lasting]
    return {str(path.relative_to(folder.output)): path.read_bytes() for path in found} | {
        "summary": (folder.output / "summary_pass_at_k.csv").read_bytes()
    }


def pass_at_1(folder: Folder, figure: str = "pass_at_k", name: str = "pass_at_k") -> dict[str, float]:
    rows = table(folder, name).filter(pl.col("k") == 1)
    return dict(rows.select("model", figure).iter_rows())


@pytest.mark.services
def test_a_ruling_changes_its_figures_survives_a_run_and_without_its_line_every_byte_is_back(
    folder: Folder, touchstone: Command
) -> None:
    before, rates = files(folder), pass_at_1(folder)
    said = rule(folder, touchstone, "cedar", "p2", "1", "failed", reason="deletes the resource")
    assert "cedar, T0, p2, attempt 1: passed → failed\n1 line added to " in said

    assert evaluate(folder).exit_code == 0
    after = files(folder)
    # One of three attempts at one of eight problems, and no other model.
    assert pass_at_1(folder) == pytest.approx(rates | {"cedar": rates["cedar"] - 1 / 24})
    assert pass_at_1(folder, "pass_at_k_measured", "pass_at_k_readings") == rates
    others = [name for name in before if name.endswith(("/atlas.parquet", "/fir.parquet"))]
    assert len(others) > 4 and all(after[name] == before[name] for name in others)
    ruled = table(folder, "outcomes").filter(pl.col("ruling").is_not_null())
    shown = ruled.select("model", "oid", "iteration_id", "passed", "measured", "ruling", "status").rows()
    assert shown == [("cedar", "p2", "1", False, True, "failed", "passed")]
    (row,) = table(folder, "rulings").rows(named=True)
    assert (row["by"], row["reason"], row["was"]) == ("R. Li", "deletes the resource", "passed")
    assert (row["measured"], row["applied"], row["why_not"]) == (True, True, None)

    again = evaluate(folder)
    assert (again.exit_code, again.made) == (0, 0) and files(folder) == after
    rulings_of(folder).write_text("")
    assert evaluate(folder).exit_code == 0
    assert files(folder) == before


def test_a_ruling_for_one_model_makes_only_that_model_again(folder: Folder) -> None:
    append_rulings(rulings_of(folder), [Ruling(model="cedar", problem="p2", ruling="failed", reason="r", by="R. Li")])
    evaluation = Evaluation.load(folder.config)
    with evaluation.store.lock():
        for name in ("problems", "attempts", "validator_noise", "baselines"):
            assert all(part.reused for part in evaluation.materialize(name).values())
        made = {model: not part.reused for model, part in evaluation.materialize("outcomes").items()}
    assert made == {"atlas": False, "cedar": True, "fir": False}


def test_an_excluded_problem_is_in_no_figure(folder: Folder, touchstone: Command) -> None:
    rates = pass_at_1(folder)
    assert "p3: counted → excluded" in rule(folder, touchstone, "*", "p3", "exclude")
    made(folder, "problem_frontier", "pass_at_k_readings")
    without = [oid for oid in PROBLEMS if oid != "p3"]
    expected = {
        model: sum(passes(model, oid, attempt) for oid in without for attempt in (1, 2, 3)) / 21 for model in MODELS
    }
    assert pass_at_1(folder) == pytest.approx(expected)
    assert table(folder, "pass_at_k").select("problems", "attempted").unique().rows() == [(7, 7)]
    for name in ("problem_pass_at_k", "attempt_scores", "problem_scores", "problem_frontier"):
        assert "p3" not in table(folder, name)["oid"]
    assert table(folder, "outcomes").filter(pl.col("oid") == "p3")["measured"].null_count() == 0
    assert pass_at_1(folder, "pass_at_k_measured", "pass_at_k_readings") == rates


def test_an_undecided_ruling_opens_the_bounds(folder: Folder, touchstone: Command) -> None:
    said = rule(folder, touchstone, "fir", "p0", "undecided")
    assert said.count("→ undecided") == 3 and "3 lines added" in said
    readings = made(folder, "pass_at_k_readings").store.scan("pass_at_k_readings")
    (row,) = readings.filter(k=1, model="fir").collect().rows(named=True)
    assert row["pass_at_k_high"] - row["pass_at_k_low"] == pytest.approx(1 / 8)
    assert row["pass_at_k_low"] <= row["pass_at_k"] <= row["pass_at_k_high"]


def test_a_ruling_on_an_attempt_that_has_changed_is_not_applied_and_named(folder: Folder, touchstone: Command) -> None:
    rule(folder, touchstone, "atlas", "p1", "2", "failed")
    changed = (HEADER + "\n".join(rows_of("atlas")) + "\n").replace("p1,2,True,code of 2", "p1,2,True,other code")
    folder.fixes("atlas", changed)
    store = made(folder, "rulings").store
    assert store.scan("outcomes").collect()["ruling"].null_count() == 72
    told = store.scan("rulings").select("line", "applied", "why_not").collect().rows()
    assert told == [(1, False, "the attempt has changed since")]


def test_lines_that_are_refused_stop_nothing_and_are_named(folder: Folder) -> None:
    good = {"model": "atlas", "problem": "p1", "ruling": "exclude", "reason": "r", "by": "me"}
    lines = [
        "nonsense",
        json.dumps(good | {"rulling": "x"}),
        json.dumps(good | {"model": "atals"}),
        json.dumps(good | {"problem": "p11"}),
        json.dumps(good | {"attempt": "9", "ruling": "passed"}),
        "",
        json.dumps(good | {"tier": "T0"}),
        json.dumps(good | {"problem": "q", "model": "*"}),
        json.dumps(good | {"problem": "*"}),
    ]
    rulings_of(folder).write_text("\n".join(lines))
    rows = made(folder, "rulings").store.scan("rulings").sort("line").collect().rows(named=True)
    assert [(row["line"], row["why_not"]) for row in rows if not row["applied"]] == [
        (1, "it is not JSON (Expecting value at character 1)"),
        (2, "unknown key 'rulling' (did you mean 'ruling'?)"),
        (3, "there is no such model (did you mean 'atlas'?)"),
        (4, "atlas has no attempt at this problem (did you mean 'p1'?)"),
        (5, "there is no such attempt (there are: T0 1, T0 2, T0 3)"),
        (8, "there is no such problem (there are: p0, p1, p2, p3, p4, p5, p6, p7)"),
        (9, "atlas has no attempt at this problem (there are: p0, p1, p2, p3, p4, p5, p6, p7)"),
    ]
    assert [row["line"] for row in rows if row["applied"]] == [7, 7, 7]


@pytest.mark.parametrize(
    ("about", "said"),
    [
        (("atlsa", "p1", "failed"), "there is no model 'atlsa' (did you mean 'atlas'?)"),
        (("atlas", "p11", "failed"), "no attempt at problem 'p11' (did you mean 'p1'?)"),
        (("atlas", "p1", "11", "failed"), "there is no attempt '11' (did you mean '1'?)"),
        (("p11", "exclude"), "there is no problem 'p11' (did you mean 'p1'?)"),
        (("p1", "failed"), "name the model too: MODEL PROBLEM failed"),
        (("atlas", "p1", "pass"), "'pass' is not a ruling; end with one of passed, failed, undecided, exclude"),
        (("*", "p1", "1", "exclude"), "a problem is excluded as a whole"),
    ],
)
def test_a_ruling_on_what_does_not_exist_is_refused_with_near_names(
    judged: Folder, touchstone: Command, about: tuple[str, ...], said: str
) -> None:
    done = touchstone("rule", *about, "--reason", "r", "--by", "me", "--data", judged.output)
    assert done.returncode == 2 and said in done.stderr and not rulings_of(judged).exists()


def test_a_ruling_is_an_input_that_runs_and_sensors_notice(folder: Folder, touchstone: Command) -> None:
    def seen() -> tuple[dict[str, str], dict[str, str]]:
        inputs = Evaluation.load(folder.config).inputs
        return inputs.state(), dependencies(load_config(folder.config), inputs.hashes)

    (state, before), _ = seen(), rule(folder, touchstone, "atlas", "p1", "failed")
    after_ruling, after = seen()
    assert after_ruling.keys() - state.keys() == {"rulings"}
    assert {name for name in before if after[name] != before[name]} == {"files"}


def test_nothing_is_added_to_a_file_that_is_not_one_of_rulings(folder: Folder, touchstone: Command) -> None:
    other = folder.root / "fixes" / "other.jsonl"
    other.write_text('{"a": 1}\n')
    (folder.output / ".store" / "rulings_file").write_text("../fixes/other.jsonl")
    done = touchstone("rule", "atlas", "p1", "failed", "--reason", "r", "--by", "me", "--data", folder.output)
    assert done.returncode == 2 and "has no line that is a ruling" in done.stderr
    assert other.read_text() == '{"a": 1}\n'


# The file


RULING = Ruling(model="m", tier="T0", problem="a", attempt="1", ruling="failed", reason="grün", by="me")


def test_many_writers_at_once_lose_no_line(tmp_path: Path) -> None:
    file = tmp_path / "rulings.jsonl"
    file.write_text('{"a person": "forgot the line break"}')
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: append_rulings(file, [RULING] * 3), range(40)))
    found = read_rulings(file)
    assert len(found.rulings) == 120 and list(found.refused) == [1]
    assert {each.reason for each in found.rulings.values()} == {"grün"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"reason": " "}, "'reason' is missing"),
        ({"by": ""}, "'by' is missing"),
        ({"ruling": "pass"}, "is none of passed, failed, undecided, exclude"),
        ({"model": None}, "it names no model"),
        ({"reason": "x" * 10_001}, "'reason' is too long"),
    ],
)
def test_a_ruling_that_could_not_be_read_is_not_written(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    ruling = Ruling(**{**vars(RULING), **changed})
    with pytest.raises(TouchstoneError, match=said):
        append_rulings(tmp_path / "rulings.jsonl", [ruling])
    assert not (tmp_path / "rulings.jsonl").exists()


# Applied to outcomes

KEYS = [("m", tier, oid, attempt) for tier in ("T0", "T1") for oid in "ab" for attempt in "12"]
ruled = st.builds(
    lambda ruling, tier, problem, attempt, stale: Ruling(
        model="m",
        tier=tier,
        problem=problem,
        attempt=attempt,
        ruling=ruling,
        reason="r",
        by="me",
        attempt_sha="another" if stale else None,
    ),
    st.sampled_from(RULINGS),
    st.sampled_from(["T0", "T1", None]),
    st.sampled_from("abz"),
    st.sampled_from(["1", "2", "9", None]),
    st.booleans(),
)


@more_examples
@given(st.lists(st.sampled_from([True, False, None]), min_size=8, max_size=8), st.lists(ruled, max_size=6))
def test_the_last_ruling_on_an_attempt_counts_and_what_was_measured_stays(
    measured: list[bool | None], rulings: list[Ruling]
) -> None:
    rows = [dict(zip(TABLES["attempts"].key, key, strict=True)) for key in KEYS]
    stated = [row | {"fix_sha": None, "passed": passed} for row, passed in zip(rows, measured, strict=True)]
    attempts = pl.LazyFrame(stated, schema_overrides={"passed": pl.Boolean, "fix_sha": pl.String})
    outcomes = pl.DataFrame(
        [row | {"passed": passed, "measured": passed} for row, passed in zip(rows, measured, strict=True)],
        schema=TABLES["outcomes"].dtypes,
    )
    lines = dict(enumerate(rulings, start=1))
    found, listed = apply_rulings(outcomes, attempts, {"m": lines})
    assert found["measured"].to_list() == measured
    for key, row in zip(KEYS, found.iter_rows(named=True), strict=True):
        about = [each for each in rulings if _is_about(each, key) and each.attempt_sha is None]
        word = about[-1].ruling if about else None
        assert row["ruling"] == word
        assert row["passed"] == {None: row["measured"], "passed": True, "failed": False}.get(word)
    applied = [row for row in listed["m"] if row["applied"]]
    assert len(applied) == found["ruling"].count(), "one line decides about each attempt that was ruled on"
    assert {row["line"] for row in listed["m"]} == set(lines), "every ruling is listed"


def _is_about(ruling: Ruling, key: tuple[str, str, str, str]) -> bool:
    _, tier, oid, attempt = key
    return ruling.problem == oid and ruling.tier in (None, tier) and ruling.attempt in (None, attempt)


def test_a_ruling_names_the_fix_and_the_recorded_outcome() -> None:
    assert len({attempt_sha(fix, recorded) for fix in ("x", "y", None) for recorded in (True, False, None)}) == 9


@pytest.mark.services
def test_the_report_lists_rulings_and_says_what_depends_on_them(folder: Folder, touchstone: Command) -> None:
    append_rulings(
        rulings_of(folder),
        [
            Ruling(model="fir", problem=problem, ruling="failed", reason="<i>copied</i>", by="R. Li")
            for problem in PROBLEMS[:6]
        ],
    )
    assert evaluate(folder).exit_code == 0
    said = report_markdown(folder.output)
    assert "18 rulings of people count in place of what was measured" in said
    assert "pass@1 of fir is 0.167 with them and 0.667 without" in said
    assert "| line | model |" in said and "without rulings" in said and "<i>" not in said
    readings = table(folder, "verdict_readings").filter(pl.col("reading") == "measured")
    depending = readings.filter(~pl.col("holds")).height
    verb = "verdicts depend on rulings" if depending else "No verdict depends on rulings"
    assert verb in said
