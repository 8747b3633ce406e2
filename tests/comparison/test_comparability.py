"""Whether two sides can be compared: by what their files state, in every format, and at the gate."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Command, Folder, nightly_but
from tests.ingest.adapters.inspect_files import SPEC, header, sample, write_eval, write_json
from tests.pipelines.test_run import evaluate, failed
from tests.pipelines.test_validation import make_repairs
from touchstone.comparison.comparability import Agreement, _agreement, compare_sides, exploratory_reasons
from touchstone.comparison.compare import CompareOptions, compare
from touchstone.comparison.families import ComparisonSettings
from touchstone.comparison.inputs import ComparisonInput, open_input
from touchstone.comparison.report import FORMATS, ComparisonReport, format_report
from touchstone.config import load_config
from touchstone.errors import TouchstoneError
from touchstone.storage.snapshots import list_snapshots, pin
from touchstone.vocabulary import DIMENSIONS, REQUIRED_DIMENSIONS

GENERATION = {"temperature": 0.5, "max_tokens": 100}
GATE = "regressions.holds_against_baseline"
LABEL = "exploratory: the two sides are not comparable (problems: task_version 1 / task_version 2)"


def write_log(path: Path, asked: str = "repair", ids: str = "abcd", **spec: object) -> Path:
    """A log with every setting that an Inspect log can state."""
    stated = SPEC | {
        "task_version": 1,
        "model_generate_config": GENERATION,
        "packages": {"inspect_ai": "0.3.285"},
        "scorers": [{"name": "tests", "options": {}}],
    }
    head = header(eval=stated | spec, plan={"steps": [{"solver": "agent"}], "config": {}})
    path.parent.mkdir(parents=True, exist_ok=True)
    samples: list[object] = [sample(id=each, input=f"{asked} {each}", uuid=each) for each in ids]
    return (write_eval if path.suffix == ".eval" else write_json)(path, samples, head)


def agreements(old: Path, new: Path) -> dict[str, Agreement]:
    rows = compare_sides(open_input(str(old)), open_input(str(new)), REQUIRED_DIMENSIONS)
    assert [row.dimension for row in rows] == list(DIMENSIONS)
    return {row.dimension: row for row in rows}


@pytest.fixture(scope="module")
def plain_log(tmp_path_factory: pytest.TempPathFactory) -> ComparisonInput:
    return open_input(str(write_log(tmp_path_factory.mktemp("log") / "a.json")))


def test_the_same_log_twice_agrees_in_every_dimension(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.eval")
    assert {row.agreement for row in agreements(log, log).values()} == {"same"}
    again = write_log(tmp_path / "b.json", run_id="another")
    rows = agreements(log, again)
    assert {row.agreement for row in rows.values()} == {"same"}, "an archive and a JSON log of the same evaluation"
    assert rows["generation"].value_a == "max_tokens 100, temperature 0.5"


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"task_version": 2}, {"problems", "task_version"}),
        ({"model_generate_config": {"temperature": 1, "max_tokens": 100}}, {"generation"}),
        ({"model_generate_config": {"max_tokens": 100}}, {"generation"}),
        ({"scorers": [{"name": "tests", "options": {"strict": True}}]}, {"scorer"}),
        ({"packages": {"inspect_ai": "0.3.300"}}, {"harness"}),
        ({"config": {"epochs": 1, "time_limit": 60}}, {"limits"}),
        ({"asked": "please repair"}, {"problems"}),
        ({"ids": "abcdefgh"}, set()),
        ({"ids": "bcde"}, set()),
    ],
)
def test_what_a_log_states_otherwise_is_a_difference(
    tmp_path: Path, plain_log: ComparisonInput, changes: dict[str, object], differs: set[str]
) -> None:
    other = open_input(str(write_log(tmp_path / "b.json", **changes)))  # type: ignore[arg-type]
    for old, new in ((plain_log, other), (other, plain_log)):
        rows = compare_sides(old, new, REQUIRED_DIMENSIONS)
        assert {row.dimension for row in rows if row.agreement == "different"} == differs


def test_problems_of_one_side_are_counted_and_left_out(tmp_path: Path) -> None:
    row = agreements(write_log(tmp_path / "a.json"), write_log(tmp_path / "b.json", ids="abcdef"))["problems"]
    assert (row.agreement, row.value_a, row.value_b) == ("same", "4 problems", "6 problems, 2 only here")


def test_what_is_not_stated_is_unknown_and_not_different(tmp_path: Path) -> None:
    for side, outcome in (("old", "true"), ("new", "false")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "problems.csv").write_text("oid,filename\na,a.tf\n")
        (tmp_path / side / "m_fixes.csv").write_text(f"oid,iteration_id,plausible_fix\na,1,{outcome}\n")
    rows = agreements(tmp_path / "old", tmp_path / "new")
    known = {name: row.agreement for name, row in rows.items() if row.agreement != "unknown"}
    assert known == {"problems": "same", "attempts": "same"}
    assert exploratory_reasons(rows.values()) == []


@pytest.mark.parametrize("part", nightly_but(["fixes"], ["fixes", "out"]))
def test_a_problem_that_asks_otherwise_is_different(tmp_path: Path, part: str) -> None:
    for side, summary in (("old", "unused variable"), ("new", "unused import")):
        folder = Folder(tmp_path / side)
        folder.problems(f"oid,filename,summary\na,a.tf,{summary}\nb,b.tf,same\n")
        folder.fixes("m", "oid,iteration_id,plausible_fix\na,1,true\nb,1,true\n")
        folder.configure()
        assert part == "fixes" or evaluate(folder).exit_code == 0
    row = agreements(tmp_path / "old" / part, tmp_path / "new" / part)["problems"]
    assert (row.agreement, row.value_b) == ("different", "2 problems, 1 asked differently")


@pytest.mark.parametrize("column", nightly_but(["fail_to_pass"], ["test_command", "fail_to_pass", "FAIL_TO_PASS"]))
def test_a_problem_that_is_judged_by_other_tests_has_another_validator(tmp_path: Path, column: str) -> None:
    for side in ("old", "new"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "problems.csv").write_text(f"oid,filename,{column}\na,a.py,{side}\nb,b.py,same\n")
        (tmp_path / side / "m_fixes.csv").write_text("oid,iteration_id,plausible_fix\na,1,true\nb,1,true\n")
    row = agreements(tmp_path / "old", tmp_path / "new")["validator"]
    assert (row.agreement, row.value_b) == ("different", "other tests or files of 1 problem")


STATED = st.dictionaries(
    st.tuples(st.just("generation"), st.sampled_from(["", "s", "t"]), st.sampled_from(["temperature", "seed"])),
    st.frozensets(st.sampled_from("01"), min_size=1),
)


@given(STATED, STATED)
def test_agreement_is_symmetric_and_differs_only_in_what_both_state(
    a: dict[tuple[str, str, str], frozenset[str]], b: dict[tuple[str, str, str], frozenset[str]]
) -> None:
    status, keys = _agreement({"a": a, "b": b}, "generation")
    assert (status, keys) == _agreement({"b": b, "a": a}, "generation")
    assert set(keys) == {key for key in a.keys() & b.keys() if a[key] != b[key]}
    assert (status == "different") == bool(keys)
    assert _agreement({"a": a, "b": a}, "generation")[0] == ("same" if a else "unknown")


# As a user sees it


@pytest.fixture(scope="module")
def exploratory(tmp_path_factory: pytest.TempPathFactory) -> ComparisonReport:
    folder = tmp_path_factory.mktemp("logs")
    two = write_log(folder / "a.json"), write_log(folder / "b.json", task_version=2)
    return compare(*map(str, two), CompareOptions(), ComparisonSettings()).report


@pytest.mark.parametrize("format", FORMATS)
def test_logs_of_two_task_versions_are_exploratory_in_every_format(exploratory: ComparisonReport, format: str) -> None:
    text = format_report(exploratory, format)
    if format in ("json", "sarif"):
        document = json.loads(text)
        found = document if format == "json" else document["runs"][0]["properties"]
        assert found["exploratory"] == ["problems: task_version 1 / task_version 2"]
        assert {row["dimension"]: row["agreement"] for row in found["comparability"]}["task_version"] == "different"
    else:
        assert LABEL in text.replace("\\", "")


def test_an_exploratory_comparison_says_so_and_does_not_pass_a_gate(tmp_path: Path, touchstone: Command) -> None:
    old, new = write_log(tmp_path / "a.json"), write_log(tmp_path / "b.json", task_version=2)
    done = touchstone("compare", old, new, "--fail-on-verdict", "worse")
    assert done.returncode == 1 and LABEL in done.stdout
    done = touchstone("compare", old, old, "--fail-on-verdict", "worse")
    assert done.returncode == 0 and "exploratory: " not in done.stdout
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"fixes_dir": ".", "output_dir": "out", "comparison": {"require": ["scorer"]}}))
    assert touchstone("compare", old, new, "--fail-on-verdict", "worse", "--config", config).returncode == 0


@pytest.mark.services
def test_the_gate_of_a_run_fails_on_another_task_version(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.configure(k_values=[1])
    write_log(tmp_path / "fixes" / "log.json")
    assert evaluate(folder).exit_code == 0
    pin(folder.output, "latest", "baseline")
    stated = pl.read_parquet(list_snapshots(folder.output)[0].tables / "source_settings" / "*.parquet")
    assert ("generation", "temperature", "0.5") in stated.select("dimension", "setting", "value").rows()
    assert evaluate(folder).exit_code == 0
    write_log(tmp_path / "fixes" / "log.json", task_version=2)
    outcome = evaluate(folder)
    assert (outcome.exit_code, outcome.stopped) == (1, True)
    assert failed(outcome)[GATE].startswith(LABEL)
    assert LABEL in (folder.output / "comparison.md").read_text().replace("\\", "")
    accepted = evaluate(folder, accept=True)
    assert accepted.exit_code == 0 and accepted.published
    page = (folder.output / "tables" / "comparability").resolve()
    rows = pl.read_parquet(page / "*.parquet").filter(pl.col("kind") == "baseline", pl.col("agreement") == "different")
    assert rows["dimension"].to_list() == ["problems", "task_version"]


def test_columns_of_fixes_files_state_settings(tmp_path: Path) -> None:
    texts = {
        "old": "oid,iteration_id,passed,temperature,task_version\na,1,true,0.2,1\nb,1,false,0.2,1\n",
        "new": "oid;iteration_id;passed;temperature;task_version\na;1;true;;2\nb;1;false;;2\n",
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "problems.csv").write_text("oid,filename\na,a.py\nb,b.py\n")
        (tmp_path / name / "m_fixes.csv").write_text(text)
    rows = agreements(tmp_path / "old", tmp_path / "new")
    assert (rows["task_version"].agreement, rows["problems"].agreement) == ("different", "different")
    assert (rows["generation"].agreement, rows["generation"].value_a) == ("unknown", "temperature 0.2")


@pytest.mark.nightly
def test_the_gate_of_a_run_fails_on_other_tests(tmp_path: Path) -> None:
    folder = make_repairs(tmp_path)
    assert evaluate(folder).exit_code == 0
    pin(folder.output, "latest", "baseline")
    with (tmp_path / "clones" / "calc" / "test_calc.py").open("a") as tests:
        tests.write("\n\ndef test_nothing():\n    pass\n")
    outcome = evaluate(folder)
    assert (outcome.exit_code, outcome.stopped) == (1, True)
    assert "validator: tests of its problems / other tests or files of 1 problem" in failed(outcome)[GATE]


@pytest.mark.services
def test_a_snapshot_of_an_earlier_version_states_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.configure(k_values=[1])
    write_log(tmp_path / "fixes" / "log.json")
    assert evaluate(folder).exit_code == 0
    old = list_snapshots(folder.output)[0].folder
    for name in ("source_settings", "sources"):
        for file in (old / "tables" / name).glob("*"):
            file.unlink()
    rows = agreements(old, write_log(tmp_path / "b.json", task_version=2))
    assert {row.agreement for row in rows.values()} == {"same", "unknown"}


@pytest.mark.services
def test_models_of_a_run_that_were_asked_otherwise_are_named(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.configure(k_values=[1])
    write_log(tmp_path / "fixes" / "a.json", model="acme/a")
    write_log(tmp_path / "fixes" / "b.json", model="acme/b", model_generate_config={"temperature": 1})
    outcome = evaluate(folder)
    rows = pl.read_parquet(folder.output / "tables" / "comparability" / "*.parquet")
    status = dict(rows.select("dimension", "agreement").iter_rows())
    assert status.pop("generation") == "different" and set(status.values()) == {"same"}
    assert rows.filter(dimension="generation")["value_b"].item() == "max_tokens default (acme/b)"
    assert {check.name: check.passed for check in outcome.checks}["comparability.models_comparable"]
    write_log(tmp_path / "fixes" / "b.json", asked="please repair", model="acme/b")
    outcome = evaluate(folder)
    (message,) = [check.message for check in outcome.checks if check.name == "comparability.models_comparable"]
    assert message == (
        "comparing models of this run is exploratory: problems: 4 problems / 4 asked differently by files"
    )


def test_an_unknown_dimension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match=r"comparison\.require"):
        load_config({"fixes_dir": tmp_path, "output_dir": tmp_path / "o", "comparison": {"require": ["weather"]}})


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    secret = "sk-secret"
    log = write_log(
        tmp_path / "a.json",
        model_generate_config={"temperature": 0, "extra_headers": {"authorization": secret}},
        model_args={"api_key": secret},
        task_args={"token": secret},
    )
    settings = open_input(str(log)).settings
    assert settings is not None and settings.height and secret not in settings.write_json()
