"""The graph's shape and what a run tells the UI, through the same `build_defs` that users run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.models import published_models
from assets.publish import SNAPSHOT
from assets.stages import STAGES, VERDICT, gate_verdict
from pipelines.definitions import build_defs
from pipelines.definitions import defs as load_definitions
from pipelines.launch import run_evaluation
from pipelines.resources import EvaluationResource
from tests.conftest import Folder, copy_of, small_folder
from touchstone.config import PublishSettings
from touchstone.evaluation import Evaluation
from touchstone.tables import TABLES
from touchstone.tables.checks import CHECKS, GateResult

DATA = "dagster/data_version"
HEADER = "oid,iteration_id,plausible_fix\n"


@pytest.fixture
def defs(folder: Folder) -> dg.Definitions:
    return build_defs(EvaluationResource(config_file=str(folder.config)))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@dataclass
class Run:
    """A run of two models, m and n, as Dagster executes it: to be read only."""

    folder: Folder
    result: dg.ExecuteInProcessResult
    tags: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = small_folder(tmp_path_factory.mktemp("first_run"))
    folder.fixes("n", HEADER + "a,1,true\n")
    with dg.DagsterInstance.ephemeral() as instance:
        result = execute(folder, instance)
        (run,) = instance.get_runs()
        return Run(folder, result, run.tags)


@pytest.fixture(scope="module")
def limited_run(first_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The next run, limited to n by a tag, after the fixes of both models changed: to be read only."""
    folder = copy_of(first_run.folder, tmp_path_factory.mktemp("limited_run") / "copy")
    folder.fixes("m", HEADER + "a,1,true\nb,1,true\n")
    folder.fixes("n", HEADER + "a,1,false\n")
    with dg.DagsterInstance.ephemeral() as instance:
        return Run(folder, execute(folder, instance, tags={"touchstone/only": "n"}))


def execute(folder: Folder, instance: dg.DagsterInstance, **options: Any) -> dg.ExecuteInProcessResult:
    job = build_defs(EvaluationResource(config_file=str(folder.config))).resolve_job_def("evaluate")
    return job.execute_in_process(instance=instance, **options)


def shown(value: Any) -> list[list[str]]:
    """The rows of a table in metadata."""
    assert isinstance(value, dg.TableMetadataValue)
    return [list(record.data.values()) for record in value.records]


def test_the_shape_of_the_graph(defs: dg.Definitions) -> None:
    graph = defs.resolve_asset_graph()
    shape = {
        key.to_user_string(): sorted(parent.to_user_string() for parent in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    }
    assert shape == {name: sorted(table.reads) for name, table in TABLES.items()} | {
        "summary_pass_at_k": ["pass_at_k"],
        "model_csvs": ["outcomes", "pass_at_k"],
        "report": ["change_points", "failure_modes", "problem_history"],
        "warehouse": ["change_points", "model_csvs", "problem_history", "report", "summary_pass_at_k"],
        "models": [],
    }
    groups = {key.to_user_string(): graph.get(key).group_name for key in graph.get_all_asset_keys()}
    assert sorted(set(groups.values())) == [
        "audit", "comparison", "economics", "ingest", "metrics", "models", "publish", "reliability", "scores",
        "validation",
    ]  # fmt: skip


def test_the_names_of_checks_jobs_schedules_and_sensors(defs: dg.Definitions) -> None:
    checks = {f"{key.asset_key.to_user_string()}.{key.name}" for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {check.full_name for check in CHECKS}
    repository = defs.get_repository_def()
    assert [job.name for job in repository.get_all_jobs() if not job.name.startswith("__")] == ["evaluate", "retention"]
    assert [schedule.name for schedule in repository.schedule_defs] == ["nightly", "retention"]
    assert [sensor.name for sensor in repository.sensor_defs] == ["fixes_folder"]


def test_every_table_asset_shows_its_columns_with_descriptions(defs: dg.Definitions) -> None:
    graph = defs.resolve_asset_graph()
    for name, table in TABLES.items():
        schema = graph.get(dg.AssetKey(name)).metadata["columns"]
        described = {column.name: column.description for column in schema.columns}
        assert described == table.descriptions


def test_every_asset_has_kinds_a_description_and_the_configured_owners(folder: Folder) -> None:
    settings = PublishSettings(owners=["team:quality", "ann@example.org"], fresh_days=2)
    graph = build_defs(EvaluationResource(config_file=str(folder.config)), settings).resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        asset = graph.get(key)
        assert asset.owners == ["team:quality", "ann@example.org"]
        assert asset.kinds and asset.description, key
    aged = {key.to_user_string() for key in graph.get_all_asset_keys() if graph.get(key).freshness_policy}
    assert aged == {"summary_pass_at_k"}
    assert graph.get(dg.AssetKey("summary_pass_at_k")).freshness_policy == dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=2), warn_window=timedelta(days=1)
    )


