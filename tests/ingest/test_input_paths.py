"""Which files an evaluation looks at: the entries of a folder, or the inputs that the configuration names."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import PROJECT, Folder
from touchstone.config import EvaluationConfig, load_config
from touchstone.errors import TouchstoneError
from touchstone.ingest.discovery import discover
from touchstone.ingest.input_paths import input_files, input_paths, label_of

REPORT = (
    '{"eval_set": {"id": "s"}, "results": [{"case_id": "c", "model": "org/m", "attempt": 1, '
    '"compilation": {"success": true}, "test_execution": {"passed": 1, "failed": 0}}]}'
)


def configured(folder: Folder, **settings: object) -> EvaluationConfig:
    folder.configure(**settings)
    return load_config(folder.config)


def labels(config: EvaluationConfig, paths: list[Path]) -> list[str]:
    return [label_of(path, config.fixes_dir) for path in paths]


def put(folder: Folder, *names: str) -> None:
    for name in names:
        path = folder.root / "fixes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(REPORT)


def test_a_folder_among_the_fixes_is_not_searched(folder: Folder) -> None:
    put(folder, "logs/a.json")
    config = configured(folder)
    assert "logs" in labels(config, input_paths(config))
    assert "logs/a.json" not in labels(config, input_files(config))


@pytest.mark.parametrize("output", ["fixes/results", "fixes"])
def test_what_a_run_writes_is_no_input(folder: Folder, output: str) -> None:
    config = configured(folder, output_dir=output)
    before = labels(config, input_paths(config))
    for name in ("tables", ".store/draft"):
        (config.output_dir / name).mkdir(parents=True)
    (config.output_dir / "summary_pass_at_k.csv").touch()
    (folder.root / "fixes" / ".dagster").mkdir()
    assert labels(config, input_paths(config)) == before == ["m_fixes.csv", "problems.csv"]


def test_the_results_in_a_named_folder_are_no_input(folder: Folder) -> None:
    (folder.root / "fixes" / "results" / "tables").mkdir(parents=True)
    config = configured(folder, output_dir="fixes/results", inputs=["."])
    assert labels(config, input_paths(config)) == ["m_fixes.csv", "problems.csv"]


@pytest.mark.parametrize("inputs", [[], ["."]])
def test_links_that_lead_in_a_circle_are_refused_by_name_and_the_others_read(folder: Folder, inputs: list[str]) -> None:
    fixes = folder.root / "fixes"
    put(folder, "logs/a.json")
    circle = {"me_fixes.csv": "me_fixes.csv", "one": "two", "two": "one", "me.json": "me.json", "logs/up": "../logs"}
    for name, target in circle.items():
        (fixes / name).symlink_to(target)
    found = discover(configured(folder, inputs=inputs))
    # A file that is named as one of fixes fails its own model when it is read.
    assert set(found.sources) == {"m", "me"} | ({"org/m"} if inputs else set())
    reasons = {each.file: each.reason for each in found.not_evaluated}
    assert "levels of symbolic links" in reasons["me.json"] and {"one", "two"} <= set(reasons)


def test_named_folders_are_searched_and_named_files_taken(folder: Folder) -> None:
    put(
        folder, "logs/a.json", "logs/deep/er/b.json", "logs/.git/c.json", "logs/node_modules/d.json", "e.json", "f.json"
    )
    config = configured(folder, inputs=["logs", "e.json"])
    assert labels(config, input_paths(config)) == [
        "e.json",
        "logs/.git",
        "logs/a.json",
        "logs/deep/er/b.json",
        "logs/node_modules",
    ]
    found = discover(config)
    assert sorted(source.name for source in found.sources["org/m"]) == ["e.json", "logs/a.json", "logs/deep/er/b.json"]


def test_the_output_folder_and_links_are_not_searched(folder: Folder) -> None:
    put(folder, "logs/a.json", "logs/results/b.json", "elsewhere/c.json")
    (folder.root / "fixes" / "logs" / "link").symlink_to(folder.root / "fixes" / "elsewhere")
    config = configured(folder, inputs=["logs"], output_dir=str(folder.root / "fixes" / "logs" / "results"))
    assert labels(config, input_files(config)) == ["logs/a.json"]


@pytest.mark.parametrize("name", ["/etc", "../up", "a/../../b"])
def test_inputs_lie_below_the_fixes_folder(folder: Folder, name: str) -> None:
    with pytest.raises(TouchstoneError, match="is not below fixes_dir"):
        configured(folder, inputs=[name])


def test_an_input_that_is_missing(folder: Folder) -> None:
    with pytest.raises(TouchstoneError, match=r"gone\.eval: no such file or folder"):
        input_paths(configured(folder, inputs=["gone.eval"]))


def test_results_beside_a_folder_of_logs_are_reported_unless_they_are_named_too(folder: Folder) -> None:
    logs = folder.root / "fixes" / "harness"
    shutil.copytree(PROJECT / "tests" / "ingest" / "adapters" / "files" / "swebench", logs)
    put(folder, "harness/report.json", "harness/logs/deep.json")
    (logs / "notes.md").write_text("what was tried")
    beside = {each.file: each.status for each in discover(configured(folder)).not_evaluated if "harness/" in each.file}
    assert beside == {
        "harness/preds.json": "ignored",
        "harness/preds.jsonl": "ignored",
        "harness/report.json": "unknown",
    }
    found = discover(configured(folder, inputs=["harness", "harness/report.json"]))
    assert [source.name for source in found.sources["org/m"]] == ["harness/report.json"]
    assert "harness/report.json" not in [each.file for each in found.not_evaluated]


def test_parts_of_a_run_that_hold_no_attempts_are_not_reported(folder: Folder) -> None:
    run = PROJECT / "tests" / "ingest" / "adapters" / "files" / "helm" / "sums_small"
    shutil.copytree(run, folder.root / "fixes" / "run")
    found = discover(configured(folder))
    assert [source.name for source in found.sources["simple/model1"]] == ["run"]
    assert "run/scenario.json" not in [each.file for each in found.not_evaluated]
