"""The rules of benchmarks and evaluation frameworks; that their sample files are read is in `test_every_format`."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.adapters.code_generation import figures, refused, rows
from tests.ingest.adapters.formats import FILES, MADE
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, ReadOptions, detect_format, read_adapted
from touchstone.ingest.adapters.adapter import NotEvaluatedError

HELM, NEMO = MADE / "helm" / "mmlu-philosophy", MADE / "nemo-skills" / "acme-fixer" / "eval-results" / "aime24"
MULTIPL_E = MADE / "multipl-e" / "humaneval-java-acme_fixer-0.2-reworded"
TIME = "2026-05-04T10-00-00.123456"


def written(path: Path, content: Any, score: str | None = None) -> AdapterTable:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(each) for each in content] if path.suffix == ".jsonl" else [json.dumps(content)]
    path.write_text("\n".join(lines) + "\n")
    return read_adapted(path, ReadOptions(score))


def bigcodebench(path: Path, *statuses: list[str | None]) -> AdapterTable:
    tasks = {f"BigCodeBench/{task}": own for task, own in enumerate(statuses)}
    samples = {task: [{"task_id": task, "status": each} for each in own] for task, own in tasks.items()}
    return written(path, {"date": "2026-05-04 06:41", "eval": samples})


def test_the_suite_of_bigcodebench_beside_a_name_without_it_and_odd_statuses(tmp_path: Path) -> None:
    figure = {"pass@1": 0.5, "model": "x", "split": "instruct", "subset": "full", "calibrated": False}
    (tmp_path / "pass_at_k.json").write_text(json.dumps(figure))
    table = bigcodebench(tmp_path / "eval_results.json", ["pass", "fail"], [None, "crashed"])
    assert rows(table, "suite", "passed")[:3] == [("instruct", "true"), ("instruct", "false"), ("instruct", None)]
    assert [reason for *_, reason in refused(table)] == [
        "status: 'crashed' is not in pass_values, fail_values or undecided_values"
    ]
    assert table.models() == [tmp_path.name]


@given(st.lists(st.lists(st.sampled_from(["pass", "fail", "timeout"]), min_size=1, max_size=6), min_size=1, max_size=5))
def test_pass_at_1_is_the_mean_of_the_shares(
    tmp_path_factory: pytest.TempPathFactory, statuses: list[list[str | None]]
) -> None:
    table = bigcodebench(tmp_path_factory.getbasetemp() / "bcb" / "x_eval_results.json", *statuses)
    shares = [own.count("pass") / len(own) for own in statuses]
    assert figures(table)[None, "pass@1"] == (None, round(sum(shares) / len(shares), 4))


def test_a_broken_problem_of_multipl_e_is_refused_alone_and_other_results_are_not_its(tmp_path: Path) -> None:
    folder = shutil.copytree(MULTIPL_E, tmp_path / MULTIPL_E.name)
    (folder / "HumanEval_9.results.json").write_text('{"name": "HumanEval_9", "language"')
    (tmp_path / "pass_k.csv").write_text((MULTIPL_E.parent / "pass_k.csv").read_text().replace("java", "lua"))
    table = read_adapted(folder)
    assert [(line, kind) for line, kind, _ in refused(table)] == [(7, "ragged")]
    assert figures(table) == {("HumanEval-java", "pass@1"): (None, 0.3333)}
    (tmp_path / "aider").mkdir()
    (tmp_path / "aider" / ".aider.results.json").write_bytes((folder / "HumanEval_53_add.results.json").read_bytes())
    assert detect_format(tmp_path / "aider") == "aider"
    unnamed = {"language": "lua", "results": [{"exit_code": 0, "status": "OK"}]}
    assert rows(written(tmp_path / "HumanEval_9_max.json", unnamed), "oid", "cluster", "passed") == [
        ("lua/HumanEval_9_max", "HumanEval_9_max", "true")
    ]


def test_a_stated_pass_at_k_of_more_attempts_than_there_are_is_not_recomputed(tmp_path: Path) -> None:
    """MultiPL-E's script says 1.0, whatever the attempts."""
    folder = shutil.copytree(MULTIPL_E, tmp_path / MULTIPL_E.name)
    stated = (MULTIPL_E.parent / "pass_k.csv").read_text() + f"{MULTIPL_E.name},100,1.0,2,3,3\n"
    (tmp_path / "pass_k.csv").write_text(stated)
    figure = read_adapted(folder).figures[-1]
    assert (figure.name, figure.reported, figure.recomputed) == ("pass@100", 1, None)
    assert figure.note == "undefined: a problem has fewer than 100 attempts (3)"


