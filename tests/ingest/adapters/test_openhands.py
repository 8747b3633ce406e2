"""Reading OpenHands outputs, graded or not, and the instance results of the OpenHands Index."""

import json
import shutil
from pathlib import Path

import pytest

from touchstone.ingest.adapters import AdapterTable, detect_format, read_adapted

FILES = Path(__file__).parent / "files" / "openhands"
OUTPUT = FILES / "handmade_output.jsonl"
INSTANCES = [json.loads(line) for line in OUTPUT.read_text().splitlines()]
INDEX = {
    "astropy__astropy-1": {"cost": 0.5, "resolved": True},
    "astropy__astropy-2": {"cost": 1.25, "resolved": False},
    "django__django-3": {"cost": None, "resolved": None},
}


def instance(error: str | None = None, patch: str = "diff\n", **report: object) -> dict[str, object]:
    result = {"git_patch": patch} | ({"report": report} if report else {})
    return INSTANCES[0] | {"test_result": result, "error": error}


def read(tmp_path: Path, *instances: object) -> AdapterTable:
    path = tmp_path / "output.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in instances))
    assert detect_format(path) == "openhands"
    return read_adapted(path)


GRADED = {"resolved": False, "empty_generation": False, "failed_apply_patch": False, "error_eval": False}


@pytest.mark.parametrize(
    ("odd", "passed", "word"),
    [
        (instance(**GRADED), "false", "fail"),
        (instance(**GRADED | {"failed_apply_patch": True}), "false", "wrong_format"),
        (instance(**GRADED | {"test_timeout": True}), "false", "timeout"),
        (instance(**GRADED | {"error_eval": True}), None, None),
        (instance(**GRADED | {"resolved": True, "test_timeout": True}), "true", "pass"),
        (instance(patch="", **GRADED | {"empty_generation": True}), "false", "wrong_format"),
        (instance(), None, None),
        (instance(patch=""), "false", "wrong_format"),
        (instance("AgentStuckInLoopError: stuck", patch=""), "false", "wrong_format"),
        (instance("RuntimeError: Agent reached maximum iteration", patch=""), "false", "wrong_format"),
        (instance("litellm.RateLimitError: 429", patch=""), None, None),
        (instance("AgentRuntimeUnavailableError: gone", patch=""), None, None),
        (instance("litellm.ContextWindowExceededError: too long", patch=""), "false", "wrong_format"),
        (instance("litellm.RateLimitError: 429"), None, None),
        (instance("litellm.RateLimitError: 429", **GRADED), "false", "fail"),
    ],
)
def test_outcomes(tmp_path: Path, odd: object, passed: str | None, word: str | None) -> None:
    assert read(tmp_path, odd).frame.select("passed", "classification").row(0) == (passed, word)


def test_an_empty_patch_alone_decides_nothing_in_an_output_without_verdicts(tmp_path: Path) -> None:
    ungraded = read(tmp_path, instance(), instance(patch=""))
    assert ungraded.frame["passed"].to_list() == [None, None]
    assert ungraded.figures == ()
    assert "not judged: 1 of 2 attempts of" in ungraded.notes[0]
    graded = read(tmp_path, instance(), instance(patch=""), instance(**GRADED))
    assert graded.frame["passed"].to_list() == [None, "false", "false"]


def test_verdicts_of_a_later_grading_are_joined(tmp_path: Path) -> None:
    graded = shutil.copy(FILES / "handmade_output.swebench_eval.jsonl", tmp_path / "output.swebench_eval.jsonl")
    ungraded = [each | {"test_result": {"git_patch": "diff\n"}} for each in INSTANCES]
    table = read(tmp_path, *ungraded)
    assert table.frame["passed"].to_list() == ["true", "false", "false"]
    assert [file.name for file in table.files] == ["output.jsonl", Path(graded).name]


