"""The marks of each format, so that `touchstone inspect-files --why` can name those that a file lacks.

Marks are paths as in `touchstone.config.json_paths`, separated by commas, of which a file has all; ` | ` separates
alternatives. What is in parentheses is for people only. How a file is recognized belongs in its adapter.
"""

from collections.abc import Sequence
from functools import cache

from touchstone.config.json_paths import ELEMENTS, VALUES, Step, parse_path
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head

_KNOWN = {
    "inspect": "status, eval.task, eval.model | eval.task_id (or a .eval archive)",
    "inspect-index": "eval_set_id | *.eval | *.eval_id (by the names of logs)",
    "scylla": "(a CSV with the columns experiment, subtest, run_number and passed)",
    "scylla_raw": "run_number, judge_passed (in run_result.json, or a folder of such runs)",
    "failproof": "[].model_id, [].classification (or FailProof's database or CSV)",
    "human-eval": "[].task_id, [].passed, [].result | [].completion | [].solution",
    "human-eval-samples": "[].task_id, [].completion | [].solution (without verdicts)",
    "human-eval-problems": "[].task_id, [].prompt, [].entry_point",
    "evalplus": "eval, hash | eval.*[].base_status",
    "livecodebench": "[].question_id, [].graded_list",
    "livecodebench-generations": "[].question_id, [].output_list | [].code_list",
    "livecodebench-tests": "[].pass@1, [].detail",
    "cruxeval": "raw_generations | raw_scored_generations",
    "bigcodebench-figures": "pass@1, split, subset, calibrated",
    "multipl-e": "language, results[].exit_code (or a folder of *.results.json files)",
    "multipl-e-figures": "(the CSV that MultiPL-E's pass_k.py prints)",
    "bigcode": "(a list of lists of texts, called generations_<task>.json, or the logs.json of such a run)",
    "bigcode-figures": "config.model, (a task with pass@k)",
    "swebench-report": "(lists such as resolved_ids and unresolved_ids)",
    "swebench-logs": "resolved | *.resolved, patch_exists | *.patch_exists | PASS_TO_PASS (or the folder of such logs)",
    "swebench-submission": "resolved[], no_generation[] | no_logs[] | unresolved[] (in results.json)",
    "openhands-parts": "(a report, predictions or attempts of a critic beside an output.jsonl)",
    "openhands": "[].instance_id, [].test_result",
    "swebench-pro": "(true or false by instance, in eval_results.json or with ids that start with instance_)",
    "openhands-index": "*.resolved, *.cost (in the folder instance_results)",
    "swebench-predictions": "[].instance_id | *.instance_id | *.model_name_or_path, [].model_patch | *.model_patch",
    "swe-agent": "info.exit_status, trajectory (or a file that ends in .traj)",
    "terminal-bench": "trial_name | results[].trial_name, is_resolved | results[].is_resolved (or a run's folder)",
    "harbor": "n_total_trials | trial_name, stats | task_checksum (or a job's folder)",
    "aider": "(a folder of exercises with .aider.results.json)",
    "aider-leaderboard": "(YAML with dirname and pass_rate_1)",
    "tau2-bench-parts": "task_id | model_name, termination_reason | methodology",
    "git-lfs": "(the text of a Git LFS pointer)",
    "junit": "(XML with testsuites, testsuite or testcase)",
    "every-eval-ever-aggregates": "schema_version, evaluation_id, evaluation_results",
    "helm": "[].instance_id, [].stats (in per_instance_stats.json, or a run's folder)",
    "helm-parts": "adapter_spec, request_states | metric_specs (or another file of a HELM run)",
    "lighteval": "(a Parquet file with doc, metric and model_response)",
    "lighteval-results": "config_general, results",
    "nemo-skills": "[].generation, [].symbolic_correct | [].judgement | [].graded_list (in output-rs*.jsonl)",
    "repairbench-figures": "num_bugs | prompt_cost, num_plausible_patches | completion_cost",
    "repairbench-candidates": "[].identifier, [].buggy_code, [].fixed_code",
    "deepeval": "testCases | testRunData.testCases (or the folder .deepeval)",
    "lm-eval": "[].doc_id, [].doc, [].resps | [].filtered_resps",
    "lm-eval-results": "results, configs | config, versions",
    "promptfoo": "results.results[] | [].latencyMs, results.version | [].namedScores",
    "promptfoo-table": "(a CSV with the columns Status, Score, Named Scores and Grader Reason, YAML or XML)",
    "csv": "(a CSV with a problem, an outcome or a fix, and a column of models)",
    "parquet": "(a Parquet file with a problem and an outcome or a fix)",
    "jsonl": "[].oid | [].instance_id | [].task_id, [].passed | [].resolved | [].success (or a fix; or in an object)",
    "forgetest": "results[], eval_set | results[].compilation",
}
# How deep `Head.key_paths` looks: what counts is the brackets around a key, two for the element of a list.
_MAX_KEY_DEPTH, _MAX_LIST_DEPTH = 4, 5


def lacking(adapter: Adapter, head: Head) -> str:
    """Why an adapter does not recognize a file, in one line."""
    marks = adapter.marks or _KNOWN.get(adapter.format, "")
    paths, _, note = marks.partition("(")
    wanted = [mark.strip() for mark in paths.split(",") if mark.strip()]
    note = f" ({note}" if note else ""
    if not wanted:
        return f"wants {note.strip(' ()')}" if note else "its marks are not there"
    if head.is_folder or head.text[:1] not in ("{", "["):
        return f"not JSON; wants {', '.join(wanted)}{note}"
    missing = [mark for mark in wanted if not has_mark(head, [parse_path(each).steps for each in mark.split(" | ")])]
    return (
        f"lacks {', '.join(missing)}{note}" if missing else f"has {', '.join(wanted)}, but not all of its marks{note}"
    )


def has_marks(head: Head, marks: str) -> bool:
    """Whether the start of a file has all of these marks."""
    return all(has_mark(head, each) for each in _alternatives(marks))


@cache
def _alternatives(marks: str) -> list[list[tuple[Step, ...]]]:
    return [[parse_path(path).steps for path in mark.split(" | ")] for mark in marks.split(", ")]


def has_mark(head: Head, alternatives: Sequence[tuple[Step, ...]]) -> bool:
    """Whether the start of a file has one of these paths, as deep as `Head.key_paths` goes."""
    return any(_has_path(head, _names(steps)) for steps in alternatives)


def _names(steps: Sequence[Step]) -> list[str | None]:
    """Steps as an entry of `Head.key_paths`; None is any key."""
    depth, names = 0, list[str | None]()
    for step in steps:
        is_list = step is ELEMENTS or isinstance(step, int)
        depth += 2 if is_list else 1
        if depth > (_MAX_LIST_DEPTH if is_list else _MAX_KEY_DEPTH):
            break
        names.append(LIST if is_list else None if step is VALUES else str(step))
    return names


def _has_path(head: Head, names: list[str | None]) -> bool:
    if names[:1] == [LIST] and has_lines(head):
        names = names[1:]
    if not names:
        return True
    if None not in names:
        return tuple(names) in head.key_paths
    return any(
        len(path) == len(names) and all(name in (None, each) for name, each in zip(names, path, strict=True))
        for path in head.key_paths
    )


def has_lines(head: Head) -> bool:
    """Whether the file has an object per line; the first may be longer than what is looked at."""
    return head.text.startswith("{") and (bool(head.first_record) or "\n" not in head.text)