def deepeval(path: Path, *cases: dict[str, Any], wrapped: bool = False, **run: Any) -> AdapterTable:
    own = {"testCases": [{"metricsData": [], **case} for case in cases], "metricsScores": [], **run}
    return written(path, {"testRunData": own} if wrapped else own)


def test_repetitions_of_deepeval_are_attempts_and_parameters_are_not(tmp_path: Path) -> None:
    names = ["t[a-1-2]", "t[a-2-2]", "u[1-2]", "u[2-2]", "v[1-2]", "w[1-3]", "w[2-3]"]
    inputs = ["i", "i", "i", "j", "i", "i", "i"]
    cases = [{"name": name, "input": asked, "success": True} for name, asked in zip(names, inputs, strict=True)]
    table = deepeval(tmp_path / "run.json", *cases)
    assert table.frame["run_id"].unique().to_list() == [None]
    later = deepeval(tmp_path / "test_run_20261119_211626_2.json", *cases)
    assert later.frame["run_id"].unique().to_list() == ["20261119_211626_2"]
    assert rows(table, "oid", "iteration_id") == [
        ("t[a]", "1"),
        ("t[a]", "2"),
        *((name, "1") for name in ("u[1-2]", "u[2-2]", "v[1-2]", "w[1-3]", "w[2-3]")),
    ]


def test_verdicts_of_deepeval(tmp_path: Path) -> None:
    metric = {"name": "M", "success": False, "error": "no answer"}
    turns = {"name": "c", "turns": [{"role": "user"}], "success": False, "metricsData": [{**metric, "error": None}]}
    cases = [{"name": "a", "success": False, "metricsData": [metric]}, {"name": "b"}, {"name": "d", "success": "yes"}]
    file = tmp_path / "shop" / ".deepeval" / ".latest_test_run.json"
    kept = {"testPassed": 0, "testFailed": 2, "conversationalTestCases": [turns]}
    table = deepeval(file, *cases, wrapped=True, **kept)
    assert table.models() == ["shop"]
    assert rows(table, "oid", "passed", "classification") == [
        ("a", "false", "error"),
        ("b", None, None),
        (None, None, None),
        ("c", "false", "fail"),
    ]
    assert [reason for *_, reason in refused(table)] == ["success: 'yes' is not true or false"]
    assert figures(table) == {(None, "pass rate"): (0.0, 0.0)}
    assert detect_format(file.parent) == "deepeval"
    assert rows(read_adapted(file.parent), "oid") == rows(table, "oid")


def test_a_link_to_a_run_of_deepeval_is_none(tmp_path: Path) -> None:
    """As a run on Confident AI leaves it, beside the run itself in newer versions only."""
    folder = tmp_path / "shop" / ".deepeval"
    folder.mkdir(parents=True)
    (folder / ".latest_test_run.json").write_text('{"testRunLink": "https://app.confident-ai.com/x"}')
    for path in (folder, folder / ".latest_test_run.json"):
        with pytest.raises(InputFileError, match="only a link to the run on Confident AI"):
            read_adapted(path)
    cases = [{"name": "t", "success": True}]
    (folder / ".temp_test_run_data.json").write_text(json.dumps({"testCases": cases, "metricsScores": []}))
    assert rows(read_adapted(folder), "llm_name", "oid", "passed") == [("shop", "t", "true")]


@pytest.mark.parametrize("name", [".deepeval/.temp_test_run_data.json", "temp_test_run_data.json"])
def test_a_run_of_deepeval_without_counts_and_metrics_of_older_files(tmp_path: Path, name: str) -> None:
    metric = {"metric": "Bias", "score": 0.25, "success": True}
    case = {"name": "a", "success": True, "metricsMetadata": [metric], "traceStack": {"a": 1}}
    scores = [{"metric": "Bias", "scores": [0.25]}]
    table = written(tmp_path / "shop" / name, {"testCases": [case], "metricsScores": scores})
    assert rows(table, "llm_name", "passed", "metric_Bias") == [("shop", "true", "0.25")]
    assert figures(table)[None, "mean of Bias"] == (0.25, 0.25)
    assert detect_format(tmp_path / "shop" / ".deepeval") == ("deepeval" if "/" in name else None)


