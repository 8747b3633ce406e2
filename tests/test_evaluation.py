"""What is made from what: no stamp may speak for rows that were read from other bytes."""

import json

from tests.conftest import Folder
from tests.pipelines.test_every_format import forgetest_result
from touchstone.config import load_config
from touchstone.evaluation import Evaluation


def report(folder: Folder, *attempts: int) -> None:
    results = [forgetest_result("case", attempt, 1, 0) for attempt in attempts]
    (folder.root / "fixes" / "report.json").write_text(json.dumps({"results": results}))


def ingested(evaluation: Evaluation, model: str) -> tuple[int, bool]:
    evaluation.materialize("problems")
    part = evaluation.ingest.attempts_of(model)
    return part.rows, part.reused


def test_a_report_that_changes_after_it_was_read_is_read_again(folder: Folder) -> None:
    report(folder, 1)
    evaluation = Evaluation(load_config(folder.config))
    assert evaluation.inputs.models == ["m", "openai/gpt-4o"]
    report(folder, 1, 2)
    assert ingested(evaluation, "openai/gpt-4o") == (1, False)
    assert ingested(Evaluation(load_config(folder.config)), "openai/gpt-4o") == (2, False)
    assert ingested(Evaluation(load_config(folder.config)), "openai/gpt-4o") == (2, True)


def test_a_native_file_that_changes_before_it_is_read_is_read_as_it_is(folder: Folder) -> None:
    evaluation = Evaluation(load_config(folder.config))
    assert ingested(evaluation, "m") == (4, False)
    folder.fixes("m", "oid,iteration_id,plausible_fix\na,1,true\n")
    assert ingested(evaluation, "m") == (1, False)


def test_two_files_of_one_model_that_speak_of_the_same_attempt(folder: Folder) -> None:
    report(folder, 1)
    folder.fixes("openai%2Fgpt-4o", "oid,iteration_id,plausible_fix\ncase,1,false\na,1,true\n")
    evaluation = Evaluation(load_config(folder.config))
    assert ingested(evaluation, "openai/gpt-4o") == (0, False)
    errors = evaluation.store.scan("sources", ["openai/gpt-4o"]).collect()["reason"].to_list()
    assert len(errors) == 2 and "both have an attempt of the model 'openai/gpt-4o'" in errors[0]


def test_links_in_the_folder_whole_and_broken(folder: Folder) -> None:
    report(folder, 1)
    fixes = folder.root / "fixes"
    (fixes / "report.json").rename(folder.root / "elsewhere.json")
    (fixes / "linked.json").symlink_to(folder.root / "elsewhere.json")
    (fixes / "broken.json").symlink_to(folder.root / "nowhere.json")
    (fixes / "gone_fixes.csv").symlink_to(folder.root / "nowhere.csv")
    evaluation = Evaluation(load_config(folder.config))
    assert ingested(evaluation, "openai/gpt-4o") == (1, False)
    assert ingested(evaluation, "gone") == (0, False)
    assert "cannot be read" in evaluation.store.scan("sources", ["gone"]).collect()["reason"].item()