def test_the_definitions_take_owners_from_the_configuration_and_load_without_one(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def owners() -> list[str]:
        return list(load_definitions().resolve_asset_graph().get(dg.AssetKey("tiers")).owners)

    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("TOUCHSTONE_CONFIG", str(folder.config))
    folder.configure(publish={"owners": ["team:quality"], "fresh_days": None})
    assert owners() == ["team:quality"]
    folder.config.write_text("{")
    assert owners() == ["team:evaluation"]


@pytest.mark.parametrize("job", ["evaluate", "__ASSET_JOB"])
@pytest.mark.parametrize("setting", [{"config_file": "other.json"}, {"output_dir": "/"}, {"wait_for_lock_seconds": 0}])
def test_no_run_can_choose_the_configuration_which_names_programs(
    defs: dg.Definitions, job: str, setting: dict[str, Any]
) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match=f'unexpected config entry "{next(iter(setting))}"'):
        dg.validate_run_config(defs.resolve_job_def(job), {"resources": {"evaluation": {"config": setting}}})


@pytest.mark.services
def test_a_run_is_tagged_with_its_snapshot_and_the_verdict_against_the_baseline(first_run: Run) -> None:
    tags = first_run.tags
    (snapshot,) = (first_run.folder.output / "snapshots").iterdir()
    assert tags["touchstone/snapshot"] == snapshot.name
    assert tags["touchstone/verdict"] == "no baseline"


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (GateResult(True, ""), "no baseline"),
        (GateResult(True, "", baseline="b"), "passed"),
        (GateResult(False, "", baseline="b"), "warning"),
        (GateResult(False, "", error=True, baseline="b"), "failed"),
    ],
)
def test_the_words_of_the_verdict(found: GateResult, verdict: str) -> None:
    assert gate_verdict(found) == verdict


@pytest.mark.services
def test_what_a_run_tells_the_ui(defs: dg.Definitions, first_run: Run) -> None:
    result = first_run.result
    events = {
        (event.asset_key.to_user_string(), event.partition): event.materialization
        for event in result.get_asset_materialization_events()
    }
    graph = defs.resolve_asset_graph()
    assert {asset for asset, _ in events} == {key.to_user_string() for key in graph.get_all_asset_keys()}
    outcomes = events["outcomes", None].metadata
    assert outcomes["dagster/row_count"].value == 5
    assert "| m | 4 | false | 1 |" in outcomes["models"].value and "| n | 1 | false | 1 |" in outcomes["models"].value
    assert events["models", "m"].metadata["T0 pass@1"].value == 0.25
    assert events["models", "n"].metadata["accepted"].value == 1
    figures = events["pass_at_k", None].metadata
    assert figures["m T0 pass@1"].value == 0.25
    assert figures["preview"].value.splitlines()[2].startswith("| n | T0 | 1 | 1 "), "best first"
    for asset in ("pass_at_k", "summary_pass_at_k", "warehouse"):
        board = shown(events[asset, None].metadata["leaderboard"])
        assert [row[:2] for row in board] == [["n", "T0"], ["m", "T0"]], "best first"
        assert board[1][2].startswith("0.250 [0.0") and len(board[1][2]) == len("0.250 [0.001, 0.992]")
    columns = {column.name for column in events["problems", None].metadata["columns"].schema.columns}
    assert {"oid", "filename", "cluster"} <= columns
    failed = {check.check_name for check in result.get_asset_check_evaluations() if not check.passed}
    assert failed == {"coverage", "enough_samples"}


def test_all_assets_can_be_materialized_together_without_choosing_a_partition(defs: dg.Definitions) -> None:
    """A single partitioned asset would turn "Materialize all" into a dialog, and its run into a backfill of many."""
    graph = defs.resolve_asset_graph()
    partitioned = {key.to_user_string() for key in graph.get_all_asset_keys() if graph.get(key).partitions_def}
    executable = {key.to_user_string() for key in graph.executable_asset_keys}
    assert partitioned == {"models"}
    assert executable == {key.to_user_string() for key in graph.get_all_asset_keys()} - {"models"}


@pytest.mark.nightly
def test_a_run_can_be_limited_to_some_models_by_a_tag(
    first_run: Run, limited_run: Run, instance: dg.DagsterInstance
) -> None:
    def pass_at_1(result: dg.ExecuteInProcessResult) -> dict[str, object]:
        made = [event.materialization for event in result.get_asset_materialization_events()]
        return {str(one.partition): one.metadata["T0 pass@1"].value for one in made if one.partition}

    assert pass_at_1(first_run.result) == {"m": 0.25, "n": 1.0}
    assert pass_at_1(limited_run.result) == {"m": 0.25, "n": 0.0}
    with pytest.raises(dg.DagsterResourceFunctionError) as refused:
        execute(limited_run.folder, instance, tags={"touchstone/only": "n, nobody"})
    assert "touchstone/only nobody: no such model; there are: m, n" in str(refused.value.__cause__)