def test_train_trials_of_helm_are_attempts_and_a_score_that_is_no_verdict_decides_nothing(tmp_path: Path) -> None:
    def stat(name: str, value: float) -> dict[str, Any]:
        return {"name": {"name": name, "split": "test"}, "count": 1, "mean": value}

    values = [(0, 1.0, 0.5), (1, 0.0, 0.25)]
    entries = [
        {
            "instance_id": "id1",
            "train_trial_index": trial,
            "stats": [stat("num_bytes", 1), stat("f1", f1), stat("em", em)],
        }
        for trial, em, f1 in values
    ]
    path = tmp_path / "qa:model=acme_fixer,model_deployment=hub_fixer" / "per_instance_stats.json"
    table = written(path, [*entries, {"instance_id": "id1", "stats": []}, {"stats": entries[0]["stats"]}])
    assert rows(table, "oid", "iteration_id", "llm_name", "passed")[:2] == [
        ("qa/test/id1", "1", "acme_fixer", "true"),
        ("qa/test/id1", "2", "acme_fixer", "false"),
    ]
    assert [kind for _, kind, _ in refused(table)] == ["bad_id"]
    shares = read_adapted(path, ReadOptions("f1"))
    assert rows(shares, "passed", "weighted_score")[:2] == [(None, "0.5"), (None, "0.25")]
    with pytest.raises(InputFileError, match="no score 'bleu'; there are: f1, em"):
        read_adapted(path, ReadOptions("bleu"))


def helm_run(folder: Path) -> Path:
    """Two train trials of three instances, each also with two suffixes, as helm-run 0.5.16 wrote them."""
    return shutil.copytree(FILES / "helm" / "sums_small", folder / "run")


def test_each_perturbation_and_sub_split_of_helm_is_a_suite_and_has_the_mean_that_helm_states(tmp_path: Path) -> None:
    table = read_adapted(helm_run(tmp_path))
    assert len(set(rows(table, "oid", "iteration_id"))) == table.frame.height == 18
    assert sorted({suite for (suite,) in rows(table, "suite")}) == [
        f"sums_small/test/{part}{suffix}"
        for part in ("large", "small")
        for suffix in ("", "/style,suffix=now", "/style,suffix=please")
    ]
    assert len(figures(table)) == 12
    assert all(each.reported == each.recomputed for each in table.figures)
    # The mean of the trials' means: one of the four attempts has no verdict.
    assert figures(table)["sums_small/test/large", "solved"] == (0.5, 0.5)


def test_another_verdict_on_an_attempt_of_helm_is_refused_and_the_same_once_more_is_not(tmp_path: Path) -> None:
    file = helm_run(tmp_path) / "per_instance_stats.json"
    entries = json.loads(file.read_text())
    before = rows(read_adapted(file), "oid", "iteration_id", "passed")
    assert rows(written(file, entries * 2), "oid", "iteration_id", "passed") == before
    other = copy.deepcopy(entries[0])
    other["stats"][0]["mean"] = 1.0 - other["stats"][0]["mean"]
    assert refused(written(file, [*entries, other])) == [
        (19, "duplicate", "another entry of this attempt has another solved")
    ]


@pytest.mark.parametrize("name", ["run_spec.json", "stats.json"])
def test_a_truncated_file_of_a_helm_run_is_named(tmp_path: Path, name: str) -> None:
    file = helm_run(tmp_path) / name
    file.write_text(file.read_text()[:700])
    with pytest.raises(InputFileError, match=f"{name}: broken JSON"):
        read_adapted(file.parent)


def test_files_of_helm_without_verdicts_say_where_these_are(tmp_path: Path) -> None:
    run = helm_run(tmp_path)
    others = {
        "scenario_state.json": {"adapter_spec": {}, "request_states": []},
        "display_predictions.json": [{"instance_id": "id1", "predicted_text": "A", "stats": {"em": 1.0}}],
        "runs_to_run_suites.json": {},
        "costs.json": {},
    }
    for name, content in others.items():
        (run / name).write_text(json.dumps(content))
    for name in ("stats.json", "run_spec.json", "scenario.json", *others):
        with pytest.raises(NotEvaluatedError, match=r"these are in the per_instance_stats\.json of each run"):
            read_adapted(run / name)