@pytest.mark.parametrize("name", ["output.report.json", "report.json"])
def test_a_run_report_beside_the_output_judges_it(tmp_path: Path, name: str) -> None:
    """As OpenHands' benchmarks leave their files: the others are made from the output, or it from them."""
    ids = [f"a__b-{number}" for number in range(5)]
    lists = {"resolved_ids": ids[:1], "unresolved_ids": ids[1:2], "empty_patch_ids": ids[2:4], "error_ids": []}
    (tmp_path / name).write_text(
        json.dumps({"total_instances": 500, "submitted_instances": 4, "resolved_instances": 1} | lists)
    )
    others = [instance(patch=patch) for patch in ("diff\n", "diff\n", "only setup.py\n", "")]
    others += [instance("litellm.RateLimitError: 429", patch=""), instance() | {"test_result": {"score": 1}}]
    lines = [each | {"instance_id": oid} for each, oid in zip(others, [*ids, "not_in_it"], strict=True)]
    table = read(tmp_path, *lines)
    assert table.frame["passed"].to_list() == ["true", "false", "false", "false", None, None]
    assert [(each.name, each.reported, each.recomputed) for each in table.figures] == [
        ("resolved_instances", 1, 1),
        ("resolved / instances", None, 1 / 6),
    ]
    assert [file.name for file in table.files] == ["output.jsonl", name]
    (tmp_path / "output.swebench.jsonl").write_text(
        '{"instance_id": "a", "model_name_or_path": "m", "model_patch": ""}'
    )
    shutil.copy(tmp_path / "output.jsonl", tmp_path / "output.critic_attempt_1.jsonl")
    for part in (name, "output.swebench.jsonl", "output.critic_attempt_1.jsonl"):
        assert detect_format(tmp_path / part) == "openhands-parts"
    (tmp_path / "output.jsonl").unlink()
    assert detect_format(tmp_path / name) == "swebench-report"


def test_a_grading_alone_takes_the_model_from_beside_it(tmp_path: Path) -> None:
    (tmp_path / "claude_maxiter_100").mkdir()
    path = Path(shutil.copy(FILES / "handmade_output.swebench_eval.jsonl", tmp_path / "claude_maxiter_100"))
    table = read_adapted(path)
    assert table.models() == ["claude_maxiter_100"]
    assert "its folder 'claude_maxiter_100' is taken for it" in table.notes[-1]
    path.with_name("metadata.json").write_text('{"llm": {"model": "acme/fixer"}}')
    assert read_adapted(path).frame["llm_name"].unique().to_list() == ["acme/fixer"]


def test_an_output_and_its_grading_are_the_same_attempts() -> None:
    output, grading = (read_adapted(FILES / f"handmade_output{end}") for end in (".jsonl", ".swebench_eval.jsonl"))
    same = ["llm_name", "oid", "iteration_id", "passed", "sample_uuid"]
    assert output.frame.select(same).equals(grading.frame.select(same))
    assert output.frame["sample_uuid"].n_unique() == 3


def test_attempts_are_numbered_by_the_file_or_in_its_order(tmp_path: Path) -> None:
    table = read(tmp_path, instance(), instance(), instance() | {"attempt": 7})
    assert table.frame["iteration_id"].to_list() == ["1", "2", "7"]


def test_cached_tokens_are_counted_once(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 5, "cache_read_tokens": 700, "cache_write_tokens": 100}
    table = read(tmp_path, instance() | {"metrics": {"accumulated_cost": 1, "accumulated_token_usage": usage}})
    tokens = table.frame.select("input_tokens", "cache_read_tokens", "cache_write_tokens").row(0)
    assert tokens == ("200", "700", "100")


def index(tmp_path: Path, benchmark: str, content: object = INDEX) -> Path:
    path = tmp_path / "claude-x" / "instance_results" / f"{benchmark}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content))
    assert detect_format(path) == "openhands-index"
    return path


def test_other_benchmarks_of_the_index_do_not_share_problems_with_swe_bench(tmp_path: Path) -> None:
    table = read_adapted(index(tmp_path, "swt-bench"))
    assert table.frame["oid"][0] == "swt-bench/astropy__astropy-1"
    assert table.frame["llm_name"][0] == "claude-x"


def test_the_accuracy_of_a_benchmark_whose_score_leaves_instances_out(tmp_path: Path) -> None:
    path = index(
        tmp_path, "swe-bench-multimodal", {"a": {"cost": 1, "resolved": True}, "b": {"cost": 1, "resolved": False}}
    )
    entry = {"benchmark": "swe-bench-multimodal", "score": 100.0, "metric": "solveable_accuracy"}
    scores = [entry | {"component_scores": {"solveable_accuracy": 100.0, "combined_accuracy": 50.0}}]
    (path.parents[1] / "scores.json").write_text(json.dumps(scores))
    (figure,) = read_adapted(path).figures
    assert (figure.reported, figure.recomputed) == (50, 50)