@pytest.mark.services
def test_only_models_whose_figures_changed_are_shown_anew(first_run: Run, instance: dg.DagsterInstance) -> None:
    evaluation = Evaluation.load(first_run.folder.config)

    def shown() -> list[str | None]:
        return [one.partition for one in published_models(evaluation, instance)]

    m, n = published_models(evaluation, instance)
    instance.report_runless_asset_event(m)
    assert shown() == ["n"]
    instance.report_runless_asset_event(dg.AssetMaterialization("models", partition="n", tags={DATA: "old"}))
    assert shown() == ["n"]
    instance.report_runless_asset_event(n)
    assert shown() == []


@pytest.mark.services
def test_the_models_are_registered_when_dagster_loads_the_definitions(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("TOUCHSTONE_CONFIG", str(folder.config))

    def registered() -> list[str]:
        load_definitions()
        with dg.DagsterInstance.get() as instance:
            return list(instance.get_dynamic_partitions("models"))

    assert registered() == ["m"]
    folder.fixes("n", HEADER)
    assert registered() == ["m", "n"]
    folder.configure(fixes_dir="not_there_yet")
    assert registered() == ["m", "n"], "a folder without files must not keep the UI from loading"
    folder.configure(fixes_dir="made", generate_synthetic_data=True, synthetic={"models": {"gemini": 1.0}})
    assert registered() == ["gemini"]


@pytest.mark.nightly
def test_data_versions_follow_the_files_contents(
    first_run: Run, limited_run: Run, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    def versions(result: dg.ExecuteInProcessResult) -> dict[str, str]:
        return {
            event.asset_key.to_user_string(): (event.materialization.tags or {})[DATA]
            for event in result.get_asset_materialization_events()
            if event.partition is None
        }

    folder = copy_of(first_run.folder, tmp_path / "copy")
    first, second = versions(first_run.result), versions(execute(folder, instance))
    assert {name for name in first if first[name] != second[name]} == {"run_log"}
    third = versions(limited_run.result)
    changed = {name for name in first if first[name] != third[name]}
    assert changed == set(first) - {
        "settings",
        "problems",
        "problem_slices",
        "quarantine",
        "reported_figures",
        "source_settings",
        "validator_noise",
        "baselines",
        "problem_files",
        "validated_fixes",
        "rulings",
        "mutants",
        "test_strength",
    }, "none of these reads the outcomes in the files"


@pytest.mark.services
def test_touchstone_run_leaves_the_history_that_a_run_of_all_assets_leaves(
    first_run: Run, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.fixes("n", HEADER + "a,1,true\n")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    assert run_evaluation(Evaluation.load(folder.config), folder.config).exit_code == 0
    with dg.DagsterInstance.get() as instance:
        (run,) = instance.get_runs()
        events = [entry.get_dagster_event() for entry in instance.all_logs(run.run_id) if entry.is_dagster_event]
    assert (run.job_name, run.status) == ("evaluate", dg.DagsterRunStatus.SUCCESS)
    assert run.tags.keys() >= {VERDICT, SNAPSHOT}
    assert [event.step_key for event in events if event.event_type_value == "STEP_START"] == STAGES
    expected = first_run.result.all_events
    assert materialized(events) == materialized(expected)
    assert checked(events) == checked(expected)
    assert len(checked(events)) == len(CHECKS)


def materialized(events: Sequence[dg.DagsterEvent]) -> list[tuple[object, ...]]:
    """What the history says of every materialization: step, asset, partition, version and the names of its metadata.

    The versions of the last step depend on the name of the snapshot.
    """
    found = [
        (str(event.step_key), event.step_materialization_data.materialization)
        for event in events
        if event.event_type == dg.DagsterEventType.ASSET_MATERIALIZATION
    ]
    return [
        (step, made.asset_key.path, made.partition, step == STAGES[-1] or (made.tags or {})[DATA], list(made.metadata))
        for step, made in found
    ]


def checked(events: Sequence[dg.DagsterEvent]) -> list[tuple[object, ...]]:
    """What the history says of every check; what follows a semicolon may name the output folder."""
    found = [
        (event.step_key, event.asset_check_evaluation_data)
        for event in events
        if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ]
    return [
        (
            step,
            made.asset_check_key,
            made.passed,
            made.severity,
            (made.description or "").partition(";")[0],
            made.metadata,
        )
        for step, made in found
    ]