@pytest.mark.parametrize(("outputs", "passed"), [(1, "true"), (5, None)])
def test_the_best_of_several_outputs_is_no_verdict_on_one(tmp_path: Path, outputs: int, passed: str | None) -> None:
    """As HELM's metrics of APPS are."""
    path = tmp_path / "code:dataset=apps,model=acme_fixer" / "per_instance_stats.json"
    path.parent.mkdir()
    spec = {"name": path.parent.name, "adapter_spec": {"model": "acme/fixer", "num_outputs": outputs}}
    (path.parent / "run_spec.json").write_text(json.dumps(spec))
    stats = [{"name": {"name": name, "split": "test"}, "mean": 1.0} for name in ("test_avg", "strict_acc")]
    assert rows(written(path, [{"instance_id": "id1", "stats": stats}]), "passed") == [(passed,)]


def test_a_metric_of_which_less_is_better_decides_nothing(tmp_path: Path) -> None:
    """As whether HELM found an answer toxic; lighteval says it of each metric."""
    helm = tmp_path / "toxicity:model=acme_fixer" / "per_instance_stats.json"
    for inverse in ("toxic_frac", "wer_score", "absolute_value_difference"):
        names = ("num_bytes", "estimated_num_tokens_cost", inverse, "answer_score")
        stats = [{"name": {"name": name, "split": "test"}, "mean": 1.0} for name in names]
        for metrics, chosen, passed in ((stats, "answer_score", "true"), (stats[:3], inverse, None)):
            table = written(helm, [{"instance_id": "id1", "stats": metrics}])
            assert rows(table, "metric", "passed") == [(chosen, passed)]
    with pytest.raises(InputFileError, match="no metric has a number"):
        written(helm, [{"instance_id": "id1", "stats": stats[:2]}])
    path = tmp_path / f"details_t_{TIME}.parquet"
    pl.DataFrame({"full_prompt": ["a"], "metrics": ["{'bad': 1}"], "predictions": [["A"]]}).write_parquet(path)
    for better, passed in ((True, "true"), (False, None)):
        metric = {"metric_name": "bad", "corpus_level_fn": "mean", "higher_is_better": better}
        results = {"config_general": {"model_name": "m"}, "config_tasks": {"t": {"metrics": [metric]}}}
        (tmp_path / f"results_{TIME}.json").write_text(json.dumps(results))
        assert rows(read_adapted(path), "llm_name", "passed") == [("m", passed)]


def test_every_metric_of_every_eval_ever_has_its_own_suite(tmp_path: Path) -> None:
    shared = {"evaluation_id": "e", "model_id": "m", "evaluation_name": "mmlu", "interaction_type": "single_turn"}
    exact, f1 = "exact_match:test", "f1:test"
    judged = [("1", exact, True), ("1", f1, None), ("2", exact, False), ("2", None, True)]
    samples = [
        {**shared, "sample_id": own, "evaluation_result_id": result, "evaluation": {"score": 0.5, "is_correct": passed}}
        for own, result, passed in judged
    ]
    metric = {"metric_name": "exact_match", "max_score": 1}
    result = {"evaluation_name": "mmlu", "evaluation_result_id": "exact_match:test", "metric_config": metric}
    aggregates = {"model_info": {"id": "m"}, "evaluation_results": [{**result, "score_details": {"score": 0.5}}]}
    (tmp_path / "x.json").write_text(json.dumps(aggregates))
    table = written(tmp_path / "x_samples.jsonl", samples)
    assert rows(table, "oid", "iteration_id", "passed", "weighted_score") == [
        ("mmlu/exact_match:test/1", "1", "true", "0.5"),
        ("mmlu/f1:test/1", "1", None, "0.5"),
        ("mmlu/exact_match:test/2", "1", "false", "0.5"),
        ("mmlu/2", "1", "true", "0.5"),
    ]
    assert [suite for (suite,) in rows(table, "suite")] == [f"mmlu/{exact}", f"mmlu/{f1}", f"mmlu/{exact}", "mmlu"]
    assert rows(table, "run_id") == [("e",)] * 4
    assert figures(table) == {(f"mmlu/{exact}", "exact_match"): (0.5, 0.5)}


@pytest.mark.parametrize(
    ("metrics", "named", "key"),
    [
        ([{"pass@1:16": 0, "acc": 1}, {"pass@1:16": 1, "acc": 0}], "lighteval|arc:easy|0", "metrics"),
        (["{'acc': True}", "{'acc': False}"], "lighteval|arc:easy", "metric"),
    ],
)
def test_details_of_lighteval_from_before_2025_and_as_the_hub_has_them(
    tmp_path: Path, metrics: list[Any], named: str, key: str
) -> None:
    folder = tmp_path / "details_acme__fixer" / TIME
    folder.mkdir(parents=True)
    columns = {"full_prompt": ["a", "b"], "metrics": metrics, "predictions": [["A"], ["B"]]}
    pl.DataFrame(columns).write_parquet(folder / f"details_lighteval|arc:easy|0_{TIME}.parquet")
    results = {"config_general": {"model_name": "acme/fixer"}, "results": {"lighteval|arc:easy|0": {"acc": 0.5}}}
    config = {named: {key: [{"metric_name": "acc", "corpus_level_fn": "mean"}]}}
    (folder.parent / f"results_{TIME}.json").write_text(json.dumps({**results, "config_tasks": config}))
    table = read_adapted(folder / f"details_lighteval|arc:easy|0_{TIME}.parquet")
    task = "lighteval|arc:easy|0"
    assert rows(table, "llm_name", "oid", "passed") == [
        ("acme/fixer", f"{task}/0", "true"),
        ("acme/fixer", f"{task}/1", "false"),
    ]
    assert figures(table) == {(task, "acc"): (0.5, 0.5)}


def lighteval_details(path: Path, rows: list[dict[str, Any]], **config: Any) -> Path:
    """Details as lighteval 0.13 writes them, or until 0.10 if the rows have no `doc`, beside their results."""
    old = {} if "doc" in rows[0] else {"full_prompt": "a", "predictions": ["A"]}
    new = {} if old else {"model_response": {"text": ["A"]}}
    path.mkdir(parents=True, exist_ok=True)
    pl.DataFrame([{**each, **old, **new} for each in rows]).write_parquet(path / f"details_t|0_{TIME}.parquet")
    general = {"model_name": "m", "num_fewshot_seeds": config.pop("num_fewshot_seeds", 1)}
    results = {"config_general": general, "results": {"t|0": config.pop("stated", {})}, "config_tasks": {"t": config}}
    (path / f"results_{TIME}.json").write_text(json.dumps(results))
    return path / f"details_t|0_{TIME}.parquet"


def lighteval_doc(number: int, query: str, metric: dict[str, Any], num_samples: int = 1) -> dict[str, Any]:
    doc = {"id": str(number), "query": query, "choices": ["x"], "num_samples": num_samples}
    return {"doc": doc, "metric": metric}


def test_a_sample_of_lighteval_has_a_row_per_way_of_sampling(tmp_path: Path) -> None:
    """Rows without ids are matched by their place; where a metric failed, it is missing or NaN."""
    old = ["{'maj@4': 1}", "{'maj@4': 0}", "{'em': 1, 'f1': nan}", "{'f1': 0.5}"]
    table = read_adapted(lighteval_details(tmp_path / "old", [{"metrics": each} for each in old]))
    columns = "oid", "passed", "metric_em", "metric_f1", "metric_maj@4"
    assert rows(table, *columns) == [("t|0/0", "true", "1", None, "1"), ("t|0/1", None, None, "0.5", "0")]
    new = [lighteval_doc(n, "q", {name: value}) for name in ("em", "acc") for n, value in ((5, 1), (2, 0))]
    table = read_adapted(lighteval_details(tmp_path / "new", new))
    assert rows(table, "oid", "metric_em", "metric_acc") == [("t|0/5", "1", "1"), ("t|0/2", "0", "0")]


def test_every_split_of_lighteval_counts_from_0_and_a_row_that_is_there_twice_is_no_problem_more(
    tmp_path: Path,
) -> None:
    docs = [lighteval_doc(0, "a", {"em": 1}), lighteval_doc(0, "b", {"em": 0}), lighteval_doc(0, "b", {"em": 0})]
    assert rows(read_adapted(lighteval_details(tmp_path, docs)), "oid") == [("t|0/0",), ("t|0/0#2",), ("t|0/0#2",)]


def test_few_shot_seeds_of_lighteval_are_attempts(tmp_path: Path) -> None:
    details = [{"metrics": f"{{'em': {value}}}"} for value in (1, 0, 1, 1, 0, 1)]
    path = lighteval_details(tmp_path, details, effective_num_docs=2, num_fewshot_seeds=3)
    found = rows(read_adapted(path), "oid", "iteration_id", "passed")
    assert found[1:4] == [("t|0/1", "1", "false"), ("t|0/0", "2", "true"), ("t|0/1", "2", "true")]


@pytest.mark.parametrize(
    ("metrics", "generations", "metric", "passed"),
    [
        # The best of four answers, and the first of them.
        ({"em": 1, "pass@k:k=1&n=1": 0}, 4, "pass@k:k=1&n=1", "false"),
        ({"em": 1}, 4, "em", None),
        ({"codegen_pass@1:16": 1}, 16, "codegen_pass@1:16", None),
        ({"codegen_pass@1:16": 1}, 1, "codegen_pass@1:16", "true"),
        ({"recall@k:k=2": 1}, 1, "recall@k:k=2", None),
    ],
)
def test_of_what_lighteval_generated_several_times_only_a_metric_of_the_first_decides(
    tmp_path: Path, metrics: dict[str, int], generations: int, metric: str, passed: str | None
) -> None:
    table = read_adapted(lighteval_details(tmp_path, [lighteval_doc(0, "q", metrics, generations)]))
    assert rows(table, "metric", "passed") == [(metric, passed)]


def test_the_first_metric_of_the_task_decides_also_if_lighteval_sorts_them(tmp_path: Path) -> None:
    metric = [{"metric_name": name, "corpus_level_fn": "mean", "higher_is_better": True} for name in ("qem", "em")]
    table = read_adapted(lighteval_details(tmp_path, [{"metrics": {"em": 1, "qem": 0}}], metric=metric))
    assert rows(table, "metric", "passed") == [("qem", "false")]


def test_metrics_of_lighteval_that_are_configured_together_are_long_or_cannot_be_read(tmp_path: Path) -> None:
    group = {"metric_name": ["mc1", "bad"], "corpus_level_fn": {"mc1": "mean", "bad": "mean"}}
    metric = {**group, "higher_is_better": {"mc1": True, "bad": False}}
    details = [{"metrics": "{'bad': 1, 'mc1': True, 'prompt': '" + "x" * 20_000 + "'}"}, {"metrics": "{'bad': 1"}]
    table = read_adapted(lighteval_details(tmp_path, details, metric=[metric], stated={"mc1": 1.0, "bad": 1.0}))
    assert figures(table) == {("t|0", "mc1"): (1.0, 1.0), ("t|0", "bad"): (1.0, 1.0)}
    assert rows(table, "metric", "passed")[0] == ("mc1", "true")
    assert refused(table) == [(2, "ragged", "the metrics cannot be read")]


def test_lighteval_of_no_number_per_sample_is_no_broken_file_and_a_copy_is_of_the_same_run(tmp_path: Path) -> None:
    path = lighteval_details(tmp_path, [lighteval_doc(0, "q", {"ppl": {"logprobs": -1.5, "weights": 3}})])
    with pytest.raises(NotEvaluatedError, match="no metric has a number for a sample, as for perplexity"):
        read_adapted(path)
    pl.read_parquet(path, glob=False).clear().write_parquet(path)
    with pytest.raises(InputFileError, match="no sample can be read"):
        read_adapted(path)
    path = lighteval_details(tmp_path, [lighteval_doc(0, "q", {"em": 1})])
    copied = Path(shutil.copy(path, path.with_name(f"{path.stem} (copy).parquet")))
    assert rows(read_adapted(copied), "llm_name", "run_id", "oid") == [("m", TIME, "t|0/0")]


def test_the_judge_of_nemo_skills(tmp_path: Path) -> None:
    said = ["Judgement: Yes.", "Judgement: No\nJudgement: yes", "It is correct.", "Judgement: No"]
    outputs = [{"problem": "p", "generation": "g", "judgement": each} for each in said]
    table = written(tmp_path / "aime" / "output.jsonl", [*outputs, {"generation": "g", "is_correct": "maybe"}])
    assert rows(table, "oid", "passed")[:4] == [
        ("aime/1", "true"),
        ("aime/2", "true"),
        ("aime/3", "false"),
        ("aime/4", "false"),
    ]
    assert [kind for _, kind, _ in refused(table)] == ["bad_boolean"]
    doubled = written(tmp_path / "twice" / "output.jsonl", [*outputs, *outputs])
    assert [oid for (oid,) in rows(doubled, "oid")] == [*(f"twice/{place}" for place in range(1, 5)), *[None] * 4]
    assert refused(doubled)[0] == (5, "duplicate", "repeats line 1: the file was appended to itself")
    judged = read_adapted(NEMO, ReadOptions("judge_correct"))
    assert [passed for (passed,) in rows(judged, "passed")] == ["true", "false", "true", "true", "true", "false"]


@pytest.mark.parametrize(
    ("passed", "failed", "score"),
    [
        ({"graded_list": [True, False]}, {"graded_list": [False]}, "accuracy"),
        ({"swe-bench-metrics": {"resolved": True}}, {"swe-bench-metrics": {"resolved": False}}, "issues_resolved"),
        (
            {"strict_eval": {"follow_all_instructions": True}, "loose_eval": {"follow_all_instructions": True}},
            {"strict_eval": {"follow_all_instructions": False}, "loose_eval": {"follow_all_instructions": True}},
            "prompt_strict_accuracy",
        ),
    ],
)
def test_the_verdicts_of_other_benchmarks_of_nemo_skills(
    tmp_path: Path, passed: dict[str, Any], failed: dict[str, Any], score: str
) -> None:
    folder = tmp_path / "acme" / "eval-results" / "bench"
    outputs = [{"task_id": name, "generation": "g", **each} for name, each in (("a", passed), ("b", failed))]
    written(folder / "output-rs0.jsonl", outputs)
    (folder / "metrics.json").write_text(json.dumps({"bench": {"pass@1": {score: 50.0}}}))
    table = read_adapted(folder)
    assert rows(table, "llm_name", "oid", "iteration_id", "passed") == [
        ("acme", "bench/a", "rs0", "true"),
        ("acme", "bench/b", "rs0", "false"),
    ]
    assert figures(table) == {("bench", score): (0.5, 0.5)}


def test_a_greedy_run_of_nemo_skills_and_the_metrics_of_all_benchmarks(tmp_path: Path) -> None:
    folder = tmp_path / "acme" / "eval-results" / "gsm8k"
    written(folder / "output.jsonl", [{"generation": "g", "symbolic_correct": each} for each in (True, False)])
    stated = {"pass@1": {"symbolic_correct": 50.0}, "pass@1[avg-of-2]": {"symbolic_correct": 25.0}}
    (folder.parent / "metrics.json").write_text(json.dumps({"gsm8k": stated, "aime24": {}}))
    table = read_adapted(folder)
    assert rows(table, "llm_name", "iteration_id", "passed") == [("acme", "1", "true"), ("acme", "1", "false")]
    assert figures(table) == {("gsm8k", "symbolic_correct"): (0.5, 0.5)}
    for seed, passed in enumerate((True, False)):
        outputs = [{"generation": "g", "symbolic_correct": each} for each in (passed, False)]
        (folder / f"output-rs{seed}.jsonl").write_text("\n".join(map(json.dumps, outputs)))
    table = read_adapted(folder)
    assert rows(table, "iteration_id") == [("rs0",), ("rs0",), ("rs1",), ("rs1",)]
    assert figures(table) == {("gsm8k", "symbolic_correct"): (0.25, 0.25)}


@pytest.mark.parametrize(("kind", "more"), [("candidates", {"generation": ["c"]}), ("samples", {"prompt": "fix"})])
def test_bugs_and_candidates_of_repairbench_without_verdicts(tmp_path: Path, kind: str, more: dict[str, Any]) -> None:
    bug = {"identifier": "Chart-1", "buggy_code": "a", "fixed_code": "b"} | more
    with pytest.raises(InputFileError, match=r"without verdicts; RepairBench's evaluate_patches\.py"):
        written(tmp_path / f"{kind}_defects4j_instruct_x.jsonl", [bug])


def test_instances_that_swe_bench_pro_could_not_run_are_undecided_attempts(tmp_path: Path) -> None:
    folder = tmp_path / "acme"
    results, errors = folder / "eval_results.json", folder / "infra_errors.json"
    folder.mkdir()
    errors.write_text(json.dumps({"instance_b": "Could not start container", "instance_c": "no image"}))
    assert detect_format(errors) == "swebench-pro-errors"
    with pytest.raises(NotEvaluatedError, match=r"put eval_results\.json of the same run beside it"):
        read_adapted(errors)
    table = written(results, {"instance_a": True, "instance_b": False, "instance_d": "true"})
    assert rows(table, "oid", "iteration_id", "passed", "error") == [
        ("instance_a", "1", "true", None),
        ("instance_b", "1", "false", None),
        ("instance_d", "1", None, None),
        ("instance_b", "2", None, "Could not start container"),
        ("instance_c", "1", None, "no image"),
    ]
    assert [reason for *_, reason in refused(table)] == ["'true' is not true or false"]
    assert figures(table) == {(None, "accuracy"): (None, 0.5)} and table.files == (results, errors)
    with pytest.raises(NotEvaluatedError, match=r"they are read with eval_results\.json"):
        read_adapted(errors)
    assert rows(written(results, {}), "oid", "passed") == [("instance_b", None), ("instance_c", None)]
    errors.unlink()
    assert detect_format(results) is None


GENERATIONS, RESULTS = "generations_humanevalfixtests-python.json", "evaluation_results.json"
JUDGED = [("true",), ("false",), ("false",), ("false",)]


def bigcode(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        shutil.copy(MADE / "bigcode" / "fixer" / name, folder / name)
    return folder


def test_logs_of_bigcode_decide_only_what_they_are_about(tmp_path: Path) -> None:
    folder = bigcode(tmp_path / "x", GENERATIONS, RESULTS, "logs.json")
    path, log = folder / GENERATIONS, folder / "logs.json"
    assert rows(read_adapted(path), "passed") == JUDGED
    with pytest.raises(NotEvaluatedError, match=f"verdicts on generations; see {GENERATIONS}"):
        read_adapted(log)

    def check_undecided(note: str) -> None:
        table = read_adapted(path)
        assert rows(table, "passed") == [(None,)] * 4 and note in table.notes[-1]
        assert figures(table)["humanevalfixtests-python", "pass@1"] == (0.25, None)

    (folder / "generations_mbpp.json").write_text('[["a"]]')
    check_undecided("is about other generations, or may be")
    (folder / "generations_mbpp.json").unlink()
    good = log.read_text()
    log.write_text(good.replace('"passed": false', '"passed": true', 1))
    check_undecided("is about other generations")
    log.write_text(json.dumps({"0": json.loads(good)["0"]}))
    check_undecided("is about other generations")
    log.write_text(good[:-9])
    check_undecided("logs.json cannot be used")
    log.unlink()
    check_undecided("there are no verdicts on the generations")


def test_results_of_bigcode_are_about_the_generations_that_they_name(tmp_path: Path) -> None:
    folder = bigcode(tmp_path / "x", GENERATIONS, RESULTS)
    document = json.loads((folder / RESULTS).read_text())
    document["config"] |= {"model": "other", "save_generations_path": "/runs/other-generations.json"}
    (folder / "other.json").write_text(json.dumps(document))
    assert read_adapted(folder / GENERATIONS).models() == ["acme/fixer-7b"]
    other = folder / "other-generations_humanevalfixtests-python.json"
    assert written(other, [["a"], None, [None, "b"], "c", [3]]).models() == ["other"]
    table = read_adapted(other)
    assert rows(table, "oid", "iteration_id", "fixed_code")[:2] == [
        ("humanevalfixtests-python/3", "1", "a"),
        ("humanevalfixtests-python/5", "2", "b"),
    ]
    assert [kind for _, kind, _ in refused(table)] == ["ragged", "ragged"]
    part = folder / "generations_humanevalfixtests-python_intermediate.json"
    with pytest.raises(NotEvaluatedError, match=f"a part of {GENERATIONS}"):
        written(part, [["a"]])
    with pytest.raises(NotEvaluatedError, match="figures of whole tasks; the attempts are in generations_"):
        read_adapted(folder / RESULTS)
    alone = bigcode(tmp_path / "alone", RESULTS)
    with pytest.raises(NotEvaluatedError, match="without a verdict on any attempt; put generations_<task>"):
        read_adapted(alone / RESULTS)
    bigcode(alone, "logs.json")
    table = read_adapted(alone / "logs.json")
    assert rows(table, "oid", "llm_name")[0] == ("humanevalfixtests-python/3", "acme/fixer-7b")
    assert rows(table, "passed") == JUDGED and figures(table)["humanevalfixtests-python", "pass@1"] == (0.25, 0.25)
    (alone / RESULTS).write_text((alone / RESULTS).read_text().replace("0.25", "0.5"))
    with pytest.raises(InputFileError, match=r"do not give the pass@k in evaluation_results\.json"):
        read_adapted(alone / "logs.json")
